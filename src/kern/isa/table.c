/* The table of this instruction set, from kern.def. */
#include "kern/simd.h"

#define KERN(ret, name, params) ret KERN_NAME(name) params;
#include "kern/kern.def"
#undef KERN

extern const qkv_kern KERN_JOIN(qkv_kern, QKV_ISA);
const qkv_kern KERN_JOIN(qkv_kern, QKV_ISA) = {
    .name = KERN_TEXT(QKV_ISA),
    .width = VW,
    .bf16 = PAIRS_ARE_FAST,
#define KERN(ret, name, params) .name = KERN_NAME(name),
#include "kern/kern.def"
#undef KERN
};
