/* Quantized weights: how they are made, looked up and multiplied with.
 *
 * base/weight_format.h has the formats.
 *
 * Products with integers: each row of x is rounded to x ≈ s·p, s = max|x|/127, |p| ≤ 127, and
 *
 *   y = (Σ_groups scale·Σ p·q)·s + bias
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

extern const char *const qkv_weight_names[]; /* ends with NULL */

/* Longest row of a product with integers: 127·127·2¹⁶ < 2³¹. */
#define QKV_WEIGHT_COLS_MAX 65536

int64_t qkv_weight_row_bytes(qkv_weight_format format, int64_t cols);
int64_t qkv_weight_groups(qkv_weight_format format, int64_t cols); /* scales of a row */
static inline bool qkv_weight_is_integer(const qkv_weight *w) {
    return w->format == QKV_WEIGHT_INT8 || w->format == QKV_WEIGHT_INT4;
}

/* Rounds one row of floats to `format` (not F32). */
void qkv_weight_row_make(qkv_weight_format format, const real *x, int64_t cols, void *data,
                         float *scale);
/* out[j] = factor·w[row][j] */
void qkv_weight_row_value(const qkv_weight *w, int64_t row, real factor, real *out);

#endif
