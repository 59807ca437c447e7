/* Few rows against int8 weights: a dot product along each row of weights, where it lies.
 *
 * Turning weights into panels costs more than using them a few times. Sums of integers have no
 * order, so here a lane of the vector unit takes every VW-th word of a row instead of an output,
 * the weights stream through in the order of the file, and VW outputs' lanes are added together at
 * the end. With 32 bytes of weights an AVX2 core has 3 instructions to widen them and 4 per row of
 * x: about 16 bytes per cycle for one row, more than memory gives.
 *
 * With VNNI it is the weights that lose their sign here (q + 128, an exclusive or), so that what
 * this adds too much, 128·Σ p, is the same for all outputs. */
#include "kern/isa/gemm_int.h"

#define INLINE inline __attribute__((always_inline))
#define AHEAD  4096 /* bytes of weights fetched ahead */
#define SIGNS  ((int32_t)0x80808080)

/* The rows of x, rounded. */
typedef struct few_rows {
    const int32_t *words[INT_FEW]; /* see part */
    float scale[INT_FEW];
    int32_t excess[INT_FEW]; /* what the sums have too much */
} few_rows;

static INLINE vword load_bytes(const int8_t *w, int64_t left) {
    vword x = {0};
    if (left >= QUANT_STEP)
        memcpy(&x, w, sizeof x); /* a row may begin at any byte */
    else
        memcpy(&x, w, (size_t)left);
    return x;
}

/* lanes[i·VW] = Σ x_i·w, k inputs, each lane its part */
static INLINE void dot(const few_rows *x, const int8_t *w, int64_t k, const int m, vword *lanes) {
    vword s[INT_FEW][2] = {{{0}}};
    for (int64_t p = 0; p < k; p += QUANT_STEP) {
        __builtin_prefetch(w + p + AHEAD);
        const vword bytes = load_bytes(w + p, k - p);
        const int64_t at = p / WORD_INPUTS;
        if (WORD_INPUTS == 4) {
            const vword without_sign = bytes ^ SIGNS;
            V_UNROLL(8)
            for (int i = 0; i < m; i++)
                int_add_words(&s[i][0], without_sign, i_load(x->words[i] + at));
            continue;
        }
        const vword even = (vword)((vshort)((vshort)bytes << 8) >> 8),
                    odd = (vword)((vshort)bytes >> 8);
        V_UNROLL(8)
        for (int i = 0; i < m; i++) {
            int_add_words(&s[i][0], i_load(x->words[i] + at), even);
            int_add_words(&s[i][1], i_load(x->words[i] + at + VW), odd);
        }
    }
    V_UNROLL(8)
    for (int i = 0; i < m; i++) lanes[i * VW] = s[i][0] + s[i][1];
}

/* Of VW vectors the sums of the lanes, as one vector. */
static INLINE vword add_lanes(const vword *lanes) {
    vword turned[VW];
    memcpy(turned, lanes, sizeof turned);
    i_transpose(turned);
    vword sum = turned[0];
    V_UNROLL(16)
    for (int j = 1; j < VW; j++) sum += turned[j];
    return sum;
}

static INLINE void outputs(const qkv_gemm *g, const few_rows *x, int64_t col0, int64_t col1,
                           const int m) {
    const qkv_weight *const w = g->weight;
    const int8_t *const weights = w->data;
    for (int64_t col = col0; col < col1; col += VW) {
        const int64_t n = col1 - col < VW ? col1 - col : VW;
        vword lanes[INT_FEW * VW];
        float scale[VW] = {0};
        for (int64_t j = 0; j < VW; j++) /* past the end: the last row again, for nobody */
            dot(x, weights + (col + (j < n ? j : n - 1)) * w->cols, w->cols, m, lanes + j);
        memcpy(scale, w->scale + col, (size_t)n * sizeof *scale);
        const vreal bias = g->bias ? v_load_n(g->bias + col, n) : v_set(0);
        for (int i = 0; i < m; i++) {
            const vword sums = add_lanes(lanes + i * VW) - x->excess[i];
            const vfloat y =
                __builtin_convertvector(sums, vfloat) * *(const vfloat *)scale * x->scale[i];
            v_store_n(g->c + i * g->ldc + col, __builtin_convertvector(y, vreal) + bias, n);
        }
    }
}

/* Words as gemm_int_row writes them, but with their signs, or those of odd places VW further on.
 * Returns the excess. */
static int32_t part(const int32_t *from, int64_t whole, int32_t *to) {
    const int64_t words = whole / WORD_INPUTS;
    if (WORD_INPUTS == 2) {
        for (int64_t p = 0; p < words; p += 2 * VW)
            for (int i = 0; i < VW; i++)
                to[p + i] = from[p + 2 * i], to[p + VW + i] = from[p + 2 * i + 1];
        return 0;
    }
    int32_t sum = 0;
    for (int64_t p = 0; p < words; p++) to[p] = from[p] ^ SIGNS;
    for (int64_t p = 0; p < whole; p++) sum += ((const int8_t *)to)[p];
    return 128 * sum;
}

void KERN_NAME(gemm_int_few)(const qkv_gemm *g, int64_t col0, int64_t col1, int32_t *scratch) {
    const int64_t whole = int_whole(g->k), words = whole / WORD_INPUTS;
    const int m = (int)g->m;
    few_rows x;
    for (int i = 0; i < m; i++) {
        int32_t *const to = scratch + (i + 1) * words;
        x.scale[i] = KERN_NAME(gemm_int_row)(g->a + i * g->lda, g->k, 1, scratch);
        x.excess[i] = part(scratch, whole, to);
        x.words[i] = to;
    }
    switch (m) {
#define ROWS(n)                                                                                    \
    case n:                                                                                        \
        outputs(g, &x, col0, col1, n);                                                             \
        break;
        UP_TO(INT_FEW, ROWS)
#undef ROWS
    }
    if (g->act != QKV_ACT_NONE || g->pre) KERN_NAME(gemm_finish)(g, col0, m, col1 - col0);
}
