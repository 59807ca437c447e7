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
 *          group, filled with q = 8 (zero).
 *
 * Those are ours. The second table has the types of GGUF files, which are used as they lie there; a
 * row is whole blocks, each with its scales inside, and kern/blocks.h says how one is read. */
#ifndef QKV_BASE_WEIGHT_FORMAT_H
#define QKV_BASE_WEIGHT_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

/* id, name, bits of an element, elements of a group that share a scale (0: none, −1: a row) */
#define QKV_WEIGHT_TABLE(X)                                                                        \
    X(F32, f32, 32, 0)                                                                             \
    X(BF16, bf16, 16, 0)                                                                           \
    X(INT8, int8, 8, -1)                                                                           \
    X(INT4, int4, 4, 32)

/* id, name, the type's number in a file, elements and bytes of a block; elements that share a scale,
 * the integer that stands for 0, is there an offset (kern/blocks.h) */
#define QKV_BLOCK_TABLE(X)                                                                         \
    X(Q4_0, q4_0, 2, 32, 18, 32, 8, false)                                                         \
    X(Q4_1, q4_1, 3, 32, 20, 32, 0, true)                                                          \
    X(Q5_0, q5_0, 6, 32, 22, 32, 16, false)                                                        \
    X(Q5_1, q5_1, 7, 32, 24, 32, 0, true)                                                          \
    X(Q8_0, q8_0, 8, 32, 34, 32, 128, false)                                                       \
    X(Q2_K, q2_k, 10, 256, 84, 16, 0, true)                                                        \
    X(Q3_K, q3_k, 11, 256, 110, 16, 4, false)                                                      \
    X(Q4_K, q4_k, 12, 256, 144, 32, 0, true)                                                       \
    X(Q5_K, q5_k, 13, 256, 176, 32, 0, true)                                                       \
    X(Q6_K, q6_k, 14, 256, 210, 16, 32, false)                                                     \
    X(IQ4_NL, iq4_nl, 20, 32, 18, 32, 128, false)                                                  \
    X(IQ4_XS, iq4_xs, 23, 256, 136, 32, 128, false)

typedef enum qkv_weight_format {
#define QKV_WEIGHT_ENUM(id, name, bits, group) QKV_WEIGHT_##id,
    QKV_WEIGHT_TABLE(QKV_WEIGHT_ENUM)
#undef QKV_WEIGHT_ENUM
        QKV_WEIGHT_F16, /* of GGUF and safetensors files; the first that is not ours */
#define QKV_WEIGHT_ENUM(id, name, number, elements, bytes, group, zero, offset) QKV_WEIGHT_##id,
    QKV_BLOCK_TABLE(QKV_WEIGHT_ENUM)
#undef QKV_WEIGHT_ENUM
        QKV_WEIGHT_FORMATS
} qkv_weight_format;
#define QKV_WEIGHT_OURS QKV_WEIGHT_F16 /* so many, from 0 on */

typedef struct qkv_weight {
    qkv_weight_format format;
    int64_t rows, cols;
    const void *data;   /* rows of qkv_weight_row_bytes each */
    const float *scale; /* qkv_weight_groups per row; NULL when the format has none */
    /* A matrix whose rows lie in several places, perhaps in several formats: n_parts matrices of the
     * same cols, one below the other; `format`, `data` and `scale` then say nothing. */
    const struct qkv_weight *parts;
    int32_t n_parts;
    /* Of blocks: products with their floats instead of rows rounded to int8; slow, for comparisons. */
    bool exact;
} qkv_weight;

extern const char *const qkv_weight_names[]; /* of our own formats; ends with NULL */
const char *qkv_weight_format_name(qkv_weight_format format); /* of any */
/* The format of a type's number in a GGUF file (false: none that is read), and the number of a
 * format (−1: it has none). */
bool qkv_weight_of_gguf(uint32_t number, qkv_weight_format *out);
int qkv_weight_gguf_number(qkv_weight_format format);
/* A row has whole blocks of so many elements; 1: any number. */
int qkv_weight_block(qkv_weight_format format);
int64_t qkv_weight_row_bytes(qkv_weight_format format, int64_t cols);
int64_t qkv_weight_groups(qkv_weight_format format, int64_t cols); /* scales of a row */

#endif
