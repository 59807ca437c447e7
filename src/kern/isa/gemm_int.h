/* The parts of the product with integer weights; kern/weight.h says what is computed.
 *
 * A word is 32 bits of neighbouring inputs. With VNNI it is four bytes, multiplied and summed by one instruction; as
 * that takes its first operand without sign, p + 128 stands there, and the sum starts at −128·Σ q. Elsewhere it is
 * two 16-bit integers (vpmaddwd): multiplying bytes (vpmaddubsw) saturates at 2¹⁵, needs the signs moved from one
 * factor to the other, and has the same limit, two instructions a cycle on the multipliers; so widening costs nothing but
 * cache. A byte order in which widening is two shifts is used there: inputs 0, 2 in one word and 1, 3 in the next.
 *
 * A panel is NR outputs: for each group of inputs that share a scale the scales, the starts of the sums and then the
 * words, NR at a time. */
#ifndef QKV_KERN_ISA_GEMM_INT_H
#define QKV_KERN_ISA_GEMM_INT_H

#include "kern/isa/gemm.h"

#if VW == 16
#define WORD_INPUTS 4
#else
#define WORD_INPUTS 2
#endif
#define QUANT_STEP (4 * VW) /* inputs packed at a time */

/* Rows are filled with zeros to whole steps and groups. */
static inline int64_t int_whole(int64_t k) {
    const int64_t unit = QUANT_STEP > 32 ? QUANT_STEP : 32;
    return (k + unit - 1) / unit * unit;
}

typedef float vfloat __attribute__((vector_size(VW * 4), aligned(4), may_alias));
typedef int32_t vword __attribute__((vector_size(VW * 4), aligned(4), may_alias));
typedef int16_t vshort __attribute__((vector_size(VW * 4), aligned(4), may_alias));

static inline vword i_load(const int32_t *p) {
    return *(const vword *)p;
}
static inline void i_store(int32_t *p, vword x) {
    *(vword *)p = x;
}

#if VW == 16 && !defined(__AVX512VNNI__)
#define EMULATED                                                                                   \
    __attribute__((noinline, unused)) /* by the hundred, inlined, it takes a minute to compile */
#else
#define EMULATED inline __attribute__((always_inline))
#endif

/* s += Σ over the inputs of a word a·b */
static EMULATED void int_add_words(vword *s, vword a, vword b) {
#if defined(__AVX512VNNI__)
    *s = (vword)_mm512_dpbusd_epi32((__m512i)*s, (__m512i)a, (__m512i)b);
    __asm__ volatile("" : "+v"(*s));
#elif VW == 16
    V_UNROLL(4)
    for (int q = 0; q < 4; q++) *s += (a >> 8 * q & 255) * (b << (24 - 8 * q) >> 24);
#elif defined(__AVX2__)
    __m256i product;
    __asm__ volatile("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"
                     : "+x"(*s), "=&x"(product)
                     : "x"(a), "x"(b));
#elif defined(__SSE2__)
    *s += (vword)__builtin_ia32_pmaddwd128((__attribute__((vector_size(16))) short)a,
                                           (__attribute__((vector_size(16))) short)b);
#else
    *s += (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
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

/* Rounds a row of k inputs to words at out[0], out[step], …; returns its scale (NaN when the row is not finite). */
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

/* At most INT_FEW rows of int8 weights: outputs [col0, col1). scratch has (INT_FEW + 1)·(words of a row) places. */
#if VW == 16
#define INT_FEW 8
#else
#define INT_FEW 4
#endif
void KERN_NAME(gemm_int_few)(const qkv_gemm *g, int64_t col0, int64_t col1, int32_t *scratch);

/* act and pre of a finished tile; from gemm.c */
void KERN_NAME(gemm_finish)(const qkv_gemm *g, int64_t at, int rows, int64_t cols);
/* The product with g->weight, an integer format; and all its panels, for many products; from gemm_int.c */
bool KERN_NAME(gemm_int)(const qkv_gemm *g);
size_t KERN_NAME(gemm_int_pack_size)(const qkv_gemm *g);
void KERN_NAME(gemm_int_pack)(const qkv_gemm *g, real *out);

#endif
