/* The parts of the product with integer weights; kern/weight.h says what is computed.
 *
 * A word is 32 bits of neighbouring inputs. With VNNI it is four bytes, multiplied and summed by
 * one instruction; as that takes its first operand without sign, p + 128 stands there, and the sum
 * starts at −128·Σ q. Elsewhere it is two 16-bit integers (vpmaddwd): multiplying bytes
 * (vpmaddubsw) saturates at 2¹⁵, needs the signs moved from one factor to the other, and has the
 * same limit, two instructions per cycle on the multipliers; so widening costs nothing but cache. A
 * byte order in which widening is two shifts is used there: inputs 0, 2 in one word and 1, 3 in the
 * next.
 *
 * A panel is NR outputs: for each group of inputs that share a scale the scales, the starts of the
 * sums and then the words, NR at a time. */
#ifndef QKV_KERN_ISA_GEMM_INT_H
#define QKV_KERN_ISA_GEMM_INT_H

#include "kern/isa/gemm.h"

#define QUANT_STEP (4 * VW) /* inputs packed at a time */

/* Rows are filled with zeros to whole steps and groups. */
static inline int64_t int_whole(int64_t k) {
    const int64_t unit = QUANT_STEP > 32 ? QUANT_STEP : 32;
    return (k + unit - 1) / unit * unit;
}

static inline vword i_load(const int32_t *p) {
    return *(const vword *)p;
}
static inline void i_store(int32_t *p, vword x) {
    *(vword *)p = x;
}

/* Transposes a VW×VW block of words. */
static inline void i_transpose(vword x[VW]) {
#ifdef QKV_DOUBLE
    for (int i = 0; i < VW; i++)
        for (int j = 0; j < i; j++) {
            const int32_t other = x[i][j];
            x[i][j] = x[j][i], x[j][i] = other;
        }
#else
    vreal t[VW]; /* shuffles move bits, whatever they mean */
    V_UNROLL(16)
    for (int i = 0; i < VW; i++) t[i] = (vreal)x[i];
    v_transpose(t);
    V_UNROLL(16)
    for (int i = 0; i < VW; i++) x[i] = (vword)t[i];
#endif
}

/* How the weights of one matrix are cut. */
typedef struct int_shape {
    int64_t groups;
    int64_t words;  /* of a group */
    int64_t stride; /* 32-bit places from one group of a panel to the next */
} int_shape;

static inline int_shape int_shape_of(const qkv_weight *w) {
    const int64_t whole = int_whole(w->cols);
    const bool grouped = w->format == QKV_WEIGHT_INT4;
    const int64_t inputs = grouped ? 32 : whole;
    return (int_shape){.groups = grouped ? whole / 32 : 1,
                       .words = inputs / WORD_INPUTS,
                       .stride = (2 + inputs / WORD_INPUTS) * NR};
}

/* Panel of outputs col … col + NR − 1, zeros past the last. */
void KERN_NAME(gemm_int_panel)(const qkv_weight *w, int64_t col, int32_t *out);

/* Rounds a row of k inputs to words at out[0], out[step], …; returns its scale (NaN when the row is
 * not finite). */
float KERN_NAME(gemm_int_row)(const real *x, int64_t k, int64_t step, int32_t *out);

typedef struct int_tile {
    int_shape shape;
    const int32_t
        *a; /* word w of row i: a[i·lda + w], or a[w·MR + i] where gemm_int_in_place is false */
    int64_t lda;
    const float *scale; /* of the rows */
    const int32_t *b;   /* a panel */
    const real *bias;   /* NR */
    float *sums; /* room for MR·NR: of all groups but the last, whose sums stay in registers */
    bool relu;   /* here, while the sums are at hand; others by gemm_finish */
    real *c;
    int64_t ldc;
} int_tile;
typedef void (*int_tile_fn)(const int_tile *t);
static inline bool gemm_int_in_place(void) {
    return MR <= 8;
}
int_tile_fn KERN_NAME(gemm_int_tile_of)(int mr);

/* At most INT_FEW rows of int8 weights: outputs [col0, col1). scratch has (INT_FEW + 1)·(words of a
 * row) places. */
void KERN_NAME(gemm_int_few)(const qkv_gemm *g, int64_t col0, int64_t col1, int32_t *scratch);

/* act and pre of a finished tile; from gemm.c */
void KERN_NAME(gemm_finish)(const qkv_gemm *g, int64_t at, int rows, int64_t cols);
/* The product with g->weight, an integer format; and all its panels, for many products; from
 * gemm_int.c */
bool KERN_NAME(gemm_int)(const qkv_gemm *g);
size_t KERN_NAME(gemm_int_pack_size)(const qkv_gemm *g);
void KERN_NAME(gemm_int_pack)(const qkv_gemm *g, real *out);

#endif
