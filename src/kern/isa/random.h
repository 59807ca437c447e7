/* Dropout: the factors keep/(1 − p) of a run of elements, by counter. Element i is kept when its
 * random word, qkv_rng_u32(rng, i), is at least p·2³²; so a mask is made again in backward instead
 * of stored, and any cut of the elements gives the same mask. */
#ifndef QKV_KERN_RANDOM_H
#define QKV_KERN_RANDOM_H

#include "kern/simd.h"

#define DROP_RUN 512 /* elements a call makes at most */

/* factors[0 … n), n ≤ DROP_RUN, for elements index, index + 1, … */
static inline void drop_factors(qkv_rng rng, uint64_t index, int64_t n, real p, real *factors) {
    uint32_t words[DROP_RUN + 4 + 4 * RANDOM_GROUP];
    const int64_t skip = (int64_t)(index & 3);
    random_blocks(rng, index >> 2, (skip + n + 3) / 4, words);
    const double limit = (double)p * 4294967296.0;
    const uint32_t least = limit >= 4294967295.0 ? UINT32_MAX : (uint32_t)limit;
    const real keep = 1 / (1 - p);
    for (int64_t i = 0; i < n; i++) factors[i] = words[skip + i] >= least ? keep : 0;
}

/* words[0 … n): words first, first + 1, … of the stream; n ≤ DROP_RUN. */
static inline void random_words(qkv_rng rng, uint64_t first, int64_t n, uint32_t *words) {
    uint32_t blocks[DROP_RUN + 4 + 4 * RANDOM_GROUP];
    const int64_t skip = (int64_t)(first & 3);
    random_blocks(rng, first >> 2, (skip + n + 3) / 4, blocks);
    memcpy(words, blocks + skip, (size_t)n * sizeof *words);
}

#endif
