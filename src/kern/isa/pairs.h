/* Words of two bf16, which one instruction multiplies and adds up. A word lies where a real does, so that packing and
 * tiles move both alike; a sum over k then takes half as many steps. Sets without the instruction have no words. */
#ifndef QKV_KERN_ISA_PAIRS_H
#define QKV_KERN_ISA_PAIRS_H

#include "base/half.h"
#include "kern/simd.h"

#if defined(__AVX512BF16__) || defined(QKV_WIDE_EMULATED)
#define HAS_PAIRS 1
#else
#define HAS_PAIRS 0
#endif

/* The steps of a sum over k. */
static inline int64_t count_words(int64_t k, bool pairs) {
    return pairs ? (k + 1) / 2 : k;
}

#ifndef QKV_DOUBLE
typedef uint32_t vbits __attribute__((vector_size(VW * sizeof(uint32_t)), aligned(4), may_alias));

/* The upper 16 bits are the bf16 nearest to x (ties to even); NaN stays NaN. */
static inline vbits to_bf16(vbits u) {
    const vbits nan = (vbits)((u & 0x7fffffff) > 0x7f800000);
    const vbits even = u + 0x7fff + ((u >> 16) & 1);
    return ((even & ~nan) | ((u | 0x400000) & nan)) & 0xffff0000;
}
#endif

/* pair_lanes: word i is lo[i] and, in its upper half, hi[i]. pair_run: reals 2i and 2i + 1 of a run of 2·VW. The
 * instruction takes numbers below 2⁻¹²⁶ for 0, as the one that multiplies does.
 * v_dot_pairs: s + a₁·b₁ + a₀·b₀ in each lane, 0 being the lower half. */
#if defined(__AVX512BF16__)
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
#elif HAS_PAIRS
static inline vreal pair_lanes(vreal lo, vreal hi) {
    return (vreal)(to_bf16((vbits)lo) >> 16 | to_bf16((vbits)hi));
}
static inline vreal pair_run(vreal x, vreal y) {
    return pair_lanes(
        __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30),
        __builtin_shufflevector(x, y, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31));
}
static inline vreal v_dot_pairs(vreal a, vreal b, vreal s) {
    s = v_fma((vreal)((vbits)a & 0xffff0000), (vreal)((vbits)b & 0xffff0000), s);
    return v_fma((vreal)((vbits)a << 16), (vreal)((vbits)b << 16), s);
}
#else /* never asked for: what follows compiles without asking */
static inline vreal pair_lanes(vreal lo, vreal hi) {
    return (void)hi, lo;
}
static inline vreal pair_run(vreal x, vreal y) {
    return (void)y, x;
}
static inline vreal v_dot_pairs(vreal a, vreal b, vreal s) {
    return (void)a, (void)b, s;
}
#endif

/* The first n of VW reals, which may be none or more than all. */
static inline vreal load_some(const real *x, int64_t n) {
    return n >= VW ? v_load(x) : v_load_n(x, n < 0 ? 0 : n);
}

/* VW words of a run of k reals. */
static inline vreal load_words(const real *x, int64_t k, const bool pairs) {
    return pairs ? pair_run(load_some(x, k), load_some(x + VW, k - VW)) : load_some(x, k);
}

#endif
