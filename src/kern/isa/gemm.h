/* The parts of the matrix product: sizes, packing and the tile.
 *
 * C is computed in tiles of MR rows × NR columns whose sums stay in registers. K is cut into blocks
 * of at most KC; the cuts depend on K alone, and an element is always (…((C₀ + s₁) + s₂) + …),  s_b
 * = the fused multiply-adds of block b, k ascending, the first started from the bias so its bits
 * depend on nothing else: not on M, N, its place, the edges of tiles, the threads. */
#ifndef QKV_KERN_ISA_GEMM_H
#define QKV_KERN_ISA_GEMM_H

#include "kern/isa/pairs.h"

#define NR (2 * VW)
#ifndef KC
#define KC 512 /* NR·KC reals of B stay in the L1 cache while the rows of A pass by */
#endif
#ifndef MTILES
#define MTILES 12
#endif
#define MC                                                                                         \
    (MTILES *                                                                                      \
     MR)        /* MC·KC reals of A stay in the L2 cache while the columns of B pass by         \
                   */
#define NC 1024 /* KC·NC reals of packed B belong to a thread */

/* How the operands of a product lie. */
typedef enum gemm_form {
    GEMM_PACKED,   /* both packed, reals */
    GEMM_IN_PLACE, /* rows of A where they are */
    GEMM_DOTS,     /* both packed, pairs of bf16 that one instruction multiplies */
    /* A reals (in place where it can be), B the bf16 of weights, which the tile expands: sets
     * without dots */
    GEMM_HALVES,
    GEMM_FORMS
} gemm_form;

/* Can the tile read rows of A where they are? Not when all of them begin in the same set of the
 * nearest cache, which has fewer places than a tile has rows. */
#define GEMM_CACHE_WAY 4096 /* bytes from a line to the next one of its set */
static inline bool gemm_a_apart(const qkv_gemm *g) {
    return MR <= 8 || g->lda * (int64_t)sizeof(real) % GEMM_CACHE_WAY;
}

static inline gemm_form gemm_form_of(const qkv_gemm *g) {
    const bool halves = g->weight && sizeof(real) == sizeof(float);
    if (HAS_PAIRS && (halves || g->precision == QKV_BF16)) return GEMM_DOTS;
    if (halves) return GEMM_HALVES;
    /* bf16 without dots: rounded, and multiplied in fp32 */
    return !g->a_trans && g->precision == QKV_F32 && gemm_a_apart(g) ? GEMM_IN_PLACE : GEMM_PACKED;
}
static inline bool gemm_in_place(gemm_form form) {
    return form == GEMM_IN_PLACE || form == GEMM_HALVES;
}

/* A packed operand is made of panels: `width` columns of op(B) (or rows of op(A)), k after k. A
 * word is one real, or two bf16 of adjacent k. */
static inline int64_t gemm_b_words(int64_t k, gemm_form form) {
    return count_words(k, form == GEMM_DOTS || form == GEMM_HALVES);
}
static inline int64_t gemm_a_words(int64_t k, gemm_form form) {
    return count_words(k, form == GEMM_DOTS);
}

/* A k×count matrix to be packed. Element (p, j) is at x[p·ld + j], or at x[j·ld + p] if
 * k_contiguous. Panel i holds the columns start[i] … start[i + 1] − 1, at most `width` (NR, or MR
 * for rows of A); it is filled with zeros where the matrix ends and holds anything between its
 * columns and `width` elsewhere. */
typedef struct gemm_panels {
    const real *x;
    const uint16_t
        *halves; /* instead of x: bf16, k contiguous; words of two where reals have 4 bytes */
    int64_t ld;
    bool k_contiguous;
    int64_t k;
    int width;
    int panels;
    const int64_t *start; /* panels + 1 */
    qkv_precision precision;
    real *sums; /* not NULL (rows of A only): column j of panel i adds to sums[i·GEMM_SUMS + j] all
                   its k's, before rounding */
} gemm_panels;
#define GEMM_SUMS ((MR + VW - 1) / VW * VW)

/* Reals from one packed panel to the next; whole vectors may be stored where a row is narrower. */
static inline int64_t gemm_panel_size(int64_t words, int width) {
    return words * width + (width % VW ? VW : 0);
}
void KERN_NAME(gemm_panels)(const gemm_panels *s, real *out);

/* One tile: c[i][j] = [c[i][j] +] (init[j] + Σ_p a(i, p)·b[p][j]) for mr rows and NR columns. */
typedef struct gemm_tile {
    int64_t words;    /* length of the sum, in words of A */
    const real *a;    /* in place: a(i, p) = a[i·lda + p]; packed: a[p·MR + i] */
    int64_t lda;      /* in place */
    const real *b;    /* a panel */
    const real *init; /* NR reals */
    real *c;
    int64_t ldc;
    bool add;  /* to what c holds */
    bool relu; /* then nothing below 0 stays */
    const real *next_a,
        *next_b; /* will be wanted: from here on a line is fetched for every four words */
} gemm_tile;
typedef void (*gemm_tile_fn)(const gemm_tile *t);
gemm_tile_fn KERN_NAME(gemm_tile_of)(int mr, gemm_form form);

/* The same for one row of A, its words side by side, and ROW_PANELS whole panels, `panel` reals
 * from one to the next; init and c have ROW_PANELS·NR reals. */
#define ROW_PANELS 4
void KERN_NAME(gemm_row)(const gemm_tile *t, int64_t panel, gemm_form form);

/* The cut of C into rectangles, one item of work each. */
typedef struct gemm_plan {
    int threads;
    int64_t rows, cols; /* of an item */
    int64_t down, across;
} gemm_plan;
gemm_plan KERN_NAME(gemm_plan_of)(const qkv_gemm *g);

#endif
