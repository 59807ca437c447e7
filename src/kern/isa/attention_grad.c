/* Fused attention, backward. The weights are made again, tile by tile, from the row's log-sum-exp:
 *     P = exp2(S − lse),  dP = (dout·Vᵀ + dout·rel_vᵀ)·drop
 *     dS = P·(dP − D),  D = Σ P·dP = dout·out
 *     dV = (P·drop)ᵀ·dout,  dK = scale·dSᵀ·q,  dq = scale·dS·K + dR·rel_k
 *     dR = dS summed by relation for each row:  dbias = Σ_rows dR,  drel_k = dRᵀ·q
 *     W = P·drop summed by relation:  drel_v = Wᵀ·dout
 *
 * A work item is (sequence, key head): it owns its dK and dV and takes its heads and query blocks
 * in order. A long sequence with few heads is cut into parts of its query blocks with sums of their
 * own, added in order; how it is cut depends on the sequence and the number of heads only. Where
 * queries see only near keys, a window of keys slides along with them. Sums over
 * sequences (dbias, drel) go through at most UNITS partial sums, added in order. */
#include "base/thread.h"
#include "kern/isa/attention_block.h"

#define UNITS       64 /* partial sums of the gradients that sequences share */
#define PARTS       8  /* heads times parts that a long sequence is cut into */
#define PART_BLOCKS 8  /* fewer query blocks are not worth a part */

/* Scratch slots: of a thread's own work, of the parts' dK and dV, of the shared gradients. */
enum { SLOT_WORK, SLOT_PARTS, SLOT_SHARED };

typedef struct backward {
    const qkv_attention *a;
    const qkv_attention_grad *g;
    real *keys_t, *keys, *values_t, *rel_k_t, *rel_k, *rel_v_t; /* panels */
    real *q, *q_panels, *dout, *dout_panels, *dq;               /* of one query block */
    real *weights, *ds, *ds_columns;             /* tiles; the last in words of bf16 */
    real *tables_k, *tables_v, *sums_k, *sums_v; /* by relation, for each row */
    real *lse, *inner;                           /* of each row: −lse in units of log 2; −D */
    real *dk, *dv;                               /* sums of the item, one row per key */
    real *dbias, *drel_k, *drel_v;               /* sums of the unit */
    int64_t ldq, ldo, ldt;
    range window; /* keys that are packed and have sums here */
    bool pairs;   /* operands of products are words of two bf16 */
    drops drops;
} backward;

/* Lays out the scratch memory for n_k keys at a time; returns its size in bytes. */
static size_t lay_out(backward *w, const qkv_attention *a, const qkv_attention_grad *g, int64_t n_k,
                      real *base) {
    carver c = {base, 0};
    *w = (backward){.a = a,
                    .g = g,
                    .ldq = round_up(a->d_head, VW),
                    .ldo = round_up(a->d_value, VW),
                    .ldt = round_up(a->relation.n, VW),
                    .pairs = in_pairs(a)};
    w->keys_t = carve(&c, panels_size(a->d_head, n_k));
    w->keys = carve(&c, panels_size(n_k, a->d_head));
    w->values_t = carve(&c, panels_size(a->d_value, n_k));
    w->q = carve(&c, ROWS * w->ldq);
    w->q_panels = carve(&c, panels_size(ROWS, a->d_head));
    w->dout = carve(&c, ROWS * w->ldo);
    w->dout_panels = carve(&c, panels_size(ROWS, a->d_value));
    w->dq = carve(&c, ROWS * w->ldq);
    w->weights = carve(&c, ROWS * LDS);
    w->ds = carve(&c, ROWS * LDS);
    if (w->pairs) w->ds_columns = carve(&c, ROWS / 2 * LDS);
    w->lse = carve(&c, ROWS);
    w->inner = carve(&c, ROWS);
    w->dk = carve(&c, n_k * w->ldq);
    w->dv = carve(&c, n_k * w->ldo);
    if (related(a)) {
        w->tables_k = carve(&c, (a->rel_k ? ROWS : 1) * w->ldt);
        w->sums_k = carve(&c, (a->rel_k ? ROWS : 1) * w->ldt);
        if (a->rel_k) w->rel_k_t = carve(&c, panels_size(a->d_head, a->relation.n));
        if (a->rel_k) w->rel_k = carve(&c, panels_size(a->relation.n, a->d_head));
    }
    if (values_related(a)) {
        w->tables_v = carve(&c, ROWS * w->ldt);
        w->sums_v = carve(&c, ROWS * w->ldt);
        w->rel_v_t = carve(&c, panels_size(a->d_value, a->relation.n));
    }
    return c.used * sizeof(real);
}

static void pack_keys(backward *w, int32_t s, int32_t kv) {
    const qkv_attention *a = w->a;
    const int64_t key0 = a->k_layout.start[s] + w->window.from, n_k = w->window.to - w->window.from;
    const real *k = a->k + key0 * a->ldk + (int64_t)kv * a->d_head;
    const real *v = a->v + key0 * a->ldv + (int64_t)kv * a->d_value;
    pack_rows(w->pairs, k, a->ldk, n_k, a->d_head, w->keys_t);
    pack_columns(w->pairs, &(operand){k, a->ldk, n_k, a->d_head, 1}, w->keys);
    pack_rows(w->pairs, v, a->ldv, n_k, a->d_value, w->values_t);
}

static void pack_relations(backward *w) {
    const qkv_attention *a = w->a;
    if (w->rel_k) pack_rows(false, a->rel_k, a->d_head, a->relation.n, a->d_head, w->rel_k_t);
    const operand rel_k = {a->rel_k, a->d_head, a->relation.n, a->d_head, 1};
    if (w->rel_k) pack_columns(false, &rel_k, w->rel_k);
    if (w->rel_v_t) pack_rows(false, a->rel_v, a->d_value, a->relation.n, a->d_value, w->rel_v_t);
}

static void clear(real *x, int64_t n) {
    memset(x, 0, (size_t)n * sizeof *x);
}

/* Asks for what begin_block will read for the block after this one. */
static void fetch_next(const backward *w, const block *b, int32_t h) {
    const qkv_attention *a = w->a;
    const int64_t row0 = a->q_layout.start[b->s] + b->i0 + b->rows;
    const int64_t rows = min32(ROWS, qkv_layout_len(&a->q_layout, b->s) - b->i0 - b->rows);
    const int64_t d = (int64_t)h * a->d_value;
    fetch_rows(a->q + row0 * a->ldq + (int64_t)h * a->d_head, a->ldq, rows, a->d_head);
    fetch_rows(a->out + row0 * a->ldo + d, a->ldo, rows, a->d_value);
    fetch_rows(w->g->dout + row0 * w->g->lddo + d, w->g->lddo, rows, a->d_value);
}

/* Copies and packs a query block's q and dout, and prepares its rows' lse, D and tables. */
static void begin_block(backward *w, const block *b, int32_t h) {
    const qkv_attention *a = w->a;
    const int64_t row0 = a->q_layout.start[b->s] + b->i0;
    const real *q = a->q + row0 * a->ldq + (int64_t)h * a->d_head;
    const real *out = a->out + row0 * a->ldo + (int64_t)h * a->d_value;
    const real *dout = w->g->dout + row0 * w->g->lddo + (int64_t)h * a->d_value;
    const operand queries = {q, a->ldq, b->rows, a->d_head, a->scale * LOG2E},
                  slopes = {dout, w->g->lddo, b->rows, a->d_value, 1};
    copy_words(w->pairs, &queries, w->q, w->ldq);
    pack_columns(w->pairs, &queries, w->q_panels);
    copy_words(w->pairs, &slopes, w->dout, w->ldo);
    pack_columns(w->pairs, &slopes, w->dout_panels);
    drop_begin_block(b, h, &w->drops);
    clear(w->dq, b->rows * w->ldq);
    for (int32_t row = 0; row < b->rows; row++) {
        vreal sum = v_set(0);
        for (int32_t j = 0; j < a->d_value; j += VW) {
            const int64_t n = min32(VW, a->d_value - j);
            sum = v_fma(v_load_n(out + row * a->ldo + j, n),
                        v_load_n(dout + row * w->g->lddo + j, n), sum);
        }
        w->inner[row] = -v_sum(sum);
        w->lse[row] = -a->lse[(row0 + row) * a->heads + h];
    }
    if (w->tables_k) {
        score_tables(b, h, w->q, w->ldq, w->rel_k_t, w->tables_k);
        clear(w->sums_k, (a->rel_k ? b->rows : 1) * w->ldt);
    }
    if (w->tables_v) {
        product_scores(false, &(product){.a = w->dout,
                                         .lda = w->ldo,
                                         .b = w->rel_v_t,
                                         .panel = (int64_t)a->d_value * PANEL,
                                         .c = w->tables_v,
                                         .ldc = w->ldt,
                                         .m = b->rows,
                                         .n = a->relation.n,
                                         .k = a->d_value});
        clear(w->sums_v, b->rows * w->ldt);
    }
}

/* From S and dP of a row to the weights that multiplied V, and dS; from P and dP when `p` are
 * weights already. */
static void slope_row(backward *w, const block *b, const run *r, int32_t row, bool weights) {
    const qkv_attention *a = w->a;
    real *p = w->weights + row * LDS, *ds = w->ds + row * LDS;
    const range c = row_columns(r, row);
    if (c.from >= c.to) return;
    const vreal lse = v_set(w->lse[row]), inner = v_set(w->inner[row]);
    if (w->tables_k) add_related(b, r, row, w->tables_k + (a->rel_k ? row * w->ldt : 0), p);
    if (w->tables_v) add_related(b, r, row, w->tables_v + row * w->ldt, ds);
    real factors[KEYS];
    if (a->dropout > 0)
        drop_row(b, &w->drops, row, c, factors);
    else
        for (int32_t j = c.from; j < c.to; j++) factors[j] = 1;
    for (int32_t j = c.from; j < c.to; j += VW) {
        const vreal x = v_load(p + j), factor = v_load(factors + j);
        const vreal weight = weights ? x : v_exp2_bounded(x + lse);
        v_store(ds + j, weight * (v_load(ds + j) * factor + inner));
        v_store(p + j, weight * factor);
    }
}

/* P·drop and dS of one run of keys. Where nothing is added to S they leave the product's registers
 * as weights, and where nothing is to be dropped dS does so too. */
static void make_tiles(backward *w, const block *b, const run *r, const range *strips) {
    const qkv_attention *a = w->a;
    const int64_t at = r->from - w->window.from;
    const int64_t words_k = count_words(a->d_head, w->pairs),
                  words_v = count_words(a->d_value, w->pairs);
    const real *keys = w->keys_t + at * words_k, *values = w->values_t + at * words_v;
    const bool weights = !w->tables_k, slopes = weights && !w->tables_v && a->dropout <= 0;
    const finish to_weights = {.rows = w->lse};
    const finish to_slopes = {.rows = w->inner, .weights = w->weights};
    const product to_p = {.a = w->q,
                          .lda = w->ldq,
                          .b = keys,
                          .panel = words_k * PANEL,
                          .c = w->weights,
                          .ldc = LDS,
                          .m = b->rows,
                          .n = weights ? r->n : r->width,
                          .k = words_k,
                          .strips = strips};
    const product to_ds = {.a = w->dout,
                           .lda = w->ldo,
                           .b = values,
                           .panel = words_v * PANEL,
                           .c = w->ds,
                           .ldc = LDS,
                           .m = b->rows,
                           .n = slopes ? r->n : r->width,
                           .k = words_v,
                           .strips = strips};
    if (weights)
        product_weights(w->pairs, &to_p, &to_weights);
    else
        product_scores(w->pairs, &to_p);
    if (slopes)
        product_slopes(w->pairs, &to_ds, &to_slopes);
    else
        product_scores(w->pairs, &to_ds);
    if (!slopes) drop_begin_run(b, r, &w->drops);
    for (int32_t row = 0; row < b->rows; row++) {
        real *p = w->weights + row * LDS, *ds = w->ds + row * LDS;
        if (!slopes) slope_row(w, b, r, row, weights);
        if (!r->full) {
            blank(b, r, row, p, 0);
            blank(b, r, row, ds, 0);
        }
        if (w->sums_k) collect_related(b, r, row, ds, w->sums_k + (a->rel_k ? row * w->ldt : 0));
        if (w->sums_v) collect_related(b, r, row, p, w->sums_v + row * w->ldt);
    }
}

/* One run of keys: both tiles, then the three products with them. */
static void do_run(backward *w, const block *b, const run *r) {
    const qkv_attention *a = w->a;
    const int64_t at = r->from - w->window.from, packed = w->window.to - w->window.from;
    const range *strips = r->full ? NULL : r->strips;
    range key_strips[STRIPS];
    if (!r->full) look_at_key_strips(b, r, key_strips);
    const range *rows = r->full ? NULL : key_strips;
    make_tiles(w, b, r, strips);
    const real *ds_columns = w->ds;
    if (w->pairs) {
        round_columns(b->rows, r->width, w->weights, w->weights);
        round_columns(b->rows, r->width, w->ds, w->ds_columns);
        round_rows(b->rows, r->width, w->ds);
        ds_columns = w->ds_columns;
    }
    const int64_t words = count_words(b->rows, w->pairs);
    const product to_dv = {.a = w->weights,
                           .lda = LDS,
                           .b = w->dout_panels,
                           .panel = words * PANEL,
                           .c = w->dv + at * w->ldo,
                           .ldc = w->ldo,
                           .m = r->n,
                           .n = a->d_value,
                           .k = words,
                           .strips = rows};
    const product to_dk = {.a = ds_columns,
                           .lda = LDS,
                           .b = w->q_panels,
                           .panel = words * PANEL,
                           .c = w->dk + at * w->ldq,
                           .ldc = w->ldq,
                           .m = r->n,
                           .n = a->d_head,
                           .k = words,
                           .strips = rows};
    if (w->g->dv) product_columns(w->pairs, &to_dv);
    if (w->g->dk) product_columns(w->pairs, &to_dk);
    if (w->g->dq)
        product_rows(w->pairs, &(product){.a = w->ds,
                                          .lda = LDS,
                                          .b = w->keys + count_words(at, w->pairs) * PANEL,
                                          .panel = count_words(packed, w->pairs) * PANEL,
                                          .c = w->dq,
                                          .ldc = w->ldq,
                                          .m = b->rows,
                                          .n = a->d_head,
                                          .k = count_words(r->n, w->pairs),
                                          .strips = strips});
}

/* The gradients that come from sums by relation, and dq. */
static void end_block(backward *w, const block *b, int32_t h) {
    const qkv_attention *a = w->a;
    const int32_t n = a->relation.n;
    const int64_t row0 = a->q_layout.start[b->s] + b->i0;
    for (int64_t i = 0; i < b->rows * w->ldq; i++) w->dq[i] *= a->scale;
    if (w->rel_k)
        product_rows(false, &(product){.a = w->sums_k,
                                       .lda = w->ldt,
                                       .b = w->rel_k,
                                       .panel = (int64_t)n * PANEL,
                                       .c = w->dq,
                                       .ldc = w->ldq,
                                       .m = b->rows,
                                       .n = a->d_head,
                                       .k = n});
    if (w->g->dq)
        copy_rows(w->dq, w->ldq, b->rows, a->d_head, 1,
                  w->g->dq + row0 * w->g->lddq + (int64_t)h * a->d_head, w->g->lddq);
    if (w->dbias)
        for (int32_t row = 0; row < (a->rel_k ? b->rows : 1); row++)
            for (int32_t i = 0; i < n; i++)
                w->dbias[(int64_t)h * n + i] += w->sums_k[row * w->ldt + i];
    const product to_rel_k = {.a = w->sums_k,
                              .lda = w->ldt,
                              .b = w->q_panels,
                              .panel = (int64_t)b->rows * PANEL,
                              .c = w->drel_k,
                              .ldc = w->ldq,
                              .m = n,
                              .n = a->d_head,
                              .k = b->rows};
    const product to_rel_v = {.a = w->sums_v,
                              .lda = w->ldt,
                              .b = w->dout_panels,
                              .panel = (int64_t)b->rows * PANEL,
                              .c = w->drel_v,
                              .ldc = w->ldo,
                              .m = n,
                              .n = a->d_value,
                              .k = b->rows};
    if (w->drel_k) product_columns(false, &to_rel_k);
    if (w->drel_v) product_columns(false, &to_rel_v);
}

/* ---- shared gradients: one set of sums a unit ---- */

typedef struct shared {
    int64_t n_bias, n_rel_k, n_rel_v, size; /* reals of each, and of a unit */
    real *sums;
} shared;

static shared shared_plan(const qkv_attention *a, const qkv_attention_grad *g) {
    shared p = {0};
    const bool any = a->relation.kind != QKV_REL_NONE;
    p.n_bias = any && a->bias && g->dbias ? (int64_t)a->heads * a->relation.n : 0;
    p.n_rel_k = any && a->rel_k && g->drel_k ? a->relation.n * round_up(a->d_head, VW) : 0;
    p.n_rel_v = any && a->rel_v && g->drel_v ? a->relation.n * round_up(a->d_value, VW) : 0;
    p.size = round_up(p.n_bias + p.n_rel_k + p.n_rel_v, 16);
    return p;
}

static void shared_give(const shared *p, int64_t unit, backward *w) {
    real *at = p->sums + unit * p->size;
    w->dbias = p->n_bias ? at : NULL;
    w->drel_k = p->n_rel_k ? at + p->n_bias : NULL;
    w->drel_v = p->n_rel_v ? at + p->n_bias + p->n_rel_k : NULL;
}

/* Adds the units' sums, in order. q was scaled when it was packed; rel_k's gradient wants it as it
 * was. */
static void shared_add(const shared *p, int64_t units, const qkv_attention *a,
                       const qkv_attention_grad *g) {
    const int64_t ldq = round_up(a->d_head, VW), ldo = round_up(a->d_value, VW);
    const real unscale = 1 / (a->scale * LOG2E);
    for (int64_t u = 0; u < units; u++) {
        const real *bias = p->sums + u * p->size, *rel_k = bias + p->n_bias,
                   *rel_v = rel_k + p->n_rel_k;
        for (int64_t i = 0; i < p->n_bias; i++) g->dbias[i] += bias[i];
        for (int64_t i = 0; p->n_rel_k && i < a->relation.n; i++)
            for (int64_t j = 0; j < a->d_head; j++)
                g->drel_k[i * a->d_head + j] += unscale * rel_k[i * ldq + j];
        for (int64_t i = 0; p->n_rel_v && i < a->relation.n; i++)
            for (int64_t j = 0; j < a->d_value; j++)
                g->drel_v[i * a->d_value + j] += rel_v[i * ldo + j];
    }
}

/* ---- items ---- */

/* Where an item's dK and dV go: an array of its own for a part of a sequence (NULL: straight to the
 * result). */
typedef struct item {
    int32_t s, kv, from, to; /* query blocks */
    real *part;
} item;

static int32_t count_parts(const qkv_attention *a, int32_t s) {
    const int32_t wanted = a->kv_heads < PARTS ? (PARTS + a->kv_heads - 1) / a->kv_heads : 1;
    return max32(1, min32(wanted, count_blocks(a, s) / PART_BLOCKS));
}

static int64_t part_size(const qkv_attention *a, int32_t s) {
    return (int64_t)qkv_layout_len(&a->k_layout, s) *
           (round_up(a->d_head, VW) + round_up(a->d_value, VW));
}

/* Sums of dK and dV, one row per key; or `parts` such sums, `size` reals apart. */
typedef struct key_sums {
    const real *dk, *dv;
    int32_t parts;
    int64_t size;
} key_sums;

/* Writes the sums of keys [keys.from, keys.to), parts added in order, to the result. */
static void write_keys(const qkv_attention *a, const qkv_attention_grad *g, int32_t s, int32_t kv,
                       range keys, const key_sums *sums) {
    const int64_t ldq = round_up(a->d_head, VW), ldo = round_up(a->d_value, VW);
    const int64_t key0 = a->k_layout.start[s] + keys.from;
    for (int64_t j = 0; j < keys.to - keys.from; j++) {
        real *dk = g->dk ? g->dk + (key0 + j) * g->lddk + (int64_t)kv * a->d_head : NULL;
        real *dv = g->dv ? g->dv + (key0 + j) * g->lddv + (int64_t)kv * a->d_value : NULL;
        for (int32_t c = 0; c < a->d_head && dk; c += VW) {
            const real *at = sums->dk + j * ldq + c;
            vreal sum = v_load(at);
            for (int32_t p = 1; p < sums->parts; p++) sum = sum + v_load(at + p * sums->size);
            v_store_n(dk + c, LN2 * sum,
                      min32(VW, a->d_head - c)); /* q was scaled by scale·log₂e */
        }
        for (int32_t c = 0; c < a->d_value && dv; c += VW) {
            const real *at = sums->dv + j * ldo + c;
            vreal sum = v_load(at);
            for (int32_t p = 1; p < sums->parts; p++) sum = sum + v_load(at + p * sums->size);
            v_store_n(dv + c, sum, min32(VW, a->d_value - c));
        }
    }
}

/* How an item goes over its sequence: `step` query blocks at a time, with a window of at most
 * `widest` keys. Where queries see only what is near (a local pattern), the window slides along and
 * stays in the cache; else it is the whole sequence at once. */
typedef struct journey {
    int32_t step, widest;
} journey;

#define STRETCH 8 /* query blocks with one window */

/* The keys that query blocks [from, to) of a sequence see some of; the first and the last window
 * reach to the sequence's ends. */
static range window_of(const qkv_attention *a, int32_t s, int32_t from, int32_t to) {
    range keys = keys_seen(a, s, from, to);
    if (from == 0) keys.from = 0;
    if (to == count_blocks(a, s)) keys.to = qkv_layout_len(&a->k_layout, s);
    return keys;
}

static journey plan_journey(const qkv_attention *a, const item *it) {
    const int32_t n_k = qkv_layout_len(&a->k_layout, it->s);
    const journey at_once = {.step = max32(1, it->to - it->from), .widest = n_k};
    journey j = {.step = STRETCH};
    if (it->part || !a->spans || at_once.step <= 2 * STRETCH) return at_once;
    range last = {0, 0};
    for (int32_t i = it->from; i < it->to; i += STRETCH) {
        const range keys = window_of(a, it->s, i, min32(i + STRETCH, it->to));
        if (keys.from < last.from || keys.from > last.to || keys.to < last.to) return at_once;
        j.widest = max32(j.widest, keys.to - keys.from);
        if (j.widest > n_k / 2) return at_once;
        last = keys;
    }
    return j;
}

/* Writes the sums of the keys that leave the window, and makes room for those that enter. */
static void move_window(backward *w, const item *it, range to) {
    const range from = w->window;
    const int64_t leave = to.from - from.from, stay = from.to - to.from, n = to.to - to.from;
    const key_sums sums = {.dk = w->dk, .dv = w->dv, .parts = 1};
    write_keys(w->a, w->g, it->s, it->kv, (range){from.from, to.from}, &sums);
    memmove(w->dk, w->dk + leave * w->ldq, (size_t)(stay * w->ldq) * sizeof(real));
    memmove(w->dv, w->dv + leave * w->ldo, (size_t)(stay * w->ldo) * sizeof(real));
    clear(w->dk + stay * w->ldq, (n - stay) * w->ldq);
    clear(w->dv + stay * w->ldo, (n - stay) * w->ldo);
    w->window = to;
    if (n) pack_keys(w, it->s, it->kv);
}

/* Bytes of scratch for the sequence with the most keys: see the forward pass. */
static size_t count_scratch(const qkv_attention *a, const qkv_attention_grad *g) {
    int32_t keys = 0;
    for (int32_t s = 0; s < a->k_layout.n; s++) keys = max32(keys, qkv_layout_len(&a->k_layout, s));
    backward w;
    return lay_out(&w, a, g, keys, NULL);
}

static bool do_item(const qkv_attention *a, const qkv_attention_grad *g, size_t scratch,
                    const item *it, const shared *p, int64_t unit) {
    const int32_t group = a->heads / a->kv_heads, n_k = qkv_layout_len(&a->k_layout, it->s);
    const journey path = plan_journey(a, it);
    backward w;
    real *base = qkv_kern_scratch(SLOT_WORK, scratch);
    if (!base) return false;
    lay_out(&w, a, g, path.widest, base);
    if (it->part) w.dk = it->part, w.dv = it->part + n_k * w.ldq;
    if (p->size) shared_give(p, unit, &w);
    pack_relations(&w);
    for (int32_t from = it->from; from == it->from || from < it->to; from += path.step) {
        const int32_t to = min32(from + path.step, it->to);
        move_window(&w, it, path.widest < n_k ? window_of(a, it->s, from, to) : (range){0, n_k});
        for (int32_t h = it->kv * group; h < (it->kv + 1) * group; h++)
            for (int32_t i = from; i < to; i++) {
                block b;
                run r;
                look_at_block(a, it->s, i, &b);
                begin_block(&w, &b, h);
                fetch_next(&w, &b, h);
                FOR_RUNS(&b, &r) do_run(&w, &b, &r);
                end_block(&w, &b, h);
            }
    }
    if (!it->part) move_window(&w, it, (range){w.window.to, w.window.to});
    return true;
}

/* Runs n items, made by number from `make`'s arguments, in units that own a set of shared sums
 * each. */
typedef struct batch {
    int32_t s, parts; /* one long sequence in parts; or parts = 0: all sequences that need none */
    real *sums;       /* of the parts */
    int64_t n;
} batch;

static bool make_item(const qkv_attention *a, const batch *bt, int64_t i, item *it) {
    if (bt->parts) {
        const int32_t part = (int32_t)(bt->parts - 1 - i % bt->parts), n = count_blocks(a, bt->s);
        *it = (item){bt->s, (int32_t)(i / bt->parts), (int32_t)((int64_t)n * part / bt->parts),
                     (int32_t)((int64_t)n * (part + 1) / bt->parts), NULL};
        it->part = bt->sums + ((int64_t)it->kv * bt->parts + part) * part_size(a, bt->s);
        return true;
    }
    const int32_t s = (int32_t)(i / a->kv_heads);
    *it = (item){s, (int32_t)(i % a->kv_heads), 0, count_blocks(a, s), NULL};
    return count_parts(a, s) == 1;
}

static bool do_batch(const qkv_attention *a, const qkv_attention_grad *g, const batch *bt) {
    shared p = shared_plan(a, g);
    const int64_t units = p.size && bt->n > UNITS ? UNITS : bt->n;
    if (p.size &&
        !(p.sums = qkv_kern_scratch(SLOT_SHARED, (size_t)(units * p.size) * sizeof(real))))
        return false;
    if (p.size) clear(p.sums, units * p.size);
    const size_t scratch = count_scratch(a, g);
    bool ok = true;
    QKV_PARALLEL_FOR_UNEVEN
    for (int64_t u = 0; u < units; u++)
        for (int64_t i = u * bt->n / units; i < (u + 1) * bt->n / units; i++) {
            item it;
            if (make_item(a, bt, i, &it) && !do_item(a, g, scratch, &it, &p, u)) {
#pragma omp atomic write
                ok = false;
            }
        }
    if (ok && p.size) shared_add(&p, units, a, g);
    return ok;
}

bool KERN_NAME(attention_grad)(const qkv_attention *a, const qkv_attention_grad *g) {
    const batch short_ones = {.n = (int64_t)a->q_layout.n * a->kv_heads};
    if (!do_batch(a, g, &short_ones)) return false;
    for (int32_t s = 0; s < a->q_layout.n; s++) {
        const int32_t parts = count_parts(a, s);
        if (parts == 1) continue;
        batch bt = {.s = s, .parts = parts, .n = (int64_t)a->kv_heads * parts};
        bt.sums = qkv_kern_scratch(SLOT_PARTS, (size_t)(bt.n * part_size(a, s)) * sizeof(real));
        if (!bt.sums || !do_batch(a, g, &bt)) return false;
        const range keys = {0, qkv_layout_len(&a->k_layout, s)};
        for (int32_t kv = 0; kv < a->kv_heads; kv++) {
            key_sums sums = {.parts = parts, .size = part_size(a, s)};
            sums.dk = bt.sums + (int64_t)kv * parts * sums.size;
            sums.dv = sums.dk + keys.to * round_up(a->d_head, VW);
            write_keys(a, g, s, kv, keys, &sums);
        }
    }
    return true;
}
