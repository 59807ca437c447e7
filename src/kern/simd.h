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
#define KERN_JOIN(a, b) KERN_JOIN2(a, b)
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

typedef real vreal __attribute__((vector_size(VW * sizeof(real)), aligned(sizeof(real)), may_alias));

static inline vreal v_load(const real *p) { return *(const vreal *)p; }
static inline void v_store(real *p, vreal x) { *(vreal *)p = x; }
static inline vreal v_set(real x) {
    return x - (vreal){0}; /* a scalar operand is spread over the lanes; x − 0 keeps even the sign of 0 */
}
/* the first n lanes (0 ≤ n ≤ VW); the rest are zero */
static inline vreal v_load_n(const real *p, int64_t n) {
    vreal r = {0};
    memcpy(&r, p, (size_t)n * sizeof(real));
    return r;
}
static inline void v_store_n(real *p, vreal x, int64_t n) { memcpy(p, &x, (size_t)n * sizeof(real)); }

#if defined(__AVX512F__)
static inline vreal v_fma(vreal a, vreal b, vreal c) { return (vreal)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
static inline vreal v_max(vreal a, vreal b) { return (vreal)_mm512_max_ps((__m512)a, (__m512)b); }
static inline vreal v_min(vreal a, vreal b) { return (vreal)_mm512_min_ps((__m512)a, (__m512)b); }
static inline vreal v_sqrt(vreal a) { return (vreal)_mm512_sqrt_ps((__m512)a); }
#elif defined(__AVX2__) && VW == 8
static inline vreal v_fma(vreal a, vreal b, vreal c) { return (vreal)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
static inline vreal v_max(vreal a, vreal b) { return (vreal)_mm256_max_ps((__m256)a, (__m256)b); }
static inline vreal v_min(vreal a, vreal b) { return (vreal)_mm256_min_ps((__m256)a, (__m256)b); }
static inline vreal v_sqrt(vreal a) { return (vreal)_mm256_sqrt_ps((__m256)a); }
#else
static inline vreal v_fma(vreal a, vreal b, vreal c) { return a * b + c; }
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

/* Sums over lanes in one fixed order: halves, quarters, … */
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
