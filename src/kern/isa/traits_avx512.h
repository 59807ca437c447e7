/* AVX-512 with VNNI and bf16: 32 registers of sixteen lanes. */
#ifndef QKV_KERN_ISA_TRAITS_AVX512_H
#define QKV_KERN_ISA_TRAITS_AVX512_H

#include <immintrin.h>
#include "kern/isa/lanes_16.h"
#include "kern/isa/random_avx2.h"
#include "kern/isa/sums_avx2.h"

#define MR          14
#define STRIP       8
#define INT_FEW     8
#define WORD_INPUTS 4

#define HAS_MASKS 1
static inline __mmask16 v_first(int64_t n) {
    return (__mmask16)_bzhi_u32(0xffff, (unsigned)n);
}
static inline vreal v_load_n(const real *p, int64_t n) {
    return (vreal)_mm512_maskz_loadu_ps(v_first(n), p);
}
static inline void v_store_n(real *p, vreal x, int64_t n) {
    _mm512_mask_storeu_ps(p, v_first(n), (__m512)x);
}

#define HAS_ARITHMETIC 1
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

/* Of pairs the instruction takes numbers below 2⁻¹²⁶ for 0, when it rounds and when it
 * multiplies. */
#define HAS_PAIRS      1
#define PAIRS_ARE_FAST 1
static inline vreal pair_run(vreal first, vreal second) {
    return (vreal)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first);
}
static inline vreal pair_lanes(vreal lo, vreal hi) {
    typedef int16_t halves __attribute__((vector_size(64)));
    const halves x = (halves)pair_run(lo, hi);
    return (vreal)__builtin_shufflevector(x, x, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7,
                                          23, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30,
                                          15, 31);
}
static inline vreal v_dot_pairs(vreal a, vreal b, vreal s) {
    return (vreal)_mm512_dpbf16_ps((__m512)s, (__m512bh)a, (__m512bh)b);
}

/* With 32 registers it is enough to keep the order of the sums, and `a` may come straight from
 * memory; the tile of the matrix product takes nearly all registers, and there the instructions are
 * named whole. */
#define HAS_TILE_SUMS 1
V_INLINE void v_add_product(vreal *s, vreal a, vreal b) {
    *s = v_fma(a, b, *s);
    __asm__ volatile("" : "+v"(*s));
}
V_INLINE void v_add_in_tile(vreal *s, vreal a, vreal b) {
    __asm__ volatile("vfmadd231ps %2, %1, %0" : "+v"(*s) : "v"(a), "v"(b));
}
#define HAS_TILE_PAIRS 1
V_INLINE void v_add_pairs(vreal *s, vreal a, vreal b) {
    *s = v_dot_pairs(a, b, *s);
    __asm__ volatile("" : "+v"(*s));
}
V_INLINE void v_add_pairs_in_tile(vreal *s, vreal a, vreal b) {
    __asm__ volatile("vdpbf16ps %2, %1, %0" : "+v"(*s) : "v"(a), "v"(b));
}

#define HAS_LANE_SUMS 1
static inline __m256 lower_eight(vreal x) {
    return _mm512_castps512_ps256((__m512)x);
}
static inline __m256 upper_eight(vreal x) {
    return _mm256_castpd_ps(_mm512_extractf64x4_pd((__m512d)x, 1));
}
static inline real v_sum(vreal x) {
    return sum_of_eight(_mm256_add_ps(lower_eight(x), upper_eight(x)));
}
static inline real v_maximum(vreal x) {
    return maximum_of_eight(_mm256_max_ps(lower_eight(x), upper_eight(x)));
}

#define HAS_EXPONENTS 1
static inline vreal v_from_nearest(vreal x) {
    return (vreal)_mm512_reduce_ps((__m512)x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
static inline vreal v_from_floor(vreal x) {
    return (vreal)_mm512_reduce_ps((__m512)x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
static inline vreal v_times_exp2(vreal x, vreal e) {
    return (vreal)_mm512_scalef_ps((__m512)x, (__m512)e);
}

#define HAS_HALVES 1
static inline float half_value(uint16_t bits) {
    return _cvtsh_ss(bits);
}

#define HAS_WORDS 1
V_INLINE void int_add_words(vword *s, vword a, vword b) {
    *s = (vword)_mm512_dpbusd_epi32((__m512i)*s, (__m512i)a, (__m512i)b);
    __asm__ volatile("" : "+v"(*s));
}

#endif
