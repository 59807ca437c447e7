/* The table of this instruction set, from kern.def. */
#include "kern/simd.h"

#define KERN(ret, name, params) ret KERN_NAME(name) params;
#include "kern/kern.def"
#undef KERN

#define KERN_TEXT2(x) #x
#define KERN_TEXT(x)  KERN_TEXT2(x)

extern const qkv_kern KERN_JOIN(qkv_kern, QKV_ISA);
const qkv_kern KERN_JOIN(qkv_kern, QKV_ISA) = {
    .name = KERN_TEXT(QKV_ISA),
    .width = VW,
#ifdef __AVX512BF16__
    .bf16 = true,
#endif
#define KERN(ret, name, params) .name = KERN_NAME(name),
#include "kern/kern.def"
#undef KERN
};
