/* The tile of the product with weights in blocks: a group's sums of integers in registers, then
 * scaled and added to the sums in memory, which the nearest cache holds. */
#include "kern/isa/gemm_block.h"

#define INLINE inline __attribute__((always_inline))

static INLINE vword block_words(const int32_t *p) {
    return *(const vword *)p;
}
static INLINE vfloat block_floats(const float *p) {
    return *(const vfloat *)p;
}

/* s += the products of words. */
static INLINE void add_words(vword s[MR][2], const int32_t *a, const int32_t *b, const int words,
                             const int rows) {
    for (int w = 0; w < words; w++, a += rows, b += NR) {
        const vword b0 = block_words(b), b1 = block_words(b + VW);
        V_UNROLL(16)
        for (int i = 0; i < rows; i++) {
            const vword x = a[i] - (vword){0};
            int_add_words(&s[i][0], b0, x);
            int_add_words(&s[i][1], b1, x);
        }
    }
}

/* The integer sums of one group: `a` has its first words (high bytes), `low` is how far the low ones
 * are. */
static INLINE void sum_group(vword s[MR][2], const int32_t *a, int64_t low, const int32_t *start,
                             const int32_t *b, const int words, const int rows) {
    V_UNROLL(16)
    for (int i = 0; i < rows; i++)
        s[i][0] = s[i][1] = (WORD_INPUTS == 4 ? 0 : start[i]) - (vword){0};
    add_words(s, a, b, words, rows);
    if (WORD_INPUTS != 4) return;
    V_UNROLL(16)
    for (int i = 0; i < rows; i++)
        for (int h = 0; h < 2; h++) s[i][h] = s[i][h] * 256 + start[i];
    add_words(s, a + low, b, words, rows);
}

static INLINE void tile(const block_tile *t, const int group, const bool offset, const int rows) {
    const int words = group / WORD_INPUTS, per_scale = 32 / group;
    for (int g = 0; g < t->groups; g++) {
        vword s[MR][2];
        /* of each 32 inputs the words of both groups of 16 lie together */
        const int32_t *const a =
            t->words + (g / per_scale * X_WORDS + g % per_scale * words) * rows;
        sum_group(s, a, X_WORDS / 2 * rows, t->start + g * rows, t->panel->words + g * words * NR,
                  words, rows);
        const float *const x_scale = t->scale + g / per_scale * rows, *const part =
                                                                          t->part + g * rows;
        for (int h = 0; h < 2; h++) {
            const vfloat scale = block_floats(t->panel->scale + g * NR + h * VW),
                         off = offset ? block_floats(t->panel->offset + g * NR + h * VW) : scale;
            V_UNROLL(16)
            for (int i = 0; i < rows; i++) {
                float *const sum = t->sums + i * NR + h * VW;
                vfloat y = __builtin_convertvector(s[i][h], vfloat) * scale * x_scale[i];
                if (offset) y = y - off * part[i];
                *(vfloat *)sum = block_floats(sum) + y;
            }
        }
    }
}

#define DEFINE(rows)                                                                               \
    static void tile_32_##rows(const block_tile *t) {                                              \
        tile(t, 32, false, rows);                                                                  \
    }                                                                                              \
    static void tile_32_offset_##rows(const block_tile *t) {                                       \
        tile(t, 32, true, rows);                                                                   \
    }                                                                                              \
    static void tile_16_##rows(const block_tile *t) {                                              \
        tile(t, 16, false, rows);                                                                  \
    }                                                                                              \
    static void tile_16_offset_##rows(const block_tile *t) {                                       \
        tile(t, 16, true, rows);                                                                   \
    }
UP_TO(MR, DEFINE)
#undef DEFINE

block_tile_fn KERN_NAME(gemm_block_tile_of)(int rows, const block_form *form) {
#define ROW(rows)                                                                                  \
    {{tile_32_##rows, tile_32_offset_##rows}, {tile_16_##rows, tile_16_offset_##rows}},
    static const block_tile_fn tiles[][2][2] = {UP_TO(MR, ROW)};
#undef ROW
    return tiles[rows - 1][form->group == 16][form->offset];
}
