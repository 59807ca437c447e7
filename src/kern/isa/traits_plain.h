/* Plain C for any CPU, what the compiler makes of vectors of four; the build with doubles has
 * nothing else. */
#ifndef QKV_KERN_ISA_TRAITS_PLAIN_H
#define QKV_KERN_ISA_TRAITS_PLAIN_H

#include "kern/isa/lanes_4.h"

#define MR          4
#define STRIP       6
#define INT_FEW     4
#define WORD_INPUTS 2

#ifdef __SSE2__ /* all x86-64 have it */
#define HAS_WORDS 1
V_INLINE void int_add_words(vword *s, vword a, vword b) {
    typedef short shorts __attribute__((vector_size(16)));
    *s += (vword)__builtin_ia32_pmaddwd128((shorts)a, (shorts)b);
}
#endif

#endif
