/* AVX-512 played by plain C, with its widths, tiles, pairs and words: for tests of that code on any
 * CPU. */
#ifndef QKV_KERN_ISA_TRAITS_WIDE_H
#define QKV_KERN_ISA_TRAITS_WIDE_H

#include "kern/isa/lanes_16.h"

#define MR          14
#define STRIP       8
#define INT_FEW     8
#define WORD_INPUTS 4

#define HAS_PAIRS      1
#define PAIRS_ARE_FAST 0
static inline vreal pair_lanes(vreal lo, vreal hi) {
    return (vreal)(to_bf16((vbits)lo) >> 16 | to_bf16((vbits)hi));
}
static inline vreal pair_run(vreal x, vreal y) {
    return pair_lanes(
        __builtin_shufflevector(x, y, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30),
        __builtin_shufflevector(x, y, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31));
}
static inline vreal v_dot_pairs(vreal a, vreal b, vreal s) {
    s = (vreal)((vbits)a & 0xffff0000) * (vreal)((vbits)b & 0xffff0000) + s;
    return (vreal)((vbits)a << 16) * (vreal)((vbits)b << 16) + s;
}

/* By the hundred, inlined, it takes a minute to compile. */
#define HAS_WORDS 1
static __attribute__((noinline, unused)) void int_add_words(vword *s, vword a, vword b) {
    V_UNROLL(4)
    for (int q = 0; q < 4; q++) *s += (a >> 8 * q & 255) * (b << (24 - 8 * q) >> 24);
}

#endif
