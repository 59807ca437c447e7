/* The product with weights in blocks that have their scales inside (kern/blocks.h).
 *
 * x is rounded by runs of 32 numbers: x ≈ s·p, s = max|x|/32512, |p| ≤ 32512: finer than what bf16
 * and f16 keep, and it costs little, since making panels takes more time than using them. With
 * w = scale·(u − zero) − offset, which is the same for the 16 or 32 weights of a group g,
 *
 *   y = Σ_g ((scale_g·Σ p·(u − zero))·s_g − offset_g·(s_g·Σ p)) + bias
 *
 * The sums inside are of integers, exact in any order (Σ p·u starts at −zero·Σ p); the outer one
 * runs over g in order, each operation rounded to float. So all instruction sets, batches and
 * numbers of threads give the same bits, and nothing of the file is rounded.
 *
 * Where a word is four bytes, p is two of them, p = 256·high + low (32512 = 127·256, so that both are
 * bytes with sign): the sum of the high ones is shifted, then the low ones are added.
 *
 * A panel is NR outputs by BLOCK_CHUNK inputs, made where it is used: words as in gemm_int.h
 * (without sign: u is the first factor), scales and offsets NR at a time. A strip of rows is cut in
 * tiles of at most MR rows, for each of which words, scales and sums lie side by side. */
#ifndef QKV_KERN_ISA_GEMM_BLOCK_H
#define QKV_KERN_ISA_GEMM_BLOCK_H

#include "kern/isa/gemm.h"

#define BLOCK_CHUNK  256 /* inputs of a panel; a block of any type fits */
#define BLOCK_WORDS  (BLOCK_CHUNK / WORD_INPUTS)
#define BLOCK_GROUPS (BLOCK_CHUNK / 16)

typedef struct block_panel {
    int32_t words[BLOCK_WORDS * NR];
    float scale[BLOCK_GROUPS * NR], offset[BLOCK_GROUPS * NR];
} block_panel;

/* What the kernels must know of a format. */
typedef struct block_form {
    int elements, bytes; /* of a block */
    int group, zero;
    bool offset;
} block_form;
static inline block_form block_form_of(qkv_weight_format format) {
#define ROW(id, name, number, elements, bytes, group, zero, offset)                                \
    {elements, bytes, group, zero, offset},
    static const block_form forms[] = {QKV_BLOCK_TABLE(ROW)};
#undef ROW
    return forms[format - QKV_WEIGHT_F16 - 1];
}

/* Inputs k0 … k0 + k − 1 ≤ BLOCK_CHUNK of outputs col … col + NR − 1; zeros past the last output. */
void KERN_NAME(gemm_block_panel)(const qkv_weight *w, int64_t col, int64_t k0, int64_t k,
                                 block_panel *out);

#define X_WORDS 16 /* of 32 inputs at 16 bits */

/* `rows` rounded rows of x (a tile), all of K. Element (w, i) is at [w·rows + i]. */
typedef struct block_rows {
    int32_t *words; /* X_WORDS of each 32 inputs: high bytes, then low ones; or 16 bits */
    float *scale;   /* by 32 */
    int32_t *start; /* by group: −zero·Σ p */
    float *part;    /* by group: s·Σ p */
} block_rows;
/* Places of 32 bits that a row of k inputs takes in all of them. */
static inline int64_t block_row_size(int64_t k) {
    return k / 32 * X_WORDS + k / 32 + 2 * (k / 16);
}
static inline block_rows block_rows_at(int32_t *memory, int64_t k, int rows) {
    block_rows r = {.words = memory};
    r.scale = (float *)(r.words + k / 32 * X_WORDS * rows);
    r.start = (int32_t *)(r.scale + k / 32 * rows);
    r.part = (float *)(r.start + k / 16 * rows);
    return r;
}
/* Rounds a row of x to place i of a tile. */
void KERN_NAME(gemm_block_row)(const real *x, int64_t k, const block_form *form, int rows, int i,
                               const block_rows *to);

/* sums[i][j] += the groups of a chunk. */
typedef struct block_tile {
    const int32_t *words, *start; /* of the tile's rows, from the chunk's first */
    const float *scale, *part;
    const block_panel *panel;
    int groups;
    float *sums; /* (rows, NR) */
} block_tile;
typedef void (*block_tile_fn)(const block_tile *t);
block_tile_fn KERN_NAME(gemm_block_tile_of)(int rows, const block_form *form);

/* The product with g->weight in such a format, in several parts, or in f16. */
bool KERN_NAME(gemm_foreign)(const qkv_gemm *g);
/* act and pre of finished outputs, and the product as a whole; from gemm.c */
bool KERN_NAME(gemm)(const qkv_gemm *g);
void KERN_NAME(gemm_finish)(const qkv_gemm *g, int64_t at, int rows, int64_t cols);

#endif
