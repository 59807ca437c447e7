/* Over eight lanes, halves, then quarters: AVX2, and the last steps of AVX-512. */
#ifndef QKV_KERN_ISA_SUMS_AVX2_H
#define QKV_KERN_ISA_SUMS_AVX2_H

#include <immintrin.h>

static inline float sum_of_eight(__m256 x) {
    const __m128 h = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    const __m128 q = _mm_add_ps(h, _mm_movehl_ps(h, h));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}
static inline float maximum_of_eight(__m256 x) {
    const __m128 h = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    const __m128 q = _mm_max_ps(h, _mm_movehl_ps(h, h));
    return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}

#endif
