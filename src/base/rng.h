/* Random numbers by counter (Philox 4×32-10): a number is a function of (seed, stream, index), so
 * there is no state to save, order and threads do not matter,
 * and a dropout mask is never stored but made again. */
#ifndef QKV_BASE_RNG_H
#define QKV_BASE_RNG_H

#include <stdint.h>

typedef struct qkv_rng {
    uint64_t seed;   /* the run */
    uint64_t stream; /* what the numbers are for: mix of step, node, purpose */
} qkv_rng;

/* Four 32-bit words for block `index` of this stream. */
void qkv_rng_block(qkv_rng key, uint64_t index, uint32_t out[4]);

uint32_t qkv_rng_u32(qkv_rng key, uint64_t index);
double qkv_rng_uniform(qkv_rng key, uint64_t index); /* [0, 1), 53 bits */
double qkv_rng_normal(qkv_rng key, uint64_t index);  /* mean 0, variance 1 (Box-Muller) */
/* 0 … n−1, unbiased enough: 64-bit multiply-shift */
uint64_t qkv_rng_below(qkv_rng key, uint64_t index, uint64_t n);

/* Image of i under a keyed permutation of 0 … n−1 (a Feistel walk: no table, any n). */
uint64_t qkv_rng_permute(qkv_rng key, uint64_t n, uint64_t i);

/* A stream of its own for (stream, a, b): mixes, so that streams do not overlap. */
qkv_rng qkv_rng_derive(qkv_rng key, uint64_t a, uint64_t b);

#endif
