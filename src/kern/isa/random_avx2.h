/* Random words by AVX2, for the sets that have it. */
#ifndef QKV_KERN_ISA_RANDOM_AVX2_H
#define QKV_KERN_ISA_RANDOM_AVX2_H

#include <immintrin.h>
#include "base/rng.h"

#define RANDOM_GROUP 8 /* blocks at once */

/* Ten rounds of Philox on four blocks, one a 64-bit lane. Only the low half of a lane counts: the
 * multiplication looks at nothing else, so the upper halves may hold anything. */
static inline __attribute__((always_inline)) void philox_rounds(__m256i c[4],
                                                                const uint32_t keys[10][2]) {
    const __m256i m0 = _mm256_set1_epi64x(0xD2511F53), m1 = _mm256_set1_epi64x(0xCD9E8D57);
    for (int round = 0; round < 10; round++) {
        const __m256i p0 = _mm256_mul_epu32(c[0], m0), p1 = _mm256_mul_epu32(c[2], m1);
        const __m256i k0 = _mm256_set1_epi64x(keys[round][0]),
                      k1 = _mm256_set1_epi64x(keys[round][1]);
        c[0] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), c[1]), k0);
        c[2] = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), c[3]), k1);
        c[1] = p1;
        c[3] = p0;
    }
}

/* Stores the words of four blocks one block after another. */
static inline void philox_store(const __m256i c[4], uint32_t *out) {
    const __m256i low = _mm256_set1_epi64x(0xffffffff);
    const __m256i x = _mm256_or_si256(_mm256_and_si256(c[0], low), _mm256_slli_epi64(c[1], 32));
    const __m256i y = _mm256_or_si256(_mm256_and_si256(c[2], low), _mm256_slli_epi64(c[3], 32));
    const __m256i even = _mm256_unpacklo_epi64(x, y), odd = _mm256_unpackhi_epi64(x, y);
    _mm256_storeu_si256((__m256i *)out, _mm256_permute2x128_si256(even, odd, 0x20));
    _mm256_storeu_si256((__m256i *)(out + 8), _mm256_permute2x128_si256(even, odd, 0x31));
}

static inline void random_blocks(qkv_rng rng, uint64_t first, int64_t n, uint32_t *out) {
    uint32_t keys[10][2];
    for (int round = 0; round < 10; round++) {
        keys[round][0] = (uint32_t)rng.seed + (uint32_t)round * 0x9E3779B9u;
        keys[round][1] = (uint32_t)(rng.seed >> 32) + (uint32_t)round * 0xBB67AE85u;
    }
    const __m256i c2 = _mm256_set1_epi64x((int64_t)(rng.stream & 0xffffffff));
    const __m256i c3 = _mm256_set1_epi64x((int64_t)(rng.stream >> 32));
    for (int64_t i = 0; i < n;
         i += RANDOM_GROUP) { /* two groups of four at once hide the multiplication's latency */
        __m256i group[2][4];
        for (int g = 0; g < 2; g++) {
            const __m256i at = _mm256_add_epi64(_mm256_set1_epi64x((int64_t)first + i + 4 * g),
                                                _mm256_setr_epi64x(0, 1, 2, 3));
            group[g][0] = at, group[g][1] = _mm256_srli_epi64(at, 32), group[g][2] = c2,
            group[g][3] = c3;
        }
        philox_rounds(group[0], keys);
        philox_rounds(group[1], keys);
        philox_store(group[0], out + 4 * i);
        philox_store(group[1], out + 4 * i + 16);
    }
}

#endif
