/* Quantized weights: how they are made, looked up and multiplied with.
 *
 * base/weight_format.h has the formats.
 *
 * Products with integers: each row of x is rounded to x ≈ s·p, s = max|x|/127, |p| ≤ 127, and
 *
 *   y = (Σ_groups scale·Σ p·q)·s + bias
 *
 * (of formats with their scales inside: with a scale s for every 32 numbers of x; see
 * kern/isa/gemm_block.h)
 *
 * with the inner sums in int32, exact in any order, and the rest rounded as written: all
 * instruction sets, batches and numbers of threads give the same bits. */
#ifndef QKV_KERN_WEIGHT_H
#define QKV_KERN_WEIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/real.h"
#include "base/weight_format.h"

/* Longest row of a product with integers: 127·127·2¹⁶ < 2³¹. */
#define QKV_WEIGHT_COLS_MAX 65536

static inline bool qkv_weight_is_integer(const qkv_weight *w) {
    return !w->n_parts && (w->format == QKV_WEIGHT_INT8 || w->format == QKV_WEIGHT_INT4);
}
/* Is it one of the formats with scales inside their blocks? */
static inline bool qkv_weight_is_blocks(const qkv_weight *w) {
    return !w->n_parts && w->format > QKV_WEIGHT_F16;
}
/* Is there something to gain from packing it for use? The others are used where they lie. */
static inline bool qkv_weight_can_pack(const qkv_weight *w) {
    return !w->n_parts && w->format <= QKV_WEIGHT_INT4;
}

/* Rounds one row of floats to `format` (bf16, int8, int4). */
void qkv_weight_row_make(qkv_weight_format format, const real *x, int64_t cols, void *data,
                         float *scale);
/* out[j] = factor·w[row][j] */
void qkv_weight_row_value(const qkv_weight *w, int64_t row, real factor, real *out);

#endif
