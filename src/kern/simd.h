/* A thin face over the vector unit, so that each kernel is written once.
 *
 * `vreal` holds VW reals; + − * / work on it (GCC vector extensions). What the extensions lack
 * (fused multiply-add, max, masked tails, conversions) has a name, and each instruction set says in
 * isa/traits_NAME.h what stands behind it; what it does not say, isa/portable.h does. FMA is asked
 * for by name and never by contraction, so that a kernel's body and tail give the same bits. The
 * plain set has no FMA: x·y+z rounds twice.
 *
 * A traits file begins with lanes_4.h, lanes_8.h or lanes_16.h (VW and the shuffles of that width)
 * and defines
 *   MR           rows of a tile of the matrix product, of 2·VW columns: 2·MR sums, two vectors
 *                and one value must fit in the registers (at most 16)
 *   STRIP        rows of a tile of attention, likewise
 *   INT_FEW      rows up to which products read int8 weights unpacked (gemm_int_few.c)
 *   WORD_INPUTS  of products with integer weights, 2 or 4 (gemm_int.h)
 * and what of portable.h it has instructions for. */
#ifndef QKV_KERN_SIMD_H
#define QKV_KERN_SIMD_H

#define KERN_JOIN2(a, b) a##_##b
#define KERN_JOIN(a, b)  KERN_JOIN2(a, b)
#define KERN_TEXT2(x)    #x
#define KERN_TEXT(x)     KERN_TEXT2(x)
/* The symbol of kernel `name` in the instruction set being compiled: qkv_gemm_avx2 */
#define KERN_NAME(name) KERN_JOIN(qkv_##name, QKV_ISA)

/* clang-format off */
#include KERN_TEXT(kern/isa/KERN_JOIN(traits, QKV_ISA).h)
/* clang-format on */
#include "kern/isa/portable.h"

/* UP_TO(n, X) is X(1) X(2) … X(n), n being a constant's name. */
#define UP_TO(n, X) KERN_JOIN(UP_TO, n)(X)
#define UP_TO_1(X)  X(1)
#define UP_TO_2(X)  UP_TO_1(X) X(2)
#define UP_TO_3(X)  UP_TO_2(X) X(3)
#define UP_TO_4(X)  UP_TO_3(X) X(4)
#define UP_TO_5(X)  UP_TO_4(X) X(5)
#define UP_TO_6(X)  UP_TO_5(X) X(6)
#define UP_TO_7(X)  UP_TO_6(X) X(7)
#define UP_TO_8(X)  UP_TO_7(X) X(8)
#define UP_TO_9(X)  UP_TO_8(X) X(9)
#define UP_TO_10(X) UP_TO_9(X) X(10)
#define UP_TO_11(X) UP_TO_10(X) X(11)
#define UP_TO_12(X) UP_TO_11(X) X(12)
#define UP_TO_13(X) UP_TO_12(X) X(13)
#define UP_TO_14(X) UP_TO_13(X) X(14)
#define UP_TO_15(X) UP_TO_14(X) X(15)
#define UP_TO_16(X) UP_TO_15(X) X(16)

/* Transposes a VW×VW block: 4×4 inside each group of four lanes, then the groups. */
static inline void v_transpose(vreal x[VW]) {
    V_UNROLL(4)
    for (int i = 0; i < VW; i += 4) {
        const vreal a = V_MIX(x[i], x[i + 1], 0, 4, 1, 5), b = V_MIX(x[i], x[i + 1], 2, 6, 3, 7);
        const vreal c = V_MIX(x[i + 2], x[i + 3], 0, 4, 1, 5);
        const vreal d = V_MIX(x[i + 2], x[i + 3], 2, 6, 3, 7);
        x[i] = V_MIX(a, c, 0, 1, 4, 5);
        x[i + 1] = V_MIX(a, c, 2, 3, 6, 7);
        x[i + 2] = V_MIX(b, d, 0, 1, 4, 5);
        x[i + 3] = V_MIX(b, d, 2, 3, 6, 7);
    }
    v_transpose_groups(x);
}

/* out[i] = the sum of the lanes of x[i] */
static inline void v_four_sums(const vreal x[4], real *out) {
    const vreal ab = V_MIX(x[0], x[1], 0, 4, 1, 5) + V_MIX(x[0], x[1], 2, 6, 3, 7);
    const vreal cd = V_MIX(x[2], x[3], 0, 4, 1, 5) + V_MIX(x[2], x[3], 2, 6, 3, 7);
    *(vfour *)out = v_add_groups(V_MIX(ab, cd, 0, 1, 4, 5) + V_MIX(ab, cd, 2, 3, 6, 7));
}

#endif
