/* The matrix product C = act(op(A)·op(B) [+ C] + bias): the loops around the tile.
 *
 * C is cut into rectangles, one item of work each. An item packs its columns of op(B), KC×NC at a
 * time, and then walks down its rows MC at a time; a thread's scratch holds both blocks. Rows of A
 * are read in place where they can be. Whatever the cut, each element is computed as gemm.h says,
 * so the number of items may follow the number of threads.
 *
 * Few rows (a step of decoding) take the same path with one panel of B at a time: the weights
 * stream through once. */
#include "kern/isa/gemm_block.h"
#include "kern/isa/gemm_int.h"
#include "kern/isa/math.h"
#include "base/thread.h"

#define KERN(ret, name, params) ret KERN_NAME(name) params;
#include "kern/kern.def"
#undef KERN

static int64_t min64(int64_t a, int64_t b) {
    return a < b ? a : b;
}
static int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}
static int64_t round_up(int64_t a, int64_t b) {
    return ceil_div(a, b) * b;
}

/* ---- blocks of K: as equal as can be, a function of K alone; even, so that pairs are not cut ----
 */

static int64_t k_step(int64_t k) {
    return k ? round_up(ceil_div(k, ceil_div(k, KC)), 2) : 1;
}

/* ---- B packed as a whole: block after block of K, each in panels of NR ---- */

size_t KERN_NAME(gemm_pack_size)(const qkv_gemm *g) {
    if (g->weight && !qkv_weight_can_pack(g->weight)) return 0;
    if (g->weight && qkv_weight_is_integer(g->weight)) return KERN_NAME(gemm_int_pack_size)(g);
    return (size_t)(round_up(g->n, NR) * gemm_b_words(g->k, gemm_form_of(g)));
}

/* Packs columns [col0, col1) ≤ NC of op(B), k's [k0, k0 + k). */
static void pack_b(const qkv_gemm *g, int64_t col0, int64_t col1, int64_t k0, int64_t k,
                   real *out) {
    int64_t start[NC / NR + 1];
    const int panels = (int)ceil_div(col1 - col0, NR);
    for (int i = 0; i <= panels; i++) start[i] = min64(i * NR, col1 - col0);
    KERN_NAME(gemm_panels)
    (&(gemm_panels){.x = g->weight    ? NULL
                         : g->b_trans ? g->b + col0 * g->ldb + k0
                                      : g->b + k0 * g->ldb + col0,
                    .halves =
                        g->weight ? (const uint16_t *)g->weight->data + col0 * g->k + k0 : NULL,
                    .ld = g->weight ? g->k : g->ldb,
                    .k_contiguous = g->weight || g->b_trans,
                    .k = k,
                    .width = NR,
                    .panels = panels,
                    .start = start,
                    .precision = g->precision},
     out);
}

void KERN_NAME(gemm_pack)(const qkv_gemm *g, real *out) {
    if (g->weight && !qkv_weight_can_pack(g->weight)) return;
    if (g->weight && qkv_weight_is_integer(g->weight)) {
        KERN_NAME(gemm_int_pack)(g, out);
        return;
    }
    const int64_t step = k_step(g->k), columns = round_up(g->n, NR);
    const gemm_form form = gemm_form_of(g);
    QKV_PARALLEL_FOR
    for (int64_t col = 0; col < g->n; col += NR)
        for (int64_t k0 = 0; k0 < g->k; k0 += step) {
            const int64_t k = min64(step, g->k - k0);
            pack_b(g, col, min64(col + NR, g->n), k0, k,
                   out + gemm_b_words(k0, form) * columns + col * gemm_b_words(k, form));
        }
}

/* ---- one item ---- */

typedef struct item {
    const qkv_gemm *g;
    int64_t row0, row1, col0, col1;
    real *a_block, *b_block;
} item;

/* What is being multiplied: rows [row0, row1) × columns [col0, col1), k in [k0, k0 + k). */
typedef struct block {
    int64_t row0, row1, col0, col1, k0, k;
    bool first, last; /* block of K */
    const real *b;    /* panels of col0 … */
} block;

#define A_BLOCK (MTILES * (MR * KC + VW))
#define B_BLOCK (KC * NC)

/* pre = c, then c = act(c), for a tile that is still in the L1 cache. */
static inline __attribute__((always_inline)) void finish_as(const qkv_act act, const qkv_gemm *g,
                                                            int64_t at, int rows, int64_t cols) {
    for (int i = 0; i < rows; i++, at += g->ldc)
        for (int64_t j = 0; j < cols; j += VW) {
            const int64_t n = cols - j;
            const vreal x = n < VW ? v_load_n(g->c + at + j, n) : v_load(g->c + at + j);
            const vreal y = v_act(act, x);
            if (n < VW) {
                v_store_n(g->c + at + j, y, n);
                if (g->pre) v_store_n(g->pre + at + j, x, n);
            } else {
                v_store(g->c + at + j, y);
                if (g->pre) v_store(g->pre + at + j, x);
            }
        }
}

void KERN_NAME(gemm_finish)(const qkv_gemm *g, int64_t at, int rows, int64_t cols) {
#define AS(name)                                                                                   \
    case name:                                                                                     \
        finish_as(name, g, at, rows, cols);                                                        \
        break
    switch (g->act) {
        AS(QKV_ACT_NONE);
        AS(QKV_ACT_RELU);
        AS(QKV_ACT_GELU);
        AS(QKV_ACT_GELU_TANH);
        AS(QKV_ACT_SILU);
        AS(QKV_ACT_TANH);
        AS(QKV_ACT_SIGMOID);
    case QKV_ACT_COUNT:
        break;
    }
#undef AS
}

/* A panel that sticks out of C: computed beside it, then the part inside is moved. */
static void edge_tile(gemm_tile t, gemm_tile_fn run, int rows, int64_t cols) {
    real beside[MR * NR], *const c = t.c;
    const int64_t ldc = t.ldc;
    const bool add = t.add;
    t.c = beside;
    t.ldc = NR;
    t.add = false;
    run(&t);
    for (int i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            c[i * ldc + j] = add ? c[i * ldc + j] + beside[i * NR + j] : beside[i * NR + j];
}

/* Up to MTILES tiles of rows, as equal in height as can be, and where they find A. */
typedef struct strip {
    int tiles;
    int64_t start[MTILES + 1]; /* rows, from the block's first */
    const real *a[MTILES];
    gemm_tile_fn run[MTILES];
} strip;

static strip make_strip(const qkv_gemm *g, const block *x, real *a_block) {
    const gemm_form form = gemm_form_of(g);
    const bool in_place = gemm_in_place(form);
    const int64_t m = x->row1 - x->row0, words = gemm_a_words(x->k, form);
    strip s = {.tiles = (int)ceil_div(m, MR)};
    for (int i = 0; i <= s.tiles; i++) s.start[i] = i * m / s.tiles;
    for (int i = 0; i < s.tiles; i++) {
        s.run[i] = KERN_NAME(gemm_tile_of)((int)(s.start[i + 1] - s.start[i]), form);
        s.a[i] = in_place ? g->a + (x->row0 + s.start[i]) * g->lda + x->k0
                          : a_block + i * gemm_panel_size(words, MR);
    }
    real sums[MTILES * GEMM_SUMS] = {0};
    const bool summed = g->a_sums && x->col0 == 0; /* once, by whoever has the first columns */
    if (!in_place) KERN_NAME(gemm_panels)
    (&(gemm_panels){.x = g->a_trans ? g->a + x->k0 * g->lda + x->row0
                                    : g->a + x->row0 * g->lda + x->k0,
                    .ld = g->lda,
                    .k_contiguous = !g->a_trans,
                    .k = x->k,
                    .width = MR,
                    .panels = s.tiles,
                    .start = s.start,
                    .precision = form == GEMM_DOTS     ? QKV_BF16
                                 : form == GEMM_HALVES ? QKV_F32
                                                       : g->precision,
                    .sums = summed ? sums : NULL},
     a_block);
    for (int i = 0; i < s.tiles && summed; i++)
        for (int64_t r = s.start[i]; r < s.start[i + 1]; r++)
            g->a_sums[x->row0 + r] += sums[i * GEMM_SUMS + r - s.start[i]];
    return s;
}

/* The first panels of one block of B against a single row, ROW_PANELS at a time; returns where the
 * rest begins. One row can always be read in place, unless it is a column; for dots it is rounded
 * here. */
static int64_t run_row(const qkv_gemm *g, const block *x) {
    const gemm_form form = gemm_form_of(g);
    const int64_t wide = ROW_PANELS * NR, b_words = gemm_b_words(x->k, form);
    const bool dots = form == GEMM_DOTS,
               rounded = !dots && form != GEMM_HALVES && g->precision != QKV_F32;
    int64_t col = x->col0;
    if (x->row1 - x->row0 > 1 || g->a_trans || rounded) return col;
    const real *a = g->a + x->row0 * g->lda + x->k0;
    real words[HAS_PAIRS ? KC / 2 + VW : 1];
    for (int64_t k = 0; dots && k < x->k && col + wide <= x->col1; k += 2 * VW)
        v_store(words + k / 2, load_words(a + k, x->k - k, true));
    for (; col + wide <= x->col1; col += wide) {
        const real none[ROW_PANELS * NR] = {0};
        const int64_t at = x->row0 * g->ldc + col;
        const gemm_tile t = {.words = gemm_a_words(x->k, form),
                             .a = dots ? words : a,
                             .b = x->b + (col - x->col0) * b_words,
                             .init = x->first && g->bias ? g->bias + col : none,
                             .c = g->c + at,
                             .add = !x->first || g->accumulate};
        KERN_NAME(gemm_row)(&t, NR * b_words, form);
        if (x->last && (g->act != QKV_ACT_NONE || g->pre)) KERN_NAME(gemm_finish)(g, at, 1, wide);
    }
    return col;
}

/* All panels of one block of B against a strip of rows. Meanwhile tiles fetch what comes next, a
 * share each: the next panel, where B was packed long ago and comes from afar, and the rows of A
 * below the strip. */
static void run_strip(const qkv_gemm *g, const block *x, const strip *s) {
    const gemm_form form = gemm_form_of(g);
    const int64_t words = gemm_a_words(x->k, form), panel = NR * gemm_b_words(x->k, form);
    const int64_t calls = ceil_div(x->col1 - x->col0, NR) * s->tiles, below = x->row1 - x->row0;
    const bool relu =
        x->last && g->act == QKV_ACT_RELU && !g->pre; /* while sums are in registers */
    for (int64_t col = run_row(g, x); col < x->col1; col += NR) {
        const int64_t cols = min64(NR, x->col1 - col), at = (col - x->col0) / NR;
        real init[NR] = {0};
        if (x->first && g->bias) memcpy(init, g->bias + col, (size_t)cols * sizeof *init);
        for (int i = 0; i < s->tiles; i++) {
            const int64_t row = x->row0 + s->start[i];
            const int64_t next = min64(x->row1 + (at * s->tiles + i) * below / calls, g->m - 1);
            const int rows = (int)(s->start[i + 1] - s->start[i]);
            const gemm_tile t = {.words = words,
                                 .a = s->a[i],
                                 .lda = g->lda,
                                 .b = x->b + at * panel,
                                 .init = init,
                                 .c = g->c + row * g->ldc + col,
                                 .ldc = g->ldc,
                                 .add = !x->first || g->accumulate,
                                 .relu = relu && cols == NR,
                                 .next_a = g->a_trans ? s->a[i] : g->a + next * g->lda + x->k0,
                                 .next_b = x->b + at * panel +
                                           (g->b_packed ? panel + i * panel / s->tiles : 0)};
            if (cols == NR)
                s->run[i](&t);
            else
                edge_tile(t, s->run[i], rows, cols);
            if (x->last && (g->act != QKV_ACT_NONE || g->pre) && !t.relu)
                KERN_NAME(gemm_finish)(g, row * g->ldc + col, rows, cols);
        }
    }
}

/* The block of columns [col0, col1) and of K from k0, B packed. */
static block make_block(const item *w, int64_t col0, int64_t col1, int64_t k0, int64_t step) {
    const qkv_gemm *const g = w->g;
    const int64_t k = min64(step, g->k - k0);
    const gemm_form form = gemm_form_of(g);
    const real *b = w->b_block;
    if (g->b_packed)
        b = g->b_packed + gemm_b_words(k0, form) * round_up(g->n, NR) +
            col0 * gemm_b_words(k, form);
    else
        pack_b(g, col0, col1, k0, k, w->b_block);
    return (block){.row0 = w->row0,
                   .row1 = w->row1,
                   .col0 = col0,
                   .col1 = col1,
                   .k0 = k0,
                   .k = k,
                   .first = k0 == 0,
                   .last = k0 + step >= g->k,
                   .b = b};
}

/* Few rows: one strip, whose A stays in cache while B streams through; where it has to be packed, a
 * panel at a time. */
static void run_few(const item *w) {
    const int64_t step = k_step(w->g->k), wide = w->g->b_packed ? w->col1 - w->col0 : NR;
    for (int64_t k0 = 0; k0 == 0 || k0 < w->g->k; k0 += step) {
        strip s = {0};
        for (int64_t col = w->col0; col < w->col1; col += wide) {
            const block x = make_block(w, col, min64(col + wide, w->col1), k0, step);
            if (col == w->col0) s = make_strip(w->g, &x, w->a_block);
            run_strip(w->g, &x, &s);
        }
    }
}

/* Many rows: B is packed NC columns at a time, and the strips of A, of equal height, pass by. */
static void run_many(const item *w) {
    const int64_t step = k_step(w->g->k), rows = w->row1 - w->row0, strips = ceil_div(rows, MC);
    for (int64_t col = w->col0; col < w->col1; col += NC)
        for (int64_t k0 = 0; k0 == 0 || k0 < w->g->k; k0 += step) {
            block x = make_block(w, col, min64(col + NC, w->col1), k0, step);
            for (int64_t i = 0; i < strips; i++) {
                x.row0 = w->row0 + i * rows / strips;
                x.row1 = w->row0 + (i + 1) * rows / strips;
                const strip s = make_strip(w->g, &x, w->a_block);
                run_strip(w->g, &x, &s);
            }
        }
}

/* ---- the cut ---- */

/* Chooses the rectangles: about as many as asked for, with the least work in the longest thread. In
 * units of a multiply-add of one vector: packing an element costs about 2 (copied) or 3
 * (transposed), reading A again ½. */
gemm_plan KERN_NAME(gemm_plan_of)(const qkv_gemm *g) {
    const double flops = 2.0 * (double)g->m * (double)g->n * (double)g->k;
    gemm_plan best = {.threads = 1, .rows = g->m, .cols = g->n, .down = 1, .across = 1};
    if (flops < 2e5) return best;
    best.threads = qkv_threads();
    if (g->m <= MR) { /* weights stream through: a piece of them for each thread */
        best.cols = round_up(ceil_div(g->n, best.threads), NR);
        best.across = ceil_div(g->n, best.cols);
        return best;
    }
    const double pack_a = gemm_in_place(gemm_form_of(g)) ? 0.5 : 2.5,
                 pack_b = g->b_packed ? 0.2 : 2.5;
    double least = INFINITY;
    for (int64_t across = 1; across <= best.threads; across++) {
        const int64_t cols = round_up(ceil_div(g->n, across), NR);
        const int64_t rows =
            ceil_div(g->m, ceil_div(best.threads, across)); /* tiles have any height */
        const int64_t down = ceil_div(g->m, rows), n = down * ceil_div(g->n, cols);
        const double one =
            (double)rows * (double)cols / VW + pack_a * (double)rows + pack_b * (double)cols;
        const double cost = one * (double)ceil_div(n, best.threads);
        if (cost < least) {
            least = cost;
            best = (gemm_plan){best.threads, rows, cols, down, ceil_div(g->n, cols)};
        }
    }
    return best;
}

bool KERN_NAME(gemm)(const qkv_gemm *g) {
    if (g->m <= 0 || g->n <= 0) return true;
    if (g->weight && qkv_weight_is_integer(g->weight)) return KERN_NAME(gemm_int)(g);
    if (g->weight && (g->weight->exact || !qkv_weight_can_pack(g->weight)))
        return KERN_NAME(gemm_foreign)(g);
    const gemm_plan p = KERN_NAME(gemm_plan_of)(g);
    real *const scratch =
        qkv_kern_scratch(0, (size_t)p.threads * (A_BLOCK + B_BLOCK) * sizeof(real));
    if (!scratch) return false;
    const int64_t items = p.down * p.across;
    /* Item by item the same thread each time: it finds its part of the weights in its own cache. */
#pragma omp parallel for schedule(static, 1) num_threads(p.threads) if (p.threads > 1)
    for (int64_t i = 0; i < items; i++) {
        real *const mine = scratch + (int64_t)omp_get_thread_num() * (A_BLOCK + B_BLOCK);
        const int64_t row0 = i % p.down * p.rows, col0 = i / p.down * p.cols;
        const item w = {.g = g,
                        .row0 = row0,
                        .row1 = min64(row0 + p.rows, g->m),
                        .col0 = col0,
                        .col1 = min64(col0 + p.cols, g->n),
                        .b_block = mine,
                        .a_block = mine + B_BLOCK};
        w.row1 - w.row0 <= MC ? run_few(&w) : run_many(&w);
    }
    return true;
}
