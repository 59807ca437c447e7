/* Packing: an operand copied into panels, in the order in which the tile reads it, so that the
 * inner loop has no strides and no edges. Rounding to bf16 happens here, on the way. */
#include "kern/isa/gemm.h"

#define CHUNK  (2 * VW) /* k's packed at a time, side by side in a group of panels */
#define AHEAD  16       /* k's fetched ahead */
#define GROUP  8        /* panels packed side by side: a row of the source is read in long runs */
#define INLINE inline __attribute__((always_inline))

#ifndef QKV_DOUBLE
/* n reals, rounded in place. */
static void round_run(real *x, int64_t n) {
    for (int64_t i = 0; i < n; i += VW) *(vbits *)(x + i) = to_bf16(*(const vbits *)(x + i));
}
#else
static void round_run(real *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] = (real)qkv_bf16_value(qkv_bf16_of((float)x[i]));
}
#endif

/* Rows that are copied into a panel: x[p·ld + 0 … valid), p < k. */
typedef struct panel_source {
    const real *x;
    int64_t ld, k, valid;
    int64_t ahead; /* reals to the rows to fetch: they are too far apart for the CPU to guess */
} panel_source;

/* out[p][0 … width) = row p, of pairs half as many rows; zeros from `valid` on */
static INLINE void copy_rows(const panel_source *s, const int width, const bool pairs, real *out) {
    const real *x = s->x;
    const int step = pairs ? 2 : 1;
    for (int64_t p = 0; p < s->k; p += step, x += step * s->ld, out += width)
        for (int j = 0; j < width; j += VW) {
            const int64_t left = s->valid - j;
            __builtin_prefetch(x + s->ahead + j);
            vreal row = load_some(x + j, left);
            if (pairs) {
                __builtin_prefetch(x + s->ahead + s->ld + j);
                row = pair_lanes(row, p + 1 < s->k ? load_some(x + s->ld + j, left) : v_set(0));
            }
            v_store(out + j, row);
        }
}

/* out[p][0 … width) = word p of the rows x[(0 … width)·ld], p < VW, k reals each; w rows exist */
static INLINE void transpose_rows(const real *x, int64_t ld, int64_t k, int64_t w, const int width,
                                  const bool pairs, real *out) {
    const int64_t whole = pairs ? 2 * VW : VW, words = count_words(k, pairs);
    for (int j = 0; j < width; j += VW) {
        const int rows = width - j < VW ? width - j : VW;
        vreal t[VW];
        if (k == whole && j + rows <= w) {
            V_UNROLL(16)
            for (int q = 0; q < VW; q++)
                t[q] = q < rows ? load_words(x + (j + q) * ld, whole, pairs) : v_set(0);
        } else {
            for (int q = 0; q < VW; q++)
                t[q] = j + q < w ? load_words(x + (j + q) * ld, k, pairs) : v_set(0);
        }
        v_transpose(t);
        if (words == VW) {
            V_UNROLL(16)
            for (int q = 0; q < VW; q++) v_store(out + q * width + j, t[q]);
        } else {
            for (int q = 0; q < words; q++) v_store(out + q * width + j, t[q]);
        }
    }
}

/* sums[j] += Σ_p x[p·ld + j], p < n, of rows of A that are being packed: MR of them, `valid` of
 * which exist. */
static void sum_rows(const real *x, int64_t ld, int64_t n, int64_t valid, real *sums) {
    for (int j = 0; j < GEMM_SUMS; j += VW) {
        vreal sum = v_set(0);
        for (int64_t p = 0; p < n; p++) sum = sum + load_some(x + p * ld + j, valid - j);
        v_store(sums + j, v_load(sums + j) + sum);
    }
}

/* Packs k's p … p + n − 1 of panel i. */
static INLINE void pack_chunk(const gemm_panels *s, int i, int64_t p, int64_t n, const int width,
                              const bool pairs, real *out) {
    const int64_t j = s->start[i], valid = s->start[s->panels] - j;
    const int64_t at = s->k_contiguous ? j * s->ld + p : p * s->ld + j;
    const real *const x = s->x + at;
    real *const to = out + count_words(p, pairs) * width;
    if (s->k_contiguous) {
        const int64_t whole = pairs ? 2 * VW : VW;
        for (int64_t q = 0; q < n; q += whole)
            transpose_rows(x + q, s->ld, n - q < whole ? n - q : whole, valid, width, pairs,
                           to + count_words(q, pairs) * width);
    } else {
        const int64_t ahead = p + AHEAD + n <= s->k ? AHEAD * s->ld : 0;
        const panel_source rows = {.x = x, .ld = s->ld, .k = n, .valid = valid, .ahead = ahead};
        copy_rows(&rows, width, pairs, to);
    }
    if (s->sums) sum_rows(x, s->ld, n, valid, s->sums + i * GEMM_SUMS);
    if (!pairs && s->precision == QKV_BF16) round_run(to, n * width);
}

/* All panels, CHUNK k's of a group at a time. */
static INLINE void pack_panels(const gemm_panels *s, const int width, const bool pairs, real *out) {
    const int64_t size = gemm_panel_size(count_words(s->k, pairs), width);
    const int group = s->k_contiguous ? 1 : width == NR ? GROUP : s->panels;
    for (int i = 0; i < s->panels; i += group)
        for (int64_t p = 0; p < s->k; p += CHUNK) {
            const int64_t n = s->k - p < CHUNK ? s->k - p : CHUNK;
            const int end = i + group < s->panels ? i + group : s->panels;
            for (int q = i; q < end; q++) pack_chunk(s, q, p, n, width, pairs, out + q * size);
        }
}

/* One panel of bf16 weights: in memory two of adjacent k are a word already, so words are turned as
 * reals are. */
static void pack_halves(const gemm_panels *s, int i, real *out) {
    const int64_t j = s->start[i], w = s->start[i + 1] - j;
    const uint16_t *const x = s->halves + j * s->ld;
#ifdef QKV_DOUBLE
    for (int64_t p = 0; p < s->k; p++)
        for (int c = 0; c < NR; c++)
            out[p * NR + c] = c < w ? (real)qkv_bf16_value(x[c * s->ld + p]) : 0;
#else
    for (int64_t p = 0; p < s->k; p += 2 * VW, out += VW * NR) {
        const int64_t n = s->k - p < 2 * VW ? s->k - p : 2 * VW;
        for (int c = 0; c < NR; c += VW) {
            vreal t[VW];
            for (int q = 0; q < VW; q++) {
                t[q] = v_set(0);
                if (c + q < w) memcpy(&t[q], x + (c + q) * s->ld + p, (size_t)n * sizeof *x);
            }
            v_transpose(t);
            for (int q = 0; q < (n + 1) / 2; q++) v_store(out + q * NR + c, t[q]);
        }
    }
#endif
}

void KERN_NAME(gemm_panels)(const gemm_panels *s, real *out) {
    const bool words_of_two = s->halves && sizeof(real) == sizeof(float);
    const int64_t size = gemm_panel_size(count_words(s->k, words_of_two), s->width);
    const bool pairs = HAS_PAIRS && s->precision == QKV_BF16;
    if (s->halves)
        for (int i = 0; i < s->panels; i++) pack_halves(s, i, out + i * size);
    else if (s->width == NR)
        pairs ? pack_panels(s, NR, true, out) : pack_panels(s, NR, false, out);
    else
        pairs ? pack_panels(s, MR, true, out) : pack_panels(s, MR, false, out);
}
