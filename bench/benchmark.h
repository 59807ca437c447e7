/* Benchmarks: a table by name (bench.def), each one file bench_<name>.c with one const struct.
 *
 * A benchmark gets key=value pairs, appends a table for people or a JSON object to `out`, and names
 * the keys it knows, so that a misspelt one is an error and not a silent default. */
#ifndef QKV_BENCH_BENCHMARK_H
#define QKV_BENCH_BENCHMARK_H

#include "base/buf.h"
#include "kern/kern.h"

typedef struct qkv_bench_args {
    const char *const *pairs; /* "key=value" */
    size_t n;
    bool json;
} qkv_bench_args;

typedef struct qkv_benchmark {
    const char *const
        *keys; /* NULL at the end; a first key "*" takes any, to be checked by `run` */
    qkv_status (*run)(const qkv_bench_args *args, qkv_buf *out);
} qkv_benchmark;

/* The last value given for `key`, or `otherwise`. */
const char *qkv_bench_text(const qkv_bench_args *args, const char *key, const char *otherwise);
/* Leaves *value, the default, alone when the key was not given; a usage error names key and bounds.
 */
qkv_status qkv_bench_int(const qkv_bench_args *args, const char *key, int64_t min, int64_t max,
                         int64_t *value);
qkv_status qkv_bench_real(const qkv_bench_args *args, const char *key, double min, double max,
                          double *value);
/* Key "precision". */
qkv_status qkv_bench_precision(const qkv_bench_args *args, qkv_precision *value);
/* Walks all values of a key that may be repeated: start with *cursor = 0; NULL at the end. */
const char *qkv_bench_next(const qkv_bench_args *args, const char *key, size_t *cursor);

#endif
