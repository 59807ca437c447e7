/* Packing: an operand copied into panels, in the order in which the tile reads it, so that the
 * inner loop has no strides and no edges. Rounding to bf16 happens here, on the way. */
#include "kern/isa/gemm.h"

#define CHUNK VW /* k's packed at a time: what is converted afterwards is still in the L1 cache */
#define AHEAD 16 /* k's fetched ahead */
#define GROUP 8  /* panels packed side by side: a row of the source is read in long runs */

/* out[p][0 … width) = x[p·ld + 0 … width), p < k; `valid` columns exist there. The rows that lie
 * `ahead` reals further on are fetched: they are too far apart for the CPU to guess. */
static inline void copy_rows(const real *x, int64_t ld, int64_t k, int64_t valid, const int width,
                             int64_t ahead, real *out) {
    for (int64_t p = 0; p < k; p++, x += ld, out += width)
        for (int j = 0; j < width; j += VW) {
            __builtin_prefetch(x + ahead + j);
            const int64_t n = valid - j;
            v_store(out + j, n >= VW ? v_load(x + j) : v_load_n(x + j, n < 0 ? 0 : n));
        }
}

/* out[p][0 … width) = x[(0 … width)·ld + p], p < k ≤ VW; w rows exist */
static inline void transpose_rows(const real *x, int64_t ld, int64_t k, int64_t w, const int width,
                                  real *out) {
    for (int j = 0; j < width; j += VW) {
        vreal t[VW];
        if (k == VW && j + VW <= w) {
            V_UNROLL(16)
            for (int q = 0; q < VW; q++) t[q] = v_load(x + (j + q) * ld);
        } else {
            for (int q = 0; q < VW; q++)
                t[q] = j + q < w ? v_load_n(x + (j + q) * ld, k) : v_set(0);
        }
        v_transpose(t);
        for (int q = 0; q < k; q++) v_store(out + q * width + j, t[q]);
    }
}

#ifndef QKV_DOUBLE
typedef uint32_t vword __attribute__((vector_size(VW * sizeof(uint32_t)), aligned(4), may_alias));

/* The upper 16 bits are the bf16 nearest to x (ties to even); NaN stays NaN. */
static inline vword to_bf16(vword u) {
    const vword nan = (vword)((u & 0x7fffffff) > 0x7f800000);
    const vword even = u + 0x7fff + ((u >> 16) & 1);
    return ((even & ~nan) | ((u | 0x400000) & nan)) & 0xffff0000;
}

/* n reals, rounded in place. */
static void round_run(real *x, int64_t n) {
    for (int64_t i = 0; i < n; i += VW) *(vword *)(x + i) = to_bf16(*(const vword *)(x + i));
}

/* Two rows of reals into one of pairs. */
static void pair_rows(const real *x, int64_t k, int width, real *out) {
    static const real zeros[2 * VW];
    for (int64_t p = 0; p < k; p += 2)
        for (int j = 0; j < width; j += VW) {
            const vword lo = to_bf16(*(const vword *)(x + p * width + j));
            const vword hi = to_bf16(*(const vword *)(p + 1 < k ? x + (p + 1) * width + j : zeros));
            *(vword *)(out + p / 2 * width + j) = lo >> 16 | hi;
        }
}
#else
static void pair_rows(const real *x, int64_t k, int width, real *out) {
    (void)x, (void)k, (void)width, (void)out; /* no pairs of doubles */
}

static void round_run(real *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const float f = (float)x[i];
        uint32_t u;
        memcpy(&u, &f, sizeof u);
        if ((u & 0x7fffffff) > 0x7f800000) continue;
        u = (u + 0x7fff + ((u >> 16) & 1)) & 0xffff0000;
        float r;
        memcpy(&r, &u, sizeof r);
        x[i] = (real)r;
    }
}
#endif

/* sums[j] += Σ_p x[p][j], p < n, of a panel of rows of A that was just packed. What lies between its
 * width and whole vectors is summed too, and never read. */
static void sum_panel(const real *x, int64_t n, real *sums) {
    for (int j = 0; j < GEMM_SUMS; j += VW) {
        vreal sum = v_set(0);
        for (int64_t p = 0; p < n; p++) sum = sum + v_load(x + p * MR + j);
        v_store(sums + j, v_load(sums + j) + sum);
    }
}

/* Packs k's p … p + n − 1 of panel i. */
static void pack_chunk(const gemm_panels *s, int i, int64_t p, int64_t n, real *out) {
    const int64_t j = s->start[i], w = s->start[i + 1] - j, valid = s->start[s->panels] - j;
    const int64_t ahead = p + AHEAD + n <= s->k ? AHEAD * s->ld : 0;
    const bool pairs = GEMM_PAIRS && s->precision == QKV_BF16;
    real chunk[CHUNK * NR + VW];
    real *const to = pairs ? chunk : out + p * s->width;
    const int64_t at = s->k_contiguous ? j * s->ld + p : p * s->ld + j;
    const real *const x = s->x + at;
    if (s->k_contiguous && s->width == NR)
        transpose_rows(x, s->ld, n, w, NR, to);
    else if (s->k_contiguous)
        transpose_rows(x, s->ld, n, w, MR, to);
    else if (s->width == NR)
        copy_rows(x, s->ld, n, valid, NR, ahead, to);
    else
        copy_rows(x, s->ld, n, valid, MR, ahead, to);
    if (s->sums) sum_panel(to, n, s->sums + i * GEMM_SUMS);
    if (pairs)
        pair_rows(chunk, n, s->width, out + p / 2 * s->width);
    else if (s->precision == QKV_BF16)
        round_run(to, n * s->width);
}

/* One panel of bf16 weights: in memory two of adjacent k are a word already, so words are turned as
 * reals are. */
static void pack_halves(const gemm_panels *s, int i, real *out) {
    const int64_t j = s->start[i], w = s->start[i + 1] - j;
    const uint16_t *const x = s->halves + j * s->ld;
#ifdef QKV_DOUBLE
    for (int64_t p = 0; p < s->k; p++)
        for (int c = 0; c < NR; c++) {
            const uint32_t bits = c < w ? (uint32_t)x[c * s->ld + p] << 16 : 0;
            float value;
            memcpy(&value, &bits, sizeof value);
            out[p * NR + c] = (real)value;
        }
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
    const bool two =
        s->halves ? sizeof(real) == sizeof(float) : GEMM_PAIRS && s->precision == QKV_BF16;
    const int64_t size = gemm_panel_size(gemm_words(s->k, two), s->width);
    for (int i = 0; s->halves && i < s->panels; i++) pack_halves(s, i, out + i * size);
    if (s->halves) return;
    const int group = s->k_contiguous ? 1 : s->width == NR ? GROUP : s->panels;
    for (int i = 0; i < s->panels; i += group)
        for (int64_t p = 0; p < s->k; p += CHUNK) {
            const int64_t n = s->k - p < CHUNK ? s->k - p : CHUNK;
            const int end = i + group < s->panels ? i + group : s->panels;
            for (int q = i; q < end; q++) pack_chunk(s, q, p, n, out + q * size);
        }
}
