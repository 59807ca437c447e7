/* Models with random weights, for measuring how fast they are used. */
#ifndef QKV_BENCH_MODEL_H
#define QKV_BENCH_MODEL_H

#include "bench/benchmark.h"
#include "task/task.h"

typedef struct qkv_bench_model {
    qkv_model *model; /* opened from a file, as users' models are */
    qkv_weight_format format;
    double bytes; /* of the file */
} qkv_bench_model;

/* `weights` and `save` are keys: the format of the matrices (f32), and a file to leave the weights
 * in (a temporary one), so that other programs can do the same work.
 * Unknown keys are the model's, over `settings`. */
qkv_status qkv_bench_model_make(const qkv_bench_args *args, const char *const *own_keys,
                                qkv_task_kind task, const char *settings, qkv_bench_model *out);
void qkv_bench_model_free(qkv_bench_model *m);

/* Appends {"key": value, …} or a table of "key value" lines. */
typedef struct qkv_bench_figure {
    const char *key;
    double value;
} qkv_bench_figure;
void qkv_bench_report(const qkv_bench_figure *rows, size_t n, bool json, qkv_buf *out);

#endif
