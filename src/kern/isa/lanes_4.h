/* Vectors of four lanes. */
#ifndef QKV_KERN_ISA_LANES_4_H
#define QKV_KERN_ISA_LANES_4_H

#define VW 4
#include "kern/isa/lanes.h"

#define V_MIX(x, y, i, j, k, l) __builtin_shufflevector(x, y, V_FOUR(i, j, k, l, 0))

/* One group of four lanes has nothing to move. */
static inline void v_transpose_groups(vreal x[VW]) {
    (void)x;
}

static inline vfour v_add_groups(vreal x) {
    return x;
}

/* Inputs p … p + 15 of a row in 4 bits: they are the lower or the upper halves of 16 bytes. */
static inline vbytes load_nibbles(const uint8_t *row, int64_t p) {
    const vbytes packed = *(const vbytes *)(row + p / 32 * 16);
    return p % 32 < 16 ? packed & 15 : packed >> 4 & 15;
}

#endif
