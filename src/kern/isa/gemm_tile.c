/* The tile: MR×NR sums in registers, a rank-1 update for each k.
 *
 * At each k: 2 loads of B, MR broadcasts of A, 2·MR fused multiply-adds. With MR = 6 on AVX2 those
 * are 8 loads to 12 multiply-adds, and the two FMA units are the limit. One function for each
 * height, so that a short tile costs what it does.
 *
 * Roofline (2-core AMD EPYC, Zen 3, AVX2, one thread): 103.5 GFLOP/s from registers. Nine layers of
 * bench_gemm.def, best of 12: 92 to 97 (89 to 93 %) where A is read in place, 86 to 94 (83 to 90 %)
 * where it is packed. Zen 4 with AVX-512, 14×32: 118 from registers, 115 (97 %) with both operands
 * in the cache; the layers reach 104 (88 %), packing being 6 % of the time. docs/BENCH.md has them
 * all. */
#include "kern/isa/gemm.h"

#define AHEAD  512 /* reals of B fetched ahead */
#define LINE   (64 / sizeof(real))
#define INLINE inline __attribute__((always_inline))

/* s += a·b, of reals or of pairs of halves. A tile takes nearly all registers here, so the
 * instructions are named whole: see v_add_product. */
static INLINE void add_product(vreal *s, vreal a, vreal b, const bool pairs) {
    if (pairs)
        v_add_pairs_in_tile(s, a, b);
    else
        v_add_in_tile(s, a, b);
}

/* VW reals of row q of B. Of halves, row q is the lower or the upper ones of words q / 2; shifts
 * and masks run beside the multiplications. */
static INLINE vreal load_b(const real *b, const int q, const gemm_form form) {
#ifndef QKV_DOUBLE
    typedef int32_t vbits32 __attribute__((vector_size(VW * sizeof(int32_t))));
    if (form == GEMM_HALVES) {
        const vbits32 words = (vbits32)v_load(b + q / 2 * NR);
        return (vreal)(q % 2 ? words & (int32_t)0xffff0000 : words << 16);
    }
#endif
    (void)form;
    return v_load(b + q * NR);
}

/* Where the tile finds A. Rows in place are too many for a pointer each: seven share one, and an
 * address adds one, two or four times a multiple of the way from row to row. Packed, one pointer is
 * enough. */
#define SHARED 7
typedef struct a_rows {
    const char *at[(MR + SHARED - 1) / SHARED];
    int64_t once, thrice, five; /* times the way to the next row, in bytes */
} a_rows;

static INLINE real a_value(const a_rows *a, const int i, const int q, const bool in_place) {
    if (!in_place) return ((const real *)a->at[0])[q * MR + i];
    const int64_t way[SHARED] = {0,           a->once, 2 * a->once,  a->thrice,
                                 4 * a->once, a->five, 2 * a->thrice};
    return *(const real *)(a->at[i / SHARED] + way[i % SHARED] + q * (int)sizeof(real));
}

/* s += column q of A · row q of B, counted from where the pointers stand. */
static INLINE void rank_one(vreal s[MR][2], const a_rows *a, const real *b, const int q,
                            const int mr, const gemm_form form) {
    const vreal b0 = load_b(b, q, form), b1 = load_b(b + VW, q, form);
    V_UNROLL(16)
    for (int i = 0; i < mr; i++) {
        const vreal x = v_set(a_value(a, i, q, gemm_in_place(form)));
        add_product(&s[i][0], x, b0, form == GEMM_DOTS);
        add_product(&s[i][1], x, b1, form == GEMM_DOTS);
    }
}

static INLINE void tile(const gemm_tile *t, const int mr, const gemm_form form) {
    const bool in_place = gemm_in_place(form);
    const int b_step = form == GEMM_HALVES ? NR / 2 : NR; /* of one k */
    vreal s[MR][2];
    const int pointers = in_place ? (mr + SHARED - 1) / SHARED : 1,
              step = (in_place ? 1 : MR) * (int)sizeof(real);
    const real *b = t->b;
    const int64_t lda = t->lda * (int64_t)sizeof(real);
    a_rows a = {.at = {(const char *)t->a}, .once = lda, .thrice = 3 * lda, .five = 5 * lda};
    for (int i = 1; i < pointers; i++) a.at[i] = a.at[0] + i * SHARED * lda;
    if (in_place)
        __asm__("" : "+r"(a.thrice), "+r"(a.five)); /* else they are computed again and again */
    real *const c = t->c;
    const int64_t ldc = t->ldc;
    V_UNROLL(16)
    for (int i = 0; i < mr; i++) {
        __builtin_prefetch(c + i * ldc, 1);
        __builtin_prefetch(c + i * ldc + NR - 1, 1);
        s[i][0] = v_load(t->init);
        s[i][1] = v_load(t->init + VW);
    }
    int64_t left = t->words;
    const real *next_a = t->next_a, *next_b = t->next_b;
    for (; left >= 4; left -= 4, b += 4 * b_step) {
        if (mr == 1 && (form == GEMM_HALVES ||
                        form == GEMM_DOTS)) { /* one row: the weights come from memory */
            __builtin_prefetch(b + AHEAD);
            __builtin_prefetch(b + AHEAD + NR);
        }
        if (mr > 1) {
            __builtin_prefetch(next_a, 0, 2);
            __builtin_prefetch(next_b, 0, 2);
            next_a += LINE, next_b += LINE;
        }
        V_UNROLL(4)
        for (int q = 0; q < 4; q++) rank_one(s, &a, b, q, mr, form);
        V_UNROLL(16)
        for (int i = 0; i < pointers; i++) a.at[i] += 4 * step;
    }
    if (left > 0) rank_one(s, &a, b, 0, mr, form);
    if (left > 1) rank_one(s, &a, b, 1, mr, form);
    if (left > 2) rank_one(s, &a, b, 2, mr, form);
    V_UNROLL(16)
    for (int i = 0; i < mr; i++) {
        real *const row = c + i * ldc;
        if (t->add) {
            s[i][0] += v_load(row);
            s[i][1] += v_load(row + VW);
        }
        if (t->relu) {
            s[i][0] = v_max(v_set(0), s[i][0]);
            s[i][1] = v_max(v_set(0), s[i][1]);
        }
        v_store(row, s[i][0]);
        v_store(row + VW, s[i][1]);
    }
}

/* One row against ROW_PANELS panels side by side: with one panel there are two sums, and each waits
 * for the multiply-add before it; with four there are eight, and the weights come as fast as the
 * cache or the memory gives them. */
static INLINE void row(const gemm_tile *t, int64_t panel, const gemm_form form) {
    const int b_step = form == GEMM_HALVES ? NR / 2 : NR;
    vreal s[ROW_PANELS][2];
    V_UNROLL(8)
    for (int i = 0; i < ROW_PANELS; i++) {
        s[i][0] = v_load(t->init + i * NR);
        s[i][1] = v_load(t->init + i * NR + VW);
    }
    const real *a = t->a, *b = t->b;
    int64_t left = t->words;
    for (; left >= 2; left -= 2, a += 2, b += 2 * b_step) V_UNROLL(2)
    for (int q = 0; q < 2; q++) {
        const vreal x = v_set(a[q]);
        V_UNROLL(8)
        for (int i = 0; i < ROW_PANELS; i++) {
            add_product(&s[i][0], x, load_b(b + i * panel, q, form), form == GEMM_DOTS);
            add_product(&s[i][1], x, load_b(b + i * panel + VW, q, form), form == GEMM_DOTS);
        }
    }
    if (left) {
        const vreal x = v_set(a[0]);
        V_UNROLL(8)
        for (int i = 0; i < ROW_PANELS; i++) {
            add_product(&s[i][0], x, load_b(b + i * panel, 0, form), form == GEMM_DOTS);
            add_product(&s[i][1], x, load_b(b + i * panel + VW, 0, form), form == GEMM_DOTS);
        }
    }
    real *const c = t->c;
    V_UNROLL(8)
    for (int i = 0; i < ROW_PANELS * 2; i++) {
        if (t->add) s[i / 2][i % 2] += v_load(c + i * VW);
        v_store(c + i * VW, s[i / 2][i % 2]);
    }
}

void KERN_NAME(gemm_row)(const gemm_tile *t, int64_t panel, gemm_form form) {
    if (HAS_PAIRS && form == GEMM_DOTS)
        row(t, panel, GEMM_DOTS);
    else if (!HAS_PAIRS && form == GEMM_HALVES)
        row(t, panel, GEMM_HALVES);
    else
        row(t, panel, GEMM_IN_PLACE);
}

/* Each height that exists, for the forms that this set has. */
#define FORMS_0(X, mr) X(PACKED, mr) X(IN_PLACE, mr) X(HALVES, mr)
#define FORMS_1(X, mr) X(PACKED, mr) X(IN_PLACE, mr) X(DOTS, mr)
#define FORMS          KERN_JOIN(FORMS, HAS_PAIRS)

#define DEFINE_ONE(form, mr)                                                                       \
    static void tile_##form##_##mr(const gemm_tile *t) {                                           \
        tile(t, mr, GEMM_##form);                                                                  \
    }
#define DEFINE(mr) FORMS(DEFINE_ONE, mr)
UP_TO(MR, DEFINE)
#undef DEFINE

gemm_tile_fn KERN_NAME(gemm_tile_of)(int mr, gemm_form form) {
#define ONE(form, mr) [GEMM_##form] = tile_##form##_##mr,
#define ROW(mr)       {FORMS(ONE, mr)},
    static const gemm_tile_fn tiles[][GEMM_FORMS] = {UP_TO(MR, ROW)};
#undef ROW
#undef ONE
    return tiles[mr - 1][form];
}
