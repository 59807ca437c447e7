/* The small matrix product inside attention, and the packing that feeds it.
 *
 * A score tile is made and used while it is in the cache, so its products are short and cannot go
 * through the large gemm. They all have one shape: C += A·B, where B lies in panels PANEL columns
 * wide ([panel][k][PANEL], zeros beyond the last column) and A is broadcast from memory, from rows
 * (a[m·lda + k]) or from columns (a[k·lda + m]). The register tile is STRIP rows by one or two
 * vectors: its sums in flight hide the latency of the multiply-add. The sum over k of one element
 * runs in order, whatever tile it falls into.
 *
 * With `pairs` A and B are words of two bf16 of adjacent k (pairs.h), and k counts words. */
#ifndef QKV_KERN_ATTENTION_TILE_H
#define QKV_KERN_ATTENTION_TILE_H

#include "kern/isa/math.h"
#include "kern/isa/pairs.h"

#define PANEL  (2 * VW)
#define INLINE static inline __attribute__((always_inline))
/* A product has all registers to itself. Not every file needs every product. */
#define OUT_OF_LINE __attribute__((noinline, unused))

static inline int64_t round_up(int64_t n, int64_t unit) {
    return (n + unit - 1) / unit * unit;
}

/* s += a·b, words or reals */
INLINE void add_word(bool pairs, vreal *s, vreal a, vreal b) {
    if (pairs)
        v_add_pairs(s, a, b);
    else
        v_add_product(s, a, b);
}

/* 2ˣ; for words, where bf16 follows, by half as many instructions: within 8·10⁻⁵, bf16 having
 * 4·10⁻³. */
INLINE vreal weight_of_score(bool pairs, vreal x) {
    if (!pairs || !HAS_EXPONENTS) return v_exp2_bounded(x);
    const vreal r = v_from_floor(x);
    vreal p = v_fma(v_set(0.07802181f), r, v_set(0.22606808f));
    p = v_fma(p, r, v_set(0.69583476f));
    p = v_fma(p, r, v_set(0.99992496f));
    return v_times_exp2(p, x);
}

typedef struct range {
    int32_t from, to;
} range;

/* C = A·B or C += A·B: m × n, over k */
typedef struct product {
    const real *a, *b;
    real *c;
    int64_t lda, ldc;
    int64_t panel; /* reals from one panel of B to the next */
    int64_t k;
    int32_t m, n;
    const range *strips; /* of each strip of rows the columns or the k that matter (NULL: all) */
} product;

/* Where one register tile of a product lies. */
typedef struct panel_tile {
    const real *a, *b;
    real *c;
    int64_t lda, ldc, k;
} panel_tile;

/* One register tile: mr ≤ STRIP rows by nv vectors; mr, nv and the flags are constants where it is
 * inlined. */
INLINE void tile(bool pairs, int mr, int nv, bool by_column, bool add, const panel_tile *t) {
    vreal sum[STRIP][2];
    V_UNROLL(8)
    for (int i = 0; i < mr; i++)
        for (int v = 0; v < nv; v++)
            sum[i][v] = add ? v_load(t->c + i * t->ldc + v * VW) : v_set(0);
    for (int64_t p = 0; p < t->k; p++) {
        vreal right[2];
        for (int v = 0; v < nv; v++) right[v] = v_load(t->b + p * PANEL + v * VW);
        V_UNROLL(8)
        for (int i = 0; i < mr; i++) {
            const vreal left = v_set(by_column ? t->a[p * t->lda + i] : t->a[i * t->lda + p]);
            for (int v = 0; v < nv; v++) add_word(pairs, &sum[i][v], left, right[v]);
        }
    }
    V_UNROLL(8)
    for (int i = 0; i < mr; i++)
        for (int v = 0; v < nv; v++) v_store(t->c + i * t->ldc + v * VW, sum[i][v]);
}

#define TILE_ROWS(mr)                                                                              \
    case mr:                                                                                       \
        if (nv == 2)                                                                               \
            tile(pairs, mr, 2, by_column, add, t);                                                 \
        else                                                                                       \
            tile(pairs, mr, 1, by_column, add, t);                                                 \
        break;

INLINE void tile_any(bool pairs, int mr, int nv, bool by_column, bool add, const panel_tile *t) {
    if (mr == STRIP && nv == 2) { /* nearly always: a branch that predicts beats a jump table */
        tile(pairs, STRIP, 2, by_column, add, t);
        return;
    }
    switch (mr) { UP_TO(STRIP, TILE_ROWS) }
}

/* What a tile of scores becomes before it leaves the registers. */
typedef struct finish {
    const real *rows;    /* where each row's sums start */
    const real *columns; /* added to that, PANEL reals: −FAR for the columns that are padding */
    real *sums;          /* weights: VW partial sums for each row, added to; or NULL */
    const real *weights; /* slopes: by which they are multiplied, laid out as C */
} finish;

#define FAR 1000 /* a score from which exp2 makes nothing */

/* C = exp2(start + A·B), or (weights given) C = weights·(start + A·B); mr is a constant where it is
 * inlined. */
INLINE void tile_finished(bool pairs, int mr, bool slopes, const panel_tile *t, const finish *f) {
    vreal sum[STRIP][2];
    V_UNROLL(8)
    for (int i = 0; i < mr; i++)
        for (int v = 0; v < 2; v++) {
            sum[i][v] = v_set(f->rows[i]);
            if (!slopes) sum[i][v] = sum[i][v] + v_load(f->columns + v * VW);
        }
    for (int64_t p = 0; p < t->k; p++) {
        const vreal right[2] = {v_load(t->b + p * PANEL), v_load(t->b + p * PANEL + VW)};
        V_UNROLL(8)
        for (int i = 0; i < mr; i++) {
            const vreal left = v_set(t->a[i * t->lda + p]);
            add_word(pairs, &sum[i][0], left, right[0]);
            add_word(pairs, &sum[i][1], left, right[1]);
        }
    }
    V_UNROLL(8)
    for (int i = 0; i < mr; i++) {
        for (int v = 0; v < 2; v++) {
            if (slopes)
                sum[i][v] = sum[i][v] * v_load(f->weights + i * t->ldc + v * VW);
            else
                sum[i][v] = weight_of_score(pairs, sum[i][v]);
            v_store(t->c + i * t->ldc + v * VW, sum[i][v]);
        }
        if (!slopes && f->sums)
            v_store(f->sums + i * VW, v_load(f->sums + i * VW) + (sum[i][0] + sum[i][1]));
        /* Row by row: all at once would need more registers than there are. */
        __asm__ volatile("" : : : "memory");
    }
}

INLINE void tile_finished_any(bool pairs, int mr, bool slopes, const panel_tile *t,
                              const finish *f) {
    if (mr == STRIP) { /* as in tile_any */
        tile_finished(pairs, STRIP, slopes, t, f);
        return;
    }
#define ROWS_OF(mr)                                                                                \
    case mr:                                                                                       \
        tile_finished(pairs, mr, slopes, t, f);                                                    \
        break;
    switch (mr) { UP_TO(STRIP, ROWS_OF) }
#undef ROWS_OF
}

/* The tile of C at row i, column j, over all k; b is the panel of column j. */
INLINE panel_tile tile_at(const product *p, const real *b, int32_t i, int32_t j) {
    return (panel_tile){.a = p->a + i * p->lda,
                        .b = b,
                        .c = p->c + i * p->ldc + j,
                        .lda = p->lda,
                        .ldc = p->ldc,
                        .k = p->k};
}

/* Are columns [j, j + PANEL) of strip s outside every row's range? */
INLINE bool unseen(const product *p, int32_t s, int32_t j) {
    return p->strips && (p->strips[s].from >= j + PANEL || p->strips[s].to <= j);
}

/* All panels of C, of a strip only those that its columns touch; n columns are no padding. `rows`
 * and `weights` of `whole` start at C's first row and column. */
INLINE void product_finished(bool pairs, bool slopes, const product *p, const finish *whole) {
    const real *b = p->b;
    for (int32_t j = 0; j < p->n; j += PANEL, b += p->panel) {
        real start[PANEL];
        for (int32_t i = 0; i < PANEL; i++) start[i] = j + i < p->n ? 0 : -FAR;
        for (int32_t i = 0, s = 0; i < p->m; i += STRIP, s++) {
            if (unseen(p, s, j)) continue;
            const finish f = {.rows = whole->rows + i,
                              .columns = start,
                              .sums = whole->sums ? whole->sums + i * VW : NULL,
                              .weights = slopes ? whole->weights + i * p->ldc + j : NULL};
            const panel_tile t = tile_at(p, b, i, j);
            tile_finished_any(pairs, p->m - i < STRIP ? p->m - i : STRIP, slopes, &t, &f);
        }
    }
}

/* C = exp2(rows + A·B), and the sums of its rows */
static OUT_OF_LINE void product_weights(bool pairs, const product *given, const finish *f) {
    const product p = *given; /* a copy whose fields no store can change stays in registers */
    if (HAS_PAIRS && pairs)
        product_finished(true, false, &p, f);
    else
        product_finished(false, false, &p, f);
}

/* C = weights·(rows + A·B) */
static OUT_OF_LINE void product_slopes(bool pairs, const product *given, const finish *f) {
    const product p = *given;
    if (HAS_PAIRS && pairs)
        product_finished(true, true, &p, f);
    else
        product_finished(false, true, &p, f);
}

/* C = A·B by rows of A, of a strip only the panels that its columns touch. */
INLINE void product_seen(bool pairs, const product *p) {
    const real *b = p->b;
    for (int32_t j = 0; j < p->n; j += PANEL, b += p->panel)
        for (int32_t i = 0, s = 0; i < p->m; i += STRIP, s++) {
            if (unseen(p, s, j)) continue;
            const panel_tile t = tile_at(p, b, i, j);
            tile_any(pairs, p->m - i < STRIP ? p->m - i : STRIP, p->n - j > VW ? 2 : 1, false,
                     false, &t);
        }
}

static OUT_OF_LINE void product_scores(bool pairs, const product *given) {
    const product p = *given;
    if (HAS_PAIRS && pairs)
        product_seen(true, &p);
    else
        product_seen(false, &p);
}

/* C += A·B, for each strip of rows only its k, which count no words: where a word is half in them,
 * the other half of A is 0. */
INLINE void product_any(bool pairs, bool by_column, const product *p) {
    const real *b = p->b;
    for (int32_t j = 0; j < p->n; j += PANEL, b += p->panel)
        for (int32_t i = 0, s = 0; i < p->m; i += STRIP, s++) {
            range r = p->strips ? p->strips[s] : (range){0, (int32_t)p->k};
            if (r.from >= r.to) continue;
            if (p->strips && pairs) r = (range){r.from / 2, (r.to + 1) / 2};
            const panel_tile t = {.a = by_column ? p->a + i + r.from * p->lda
                                                 : p->a + i * p->lda + r.from,
                                  .b = b + (int64_t)r.from * PANEL,
                                  .c = p->c + i * p->ldc + j,
                                  .lda = p->lda,
                                  .ldc = p->ldc,
                                  .k = r.to - r.from};
            tile_any(pairs, p->m - i < STRIP ? p->m - i : STRIP, p->n - j > VW ? 2 : 1, by_column,
                     true, &t);
        }
}

static OUT_OF_LINE void product_rows(bool pairs, const product *given) {
    const product p = *given;
    if (HAS_PAIRS && pairs)
        product_any(true, false, &p);
    else
        product_any(false, false, &p);
}

static OUT_OF_LINE void product_columns(bool pairs, const product *given) {
    const product p = *given;
    if (HAS_PAIRS && pairs)
        product_any(true, true, &p);
    else
        product_any(false, true, &p);
}

/* ---- packing ---- */

#define AHEAD 16 /* rows fetched ahead */

/* Reals in the panels of `rows` rows of `cols` columns. */
static inline int64_t panels_size(int64_t rows, int64_t cols) {
    return rows * round_up(cols, PANEL);
}

/* factor·x, rows × cols: what a product is to read. */
typedef struct operand {
    const real *x;
    int64_t ld, rows, cols;
    real factor;
} operand;

/* Panels of columns: B[k = row][n = column] = factor·x; a panel has PANEL words for each of its
 * k. */
static inline void pack_columns(bool pairs, const operand *from, real *out) {
    const real *x = from->x;
    const int64_t ld = from->ld, rows = from->rows, cols = from->cols;
    const vreal f = v_set(from->factor);
    const int64_t words = count_words(rows, pairs);
    for (int64_t c = 0; c < cols; c += VW) {
        const int64_t n = cols - c < VW ? cols - c : VW;
        real *to = out + c / PANEL * words * PANEL + c % PANEL;
        if (HAS_PAIRS && pairs)
            for (int64_t r = 0; r < rows; r += 2, to += PANEL) {
                __builtin_prefetch(x + (r + AHEAD) * ld + c);
                __builtin_prefetch(x + (r + 1 + AHEAD) * ld + c);
                const vreal next = v_load_n(x + (r + 1) * ld + c, r + 1 < rows ? n : 0);
                v_store(to, pair_lanes(f * v_load_n(x + r * ld + c, n), f * next));
            }
        else
            for (int64_t r = 0; r < rows; r++, to += PANEL) {
                __builtin_prefetch(x + (r + AHEAD) * ld + c);
                v_store(to, f * v_load_n(x + r * ld + c, n));
            }
    }
}

/* VW rows' words of up to VW steps of k, `cols` columns being left, turned over; n rows exist. */
INLINE void turn_rows(bool pairs, const real *x, int64_t ld, int64_t n, int64_t cols, real *out) {
    const int64_t words = count_words(cols, pairs);
    vreal t[VW];
    if (n == VW && cols >= VW) {
        V_UNROLL(16)
        for (int i = 0; i < VW; i++) __builtin_prefetch(x + (i + AHEAD) * ld);
        V_UNROLL(16)
        for (int i = 0; i < VW; i++) t[i] = load_words(x + i * ld, cols, pairs);
    } else {
        for (int i = 0; i < VW; i++) t[i] = i < n ? load_words(x + i * ld, cols, pairs) : v_set(0);
    }
    v_transpose(t);
    if (words >= VW) {
        V_UNROLL(16)
        for (int i = 0; i < VW; i++) v_store(out + i * PANEL, t[i]);
    } else {
        for (int i = 0; i < words; i++) v_store(out + i * PANEL, t[i]);
    }
}

/* Panels of rows: B[k = column][n = row] = x. Of the last panel all are set: a tile computes whole
 * panels, and what memory held before must not enter it. */
static inline void pack_rows(bool pairs, const real *x, int64_t ld, int64_t rows, int64_t cols,
                             real *out) {
    const int64_t words = count_words(cols, pairs);
    for (int64_t r = 0; r < round_up(rows, PANEL); r += VW) {
        const int64_t n =
            rows - r < VW ? rows - r : VW; /* none: a half of a panel that is all padding */
        real *to = out + r / PANEL * words * PANEL + r % PANEL;
        for (int64_t w = 0; w < words; w += VW)
            if (HAS_PAIRS && pairs)
                turn_rows(true, x + r * ld + 2 * w, ld, n, cols - 2 * w, to + w * PANEL);
            else
                turn_rows(false, x + r * ld + w, ld, n, cols - w, to + w * PANEL);
    }
}

/* Asks for rows that will be read (or written) soon: those of one head lie too far apart for the
 * CPU to guess. */
static inline void fetch_rows(const real *x, int64_t ld, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c += (int64_t)(64 / sizeof(real)))
            __builtin_prefetch(x + r * ld + c, 0, 2);
}

/* y = factor·x, rows × cols. */
static inline void copy_rows(const real *x, int64_t ldx, int64_t rows, int64_t cols, real factor,
                             real *y, int64_t ldy) {
    const int64_t whole = cols / VW * VW;
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < whole; c += VW)
            v_store(y + r * ldy + c, factor * v_load(x + r * ldx + c));
        if (whole < cols) {
            const vreal tail = v_load_n(x + r * ldx + whole, cols - whole);
            v_store_n(y + r * ldy + whole, factor * tail, cols - whole);
        }
    }
}

/* The same for an operand of products: with `pairs` as words of adjacent columns. */
static inline void copy_words(bool pairs, const operand *from, real *y, int64_t ldy) {
    const real *x = from->x, factor = from->factor;
    const int64_t ldx = from->ld, cols = from->cols;
    if (!HAS_PAIRS || !pairs) {
        copy_rows(x, ldx, from->rows, cols, factor, y, ldy);
        return;
    }
    for (int64_t r = 0; r < from->rows; r++)
        for (int64_t c = 0; c < cols; c += 2 * VW) {
            const vreal first = factor * load_some(x + r * ldx + c, cols - c),
                        second = factor * load_some(x + r * ldx + c + VW, cols - c - VW);
            const int64_t words = count_words(cols - c, true);
            v_store_n(y + r * ldy + c / 2, pair_run(first, second), words < VW ? words : VW);
        }
}

#endif
