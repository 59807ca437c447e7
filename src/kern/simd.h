/* A thin face over the vector unit, so that each kernel is written once.
 *
 * `vreal` holds VW reals; + − * / work on it (GCC vector extensions). What the extensions lack (fused multiply-add,
 * max, masked tails, conversions) is named here, once per instruction set. FMA is asked for by name and never by
 * contraction, so that a kernel's body and tail give the same bits. The plain set has no FMA: x·y+z rounds twice. */
#ifndef QKV_KERN_SIMD_H
#define QKV_KERN_SIMD_H

#include <math.h>
#include <string.h>
#include "kern/kern.h"

#define KERN_JOIN2(a, b) a##_##b
#define KERN_JOIN(a, b)  KERN_JOIN2(a, b)
/* The symbol of kernel `name` in the instruction set being compiled: qkv_gemm_avx2 */
#define KERN_NAME(name) KERN_JOIN(qkv_##name, QKV_ISA)

#if defined(__AVX512F__)
#include <immintrin.h>
#define VW 16
#elif defined(QKV_WIDE_EMULATED)
#define VW 16
#elif defined(__AVX2__)
#include <immintrin.h>
#define VW 8
#else
#define VW 4
#endif

typedef real vreal
    __attribute__((vector_size(VW * sizeof(real)), aligned(sizeof(real)), may_alias));

static inline vreal v_load(const real *p) {
    return *(const vreal *)p;
}
static inline void v_store(real *p, vreal x) {
    *(vreal *)p = x;
}
static inline vreal v_set(real x) {
    return x -
           (vreal){
               0}; /* a scalar operand is spread over the lanes; x − 0 keeps even the sign of 0 */
}
/* the first n lanes (0 ≤ n ≤ VW); the rest are zero */
#if defined(__AVX512F__)
static inline __mmask16 v_first(int64_t n) {
    return (__mmask16)_bzhi_u32(0xffff, (unsigned)n);
}
static inline vreal v_load_n(const real *p, int64_t n) {
    return (vreal)_mm512_maskz_loadu_ps(v_first(n), p);
}
static inline void v_store_n(real *p, vreal x, int64_t n) {
    _mm512_mask_storeu_ps(p, v_first(n), (__m512)x);
}
#elif defined(__AVX2__) && VW == 8
static inline __m256i v_first(int64_t n) {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lanes);
}
static inline vreal v_load_n(const real *p, int64_t n) {
    return n == VW ? v_load(p)
                   : (vreal)_mm256_maskload_ps(
                         p, v_first(n)); /* making the mask costs more than the load */
}
/* A masked store costs dozens of cycles on AMD, even when it stores all. */
static inline void v_store_n(real *p, vreal x, int64_t n) {
    if (n == VW)
        v_store(p, x);
    else
        _mm256_maskstore_ps(p, v_first(n), (__m256)x);
}
#else
static inline vreal v_load_n(const real *p, int64_t n) {
    vreal r = {0};
    memcpy(&r, p, (size_t)n * sizeof(real));
    return r;
}
static inline void v_store_n(real *p, vreal x, int64_t n) {
    memcpy(p, &x, (size_t)n * sizeof(real));
}
#endif

#if defined(__AVX512F__)
static inline vreal v_fma(vreal a, vreal b, vreal c) {
    return (vreal)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
static inline vreal v_max(vreal a, vreal b) {
    return (vreal)_mm512_max_ps((__m512)a, (__m512)b);
}
static inline vreal v_min(vreal a, vreal b) {
    return (vreal)_mm512_min_ps((__m512)a, (__m512)b);
}
static inline vreal v_sqrt(vreal a) {
    return (vreal)_mm512_sqrt_ps((__m512)a);
}
#elif defined(__AVX2__) && VW == 8
static inline vreal v_fma(vreal a, vreal b, vreal c) {
    return (vreal)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
static inline vreal v_max(vreal a, vreal b) {
    return (vreal)_mm256_max_ps((__m256)a, (__m256)b);
}
static inline vreal v_min(vreal a, vreal b) {
    return (vreal)_mm256_min_ps((__m256)a, (__m256)b);
}
static inline vreal v_sqrt(vreal a) {
    return (vreal)_mm256_sqrt_ps((__m256)a);
}
#else
static inline vreal v_fma(vreal a, vreal b, vreal c) {
    return a * b + c;
}
static inline vreal v_max(vreal a, vreal b) { /* as on x86: b when unordered */
    for (int i = 0; i < VW; i++) b[i] = a[i] > b[i] ? a[i] : b[i];
    return b;
}
static inline vreal v_min(vreal a, vreal b) {
    for (int i = 0; i < VW; i++) b[i] = a[i] < b[i] ? a[i] : b[i];
    return b;
}
static inline vreal v_sqrt(vreal a) {
    for (int i = 0; i < VW; i++) a[i] = (real)sqrt((double)a[i]);
    return a;
}
#endif

/* s += a·b inside a tile of sums. Where the tile takes all registers (AVX2), compilers left to themselves let sums
 * change places until some fall out into memory, where they wait for themselves; so the instruction is named whole.
 * With 32 registers (AVX-512) it is enough to keep the order, and `a` may come straight from memory. */
static inline __attribute__((always_inline)) void v_add_product(vreal *s, vreal a, vreal b) {
#if defined(__AVX2__) && VW == 8
    __asm__ volatile("vfmadd231ps %2, %1, %0" : "+x"(*s) : "x"(a), "x"(b));
#else
    *s = v_fma(a, b, *s);
#endif
#ifdef __AVX512F__
    __asm__ volatile("" : "+v"(*s));
#endif
}

/* ---- shuffles ---- */

#define V_PRAGMA(x) _Pragma(#x)
#ifdef __clang__
#define V_UNROLL(n) V_PRAGMA(unroll n)
#else
#define V_UNROLL(n) V_PRAGMA(GCC unroll n)
#endif

/* Element i, j, k, l of each group of four lanes; 0–3 are x's, 4–7 are y's. */
#define V_AT(i, first)            ((i) < 4 ? (first) + (i) : VW + (first) + (i)-4)
#define V_FOUR(i, j, k, l, first) V_AT(i, first), V_AT(j, first), V_AT(k, first), V_AT(l, first)
#if VW == 16
#define V_MIX(x, y, i, j, k, l)                                                                    \
    __builtin_shufflevector(x, y, V_FOUR(i, j, k, l, 0), V_FOUR(i, j, k, l, 4),                    \
                            V_FOUR(i, j, k, l, 8), V_FOUR(i, j, k, l, 12))
/* Groups i, j of x followed by groups k, l of y. */
#define V_GROUPS(x, y, i, j, k, l)                                                                 \
    __builtin_shufflevector(x, y, 4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3, 4 * j, 4 * j + 1,        \
                            4 * j + 2, 4 * j + 3, 16 + 4 * k, 17 + 4 * k, 18 + 4 * k, 19 + 4 * k,  \
                            16 + 4 * l, 17 + 4 * l, 18 + 4 * l, 19 + 4 * l)
#elif VW == 8
#define V_MIX(x, y, i, j, k, l)                                                                    \
    __builtin_shufflevector(x, y, V_FOUR(i, j, k, l, 0), V_FOUR(i, j, k, l, 4))
#else
#define V_MIX(x, y, i, j, k, l) __builtin_shufflevector(x, y, V_FOUR(i, j, k, l, 0))
#endif

/* Transposes a VW×VW block: 4×4 inside each group of four lanes, then the groups. */
static inline void v_transpose(vreal x[VW]) {
    V_UNROLL(4)
    for (int i = 0; i < VW; i += 4) {
        const vreal a = V_MIX(x[i], x[i + 1], 0, 4, 1, 5), b = V_MIX(x[i], x[i + 1], 2, 6, 3, 7);
        const vreal c = V_MIX(x[i + 2], x[i + 3], 0, 4, 1, 5);
        const vreal d = V_MIX(x[i + 2], x[i + 3], 2, 6, 3, 7);
        x[i] = V_MIX(a, c, 0, 1, 4, 5);
        x[i + 1] = V_MIX(a, c, 2, 3, 6, 7);
        x[i + 2] = V_MIX(b, d, 0, 1, 4, 5);
        x[i + 3] = V_MIX(b, d, 2, 3, 6, 7);
    }
#if VW == 8
    V_UNROLL(4)
    for (int i = 0; i < 4; i++) {
        const vreal a = x[i], b = x[i + 4];
        x[i] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
        x[i + 4] = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
    }
#elif VW == 16
    V_UNROLL(4)
    for (int i = 0; i < 4; i++) {
        const vreal a = V_GROUPS(x[i], x[i + 4], 0, 2, 0, 2);
        const vreal b = V_GROUPS(x[i], x[i + 4], 1, 3, 1, 3);
        const vreal c = V_GROUPS(x[i + 8], x[i + 12], 0, 2, 0, 2);
        const vreal d = V_GROUPS(x[i + 8], x[i + 12], 1, 3, 1, 3);
        x[i] = V_GROUPS(a, c, 0, 2, 0, 2);
        x[i + 4] = V_GROUPS(b, d, 0, 2, 0, 2);
        x[i + 8] = V_GROUPS(a, c, 1, 3, 1, 3);
        x[i + 12] = V_GROUPS(b, d, 1, 3, 1, 3);
    }
#endif
}

/* out[i] = the sum of the lanes of x[i] */
static inline void v_four_sums(const vreal x[4], real *out) {
    const vreal ab = V_MIX(x[0], x[1], 0, 4, 1, 5) + V_MIX(x[0], x[1], 2, 6, 3, 7);
    const vreal cd = V_MIX(x[2], x[3], 0, 4, 1, 5) + V_MIX(x[2], x[3], 2, 6, 3, 7);
    const vreal each = V_MIX(ab, cd, 0, 1, 4, 5) + V_MIX(ab, cd, 2, 3, 6, 7);
    typedef real four
        __attribute__((vector_size(4 * sizeof(real)), aligned(sizeof(real)), may_alias));
    four sum = __builtin_shufflevector(each, each, 0, 1, 2, 3);
#if VW >= 8
    sum = sum + __builtin_shufflevector(each, each, 4, 5, 6, 7);
#endif
#if VW == 16
    sum = sum + (__builtin_shufflevector(each, each, 8, 9, 10, 11) +
                 __builtin_shufflevector(each, each, 12, 13, 14, 15));
#endif
    *(four *)out = sum;
}

/* Sums over lanes in one fixed order: halves, quarters, … */
#if VW >= 8 && !defined(QKV_WIDE_EMULATED)
#if VW == 16
#define V_EIGHT(of, x)                                                                             \
    of(_mm512_castps512_ps256((__m512)x), _mm256_castpd_ps(_mm512_extractf64x4_pd((__m512d)x, 1)))
#else
#define V_EIGHT(of, x) ((__m256)x)
#endif
static inline real v_sum(vreal x) {
    const __m256 e = V_EIGHT(_mm256_add_ps, x);
    const __m128 h = _mm_add_ps(_mm256_castps256_ps128(e), _mm256_extractf128_ps(e, 1));
    const __m128 q = _mm_add_ps(h, _mm_movehl_ps(h, h));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}
static inline real v_maximum(vreal x) {
    const __m256 e = V_EIGHT(_mm256_max_ps, x);
    const __m128 h = _mm_max_ps(_mm256_castps256_ps128(e), _mm256_extractf128_ps(e, 1));
    const __m128 q = _mm_max_ps(h, _mm_movehl_ps(h, h));
    return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}
#else
static inline real v_sum(vreal x) {
    real t[VW];
    memcpy(t, &x, sizeof t);
    for (int w = VW / 2; w > 0; w /= 2)
        for (int i = 0; i < w; i++) t[i] += t[i + w];
    return t[0];
}
static inline real v_maximum(vreal x) {
    real t[VW];
    memcpy(t, &x, sizeof t);
    for (int w = VW / 2; w > 0; w /= 2)
        for (int i = 0; i < w; i++) t[i] = t[i] > t[i + w] ? t[i] : t[i + w];
    return t[0];
}
#endif

#endif
