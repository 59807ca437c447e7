/* How sequences lie in a matrix of rows: no padding, one after another, or with gaps (a KV cache).
 * Sequence s owns rows start[s] … start[s] + length(s) − 1. */
#ifndef QKV_BASE_LAYOUT_H
#define QKV_BASE_LAYOUT_H

#include <stdint.h>

typedef struct qkv_layout {
    int32_t n;            /* sequences */
    const int32_t *start; /* n + 1 entries when packed, n when `length` is given */
    const int32_t *len;   /* NULL when packed: lengths are the differences of `start` */
} qkv_layout;

static inline int32_t qkv_layout_len(const qkv_layout *l, int32_t s) {
    return l->len ? l->len[s] : l->start[s + 1] - l->start[s];
}

#endif
