/* Blocks of weights as GGUF files have them: one reading for all types.
 *
 * Every type is, in groups of 16 or 32 elements,
 *
 *   w = scale·(u − zero) − offset,   u an integer of 0 … 255
 *
 * `zero` belongs to the type (base/weight_format.h), the other two to the group. The order of the
 * operations, each rounded to float, is that of gguf-py, so the bits are its bits. A type is two
 * functions here: the u of a block in the order of its elements, and the scales and offsets of its
 * groups. Blocks lie in a file at any byte; d and m are f16.
 *
 * Whoever includes this defines BLOCK_HALF(p), the float of the f16 at p. */
#ifndef QKV_KERN_BLOCKS_H
#define QKV_KERN_BLOCKS_H

#include <stdint.h>
#include <string.h>
#include "base/weight_format.h"

#define BLOCK_FN static inline __attribute__((always_inline, unused)) void

/* ---- the integers: sixteen at a time, since compilers cannot know that u is no part of b ---- */

typedef uint8_t block_16 __attribute__((vector_size(16), aligned(1), may_alias));
static inline __attribute__((always_inline, unused)) block_16 block_load(const uint8_t *p) {
    return *(const block_16 *)p;
}
BLOCK_FN block_store(uint8_t *p, block_16 x) {
    *(block_16 *)p = x;
}

/* n bytes, whole sixteens: the low halves, then the high ones */
BLOCK_FN block_halves(const uint8_t *q, int n, uint8_t *u) {
    for (int i = 0; i < n; i += 16) {
        const block_16 x = block_load(q + i);
        block_store(u + i, x & 15);
        block_store(u + n + i, x >> 4);
    }
}

/* bit i of 32 is bit 4 of u[i]: eight at a time, a byte's bits spread over the bytes of a word */
BLOCK_FN block_fifth_bits(const uint8_t *h, uint8_t *u) {
    for (int byte = 0; byte < 4; byte++) {
        const uint64_t each = h[byte] * 0x0101010101010101u & 0x8040201008040201u;
        uint64_t eight;
        memcpy(&eight, u + 8 * byte, 8);
        eight |= ((each + 0x7f7f7f7f7f7f7f7fu) & 0x8080808080808080u) >> 3;
        memcpy(u + 8 * byte, &eight, 8);
    }
}

/* IQ4's sixteen values, 128 more */
BLOCK_FN block_levels(const uint8_t *q, uint8_t *u) {
    static const uint8_t level[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                      129, 141, 153, 166, 181, 197, 217, 241};
    uint8_t x[32];
    block_halves(q, 16, x);
    for (int i = 0; i < 32; i++) u[i] = level[x[i]];
}

BLOCK_FN block_u_q4_0(const uint8_t *b, uint8_t *u) {
    block_halves(b + 2, 16, u);
}
BLOCK_FN block_u_q4_1(const uint8_t *b, uint8_t *u) {
    block_halves(b + 4, 16, u);
}
BLOCK_FN block_u_q5_0(const uint8_t *b, uint8_t *u) {
    block_halves(b + 6, 16, u);
    block_fifth_bits(b + 2, u);
}
BLOCK_FN block_u_q5_1(const uint8_t *b, uint8_t *u) {
    block_halves(b + 8, 16, u);
    block_fifth_bits(b + 4, u);
}
BLOCK_FN block_u_q8_0(const uint8_t *b, uint8_t *u) {
    for (int i = 0; i < 32; i += 16) block_store(u + i, block_load(b + 2 + i) ^ 128);
}
BLOCK_FN block_u_iq4_nl(const uint8_t *b, uint8_t *u) {
    block_levels(b + 2, u);
}
BLOCK_FN block_u_q2_k(const uint8_t *b, uint8_t *u) {
    for (int a = 0; a < 2; a++)
        for (int k = 0; k < 4; k++)
            for (int l = 0; l < 32; l += 16)
                block_store(u + 128 * a + 32 * k + l,
                            block_load(b + 16 + 32 * a + l) >> (uint8_t)(2 * k) & 3);
}
BLOCK_FN block_u_q3_k(const uint8_t *b, uint8_t *u) {
    for (int a = 0; a < 2; a++)
        for (int k = 0; k < 4; k++)
            for (int l = 0; l < 32; l += 16)
                block_store(u + 128 * a + 32 * k + l,
                            (block_load(b + 32 + 32 * a + l) >> (uint8_t)(2 * k) & 3) |
                                (block_load(b + l) >> (uint8_t)(4 * a + k) & 1) << 2);
}
BLOCK_FN block_u_q4_k(const uint8_t *b, uint8_t *u) {
    for (int c = 0; c < 4; c++) block_halves(b + 16 + 32 * c, 32, u + 64 * c);
}
BLOCK_FN block_u_q5_k(const uint8_t *b, uint8_t *u) {
    for (int c = 0; c < 4; c++) {
        block_halves(b + 48 + 32 * c, 32, u + 64 * c);
        for (int g = 2 * c; g < 2 * c + 2; g++)
            for (int l = 0; l < 32; l += 16)
                block_store(u + 32 * g + l, block_load(u + 32 * g + l) |
                                                (block_load(b + 16 + l) >> (uint8_t)g & 1) << 4);
    }
}
BLOCK_FN block_u_q6_k(const uint8_t *b, uint8_t *u) {
    for (int a = 0; a < 2; a++)
        for (int k = 0; k < 4; k++)
            for (int l = 0; l < 32; l += 16)
                block_store(
                    u + 128 * a + 32 * k + l,
                    (block_load(b + 64 * a + 32 * (k & 1) + l) >> (uint8_t)(4 * (k >> 1)) & 15) |
                        (block_load(b + 128 + 32 * a + l) >> (uint8_t)(2 * k) & 3) << 4);
}
BLOCK_FN block_u_iq4_xs(const uint8_t *b, uint8_t *u) {
    for (int g = 0; g < 8; g++) block_levels(b + 8 + 16 * g, u + 32 * g);
}

/* ---- scales and offsets ---- */

BLOCK_FN block_scales_q4_0(const uint8_t *b, float *scale, float *offset) {
    scale[0] = BLOCK_HALF(b);
    (void)offset;
}
BLOCK_FN block_scales_q4_1(const uint8_t *b, float *scale, float *offset) {
    scale[0] = BLOCK_HALF(b);
    offset[0] = -BLOCK_HALF(b + 2);
}
#define block_scales_q5_0   block_scales_q4_0
#define block_scales_q5_1   block_scales_q4_1
#define block_scales_q8_0   block_scales_q4_0
#define block_scales_iq4_nl block_scales_q4_0

BLOCK_FN block_scales_q2_k(const uint8_t *b, float *scale, float *offset) {
    const float d = BLOCK_HALF(b + 80), m = BLOCK_HALF(b + 82);
    for (int j = 0; j < 16; j++) {
        scale[j] = d * (float)(b[j] & 15);
        offset[j] = m * (float)(b[j] >> 4);
    }
}
BLOCK_FN block_scales_q3_k(const uint8_t *b, float *scale, float *offset) {
    const uint8_t *const s = b + 96;
    const float d = BLOCK_HALF(b + 108);
    for (int j = 0; j < 16; j++) {
        const int low = s[j % 8] >> (4 * (j / 8)) & 15, high = s[8 + j % 4] >> (2 * (j / 4)) & 3;
        scale[j] = d * (float)((low | high << 4) - 32);
    }
    (void)offset;
}
BLOCK_FN block_scales_q4_k(const uint8_t *b, float *scale, float *offset) {
    const uint8_t *const s = b + 4;
    const float d = BLOCK_HALF(b), m = BLOCK_HALF(b + 2);
    for (int g = 0; g < 4; g++) {
        scale[g] = d * (float)(s[g] & 63);
        offset[g] = m * (float)(s[g + 4] & 63);
        scale[g + 4] = d * (float)((s[g + 8] & 15) | (s[g] >> 6) << 4);
        offset[g + 4] = m * (float)((s[g + 8] >> 4) | (s[g + 4] >> 6) << 4);
    }
}
#define block_scales_q5_k block_scales_q4_k
BLOCK_FN block_scales_q6_k(const uint8_t *b, float *scale, float *offset) {
    const float d = BLOCK_HALF(b + 208);
    for (int j = 0; j < 16; j++) scale[j] = d * (float)(int8_t)b[192 + j];
    (void)offset;
}
BLOCK_FN block_scales_iq4_xs(const uint8_t *b, float *scale, float *offset) {
    const float d = BLOCK_HALF(b);
    const int h = b[2] | b[3] << 8;
    for (int g = 0; g < 8; g++) {
        const int low = b[4 + g / 2] >> (4 * (g % 2)) & 15;
        scale[g] = d * (float)((low | (h >> (2 * g) & 3) << 4) - 32);
    }
    (void)offset;
}

#endif
