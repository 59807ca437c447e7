/* Weights in fewer bits: how a matrix (rows = outputs, cols = inputs) is kept for inference.
 *
 * Rows lie one after another, so that a mapped file serves as it is, and a row can be looked up (embeddings) as
 * well as multiplied by. What a format is, is a row of the table:
 *
 *   f32    the parameter itself
 *   bf16   the upper half of a float; expanded when used, or multiplied as it is by rows rounded to bf16 where the CPU can
 *   int8   w ≈ scale[row]·q,             |q| ≤ 127
 *   int4   w ≈ scale[row][col / 32]·(q − 8),  1 ≤ q ≤ 15; a group of 32 is 16 bytes: elements 0 … 15 in the low
 *          halves, 16 … 31 in the high ones. A row ends with a whole group, filled with q = 8 (zero).
 *
 * Products with integers: each row of x is rounded to x ≈ s·p, s = max|x|/127, |p| ≤ 127, and
 *
 *   y = (Σ_groups scale·Σ p·q)·s + bias
 *
 * with the inner sums in int32, exact in any order, and the rest rounded as written: all instruction sets, batches
 * and numbers of threads give the same bits. */
#ifndef QKV_KERN_WEIGHT_H
#define QKV_KERN_WEIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/real.h"

/* id, name, bits of an element, elements of a group that share a scale (0: none, −1: a row) */
#define QKV_WEIGHT_TABLE(X)                                                                        \
    X(F32, f32, 32, 0)                                                                             \
    X(BF16, bf16, 16, 0)                                                                           \
    X(INT8, int8, 8, -1)                                                                           \
    X(INT4, int4, 4, 32)

typedef enum qkv_weight_format {
#define QKV_WEIGHT_ENUM(id, name, bits, group) QKV_WEIGHT_##id,
    QKV_WEIGHT_TABLE(QKV_WEIGHT_ENUM)
#undef QKV_WEIGHT_ENUM
        QKV_WEIGHT_FORMATS
} qkv_weight_format;
extern const char *const qkv_weight_names[]; /* ends with NULL */

typedef struct qkv_weight {
    qkv_weight_format format;
    int64_t rows, cols;
    const void *data;   /* rows of qkv_weight_row_bytes each */
    const float *scale; /* qkv_weight_groups a row; NULL when the format has none */
} qkv_weight;

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
