/* A fast content hash for tables, caches and manifests. It is not cryptographic: it finds damage,
 * not malice.
 *
 * fold(a, b) is the 128-bit product of a and b with its halves xor-ed: every input bit reaches
 * every output bit. Blocks of 64 bytes go through four lanes that do not wait for each other; a
 * lane s and two words x, y become s ← fold(x ⊕ key, y ⊕ s) ⊕ rotate(s, 23) where the rotation
 * keeps what came before even if a factor is 0. The rest of the input is padded with zeros to
 * 16-byte pairs, and the length is folded in last, so padding cannot be mistaken for data. Words
 * are little-endian; the constants are the fractional parts of √2, √3, √5, √7, √11 in binary. */
#include "base/file.h"

#include <stdio.h>
#include <string.h>

static const uint64_t key[5] = {0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu,
                                0xa54ff53a5f1d36f1u, 0x510e527fade682d1u};

static inline uint64_t fold(uint64_t a, uint64_t b) {
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t mix(uint64_t s, uint64_t x, uint64_t y, uint64_t k) {
    return fold(x ^ k, y ^ s) ^ (s << 23 | s >> 41);
}

static inline uint64_t word(const unsigned char *p) {
    uint64_t w;
    memcpy(&w, p, sizeof w);
    return w;
}

uint64_t qkv_hash64(const void *data, size_t n, uint64_t seed) {
    const unsigned char *p = data;
    size_t left = n;
    uint64_t s = fold(seed ^ key[0], key[1]);
    if (left >= 64) {
        uint64_t lane[4] = {s, s ^ key[2], s ^ key[3], s ^ key[4]};
        for (; left >= 64; left -= 64, p += 64)
            for (int i = 0; i < 4; i++)
                lane[i] = mix(lane[i], word(p + 16 * i), word(p + 16 * i + 8), key[i]);
        s = mix(mix(lane[0], lane[1], lane[2], key[0]), lane[3], lane[1], key[4]);
    }
    for (; left >= 16; left -= 16, p += 16) s = mix(s, word(p), word(p + 8), key[1]);
    if (left > 0) {
        unsigned char rest[16] = {0};
        memcpy(rest, p, left);
        s = mix(s, word(rest), word(rest + 8), key[2]);
    }
    s = mix(s, (uint64_t)n, key[3], key[4]);
    return fold(s ^ key[0], key[3]);
}

void qkv_hash_hex(const void *data, size_t n, char hex[33]) {
    unsigned long long high = qkv_hash64(data, n, key[1]), low = qkv_hash64(data, n, key[2]);
    snprintf(hex, 33, "%016llx%016llx", high, low);
}
