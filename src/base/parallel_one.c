/* A build without MPI: one rank, which owns everything. */
#ifndef QKV_MPI
#include "base/parallel.h"

#include <stdio.h>

qkv_status qkv_parallel_begin(void) {
    return QKV_OK;
}

void qkv_parallel_end(void) {}

void qkv_parallel_library(char *out, size_t n) {
    snprintf(out, n, "none (QKV_MPI builds with it)");
}

int qkv_parallel_rank(void) {
    return 0;
}

int qkv_parallel_size(void) {
    return 1;
}

qkv_status qkv_parallel_agree(qkv_status mine) {
    return mine;
}

bool qkv_parallel_any(bool mine) {
    return mine;
}

void qkv_parallel_sum(double *x, int n) {
    (void)x, (void)n;
}

void qkv_parallel_share(void *data, size_t n) {
    (void)data, (void)n;
}

bool qkv_parallel_reduce(real *x, const int64_t *cut) {
    (void)x, (void)cut;
    return true;
}

void qkv_parallel_reduce_from(real *x, const int64_t *cut, int64_t final) {
    (void)x, (void)cut, (void) final;
}

void qkv_parallel_gather(void *x, size_t item, const int64_t *cut) {
    (void)x, (void)item, (void)cut;
}

void qkv_parallel_collect(void *x, size_t item, const int64_t *cut) {
    (void)x, (void)item, (void)cut;
}

void qkv_parallel_release(real *x, const int64_t *cut) {
    (void)x, (void)cut;
}

#endif
