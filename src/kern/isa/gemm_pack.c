/* Packing: an operand copied into panels, in the order in which the tile reads it, so that the
 * inner loop has no strides and no edges. Rounding to bf16 happens here, on the way. */
#include "kern/isa/gemm.h"

#define CHUNK VW /* k's packed at a time: what is converted afterwards is still in the L1 cache */

/* out[p][0 … width) = x[p·ld + 0 … w), p < k */
static inline void copy_rows(const real *x, int64_t ld, int64_t k, int64_t w, int64_t beyond,
                             const int width, real *out) {
    for (int64_t p = 0; p < k; p++, x += ld, out += width)
        for (int j = 0; j < width; j += VW) {
            /* a whole vector may be read if the row goes on; what lies beyond w is overwritten or
             * never used */
            const bool whole = j + VW <= w + beyond && (w == width || j + VW <= w);
            const int64_t n = w - j;
            v_store(out + j, whole ? v_load(x + j) : v_load_n(x + j, n < 0 ? 0 : n > VW ? VW : n));
        }
}

/* out[p][0 … width) = x[(0 … w)·ld + p], p < k ≤ VW */
static inline void transpose_rows(const real *x, int64_t ld, int64_t k, int64_t w, const int width,
                                  real *out) {
    for (int j = 0; j < width; j += VW) {
        vreal t[VW];
        for (int q = 0; q < VW; q++)
            t[q] = j + q >= w ? v_set(0)
                   : k == VW  ? v_load(x + (j + q) * ld)
                              : v_load_n(x + (j + q) * ld, k);
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

void KERN_NAME(gemm_panels)(const real *x, int64_t ld, bool k_contiguous, int64_t k, int64_t count,
                            int width, qkv_precision precision, real *out) {
    const int64_t words = gemm_words(k, precision);
    const bool pairs = words != k;
    for (int64_t j = 0; j < count; j += width, out += words * width) {
        const int64_t w = count - j < width ? count - j : width;
        for (int64_t p = 0; p < k; p += CHUNK) {
            const int64_t n = k - p < CHUNK ? k - p : CHUNK;
            real chunk[CHUNK * NR + VW];
            real *const to = pairs ? chunk : out + p * width;
            if (k_contiguous)
                width == NR ? transpose_rows(x + j * ld + p, ld, n, w, NR, to)
                            : transpose_rows(x + j * ld + p, ld, n, w, MR, to);
            else
                width == NR ? copy_rows(x + p * ld + j, ld, n, w, count - j - w, NR, to)
                            : copy_rows(x + p * ld + j, ld, n, w, count - j - w, MR, to);
#ifndef QKV_DOUBLE
            if (pairs) pair_rows(chunk, n, width, out + p / 2 * width);
#endif
            if (precision == QKV_BF16 && !pairs) round_run(to, n * width);
        }
    }
}
