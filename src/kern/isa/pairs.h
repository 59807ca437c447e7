/* Words of two bf16, which one instruction multiplies and adds up. A word lies where a real does,
 * so that packing and tiles move both alike; a sum over k then takes half as many steps. Sets
 * without the instruction have no words. */
#ifndef QKV_KERN_ISA_PAIRS_H
#define QKV_KERN_ISA_PAIRS_H

#include "base/half.h"
#include "kern/simd.h"

/* The steps of a sum over k. */
static inline int64_t count_words(int64_t k, bool pairs) {
    return pairs ? (k + 1) / 2 : k;
}

/* The first n of VW reals, which may be none or more than all. */
static inline vreal load_some(const real *x, int64_t n) {
    return n >= VW ? v_load(x) : v_load_n(x, n < 0 ? 0 : n);
}

/* VW words of a run of k reals. */
static inline vreal load_words(const real *x, int64_t k, const bool pairs) {
    return pairs ? pair_run(load_some(x, k), load_some(x + VW, k - VW)) : load_some(x, k);
}

#endif
