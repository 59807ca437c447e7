/* Vectors of eight lanes. */
#ifndef QKV_KERN_ISA_LANES_8_H
#define QKV_KERN_ISA_LANES_8_H

#define VW 8
#include "kern/isa/lanes.h"

#define V_MIX(x, y, i, j, k, l)                                                                    \
    __builtin_shufflevector(x, y, V_FOUR(i, j, k, l, 0), V_FOUR(i, j, k, l, 4))

/* What v_transpose has to do when the groups of four are transposed. */
static inline void v_transpose_groups(vreal x[VW]) {
    V_UNROLL(4)
    for (int i = 0; i < 4; i++) {
        const vreal a = x[i], b = x[i + 4];
        x[i] = __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11);
        x[i + 4] = __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
    }
}

static inline vfour v_add_groups(vreal x) {
    return __builtin_shufflevector(x, x, 0, 1, 2, 3) + __builtin_shufflevector(x, x, 4, 5, 6, 7);
}

/* Inputs p … p + 31 of a row in 4 bits: the lower halves of 16 bytes, then the upper ones. */
static inline vbytes load_nibbles(const uint8_t *row, int64_t p) {
    typedef uint8_t vpacked __attribute__((vector_size(16), aligned(1), may_alias));
    const vpacked packed = *(const vpacked *)(row + p / 2), low = packed & 15, high = packed >> 4;
    return (vbytes)__builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
                                           14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,
                                           28, 29, 30, 31);
}

#endif
