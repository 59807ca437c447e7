/* How sequences lie in a matrix of rows: packed one after another without padding, with gaps, or as
 * a list of rows (a KV cache, where sequences with a common prefix share its rows).
 * Sequence s owns rows start[s] … start[s] + len(s) − 1, or those that `rows` has at these
 * places. */
#ifndef QKV_BASE_LAYOUT_H
#define QKV_BASE_LAYOUT_H

#include <assert.h>
#include <stdint.h>

typedef struct qkv_layout {
    int32_t n;            /* sequences */
    const int32_t *start; /* n + 1 entries when packed, n when `len` is given */
    const int32_t *len;   /* NULL when packed: lengths are the differences of `start` */
    const int32_t *rows;  /* NULL: each is where its place says */
} qkv_layout;

static inline int32_t qkv_layout_len(const qkv_layout *l, int32_t s) {
    assert(s >= 0 && s < l->n);
    return l->len ? l->len[s] : l->start[s + 1] - l->start[s];
}

/* Row j of sequence s. */
static inline int64_t qkv_layout_row(const qkv_layout *l, int32_t s, int64_t j) {
    assert(j >= 0 && j < qkv_layout_len(l, s));
    return l->rows ? l->rows[l->start[s] + j] : l->start[s] + j;
}

#endif
