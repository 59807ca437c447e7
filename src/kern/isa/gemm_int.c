/* The product with integer weights: the loops around the tile.
 *
 * The same cut into rectangles as gemm.c. A rectangle's rows of x are rounded a strip at a time,
 * the strip sized for the L2 cache; of the weights a block of panels is made, or one at a time when
 * all rows are in one strip (a step of decoding streams the weights through once), or none when
 * they were made before (gemm_pack). Sums run over all of K in registers, so K is not cut. */
#include "kern/isa/gemm_int.h"
#include "base/thread.h"

#define A_BYTES (192 << 10) /* of a strip */
#define B_BYTES (512 << 10) /* of a block of panels */

static int64_t min64(int64_t a, int64_t b) {
    return a < b ? a : b;
}

typedef struct work {
    const qkv_gemm *g;
    int_shape shape;
    int64_t words, panel; /* 32-bit places of a row of x, of a panel */
    int64_t strip;        /* rows, a multiple of MR */
    int64_t block;        /* outputs, a multiple of NR */
    int64_t row0, row1, col0, col1;
    int32_t *a, *b;
    float *scale;
} work;

/* Tile i of a strip: its rows in words. */
static int32_t *tile_words(const work *w, int64_t row) {
    return w->a + row * w->words;
}

static void round_strip(const work *w, int64_t row0, int64_t rows) {
    const qkv_gemm *const g = w->g;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t first = r / MR * MR;
        int32_t *const to =
            gemm_int_in_place() ? tile_words(w, r) : tile_words(w, first) + (r - first);
        w->scale[r] = KERN_NAME(gemm_int_row)(g->a + (row0 + r) * g->lda, g->k,
                                              gemm_int_in_place() ? 1 : MR, to);
    }
}

/* A panel that sticks out of C: computed beside it, then the part inside is moved. */
static void edge_tile(int_tile t, int_tile_fn run, int rows, int64_t cols) {
    real beside[MR * NR], *const c = t.c;
    const int64_t ldc = t.ldc;
    t.c = beside;
    t.ldc = NR;
    run(&t);
    for (int i = 0; i < rows; i++) memcpy(c + i * ldc, beside + i * NR, (size_t)cols * sizeof *c);
}

/* One panel against a strip of rows. */
static void run_panel(const work *w, int64_t col, const int32_t *panel, int64_t row0,
                      int64_t rows) {
    const qkv_gemm *const g = w->g;
    const int64_t cols = min64(NR, w->col1 - col);
    const bool relu = g->act == QKV_ACT_RELU && !g->pre;
    float sums[MR * NR];
    real bias[NR] = {0};
    if (g->bias) memcpy(bias, g->bias + col, (size_t)cols * sizeof *bias);
    for (int64_t r = 0; r < rows; r += MR) {
        const int mr = (int)min64(MR, rows - r);
        const int64_t at = (row0 + r) * g->ldc + col;
        const int_tile t = {.shape = w->shape,
                            .a = tile_words(w, r),
                            .lda = w->words,
                            .scale = w->scale + r,
                            .b = panel,
                            .bias = bias,
                            .sums = sums,
                            .relu = relu,
                            .c = g->c + at,
                            .ldc = g->ldc};
        const int_tile_fn run = KERN_NAME(gemm_int_tile_of)(mr);
        if (cols == NR)
            run(&t);
        else
            edge_tile(t, run, mr, cols);
        if (!relu && (g->act != QKV_ACT_NONE || g->pre)) KERN_NAME(gemm_finish)(g, at, mr, cols);
    }
}

static bool is_few(const qkv_gemm *g) {
    return g->m <= INT_FEW && g->weight->format == QKV_WEIGHT_INT8;
}

/* Panels of the outputs [col0, col1): made now, or before. */
static const int32_t *panels_of(const work *w, int64_t col0, int64_t col1) {
    if (w->g->b_packed) return (const int32_t *)w->g->b_packed + col0 / NR * w->panel;
    for (int64_t col = col0; col < col1; col += NR)
        KERN_NAME(gemm_int_panel)(w->g->weight, col, w->b + (col - col0) / NR * w->panel);
    return w->b;
}

static void run_rectangle(const work *w) {
    if (is_few(w->g)) {
        KERN_NAME(gemm_int_few)(w->g, w->col0, w->col1, w->a);
        return;
    }
    const bool one_strip = w->row1 - w->row0 <= w->strip;
    const int64_t block = one_strip ? NR : w->block;
    if (one_strip) round_strip(w, w->row0, w->row1 - w->row0);
    for (int64_t col0 = w->col0; col0 < w->col1; col0 += block) {
        const int64_t col1 = min64(col0 + block, w->col1);
        const int32_t *const panels = panels_of(w, col0, col1);
        for (int64_t row = w->row0; row < w->row1; row += w->strip) {
            const int64_t rows = min64(w->strip, w->row1 - row);
            if (!one_strip) round_strip(w, row, rows);
            for (int64_t col = col0; col < col1; col += NR)
                run_panel(w, col, panels + (col - col0) / NR * w->panel, row, rows);
        }
    }
}

static int64_t panel_words(const qkv_weight *w) {
    const int_shape shape = int_shape_of(w);
    return shape.groups * shape.stride;
}

size_t KERN_NAME(gemm_int_pack_size)(const qkv_gemm *g) {
    const size_t bytes = (size_t)((g->n + NR - 1) / NR * panel_words(g->weight)) * sizeof(int32_t);
    return (bytes + sizeof(real) - 1) / sizeof(real);
}

void KERN_NAME(gemm_int_pack)(const qkv_gemm *g, real *out) {
    const int64_t panel = panel_words(g->weight);
    QKV_PARALLEL_FOR
    for (int64_t col = 0; col < g->n; col += NR)
        KERN_NAME(gemm_int_panel)(g->weight, col, (int32_t *)out + col / NR * panel);
}

bool KERN_NAME(gemm_int)(const qkv_gemm *g) {
    const gemm_plan p = KERN_NAME(gemm_plan_of)(g);
    work w = {.g = g, .shape = int_shape_of(g->weight)};
    w.words = w.shape.groups * w.shape.words;
    w.panel = panel_words(g->weight);
    w.strip = (A_BYTES / 4 / w.words / MR + 1) * MR;
    if (w.strip <= INT_FEW) w.strip += MR; /* gemm_int_few has room for its rows and one more */
    w.block = (B_BYTES / 4 / w.panel + 1) * NR;
    const int64_t a = w.strip * w.words, b = w.block / NR * w.panel, all = a + b + w.strip;
    int32_t *const scratch = qkv_kern_scratch(0, (size_t)(p.threads * all) * sizeof *scratch);
    if (!scratch) return false;
#pragma omp parallel for schedule(static, 1) num_threads(p.threads) if (p.threads > 1)
    for (int64_t i = 0; i < p.down * p.across; i++) {
        work mine = w;
        mine.a = scratch + omp_get_thread_num() * all;
        mine.b = mine.a + a;
        mine.scale = (float *)(mine.b + b);
        mine.row0 = i % p.down * p.rows, mine.row1 = min64(mine.row0 + p.rows, g->m);
        mine.col0 = i / p.down * p.cols, mine.col1 = min64(mine.col0 + p.cols, g->n);
        run_rectangle(&mine);
    }
    return true;
}
