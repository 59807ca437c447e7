/* Vectors of VW lanes, and what all instruction sets do alike with them. From lanes_4.h, lanes_8.h
 * and lanes_16.h, which say what VW is and how lanes are shuffled. */
#ifndef QKV_KERN_ISA_LANES_H
#define QKV_KERN_ISA_LANES_H

#include <math.h>
#include <string.h>
#include "kern/kern.h"

#define V_PRAGMA(x) _Pragma(#x)
#ifdef __clang__
#define V_UNROLL(n) V_PRAGMA(unroll n)
#else
#define V_UNROLL(n) V_PRAGMA(GCC unroll n)
#endif
#define V_INLINE static inline __attribute__((always_inline))

typedef real vreal
    __attribute__((vector_size(VW * sizeof(real)), aligned(sizeof(real)), may_alias));
typedef float vfloat __attribute__((vector_size(VW * 4), aligned(4), may_alias));
typedef int32_t vword __attribute__((vector_size(VW * 4), aligned(4), may_alias));
typedef int16_t vshort __attribute__((vector_size(VW * 4), aligned(4), may_alias));
typedef uint32_t vbits __attribute__((vector_size(VW * 4), aligned(4), may_alias));
typedef int8_t vbytes __attribute__((vector_size(VW * 4), aligned(1), may_alias));

static inline vreal v_load(const real *p) {
    return *(const vreal *)p;
}
static inline void v_store(real *p, vreal x) {
    *(vreal *)p = x;
}
static inline vreal v_set(real x) {
    /* a scalar operand is spread over the lanes; x − 0 keeps even the sign of 0 */
    return x - (vreal){0};
}

/* The upper 16 bits are the bf16 nearest to x (ties to even); NaN stays NaN. */
static inline vbits to_bf16(vbits u) {
    const vbits nan = (vbits)((u & 0x7fffffff) > 0x7f800000);
    const vbits even = u + 0x7fff + ((u >> 16) & 1);
    return ((even & ~nan) | ((u | 0x400000) & nan)) & 0xffff0000;
}

/* Element i, j, k, l of each group of four lanes; 0–3 are x's, 4–7 are y's. */
#define V_AT(i, first)            ((i) < 4 ? (first) + (i) : VW + (first) + (i)-4)
#define V_FOUR(i, j, k, l, first) V_AT(i, first), V_AT(j, first), V_AT(k, first), V_AT(l, first)

typedef real vfour __attribute__((vector_size(4 * sizeof(real)), aligned(sizeof(real)), may_alias));

#endif
