/* The tile of the product with integer weights: MR×NR sums of int32 in registers.
 *
 * As in gemm_tile.c, with a word where that has a real. On AVX2 a step of a word is 12 multiplies
 * and 12 additions for 2·6·16 inputs·outputs: twice what fused multiply-adds do, with all four
 * vector pipes of a Zen 3 full. */
#include "kern/isa/gemm_int.h"
#include "kern/isa/math.h"

#define INLINE inline __attribute__((always_inline))

static INLINE void one_word(vword s[MR][2], const int32_t *const a[MR], const int32_t *b,
                            const int64_t w, const int mr) {
    const vword b0 = i_load(b), b1 = i_load(b + VW);
    V_UNROLL(16)
    for (int i = 0; i < mr; i++) {
        const vword x = (gemm_int_in_place() ? a[i][w] : a[0][w * MR + i]) - (vword){0};
        int_add_words(&s[i][0], x, b0);
        int_add_words(&s[i][1], x, b1);
    }
}

/* The sums of group g. */
static INLINE void sum_group(vword s[MR][2], const int_tile *t, const int32_t *const a[MR],
                             const int32_t *b, int64_t g, const int mr) {
    V_UNROLL(16)
    for (int i = 0; i < mr; i++) s[i][0] = i_load(b + NR), s[i][1] = i_load(b + NR + VW);
    const int32_t *words = b + 2 * NR;
    const int64_t w0 = g * t->shape.words;
    for (int64_t w = 0; w < t->shape.words; w += 4, words += 4 * NR) {
        V_UNROLL(4)
        for (int q = 0; q < 4; q++) one_word(s, a, words + q * NR, w0 + w + q, mr);
    }
}

/* float(s)·scale, after what earlier groups gave */
static INLINE vfloat add_group(const float *sums, vword s, const int32_t *scale, bool first) {
    vfloat y = __builtin_convertvector(s, vfloat) * *(const vfloat *)scale;
    if (!first) y = *(const vfloat *)sums + y;
    return y;
}

static INLINE void put(const int_tile *t, int i, int j, vfloat y) {
    vreal z = __builtin_convertvector(y * t->scale[i], vreal) + v_load(t->bias + j);
    if (t->relu) z = v_act(QKV_ACT_RELU, z);
    v_store(t->c + i * t->ldc + j, z);
}

static INLINE void tile(const int_tile *t, const int mr) {
    vword s[MR][2];
    const int32_t *a[MR], *b = t->b;
    const int pointers = gemm_int_in_place() ? mr : 1;
    V_UNROLL(16)
    for (int i = 0; i < pointers; i++) a[i] = t->a + i * t->lda;
    int64_t g = 0;
    for (;; g++, b += t->shape.stride) {
        sum_group(s, t, a, b, g, mr);
        if (g + 1 == t->shape.groups) break;
        V_UNROLL(16)
        for (int i = 0; i < mr; i++)
            for (int h = 0; h < 2; h++) {
                float *const to = t->sums + i * NR + h * VW;
                *(vfloat *)to = add_group(to, s[i][h], b + h * VW, g == 0);
            }
    }
    V_UNROLL(16)
    for (int i = 0; i < mr; i++)
        for (int h = 0; h < 2; h++)
            put(t, i, h * VW, add_group(t->sums + i * NR + h * VW, s[i][h], b + h * VW, g == 0));
}

#define DEFINE(mr)                                                                                 \
    static void tile_##mr(const int_tile *t) {                                                     \
        tile(t, mr);                                                                               \
    }
UP_TO(MR, DEFINE)
#undef DEFINE

int_tile_fn KERN_NAME(gemm_int_tile_of)(int mr) {
#define ROW(mr) tile_##mr,
    static const int_tile_fn tiles[] = {UP_TO(MR, ROW)};
#undef ROW
    return tiles[mr - 1];
}
