/* AVX2 with FMA: 16 registers of eight lanes. */
#ifndef QKV_KERN_ISA_TRAITS_AVX2_H
#define QKV_KERN_ISA_TRAITS_AVX2_H

#include <immintrin.h>
#include "kern/isa/lanes_8.h"
#include "kern/isa/random_avx2.h"
#include "kern/isa/sums_avx2.h"

#define MR          6
#define STRIP       6
#define INT_FEW     4
#define WORD_INPUTS 2

#define HAS_MASKS 1
static inline __m256i v_first(int64_t n) {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lanes);
}
/* Making the mask costs more than the load. */
static inline vreal v_load_n(const real *p, int64_t n) {
    return n == VW ? v_load(p) : (vreal)_mm256_maskload_ps(p, v_first(n));
}
/* A masked store costs dozens of cycles on AMD, even when it stores all. */
static inline void v_store_n(real *p, vreal x, int64_t n) {
    if (n == VW)
        v_store(p, x);
    else
        _mm256_maskstore_ps(p, v_first(n), (__m256)x);
}

#define HAS_ARITHMETIC 1
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

/* A tile takes all registers, and compilers spill accumulators, which puts a store-to-load round
 * trip into the dependency chain; inline asm pins them. */
#define HAS_TILE_SUMS 1
V_INLINE void v_add_product(vreal *s, vreal a, vreal b) {
    __asm__ volatile("vfmadd231ps %2, %1, %0" : "+x"(*s) : "x"(a), "x"(b));
}
V_INLINE void v_add_in_tile(vreal *s, vreal a, vreal b) {
    v_add_product(s, a, b);
}

#define HAS_LANE_SUMS 1
static inline real v_sum(vreal x) {
    return sum_of_eight((__m256)x);
}
static inline real v_maximum(vreal x) {
    return maximum_of_eight((__m256)x);
}

#define HAS_HALVES 1
static inline float half_value(uint16_t bits) {
    return _cvtsh_ss(bits);
}

#define HAS_WORDS 1
V_INLINE void int_add_words(vword *s, vword a, vword b) {
    __m256i product;
    __asm__ volatile("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0"
                     : "+x"(*s), "=&x"(product)
                     : "x"(a), "x"(b));
}

#endif
