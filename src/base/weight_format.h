/* How the values of a matrix (rows = outputs, cols = inputs) are stored for inference; quantized
 * where the format has less precision than a float.
 *
 * Rows lie one after another, so that a mapped file serves as it is, and a row can be looked up
 * (embeddings) as well as multiplied with. What a format is, is a row of the table:
 *
 *   f32    the parameter itself
 *   bf16   the upper half of a float; expanded when used, or multiplied as it is by rows rounded to
 *          bf16 where the CPU can
 *   int8   w ≈ scale[row]·q,             |q| ≤ 127
 *   int4   w ≈ scale[row][col / 32]·(q − 8),  1 ≤ q ≤ 15; a group of 32 is 16 bytes:
 *          elements 0 … 15 in the low halves, 16 … 31 in the high ones. A row ends with a whole
 *          group, filled with q = 8 (zero). */
#ifndef QKV_BASE_WEIGHT_FORMAT_H
#define QKV_BASE_WEIGHT_FORMAT_H

#include <stdint.h>

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

typedef struct qkv_weight {
    qkv_weight_format format;
    int64_t rows, cols;
    const void *data;   /* rows of qkv_weight_row_bytes each */
    const float *scale; /* qkv_weight_groups per row; NULL when the format has none */
} qkv_weight;

#endif
