/* Benchmarks, for the command: they are linked into it and are no part of the library. */
#ifndef QKV_BENCH_BENCH_H
#define QKV_BENCH_BENCH_H

#include "qkv.h"

/* Runs the benchmark `name`; pairs are "key=value", NULL at the end (or NULL for none). *text is
 * freed by qkv_text_free. */
qkv_status qkv_bench(const char *name, const char *const *pairs, bool json, char **text);
/* Row i of the table of benchmarks; false past its end. */
bool qkv_bench_row(size_t i, const char **name, const char **summary);

#endif
