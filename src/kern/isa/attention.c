/* Fused attention, forward: softmax(scale·q·kᵀ + bias + q·rel_k) (v + rel_v), by head and packed
 * sequence.
 *
 * For each query block the runs of keys it sees are taken one after another (attention_block.h). Of
 * each run there is one tile of scores S, turned into weights P in place:
 *     m' = max(m, max S),  P = exp2(S − m')
 *     l = l·exp2(m − m') + Σ P,  O = O·exp2(m − m') + P·V
 * and at the end out = O/l, lse = m + log₂ l. Weights dropped out count in l but not in O.
 * With relative values the weights are also summed by relation, and that table times rel_v is added
 * to O.
 *
 * Work items are (sequence, key head, part of the query blocks): an item packs its keys and values
 * once. Items are cut finer when sequences and heads are few; rows are independent of each other,
 * so the cut does not change a bit. */
#include "base/thread.h"
#include "kern/isa/attention_block.h"

/* Between these a row's unshifted weights have neither overflowed nor been cut off at 2⁻¹²⁶. */
#define SUM_LEAST ((real)0x1p-40)
#define SUM_MOST  ((real)0x1p60)

typedef struct forward {
    const qkv_attention *a;
    real *keys, *values, *rel_k, *rel_v; /* panels */
    real *gathered;            /* rows to pack, where the keys' are scattered (a KV cache) */
    real *q, *scores, *out;    /* of one query block */
    real *tables_k, *tables_v; /* by relation, for each row */
    real *top, *sum;           /* m and l of each row */
    real *lanes;               /* what l still gets, VW partial sums per row */
    int64_t ldq, lds, ldo, ldt;
    int32_t first;  /* key that is packed first */
    int64_t packed; /* keys that are packed */
    bool unshifted; /* m = 0 for all rows */
    bool pairs;     /* q, keys, values and weights are words of two bf16 */
    drops *drops;
} forward;

/* Lays out the scratch memory of a sequence with n_k keys; returns its size in bytes. */
static size_t lay_out(forward *f, const qkv_attention *a, int64_t n_k, real *base) {
    carver c = {base, 0};
    *f = (forward){.a = a,
                   .ldq = round_up(a->d_head, VW),
                   .lds = LDS,
                   .ldo = round_up(a->d_value, VW),
                   .ldt = round_up(a->relation.n, VW),
                   .packed = n_k};
    f->keys = carve(&c, panels_size(a->d_head, n_k));
    f->values = carve(&c, panels_size(n_k, a->d_value));
    if (a->k_layout.rows) f->gathered = carve(&c, n_k * max32(a->d_head, a->d_value));
    f->q = carve(&c, ROWS * f->ldq);
    f->scores = carve(&c, ROWS * LDS);
    f->out = carve(&c, ROWS * f->ldo);
    f->top = carve(&c, ROWS);
    f->sum = carve(&c, ROWS);
    f->lanes = carve(&c, ROWS * VW);
    if (related(a)) f->tables_k = carve(&c, (a->rel_k ? ROWS : 1) * f->ldt);
    if (related(a) && a->rel_k) f->rel_k = carve(&c, panels_size(a->d_head, a->relation.n));
    if (values_related(a)) {
        f->tables_v = carve(&c, ROWS * f->ldt);
        f->rel_v = carve(&c, panels_size(a->relation.n, a->d_value));
    }
    return c.used * sizeof(real);
}

/* The rows of a head's keys or values that are to be packed, side by side; *ld is their stride. */
static const real *gather(const forward *f, int32_t s, const real *x, int32_t width, int64_t *ld) {
    const qkv_layout *l = &f->a->k_layout;
    if (!f->gathered) return x + (l->start[s] + f->first) * *ld;
    for (int64_t i = 0; i < f->packed; i++)
        copy_rows(x + qkv_layout_row(l, s, f->first + i) * *ld, 0, 1, width, 1,
                  f->gathered + i * width, 0);
    *ld = width;
    return f->gathered;
}

static void pack(forward *f, int32_t s, int32_t kv) {
    const qkv_attention *a = f->a;
    int64_t ldk = a->ldk, ldv = a->ldv;
    const real *k = gather(f, s, a->k + (int64_t)kv * a->d_head, a->d_head, &ldk);
    pack_rows(f->pairs, k, ldk, f->packed, a->d_head, f->keys);
    const real *v = gather(f, s, a->v + (int64_t)kv * a->d_value, a->d_value, &ldv);
    pack_columns(f->pairs, &(operand){v, ldv, f->packed, a->d_value, 1}, f->values);
    if (f->rel_k) pack_rows(false, a->rel_k, a->d_head, a->relation.n, a->d_head, f->rel_k);
    const operand rel_v = {a->rel_v, a->d_value, a->relation.n, a->d_value, 1};
    if (f->rel_v) pack_columns(false, &rel_v, f->rel_v);
}

static real largest(const real *x, range c) {
    vreal top = v_load(x + c.from);
    for (int32_t j = c.from + VW; j < c.to; j += VW) top = v_max(top, v_load(x + j));
    return v_maximum(top);
}

/* x = exp2(x − top); returns the sum. */
static real soften(real *x, range c, real top) {
    vreal sum = v_set(0);
    for (int32_t j = c.from; j < c.to; j += VW) {
        const vreal p = v_exp2_down(v_load(x + j) - top);
        sum = sum + p;
        v_store(x + j, p);
    }
    return v_sum(sum);
}

static real sum_of(const real *x, range c) {
    vreal sum = v_set(0);
    for (int32_t j = c.from; j < c.to; j += VW) sum = sum + v_load(x + j);
    return v_sum(sum);
}

static void multiply(real *x, const real *y, range c) {
    for (int32_t j = c.from; j < c.to; j += VW) v_store(x + j, v_load(x + j) * v_load(y + j));
}

static void rescale(real *x, real factor, int64_t n) {
    for (int64_t j = 0; j < n; j += VW) v_store(x + j, v_load(x + j) * factor);
}

/* Turns a row of scores into weights and brings the row's m, l and O, which are `at`, up to
 * date. */
static void shift_row(forward *f, const block *b, const run *r, int32_t row, int32_t at, range c) {
    real *const x = f->scores + at * f->lds;
    if (f->tables_k) add_related(b, r, row, f->tables_k + (f->a->rel_k ? row * f->ldt : 0), x);
    if (!r->full) blank(b, r, row, x, -INFINITY);
    for (int32_t j = r->n; j < r->width; j++) x[j] = -INFINITY;
    const real top = largest(x, c);
    if (top > f->top[at]) {
        if (f->sum[at] > 0) { /* else there is nothing to rescale yet */
            const real factor = (real)exp2((double)(f->top[at] - top));
            f->sum[at] *= factor;
            rescale(f->out + at * f->ldo, factor, f->ldo);
            if (f->tables_v) rescale(f->tables_v + at * f->ldt, factor, f->ldt);
        }
        f->top[at] = top;
    }
    real sum = soften(x, c, f->top[at]);
    if (!r->full) {
        blank(b, r, row, x, 0); /* the blanked lanes hold 2⁻¹²⁶, or NaN where no score is finite */
        sum = sum_of(x, c);
    }
    f->sum[at] += sum;
}

/* Finishes a row of the tile: scores, or weights already when unshifted. Row `row` of the block is
 * row `at` of the tile, which may hold several heads. */
static void weigh_row(forward *f, const block *b, const run *r, int32_t row, int32_t at) {
    const qkv_attention *a = f->a;
    real *x = f->scores + at * f->lds;
    const range c = row_columns(r, row);
    if (c.from >= c.to) {
        memset(x, 0, (size_t)r->width * sizeof *x);
        return;
    }
    if (!f->unshifted) {
        shift_row(f, b, r, row, at, c);
    } else if (!r->full) {
        blank(b, r, row, x, 0);
        f->sum[at] += sum_of(x, c);
    }
    if (a->dropout > 0) {
        real factors[KEYS_FEW];
        drop_row(b, f->drops, row, c, factors);
        multiply(x, factors, c);
    }
    if (f->tables_v) collect_related(b, r, row, x, f->tables_v + at * f->ldt);
}

/* m, l and O before the first key. */
static void begin_rows(forward *f, int32_t rows) {
    memset(f->out, 0, (size_t)(rows * f->ldo) * sizeof *f->out);
    if (f->tables_v) memset(f->tables_v, 0, (size_t)(rows * f->ldt) * sizeof *f->tables_v);
    for (int32_t row = 0; row < rows; row++)
        f->top[row] = f->unshifted ? 0 : -INFINITY, f->sum[row] = 0;
}

/* After the last key. */
static void add_related_values(forward *f, int32_t rows) {
    const int32_t n = f->a->relation.n;
    if (f->tables_v)
        product_rows(false, &(product){.a = f->tables_v,
                                       .lda = f->ldt,
                                       .b = f->rel_v,
                                       .panel = (int64_t)n * PANEL,
                                       .c = f->out,
                                       .ldc = f->ldo,
                                       .m = rows,
                                       .n = f->a->d_value,
                                       .k = n});
}

static void finish_row(forward *f, const block *b, int32_t h, int32_t row, int32_t at) {
    const qkv_attention *a = f->a;
    const int64_t q_row = a->q_layout.start[b->s] + b->i0 + row;
    const real sum = f->sum[at];
    if (a->lse)
        a->lse[q_row * a->heads + h] = sum > 0 ? (real)((double)f->top[at] + log2((double)sum)) : 0;
    copy_rows(f->out + at * f->ldo, 0, 1, a->d_value, sum > 0 ? 1 / sum : 0,
              a->out + q_row * a->ldo + (int64_t)h * a->d_value, 0);
}

/* ---- blocks ---- */

/* Scores, weights and weighted values of one run of keys. */
static void attend_run(forward *f, const block *b, const run *r) {
    const qkv_attention *a = f->a;
    const int64_t at = r->from - f->first; /* in the packed keys */
    const int64_t words = count_words(a->d_head, f->pairs);
    const range *strips = r->full ? NULL : r->strips;
    const finish weights = {.rows = f->top, .sums = r->full ? f->lanes : NULL};
    const product scores = {.a = f->q,
                            .lda = f->ldq,
                            .b = f->keys + at * words,
                            .panel = words * PANEL,
                            .c = f->scores,
                            .ldc = f->lds,
                            .m = b->rows,
                            .n = f->unshifted ? r->n : r->width,
                            .k = words,
                            .strips = strips};
    if (f->unshifted)
        product_weights(f->pairs, &scores, &weights);
    else
        product_scores(f->pairs, &scores);
    drop_begin_run(b, r, f->drops);
    for (int32_t row = 0; row < b->rows; row++) weigh_row(f, b, r, row, row);
    if (f->pairs) round_rows(b->rows, r->width, f->scores);
    product_rows(f->pairs, &(product){.a = f->scores,
                                      .lda = f->lds,
                                      .b = f->values + count_words(at, f->pairs) * PANEL,
                                      .panel = count_words(f->packed, f->pairs) * PANEL,
                                      .c = f->out,
                                      .ldc = f->ldo,
                                      .m = b->rows,
                                      .n = a->d_value,
                                      .k = count_words(r->n, f->pairs),
                                      .strips = strips});
}

/* m, l and O of a block's rows over all keys they see. */
static void attend_rows(forward *f, const block *b) {
    begin_rows(f, b->rows);
    memset(f->lanes, 0, (size_t)(b->rows * VW) * sizeof *f->lanes);
    run r;
    FOR_RUNS(b, &r) attend_run(f, b, &r);
    add_related_values(f, b->rows);
    for (int32_t row = 0; row < b->rows; row++) f->sum[row] += v_sum(v_load(f->lanes + row * VW));
}

/* A softmax may be shifted as one likes while its weights are normal numbers, and the scores of
 * most models are small: so m = 0 is tried first, and the weights leave the product's registers as
 * such. A row whose sum says that something was too large or all too small is done again. */
static void attend_block(forward *f, const block *b, int32_t h) {
    const qkv_attention *a = f->a;
    const real *q =
        a->q + (a->q_layout.start[b->s] + (int64_t)b->i0) * a->ldq + (int64_t)h * a->d_head;
    copy_words(f->pairs, &(operand){q, a->ldq, b->rows, a->d_head, a->scale * LOG2E}, f->q, f->ldq);
    if (f->tables_k) score_tables(b, h, f->q, f->ldq, f->rel_k, f->tables_k);
    const int64_t left = qkv_layout_len(&a->q_layout, b->s) - b->i0 - b->rows;
    fetch_rows(q + b->rows * a->ldq, a->ldq, left < ROWS ? left : ROWS, a->d_head);
    drop_begin_block(b, h, f->drops);
    f->unshifted = !f->tables_k;
    attend_rows(f, b);
    bool again[ROWS], any = false;
    for (int32_t row = 0; row < b->rows; row++) {
        const real sum = f->sum[row];
        again[row] = f->unshifted && sum != 0 && !(sum >= SUM_LEAST && sum <= SUM_MOST);
        any = any || again[row];
        if (!again[row]) finish_row(f, b, h, row, row);
    }
    if (!any) return;
    f->unshifted = false;
    attend_rows(f, b);
    for (int32_t row = 0; row < b->rows; row++)
        if (again[row]) finish_row(f, b, h, row, row);
}

/* ---- few queries (a step of decoding) ----
 * Keys and values are read once, so packing them would cost more than it saves; they come from
 * afar, so they are read as they lie: a key's heads side by side. The rows of scratch are
 * the queries of the first head, then those of the second, and so on, at most ROWS. */

#define FEW_QUERIES  8 /* of a sequence, times the heads that share a key head */
#define FEW_AHEAD    8 /* keys fetched ahead; at the end, of the next sequence */
#define FEW_TOGETHER 8 /* sequences that are one item */

static bool has_few(const qkv_attention *a, int32_t s) {
    return qkv_layout_len(&a->q_layout, s) * (a->heads / a->kv_heads) <= FEW_QUERIES;
}

/* Key heads [from, to) of a sequence and a run of its keys, which the rows of a block read
 * together. */
typedef struct few {
    int32_t from, to;
    int32_t rows; /* that share a key head: the block's, of each of its heads */
    int32_t n;    /* keys */
    const real *k[KEYS_FEW], *v[KEYS_FEW]; /* of each, the first of these heads */
} few;

static void look_at_few(const qkv_attention *a, const block *b, const run *r, few *w) {
    w->rows = a->heads / a->kv_heads * b->rows;
    w->n = r->n;
    for (int32_t j = 0; j < r->n; j++) {
        const int64_t row = qkv_layout_row(&a->k_layout, b->s, r->from + j);
        w->k[j] = a->k + row * a->ldk + (int64_t)w->from * a->d_head;
        w->v[j] = a->v + row * a->ldv + (int64_t)w->from * a->d_value;
    }
}

/* Scores of four keys, of which n exist, and of one head's row. */
INLINE void four_scores(const real *q, const real *const *key, int64_t at, int32_t n,
                        int32_t d_head, real *out) {
    vreal sum[4] = {v_set(0), v_set(0), v_set(0), v_set(0)};
    for (int32_t c = 0; c < d_head; c += VW) {
        const int64_t wide = d_head - c;
        const vreal left = load_some(q + c, wide);
        V_UNROLL(4)
        for (int i = 0; i < 4; i++)
            if (i < n) sum[i] = v_fma(left, load_some(key[i] + at + c, wide), sum[i]);
    }
    v_four_sums(sum, out);
}

/* Scores of the keys; the values are fetched meanwhile. */
static void scores_of_few(const forward *f, const few *w) {
    const qkv_attention *a = f->a;
    const int32_t heads = w->to - w->from;
    for (int32_t j = 0; j < w->n; j += 4) {
        const int32_t n = min32(4, w->n - j);
        const real *q = f->q;
        real *score = f->scores + j;
        for (int32_t i = j; i < j + n; i++) {
            if (i + FEW_AHEAD < w->n)
                fetch_rows(w->k[i + FEW_AHEAD], 0, 1, (int64_t)heads * a->d_head);
            fetch_rows(w->v[i], 0, 1, (int64_t)heads * a->d_value);
        }
        for (int32_t kv = 0; kv < heads; kv++)
            for (int32_t row = 0; row < w->rows; row++, q += f->ldq, score += f->lds)
                if (n == 4) /* nearly always, and then without branches */
                    four_scores(q, w->k + j, (int64_t)kv * a->d_head, 4, a->d_head, score);
                else
                    four_scores(q, w->k + j, (int64_t)kv * a->d_head, n, a->d_head, score);
    }
}

#define BATCH 4 /* vectors of a row's output that are summed in registers */

/* One row's weighted values of key head kv. */
static void add_values(const qkv_attention *a, const few *w, int32_t kv, const real *p, real *out) {
    const int64_t at = (int64_t)kv * a->d_value;
    int32_t c = 0;
    for (; c + BATCH * VW <= a->d_value; c += BATCH * VW) {
        vreal sum[BATCH];
        V_UNROLL(4)
        for (int v = 0; v < BATCH; v++) sum[v] = v_load(out + c + v * VW);
        for (int32_t j = 0; j < w->n; j++) {
            V_UNROLL(4)
            for (int v = 0; v < BATCH; v++)
                sum[v] = v_fma(v_set(p[j]), v_load(w->v[j] + at + c + v * VW), sum[v]);
        }
        V_UNROLL(4)
        for (int v = 0; v < BATCH; v++) v_store(out + c + v * VW, sum[v]);
    }
    for (; c < a->d_value; c += VW) {
        vreal sum = v_load(out + c);
        for (int32_t j = 0; j < w->n; j++)
            sum = v_fma(v_set(p[j]), load_some(w->v[j] + at + c, a->d_value - c), sum);
        v_store(out + c, sum);
    }
}

/* Weighted values; the next sequence's first keys are fetched meanwhile. */
static void values_of_few(const forward *f, const block *b, const few *w) {
    const qkv_attention *a = f->a;
    const int32_t heads = w->to - w->from, next = b->s + 1;
    const int32_t later =
        next < a->k_layout.n ? min32(FEW_AHEAD, qkv_layout_len(&a->k_layout, next)) : 0;
    for (int32_t j = 0; j < later; j++)
        fetch_rows(a->k + qkv_layout_row(&a->k_layout, next, j) * a->ldk +
                       (int64_t)w->from * a->d_head,
                   0, 1, (int64_t)heads * a->d_head);
    const real *p = f->scores;
    real *out = f->out;
    for (int32_t kv = 0; kv < heads; kv++)
        for (int32_t row = 0; row < w->rows; row++, p += f->lds, out += f->ldo)
            add_values(a, w, kv, p, out);
}

static void attend_few(forward *f, const block *b, few *w) {
    const qkv_attention *a = f->a;
    const int32_t group = a->heads / a->kv_heads, h0 = w->from * group,
                  heads = (w->to - w->from) * group;
    const real *q = a->q + (a->q_layout.start[b->s] + (int64_t)b->i0) * a->ldq;
    for (int32_t i = 0; i < heads; i++)
        copy_rows(q + (int64_t)(h0 + i) * a->d_head, a->ldq, b->rows, a->d_head, a->scale * LOG2E,
                  f->q + (int64_t)i * b->rows * f->ldq, f->ldq);
    begin_rows(f, heads * b->rows);
    run r;
    FOR_RUNS(b, &r) {
        look_at_few(a, b, &r, w);
        scores_of_few(f, w);
        drop_begin_run(b, &r, f->drops);
        for (int32_t i = 0, at = 0; i < heads; i++) {
            if (f->tables_k)
                score_tables(b, h0 + i, f->q + at * f->ldq, f->ldq, f->rel_k, f->tables_k);
            drop_begin_block(b, h0 + i, f->drops);
            for (int32_t row = 0; row < b->rows; row++, at++) weigh_row(f, b, &r, row, at);
        }
        values_of_few(f, b, w);
    }
    add_related_values(f, heads * b->rows);
    for (int32_t i = 0, at = 0; i < heads; i++)
        for (int32_t row = 0; row < b->rows; row++, at++) finish_row(f, b, h0 + i, row, at);
}

/* How many keys a run of few queries has: all heads' rows of scores share one tile's room. */
static int32_t keys_of_few(const qkv_attention *a, const block *b) {
    const int32_t rows = min32(a->heads * b->rows, ROWS);
    return min32(ROWS * LDS / rows / RUN_UNIT * RUN_UNIT, KEYS_FEW);
}

/* ---- items ---- */

/* Bytes of scratch for the sequence with the most keys to pack: each thread allocates that much, so
 * that which thread gets which sequence does not decide whether memory is asked for. */
static size_t count_scratch(const qkv_attention *a) {
    int32_t keys = 0;
    for (int32_t s = 0; s < a->k_layout.n; s++)
        if (!has_few(a, s)) keys = max32(keys, qkv_layout_len(&a->k_layout, s));
    forward f;
    return lay_out(&f, a, keys, NULL);
}

/* Query blocks [from, to) of sequence s for all heads that use key head kv. */
static bool attend(const qkv_attention *a, size_t scratch, int32_t s, int32_t kv, int32_t from,
                   int32_t to) {
    const int32_t group = a->heads / a->kv_heads;
    const range keys = keys_seen(a, s, from, to);
    block b;
    drops d;
    forward f;
    real *base = qkv_kern_scratch(0, scratch);
    if (!base) return false;
    lay_out(&f, a, keys.to - keys.from, base);
    f.first = keys.from;
    f.pairs = in_pairs(a);
    f.drops = &d;
    pack(&f, s, kv);
    for (int32_t i = from; i < to; i++) {
        look_at_block(a, s, i, &b);
        for (int32_t h = kv * group; h < (kv + 1) * group; h++) attend_block(&f, &b, h);
    }
    return true;
}

/* Key heads [kv, to) of those of sequences [from, end) that have few queries. */
static bool attend_heads(const qkv_attention *a, size_t scratch, int32_t from, int32_t end,
                         int32_t kv, int32_t to) {
    drops d;
    forward f;
    few w;
    w.from = kv, w.to = to;
    real *base = qkv_kern_scratch(0, scratch);
    if (!base) return false;
    lay_out(&f, a, 0, base);
    f.drops = &d;
    pack(&f, from, kv);
    for (int32_t s = from; s < end; s++)
        for (int32_t i = 0; has_few(a, s) && i < count_blocks(a, s); i++) {
            block b;
            look_at_block(a, s, i, &b);
            f.lds = b.keys = keys_of_few(a, &b);
            attend_few(&f, &b, &w);
        }
    return true;
}

/* Are threads worth waking? Counted in multiply-adds, were everything seen; with few queries those
 * wait for keys and values from memory, and take ten times as long. */
static bool is_worth_threads(const qkv_attention *a) {
    double pairs = 0;
    for (int32_t s = 0; s < a->q_layout.n; s++)
        pairs += (double)qkv_layout_len(&a->q_layout, s) * qkv_layout_len(&a->k_layout, s) *
                 (has_few(a, s) ? 10 : 1);
    return pairs * a->heads * (a->d_head + a->d_value) >= 10 * QKV_PARALLEL_FROM;
}

#define ITEMS_WANTED 32 /* enough for threads to share evenly */
#define PART_BLOCKS  4  /* fewer query blocks are not worth packing the keys for */
#define PART_MOST    16 /* more make no part: the keys they see near them would leave the cache */

/* Into how many parts a sequence is cut: enough for all threads, and more of a long one whose
 * queries see near keys only, which then stay in the cache; other keys would be packed again and
 * again. */
static int32_t count_parts(const qkv_attention *a, int64_t pairs) {
    const int32_t wanted = pairs > 0 ? (int32_t)((ITEMS_WANTED + pairs - 1) / pairs) : 1;
    int32_t longest = 0;
    for (int32_t s = 1; s < a->q_layout.n; s++)
        if (count_blocks(a, s) > count_blocks(a, longest)) longest = s;
    const int32_t most = a->q_layout.n && a->spans ? count_blocks(a, longest) : 0;
    if (most <= 2 * PART_MOST) return wanted;
    const range keys = keys_seen(a, longest, PART_MOST, 2 * PART_MOST);
    if (keys.to - keys.from > 2 * PART_MOST * ROWS) return wanted;
    return max32(wanted, (most + PART_MOST - 1) / PART_MOST);
}

/* How many key heads of few queries are one item: all, unless threads wait for work. */
static int32_t count_heads(const qkv_attention *a, bool threads) {
    const int64_t most = min32(a->kv_heads, ROWS / FEW_QUERIES);
    const int64_t wanted = threads ? (int64_t)a->kv_heads * a->q_layout.n / ITEMS_WANTED : most;
    return (int32_t)(wanted < 1 ? 1 : wanted < most ? wanted : most);
}

bool KERN_NAME(attention)(const qkv_attention *a) {
    const int64_t pairs = (int64_t)a->q_layout.n * a->kv_heads, parts = count_parts(a, pairs);
    const size_t scratch = count_scratch(a);
    const bool threads = is_worth_threads(a);
    const int32_t heads = count_heads(a, threads);
    bool ok = true;
    QKV_PARALLEL_FOR_UNEVEN_IF(threads)
    for (int64_t item = 0; item < pairs * parts; item++) {
        /* All heads of a part, whose rows lie side by side, then the next part; causal: long ones
         * first. */
        const int32_t s = (int32_t)(item / a->kv_heads / parts), kv = (int32_t)(item % a->kv_heads);
        const int32_t part = (int32_t)(parts - 1 - item / a->kv_heads % parts),
                      n = count_blocks(a, s);
        const int32_t size = max32(PART_BLOCKS, (int32_t)((n + parts - 1) / parts));
        const int32_t from = part * size, to = min32(from + size, n);
        bool done = true;
        if (!has_few(a, s)) done = from >= to || attend(a, scratch, s, kv, from, to);
        if (part == 0 && s % FEW_TOGETHER == 0 && kv % heads == 0)
            done = attend_heads(a, scratch, s, min32(s + FEW_TOGETHER, a->q_layout.n), kv,
                                min32(kv + heads, a->kv_heads)) &&
                   done;
        if (!done) {
#pragma omp atomic write
            ok = false;
        }
    }
    return ok;
}
