/* Vectors of sixteen lanes. */
#ifndef QKV_KERN_ISA_LANES_16_H
#define QKV_KERN_ISA_LANES_16_H

#define VW 16
#include "kern/isa/lanes.h"

#define V_MIX(x, y, i, j, k, l)                                                                    \
    __builtin_shufflevector(x, y, V_FOUR(i, j, k, l, 0), V_FOUR(i, j, k, l, 4),                    \
                            V_FOUR(i, j, k, l, 8), V_FOUR(i, j, k, l, 12))

/* Groups i, j of x followed by groups k, l of y. */
#define V_GROUPS(x, y, i, j, k, l)                                                                 \
    __builtin_shufflevector(x, y, 4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3, 4 * j, 4 * j + 1,        \
                            4 * j + 2, 4 * j + 3, 16 + 4 * k, 17 + 4 * k, 18 + 4 * k, 19 + 4 * k,  \
                            16 + 4 * l, 17 + 4 * l, 18 + 4 * l, 19 + 4 * l)

/* What v_transpose has to do when the groups of four are transposed. */
static inline void v_transpose_groups(vreal x[VW]) {
    V_UNROLL(4)
    for (int i = 0; i < 4; i++) {
        const vreal a = V_GROUPS(x[i], x[i + 4], 0, 2, 0, 2);
        const vreal b = V_GROUPS(x[i], x[i + 4], 1, 3, 1, 3);
        const vreal c = V_GROUPS(x[i + 8], x[i + 12], 0, 2, 0, 2);
        const vreal d = V_GROUPS(x[i + 8], x[i + 12], 1, 3, 1, 3);
        x[i] = V_GROUPS(a, c, 0, 2, 0, 2);
        x[i + 4] = V_GROUPS(b, d, 0, 2, 0, 2);
        x[i + 8] = V_GROUPS(a, c, 1, 3, 1, 3);
        x[i + 12] = V_GROUPS(b, d, 1, 3, 1, 3);
    }
}

static inline vfour v_add_groups(vreal x) {
    return __builtin_shufflevector(x, x, 0, 1, 2, 3) + __builtin_shufflevector(x, x, 4, 5, 6, 7) +
           (__builtin_shufflevector(x, x, 8, 9, 10, 11) +
            __builtin_shufflevector(x, x, 12, 13, 14, 15));
}

/* Inputs p … p + 63 of a row in 4 bits: twice the lower halves of 16 bytes, then the upper ones. */
static inline vbytes load_nibbles(const uint8_t *row, int64_t p) {
    typedef uint8_t vpacked __attribute__((vector_size(32), aligned(1), may_alias));
    const vpacked packed = *(const vpacked *)(row + p / 2), low = packed & 15, high = packed >> 4;
    return (vbytes)__builtin_shufflevector(
        low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 32, 33, 34, 35, 36, 37, 38,
        39, 40, 41, 42, 43, 44, 45, 46, 47, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29,
        30, 31, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63);
}

#endif
