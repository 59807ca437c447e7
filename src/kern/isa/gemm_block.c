/* The product with weights in blocks: the loops around the tile; and with matrices in several parts
 * or in f16, which are cut into products with one of the other forms.
 *
 * The same cut into rectangles as gemm.c. A rectangle's rows of x are rounded a strip at a time, the
 * strip sized for the L2 cache. Panel after panel of weights is made, a chunk of K at a time, used
 * by all rows of the strip while it is in the nearest cache, and forgotten: with few rows (a step of
 * decoding) the weights stream through once, from the file's bytes. */
#include "kern/isa/gemm_block.h"
#include "base/thread.h"

#define X_BYTES (192 << 10) /* of a strip */

static int64_t min64(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* ---- blocks ---- */

typedef struct work {
    const qkv_gemm *g;
    block_form form;
    int64_t strip; /* rows, a multiple of MR */
    int64_t row0, row1, col0, col1;
    int32_t *x;  /* rounded rows, tile after tile */
    float *sums; /* (strip, NR) */
    block_panel *panel;
} work;

static int tile_rows(int64_t rows, int64_t r) {
    return (int)min64(MR, rows - r);
}

static block_rows tile_at(const work *w, int64_t r, int rows) {
    return block_rows_at(w->x + r * block_row_size(w->g->k), w->g->k, rows);
}

static void round_strip(const work *w, int64_t row0, int64_t rows) {
    const qkv_gemm *const g = w->g;
    for (int64_t r = 0; r < rows; r += MR) {
        const int mr = tile_rows(rows, r);
        const block_rows to = tile_at(w, r, mr);
        for (int i = 0; i < mr; i++)
            KERN_NAME(gemm_block_row)(g->a + (row0 + r + i) * g->lda, g->k, &w->form, mr, i, &to);
    }
}

static void run_chunk(const work *w, int64_t k0, int64_t k, int64_t rows) {
    const int64_t group = w->form.group;
    for (int64_t r = 0; r < rows; r += MR) {
        const int mr = tile_rows(rows, r);
        const block_rows x = tile_at(w, r, mr);
        const block_tile t = {.words = x.words + k0 / 32 * X_WORDS * mr,
                              .start = x.start + k0 / group * mr,
                              .scale = x.scale + k0 / 32 * mr,
                              .part = x.part + k0 / group * mr,
                              .panel = w->panel,
                              .groups = (int)(k / group),
                              .sums = w->sums + r * NR};
        KERN_NAME(gemm_block_tile_of)(mr, &w->form)(&t);
    }
}

static void put(const work *w, int64_t col, int64_t row0, int64_t rows) {
    const qkv_gemm *const g = w->g;
    const int64_t cols = min64(NR, w->col1 - col), at = row0 * g->ldc + col;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < cols; j++)
            g->c[at + r * g->ldc + j] =
                (real)w->sums[r * NR + j] + (g->bias ? g->bias[col + j] : 0);
    if (g->act != QKV_ACT_NONE || g->pre) KERN_NAME(gemm_finish)(g, at, (int)rows, cols);
}

static void run_rectangle(const work *w) {
    const qkv_gemm *const g = w->g;
    for (int64_t row = w->row0; row < w->row1; row += w->strip) {
        const int64_t rows = min64(w->strip, w->row1 - row);
        round_strip(w, row, rows);
        for (int64_t col = w->col0; col < w->col1; col += NR) {
            memset(w->sums, 0, (size_t)(rows * NR) * sizeof *w->sums);
            for (int64_t k0 = 0; k0 < g->k; k0 += BLOCK_CHUNK) {
                const int64_t k = min64(BLOCK_CHUNK, g->k - k0);
                KERN_NAME(gemm_block_panel)(g->weight, col, k0, k, w->panel);
                run_chunk(w, k0, k, rows);
            }
            put(w, col, row, rows);
        }
    }
}

static bool gemm_blocks(const qkv_gemm *g) {
    const gemm_plan p = KERN_NAME(gemm_plan_of)(g);
    work w = {.g = g, .form = block_form_of(g->weight->format)};
    const int64_t row = block_row_size(g->k);
    w.strip = (X_BYTES / 4 / row / MR + 1) * MR;
    if (w.strip > (p.rows + MR - 1) / MR * MR) w.strip = (p.rows + MR - 1) / MR * MR;
    const int64_t x = (w.strip * row + 15) / 16 * 16, sums = w.strip * NR,
                  panel = (int64_t)(sizeof(block_panel) / 4), all = x + sums + panel + 16;
    int32_t *const scratch = qkv_kern_scratch(0, (size_t)(p.threads * all) * sizeof *scratch);
    if (!scratch) return false;
#pragma omp parallel for schedule(static, 1) num_threads(p.threads) if (p.threads > 1)
    for (int64_t i = 0; i < p.down * p.across; i++) {
        work mine = w;
        mine.x = scratch + omp_get_thread_num() * all;
        mine.sums = (float *)(mine.x + x);
        mine.panel = (block_panel *)(mine.sums + sums);
        mine.row0 = i % p.down * p.rows, mine.row1 = min64(mine.row0 + p.rows, g->m);
        mine.col0 = i / p.down * p.cols, mine.col1 = min64(mine.col0 + p.cols, g->n);
        run_rectangle(&mine);
    }
    return true;
}

/* ---- f16, and what is to be exact: rows as floats, some at a time ---- */

static bool gemm_floats(const qkv_gemm *g) {
    enum { REALS = 1 << 18 };
    const int64_t step = REALS / g->k > 0 ? REALS / g->k : 1;
    /* the product below uses scratch 0 */
    real *const rows = qkv_kern_scratch(7, (size_t)(min64(step, g->n) * g->k) * sizeof *rows);
    if (!rows) return false;
    for (int64_t from = 0; from < g->n; from += step) {
        qkv_gemm part = *g;
        part.n = min64(step, g->n - from);
        QKV_PARALLEL_FOR_IF(part.n * g->k >= QKV_PARALLEL_FROM)
        for (int64_t r = 0; r < part.n; r++)
            qkv_weight_row_value(g->weight, from + r, 1, rows + r * g->k);
        part.weight = NULL;
        part.b_packed = NULL;
        part.b = rows, part.ldb = g->k, part.b_trans = true;
        part.c = g->c + from;
        if (g->pre) part.pre = g->pre + from;
        if (g->bias) part.bias = g->bias + from;
        if (!KERN_NAME(gemm)(&part)) return false;
    }
    return true;
}

/* ---- parts ---- */

static bool gemm_parts(const qkv_gemm *g) {
    int64_t from = 0;
    for (int32_t i = 0; i < g->weight->n_parts; i++) {
        const qkv_weight *const w = &g->weight->parts[i];
        qkv_gemm part = *g;
        part.n = w->rows;
        part.weight = w->format == QKV_WEIGHT_F32 ? NULL : w;
        part.b = w->data, part.ldb = w->cols, part.b_trans = true;
        part.c = g->c + from;
        if (g->pre) part.pre = g->pre + from;
        if (g->bias) part.bias = g->bias + from;
        part.b_packed = NULL;
        if (!KERN_NAME(gemm)(&part)) return false;
        from += w->rows;
    }
    return true;
}

bool KERN_NAME(gemm_foreign)(const qkv_gemm *g) {
    if (g->weight->n_parts) return gemm_parts(g);
    return qkv_weight_is_blocks(g->weight) && !g->weight->exact ? gemm_blocks(g) : gemm_floats(g);
}
