#include "base/rng.h"

#include <math.h>

/* Philox 4×32-10 (Salmon et al. 2011): ten rounds of two multiplications on a counter, keyed. */
void qkv_rng_block(qkv_rng key, uint64_t index, uint32_t out[4]) {
    uint32_t c0 = (uint32_t)index, c1 = (uint32_t)(index >> 32);
    uint32_t c2 = (uint32_t)key.stream, c3 = (uint32_t)(key.stream >> 32);
    uint32_t k0 = (uint32_t)key.seed, k1 = (uint32_t)(key.seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

uint32_t qkv_rng_u32(qkv_rng key, uint64_t index) {
    uint32_t block[4];
    qkv_rng_block(key, index >> 2, block);
    return block[index & 3];
}

static uint64_t u64(qkv_rng key, uint64_t index) {
    uint32_t block[4];
    qkv_rng_block(key, index >> 1, block);
    int half = (int)(index & 1) * 2;
    return (uint64_t)block[half + 1] << 32 | block[half];
}

double qkv_rng_uniform(qkv_rng key, uint64_t index) {
    return (double)(u64(key, index) >> 11) * 0x1p-53;
}

double qkv_rng_normal(qkv_rng key, uint64_t index) {
    double u = 1 - qkv_rng_uniform(key, 2 * index); /* (0, 1] */
    double angle = 6.283185307179586 * qkv_rng_uniform(key, 2 * index + 1);
    return sqrt(-2 * log(u)) * cos(angle);
}

uint64_t qkv_rng_below(qkv_rng key, uint64_t index, uint64_t n) {
    return (uint64_t)(((unsigned __int128)u64(key, index) * n) >> 64);
}

uint64_t qkv_rng_permute(qkv_rng key, uint64_t n, uint64_t i) {
    /* A four-round Feistel network permutes the next even power of two;
     * walk until we land below n. */
    int bits = 2;
    while (bits < 64 && (uint64_t)1 << bits < n) bits += 2;
    uint64_t half = (uint64_t)bits / 2, mask = ((uint64_t)1 << half) - 1;
    do {
        uint64_t left = i >> half, right = i & mask;
        for (uint64_t round = 0; round < 4; round++) {
            uint64_t mixed = u64(key, right << 2 | round) & mask;
            uint64_t swap = left ^ mixed;
            left = right;
            right = swap;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}

qkv_rng qkv_rng_derive(qkv_rng key, uint64_t a, uint64_t b) {
    uint32_t x[4], y[4];
    qkv_rng_block((qkv_rng){key.seed, key.stream ^ 0x6b65795f64657269u}, a, x);
    uint64_t stream = (uint64_t)x[0] << 32 | x[1];
    qkv_rng_block((qkv_rng){key.seed, stream}, b, y);
    return (qkv_rng){key.seed, (uint64_t)y[0] << 32 | y[1]};
}
