/* The works by which training speed is compared, and synthetic data for them. */
#ifndef QKV_BENCH_WORKS_H
#define QKV_BENCH_WORKS_H

#include "data/batcher.h"
#include "task/task.h"

typedef struct qkv_bench_work {
    const char *name;
    qkv_task_kind task;
    const char *settings; /* of the model, for qkv_settings_assign */
    int64_t batch_tokens;
    int64_t examples; /* to generate */
    /* Length of side `side` of example i, of a distribution like the real data's. */
    int64_t (*length)(uint64_t i, int side);
} qkv_bench_work;

const qkv_bench_work *qkv_bench_work_find(const char *name); /* NULL: no such work */
const qkv_bench_work *qkv_bench_work_at(size_t i);           /* NULL past the last */

/* Synthetic examples: lengths of the work's distribution, ids by Zipf's law, labels at random. */
qkv_status qkv_bench_work_make(const qkv_bench_work *w, const qkv_config *config, qkv_encoded *out);

/* Reads ids, so that other programs can do the same work: a line is an example, ids separated by
 * blanks, the sides by a TAB; labels are drawn at random. */
qkv_status qkv_bench_work_read(const char *path, const qkv_config *config, qkv_encoded *out);

#endif
