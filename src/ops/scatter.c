#include "ops/scatter.h"
#include "base/thread.h"

#include <assert.h>

#define DIGIT 2048 /* of the radix sort */
#define STRIP 256  /* columns of one item */

/* Orders 0 … n−1 by id, keeping the order of equal ones; two arrays of n take turns. Returns the
 * one with the result. */
static int32_t *sort_by_id(const qkv_scatter *s, int32_t *order, int32_t *spare, int32_t *count) {
    for (int32_t i = 0; i < s->n; i++) order[i] = i;
    for (int64_t unit = 1; unit < s->limit; unit *= DIGIT) {
        for (int k = 0; k <= DIGIT; k++) count[k] = 0;
        for (int64_t i = 0; i < s->n; i++) count[s->ids[i] / unit % DIGIT + 1]++;
        for (int k = 0; k < DIGIT; k++) count[k + 1] += count[k];
        for (int64_t i = 0; i < s->n; i++)
            spare[count[s->ids[order[i]] / unit % DIGIT]++] = order[i];
        int32_t *swap = order;
        order = spare;
        spare = swap;
    }
    return order;
}

/* One strip of columns of the row that order[0 … n−1] all go to. */
static void add_group(const qkv_scatter *s, const int32_t *order, int64_t n, int64_t col,
                      int64_t cols) {
    real *restrict to = s->to + s->ids[order[0]] * s->ld + col;
    for (int64_t i = 0; i < n; i++) {
        const int32_t k = order[i];
        const real *restrict from = s->from + (s->source ? s->source[k] : k) * s->d + col;
        const real w = s->weights ? s->scale * s->weights[k] : s->scale;
        for (int64_t j = 0; j < cols; j++) to[j] += w * from[j];
    }
}

bool qkv_scatter_add(qkv_tape *t, const qkv_op *op, const qkv_scatter *s) {
    assert(s->n >= 0 && s->n <= INT32_MAX && s->limit >= 1 && s->d <= s->ld);
    int32_t *memory = qkv_tape_alloc(t, op, (size_t)(3 * s->n + DIGIT + 2) * sizeof *memory);
    if (!memory) return false;
    int32_t *starts = memory + 2 * s->n;
    const int32_t *order = sort_by_id(s, memory, memory + s->n, starts + s->n + 1);
    int32_t groups = 0;
    for (int32_t i = 0; i < s->n; i++)
        if (i == 0 || s->ids[order[i]] != s->ids[order[i - 1]]) starts[groups++] = i;
    starts[groups] = (int32_t)s->n;
    const int64_t strips = (s->d + STRIP - 1) / STRIP;
    QKV_PARALLEL_FOR_UNEVEN
    for (int64_t item = 0; item < groups * strips; item++) {
        const int64_t g = item / strips, col = item % strips * STRIP;
        add_group(s, order + starts[g], starts[g + 1] - starts[g], col,
                  s->d - col < STRIP ? s->d - col : STRIP);
    }
    return true;
}
