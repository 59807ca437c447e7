/* Few rows against int8 weights: a dot product along each row of weights, where it lies.
 *
 * Turning weights into panels costs more than using them once. Sums of integers have no order, so here a lane of the
 * vector unit takes every VW-th word of a row instead of an output, the weights stream through in the order of the
 * file, and the lanes are added at the end. With 32 bytes of weights an AVX2 core has 3 instructions to widen them and 4 a row
 * of x: about 16 bytes a cycle for one row, more than memory gives. */
#include "kern/isa/gemm_int.h"

#define INLINE inline __attribute__((always_inline))
#define AHEAD  2048 /* bytes of weights fetched ahead */

/* The rows of x, rounded to words; see part. */
typedef struct few_rows {
    const int32_t *words[INT_FEW];
} few_rows;

static INLINE vword load_bytes(const int8_t *w, int64_t left) {
    if (left >= QUANT_STEP) return *(const vword *)w;
    int8_t edge[QUANT_STEP] = {0};
    memcpy(edge, w, (size_t)left);
    vword x;
    memcpy(&x, edge, sizeof x);
    return x;
}

/* sums[i] = Σ x_i·w, k inputs */
static INLINE void dot(const few_rows *x, const int8_t *w, int64_t k, const int m, int32_t *sums) {
    vword s[INT_FEW][2] = {{{0}}};
    for (int64_t p = 0; p < k; p += QUANT_STEP) {
        __builtin_prefetch(w + p + AHEAD);
        const vword bytes = load_bytes(w + p, k - p);
        const int64_t at = p / WORD_INPUTS;
#if WORD_INPUTS == 4
        const vword middle = (int32_t)0x80808080 - (vword){0}; /* x is p + 128 */
        int_add_words(&s[0][1], middle, bytes);
        V_UNROLL(4)
        for (int i = 0; i < m; i++) int_add_words(&s[i][0], i_load(x->words[i] + at), bytes);
#else
        const vword even = (vword)((vshort)((vshort)bytes << 8) >> 8),
                    odd = (vword)((vshort)bytes >> 8);
        V_UNROLL(4)
        for (int i = 0; i < m; i++) {
            int_add_words(&s[i][0], i_load(x->words[i] + at), even);
            int_add_words(&s[i][1], i_load(x->words[i] + at + VW), odd);
        }
#endif
    }
    V_UNROLL(4)
    for (int i = 0; i < m; i++) {
        const vword all = WORD_INPUTS == 4 ? s[i][0] - s[0][1] : s[i][0] + s[i][1];
        int32_t lane[VW], sum = 0;
        memcpy(lane, &all, sizeof lane);
        for (int j = 0; j < VW; j++) sum += lane[j];
        sums[i] = sum;
    }
}

static INLINE void outputs(const qkv_gemm *g, const few_rows *x, const float *scale, int64_t col0,
                           int64_t col1, const int m) {
    const qkv_weight *const w = g->weight;
    for (int64_t j = col0; j < col1; j++) {
        int32_t sums[INT_FEW];
        const int8_t *const row = (const int8_t *)w->data + j * w->cols;
        dot(x, row, w->cols, m, sums);
        for (int i = 0; i < m; i++) {
            const float y = (float)sums[i] * w->scale[j] * scale[i];
            g->c[i * g->ldc + j] = (real)y + (g->bias ? g->bias[j] : 0);
        }
    }
}

/* Words as gemm_int_row writes them, but those of odd places VW further on. */
static void part(const int32_t *from, int64_t whole, int32_t *to) {
    const int64_t words = whole / WORD_INPUTS;
    if (WORD_INPUTS == 4)
        memcpy(to, from, (size_t)words * sizeof *to);
    else
        for (int64_t p = 0; p < words; p += 2 * VW)
            for (int i = 0; i < VW; i++)
                to[p + i] = from[p + 2 * i], to[p + VW + i] = from[p + 2 * i + 1];
}

void KERN_NAME(gemm_int_few)(const qkv_gemm *g, int64_t col0, int64_t col1, int32_t *scratch) {
    const int64_t whole = int_whole(g->k), words = whole / WORD_INPUTS;
    const int m = (int)g->m;
    few_rows x;
    float scale[INT_FEW];
    for (int i = 0; i < m; i++) {
        int32_t *const to = scratch + (i + 1) * words;
        scale[i] = KERN_NAME(gemm_int_row)(g->a + i * g->lda, g->k, 1, scratch);
        part(scratch, whole, to);
        x.words[i] = to;
    }
    switch (m) {
    case 1:
        outputs(g, &x, scale, col0, col1, 1);
        break;
    case 2:
        outputs(g, &x, scale, col0, col1, 2);
        break;
    case 3:
        outputs(g, &x, scale, col0, col1, 3);
        break;
    default:
        outputs(g, &x, scale, col0, col1, 4);
        break;
    }
    if (g->act != QKV_ACT_NONE || g->pre) KERN_NAME(gemm_finish)(g, col0, m, col1 - col0);
}
