/* The matrix product C = act(op(A)·op(B) [+ C] + bias): the loops around the tile.
 *
 * C is cut into rectangles, one item of work each. An item packs its columns of op(B), KC×NC at a
 * time, and then walks down its rows MC at a time; a thread's scratch holds both blocks. Rows of A
 * are read in place where they can be. Whatever the cut, each element is computed as gemm.h says,
 * so the number of items may follow the number of threads.
 *
 * Few rows (a step of decoding) take the same path with one panel of B at a time: the weights
 * stream through once. */
#include "kern/isa/gemm.h"
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
    return (size_t)(round_up(g->n, NR) * gemm_words(g->k, g->precision));
}

static const real *b_at(const qkv_gemm *g, int64_t k0, int64_t col) {
    return g->b_trans ? g->b + col * g->ldb + k0 : g->b + k0 * g->ldb + col;
}

void KERN_NAME(gemm_pack)(const qkv_gemm *g, real *out) {
    const int64_t step = k_step(g->k), panels = ceil_div(g->n, NR);
    QKV_PARALLEL_FOR
    for (int64_t j = 0; j < panels; j++)
        for (int64_t k0 = 0; k0 < g->k; k0 += step) {
            const int64_t k = min64(step, g->k - k0);
            KERN_NAME(gemm_panels)
            (b_at(g, k0, j * NR), g->ldb, g->b_trans, k, min64(NR, g->n - j * NR), NR, g->precision,
             out + gemm_words(k0, g->precision) * panels * NR +
                 j * NR * gemm_words(k, g->precision));
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

#define A_BLOCK (MC * KC + VW)
#define B_BLOCK (KC * NC)

/* The tile's values before the activation are kept, and the activation applied, while they are in
 * the L1 cache. */
static void finish(const qkv_gemm *g, int64_t row, int64_t col, int rows, int64_t cols) {
    for (int i = 0; i < rows; i++) {
        real *const c = g->c + (row + i) * g->ldc + col;
        if (g->pre) memcpy(g->pre + (row + i) * g->ldc + col, c, (size_t)cols * sizeof *c);
        if (g->act != QKV_ACT_NONE) KERN_NAME(act)(g->act, c, c, cols);
    }
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

/* All panels of one block against up to MTILES tiles of rows. */
static void rows_block(const qkv_gemm *g, const block *x, real *a_block) {
    const bool in_place = gemm_in_place(g), pairs = GEMM_PAIRS && g->precision == QKV_BF16;
    const int64_t words = gemm_words(x->k, g->precision), m = x->row1 - x->row0;
    const int64_t tiles = ceil_div(m, MR);
    int height[MTILES];
    gemm_tile_fn run[MTILES];
    const real *a[MTILES];
    for (int64_t i = 0, row = x->row0; i < tiles; i++) { /* heights as equal as can be */
        height[i] = (int)((m + i) / tiles);
        run[i] = KERN_NAME(gemm_tile_of)(height[i], in_place, pairs);
        if (in_place) {
            a[i] = g->a + row * g->lda + x->k0;
        } else {
            real *const panel = a_block + i * MR * words;
            KERN_NAME(gemm_panels)
            (g->a_trans ? g->a + x->k0 * g->lda + row : g->a + row * g->lda + x->k0, g->lda,
             !g->a_trans, x->k, height[i], MR, g->precision, panel);
            a[i] = panel;
        }
        row += height[i];
    }
    for (int64_t col = x->col0; col < x->col1; col += NR) {
        const int64_t cols = min64(NR, x->col1 - col);
        real init[NR] = {0};
        if (x->first && g->bias) memcpy(init, g->bias + col, (size_t)cols * sizeof *init);
        int64_t row = x->row0;
        for (int64_t i = 0; i < tiles; row += height[i], i++) {
            const gemm_tile t = {.words = words,
                                 .a = a[i],
                                 .lda = g->lda,
                                 .b = x->b + (col - x->col0) * words,
                                 .init = init,
                                 .c = g->c + row * g->ldc + col,
                                 .ldc = g->ldc,
                                 .add = !x->first || g->accumulate};
            if (cols == NR)
                run[i](&t);
            else
                edge_tile(t, run[i], height[i], cols);
            if (x->last && (g->act != QKV_ACT_NONE || g->pre)) finish(g, row, col, height[i], cols);
        }
    }
}

static void run_item(const item *w) {
    const qkv_gemm *const g = w->g;
    const int64_t step = k_step(g->k), all_panels = round_up(g->n, NR);
    /* few rows: A stays in cache whole, and B need not */
    const int64_t nc = w->row1 - w->row0 <= MC ? NR : NC;
    for (int64_t col = w->col0; col < w->col1; col += nc)
        for (int64_t k0 = 0; k0 == 0 || k0 < g->k; k0 += step) {
            block x = {.col0 = col,
                       .col1 = min64(col + nc, w->col1),
                       .k0 = k0,
                       .k = min64(step, g->k - k0),
                       .first = k0 == 0,
                       .last = k0 + step >= g->k,
                       .b = w->b_block};
            if (g->b_packed)
                x.b = g->b_packed + gemm_words(k0, g->precision) * all_panels +
                      col * gemm_words(x.k, g->precision);
            else
                KERN_NAME(gemm_panels)
            (b_at(g, k0, col), g->ldb, g->b_trans, x.k, x.col1 - col, NR, g->precision, w->b_block);
            for (int64_t row = w->row0; row < w->row1; row += MC) {
                x.row0 = row;
                x.row1 = min64(row + MC, w->row1);
                rows_block(g, &x, w->a_block);
            }
        }
}

/* ---- the cut ---- */

typedef struct plan {
    int threads;
    int64_t rows, cols; /* of an item */
    int64_t down, across;
} plan;

/* Chooses the rectangles: about as many as asked for, with the least work in the longest thread. In
 * units of a multiply-add of one vector: packing an element costs about 2 (copied) or 3
 * (transposed), reading A again ½. */
static plan make_plan(const qkv_gemm *g) {
    const double flops = 2.0 * (double)g->m * (double)g->n * (double)g->k;
    plan best = {.threads = 1, .rows = g->m, .cols = g->n, .down = 1, .across = 1};
    if (flops < 2e5) return best;
    best.threads = qkv_threads();
    const double pack_a = gemm_in_place(g) ? 0.5 : 2.5, pack_b = g->b_packed ? 0.2 : 2.5;
    double least = INFINITY;
    for (int64_t across = 1; across <= best.threads; across++) {
        const int64_t cols = round_up(ceil_div(g->n, across), NR);
        const int64_t rows = round_up(ceil_div(g->m, ceil_div(best.threads, across)), MR);
        const int64_t down = ceil_div(g->m, rows), n = down * ceil_div(g->n, cols);
        const double one =
            (double)rows * (double)cols / VW + pack_a * (double)rows + pack_b * (double)cols;
        const double cost = one * (double)ceil_div(n, best.threads);
        if (cost < least) {
            least = cost;
            best = (plan){best.threads, rows, cols, down, ceil_div(g->n, cols)};
        }
    }
    return best;
}

bool KERN_NAME(gemm)(const qkv_gemm *g) {
    if (g->m <= 0 || g->n <= 0) return true;
    const plan p = make_plan(g);
    real *const scratch =
        qkv_kern_scratch(0, (size_t)p.threads * (A_BLOCK + B_BLOCK) * sizeof(real));
    if (!scratch) return false;
    const int64_t items = p.down * p.across;
#pragma omp parallel for schedule(dynamic, 1) num_threads(p.threads) if (p.threads > 1)
    for (int64_t i = 0; i < items; i++) {
        real *const mine = scratch + (int64_t)omp_get_thread_num() * (A_BLOCK + B_BLOCK);
        const int64_t row0 = i % p.down * p.rows, col0 = i / p.down * p.cols;
        run_item(&(item){.g = g,
                         .row0 = row0,
                         .row1 = min64(row0 + p.rows, g->m),
                         .col0 = col0,
                         .col1 = min64(col0 + p.cols, g->n),
                         .b_block = mine,
                         .a_block = mine + B_BLOCK});
    }
    return true;
}
