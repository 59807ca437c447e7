/* What forward and backward attention share: query blocks, the runs of keys they see, and
 * relations.
 *
 * A query block is at most QKV_QUERY_BLOCK rows of one sequence. The keys that any of its rows sees
 * are cut into runs of at most KEYS keys, each starting at a multiple of RUN_UNIT; a run's scores
 * are one tile of scratch memory. In a run that every row sees entirely nothing is masked; in
 * others each row has its hull [from, to) and each strip of rows the hull of its rows, so that
 * products skip what no query sees, and what lies outside a row's spans is blanked. All this
 * depends on the sequence alone, so a sequence has the same bits in any batch.
 *
 * Scores are kept in units of log 2 (q is scaled by scale·log₂e when copied): exp is then a bare
 * exp2. */
#ifndef QKV_KERN_ATTENTION_BLOCK_H
#define QKV_KERN_ATTENTION_BLOCK_H

#include "kern/isa/attention_tile.h"
#include "kern/isa/random.h"

#define ROWS     QKV_QUERY_BLOCK
#define KEYS     128 /* keys of a run: its tiles stay in the nearest caches until used up */
#define KEYS_FEW 512 /* with few rows, whose tiles are small: fewer runs, fewer roundings */
/* A tile's row stride: not a power of two, so that the rows of a column spread over the cache. */
#define LDS      (KEYS + 16)
#define RUN_UNIT (PANEL < 16 ? 16 : PANEL)        /* whole panels, and whole groups of dropout */
#define STRIPS   ((KEYS_FEW + STRIP - 1) / STRIP) /* of rows or of keys */

typedef struct block {
    const qkv_attention *a;
    int32_t s, n_k;         /* sequence, its keys */
    int32_t i0, rows, pos0; /* first query (within the sequence), how many, position of the first */
    int32_t keys;           /* of a run at most: KEYS, unless the caller says otherwise */
    qkv_span spans[QKV_SPANS_MAX];
    int n_spans;
    range seen[QKV_SPANS_MAX]; /* keys that some row sees, in order, apart by at least a panel's
                                  border */
    int n_seen;
} block;

typedef struct run {
    int32_t from, n,
        width; /* first key, keys, columns of the tile (n rounded up to whole vectors) */
    bool full;
    range hull[ROWS]; /* what each row sees lies in here, counted from `from`; not set when full */
    range strips[STRIPS]; /* the same for strips of rows */
} run;

static inline int32_t min32(int32_t x, int32_t y) {
    return x < y ? x : y;
}
static inline int32_t max32(int32_t x, int32_t y) {
    return x > y ? x : y;
}

static inline int32_t position0(const qkv_attention *a, int32_t s) {
    return a->q_pos ? a->q_pos[s] : 0;
}

/* Query blocks of sequence s: they end where positions are multiples of ROWS. */
static inline int32_t count_blocks(const qkv_attention *a, int32_t s) {
    const int32_t p0 = position0(a, s), n = qkv_layout_len(&a->q_layout, s);
    return n ? (p0 + n - 1) / ROWS - p0 / ROWS + 1 : 0;
}

/* The intersection of span k with row `row`'s sight and the keys [from, to). */
static inline range row_span(const block *b, int32_t row, int k, int32_t from, int32_t to) {
    const qkv_span *s = &b->spans[k];
    const int32_t pos = b->pos0 + row;
    if (pos < s->q0 || pos >= s->q1) return (range){to, from};
    return (range){max32(max32(s->k0, pos + s->lo), from),
                   min32(min32(s->k1, pos + s->hi + 1), to)};
}

/* Looks at query block `index` of sequence s: rows, spans, keys seen. */
static inline void look_at_block(const qkv_attention *a, int32_t s, int32_t index, block *b) {
    const int32_t p0 = position0(a, s), n = qkv_layout_len(&a->q_layout, s);
    b->a = a, b->s = s, b->n_k = qkv_layout_len(&a->k_layout, s), b->keys = KEYS;
    b->pos0 = max32(p0, (p0 / ROWS + index) * ROWS);
    b->i0 = b->pos0 - p0;
    b->rows = min32((p0 / ROWS + index + 1) * ROWS - b->pos0, n - b->i0);
    b->spans[0] = qkv_span_of(0, b->n_k, -QKV_SPAN_ANY, QKV_SPAN_ANY);
    b->n_spans = a->spans ? a->spans(a->pattern, b->n_k, b->pos0, b->pos0 + b->rows, b->spans) : 1;
    b->n_seen = 0;
    for (int k = 0; k < b->n_spans; k++) {
        const int32_t row0 = max32(b->spans[k].q0 - b->pos0, 0),
                      row1 = min32(b->spans[k].q1 - b->pos0, b->rows);
        if (row0 >= row1) continue;
        const range first = row_span(b, row0, k, 0, b->n_k),
                    last = row_span(b, row1 - 1, k, 0, b->n_k);
        const range hull = {first.from / RUN_UNIT * RUN_UNIT, last.to};
        if (first.from >= last.to) continue;
        range *previous = b->n_seen ? &b->seen[b->n_seen - 1] : NULL;
        if (previous && hull.from < round_up(previous->to, RUN_UNIT))
            *previous = (range){min32(hull.from, previous->from), max32(hull.to, previous->to)};
        else
            b->seen[b->n_seen++] = hull;
    }
}

static inline bool all_see_all(const block *b, int32_t from, int32_t to) {
    for (int k = 0; k < b->n_spans; k++) {
        const range first = row_span(b, 0, k, from, to),
                    last = row_span(b, b->rows - 1, k, from, to);
        if (first.from == from && first.to == to && last.from == from && last.to == to) return true;
    }
    return false;
}

/* Describes the run of keys [from, to). */
static inline void look_at_run(const block *b, int32_t from, int32_t to, run *r) {
    r->from = from, r->n = to - from, r->width = (int32_t)round_up(to - from, VW);
    r->full = all_see_all(b, from, to);
    if (r->full) return;
    for (int32_t row = 0; row < b->rows; row++) {
        range hull = {r->n, 0};
        for (int k = 0; k < b->n_spans; k++) {
            const range seen = row_span(b, row, k, from, to);
            if (seen.from >= seen.to) continue;
            hull.from = min32(hull.from, seen.from - from);
            hull.to = max32(hull.to, seen.to - from);
        }
        r->hull[row] = hull;
        range *strip = &r->strips[row / STRIP];
        if (row % STRIP == 0) *strip = hull;
        strip->from = min32(strip->from, hull.from);
        strip->to = max32(strip->to, hull.to);
    }
}

/* The rows that see something of each strip of the run's keys. */
static inline void look_at_key_strips(const block *b, const run *r, range *out) {
    for (int32_t k = 0, s = 0; k < r->n; k += STRIP, s++) {
        out[s] = (range){0, b->rows};
#define UNSEEN(row) (r->hull[row].from >= k + STRIP || r->hull[row].to <= k)
        while (out[s].from < out[s].to && UNSEEN(out[s].from)) out[s].from++;
        while (out[s].from < out[s].to && UNSEEN(out[s].to - 1)) out[s].to--;
#undef UNSEEN
    }
}

#define FOR_RUNS(b, r)                                                                             \
    for (int seen_ = 0; seen_ < (b)->n_seen; seen_++)                                              \
        for (int32_t key_ = (b)->seen[seen_].from;                                                 \
             key_ < (b)->seen[seen_].to &&                                                         \
             (look_at_run(b, key_, min32(key_ + (b)->keys, (b)->seen[seen_].to), r), true);        \
             key_ += (b)->keys)

/* Columns of a row's hull, widened to whole vectors. */
static inline range row_columns(const run *r, int32_t row) {
    if (r->full) return (range){0, r->width};
    return (range){r->hull[row].from / VW * VW, (int32_t)round_up(r->hull[row].to, VW)};
}

/* Sets what row `row` does not see of the run to `value`. */
static inline void blank(const block *b, const run *r, int32_t row, real *x, real value) {
    int32_t at = 0;
    for (int k = 0; k < b->n_spans; k++) {
        const range seen = row_span(b, row, k, r->from, r->from + r->n);
        if (seen.from >= seen.to) continue;
        for (; at < seen.from - r->from; at++) x[at] = value;
        at = seen.to - r->from;
    }
    for (; at < r->width; at++) x[at] = value;
}

/* ---- dropout of weights: see qkv_attention_drop_bits ---- */

typedef struct drops {
    uint32_t rows[ROWS], columns[KEYS_FEW / 2];
} drops;

static inline void drop_begin_block(const block *b, int32_t h, drops *d) {
    const int64_t row = b->a->q_layout.start[b->s] + b->i0;
    if (b->a->dropout > 0)
        random_words(b->a->rng, qkv_attention_drop_row(row, h), b->rows, d->rows);
}

static inline void drop_begin_run(const block *b, const run *r, drops *d) {
    const int64_t words = round_up(r->n, 16) / 2;
    if (b->a->dropout > 0)
        random_words(b->a->rng, qkv_attention_drop_column(r->from), words, d->columns);
}

/* The factors of the eight weights whose random words are `x`, from their low or high halves. */
typedef uint32_t words8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t mask8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef real reals8
    __attribute__((vector_size(8 * sizeof(real)), aligned(sizeof(real)), may_alias));

static inline void drop_half(const words8 *half, int32_t least, real keep, real *factors) {
    const mask8 stays = (mask8)*half >= least; /* 16 bits: the sign plays no part */
#ifdef QKV_DOUBLE
    for (int i = 0; i < 8; i++) factors[i] = stays[i] ? keep : 0;
#else
    const reals8 all = keep - (reals8){0};
    *(mask8 *)factors = stays & (mask8)all;
#endif
}

/* The factors of a row's weights, for columns [c.from, c.to) and up to the borders of groups of 16.
 * The vectors have eight lanes in every instruction set, as the definition has. */
static inline void drop_row(const block *b, const drops *d, int32_t row, range c, real *factors) {
    const int32_t least = (int32_t)qkv_attention_drop_threshold(b->a->dropout);
    const real keep = (real)(65536.0 / (65536.0 - least));
    for (int32_t j = c.from / 16 * 16; j < c.to; j += 16) {
        words8 x =
            *(const words8 *)(d->columns + j / 2) + d->rows[row]; /* qkv_attention_drop_mix */
        x = (x ^ x >> 16) * 0x7feb352du;
        x = (x ^ x >> 15) * 0x846ca68bu;
        x = x ^ x >> 16;
        const words8 low = x & 0xffff, high = x >> 16;
        drop_half(&low, least, keep, factors + j);
        drop_half(&high, least, keep, factors + j + 8);
    }
}

/* ---- relations: a table of relation.n reals for a row, indexed by r(i, j) ---- */

/* The columns [at, at + n) of row `row` for which the index is table[column + shift]; before them
 * it is 0, after n − 1. */
typedef struct slope {
    int32_t from, to, shift;
} slope;

static inline slope distances(const block *b, const run *r, int32_t row, range c) {
    const qkv_relation *rel = &b->a->relation;
    const int32_t shift = r->from - (b->pos0 + row) + rel->zero;
    return (slope){min32(max32(-shift, c.from), c.to), min32(max32(rel->n - shift, c.from), c.to),
                   shift};
}

static inline const uint8_t *matrix_row(const block *b, const run *r, int32_t row) {
    const qkv_relation *rel = &b->a->relation;
    return rel->matrix + rel->matrix_start[b->s] + (int64_t)(b->i0 + row) * b->n_k + r->from;
}

/* x[j] += table[r(i, j)] for the columns of the row's hull */
static inline void add_related(const block *b, const run *r, int32_t row, const real *table,
                               real *x) {
    const range c = r->full ? (range){0, r->n} : r->hull[row];
    if (b->a->relation.kind == QKV_REL_MATRIX) {
        const uint8_t *index = matrix_row(b, r, row);
        for (int32_t j = c.from; j < c.to; j++) x[j] += table[index[j]];
        return;
    }
    const slope d = distances(b, r, row, c);
    const real low = table[0], high = table[b->a->relation.n - 1];
    for (int32_t j = c.from; j < d.from; j++) x[j] += low;
    for (int32_t j = d.from; j < d.to; j++) x[j] += table[j + d.shift];
    for (int32_t j = d.to; j < c.to; j++) x[j] += high;
}

/* table[r(i, j)] += x[j]: the gradient of add_related */
static inline void collect_related(const block *b, const run *r, int32_t row, const real *x,
                                   real *table) {
    const range c = r->full ? (range){0, r->n} : r->hull[row];
    if (b->a->relation.kind == QKV_REL_MATRIX) {
        const uint8_t *index = matrix_row(b, r, row);
        for (int32_t j = c.from; j < c.to; j++) table[index[j]] += x[j];
        return;
    }
    const slope d = distances(b, r, row, c);
    real low = 0, high = 0;
    for (int32_t j = c.from; j < d.from; j++) low += x[j];
    for (int32_t j = d.from; j < d.to; j++) table[j + d.shift] += x[j];
    for (int32_t j = d.to; j < c.to; j++) high += x[j];
    table[0] += low;
    table[b->a->relation.n - 1] += high;
}

static inline bool related(const qkv_attention *a) {
    return a->relation.kind != QKV_REL_NONE && (a->bias || a->rel_k);
}
static inline bool values_related(const qkv_attention *a) {
    return a->relation.kind != QKV_REL_NONE && a->rel_v;
}

/* What the scores of a head's rows get by relation, in units of log 2: bias and, when there are
 * relative keys, q·rel_k. Without relative keys all rows share one table. `rel` holds rel_k as
 * panels of rows. Returns the rows' stride. */
static inline int64_t score_tables(const block *b, int32_t h, const real *q, int64_t ldq,
                                   const real *rel, real *tables) {
    const qkv_attention *a = b->a;
    const int32_t n = a->relation.n;
    const int64_t ld = a->rel_k ? round_up(n, VW) : 0;
    const real *bias = a->bias ? a->bias + (int64_t)h * n : NULL;
    if (a->rel_k)
        product_scores(false, &(product){.a = q,
                                         .lda = ldq,
                                         .b = rel,
                                         .panel = (int64_t)a->d_head * PANEL,
                                         .c = tables,
                                         .ldc = ld,
                                         .m = b->rows,
                                         .n = n,
                                         .k = a->d_head});
    for (int32_t row = 0; row < (a->rel_k ? b->rows : 1); row++)
        for (int32_t i = 0; i < n; i++) {
            const real from_keys = a->rel_k ? tables[row * ld + i] / a->scale : 0;
            tables[row * ld + i] = from_keys + (bias ? bias[i] * LOG2E : 0);
        }
    return ld;
}

/* ---- bf16 ---- */

/* Are all products of words of two bf16? Relations have products of their own and stay in reals. */
static inline bool in_pairs(const qkv_attention *a) {
    return HAS_PAIRS && a->precision == QKV_BF16 && !related(a) && !values_related(a);
}

/* A tile as words of adjacent columns, in place. What a row does not see is 0 by now. */
static inline void round_rows(int32_t rows, int32_t width, real *x) {
    for (int32_t row = 0; row < rows; row++, x += LDS)
        for (int32_t j = 0; j < width; j += 2 * VW)
            v_store(x + j / 2, pair_run(v_load(x + j), v_load(x + j + VW)));
}

/* As words of adjacent rows; `out` may be the tile itself. */
static inline void round_columns(int32_t rows, int32_t width, const real *x, real *out) {
    for (int32_t row = 0; row < rows; row += 2, x += 2 * LDS, out += LDS)
        for (int32_t j = 0; j < width; j += VW)
            v_store(out + j,
                    pair_lanes(v_load(x + j), row + 1 < rows ? v_load(x + LDS + j) : v_set(0)));
}

/* ---- scratch ---- */

/* Cuts one block of memory into arrays: the first pass (base NULL) counts, the second hands out. */
typedef struct carver {
    real *base;
    size_t used;
} carver;

static inline real *carve(carver *c, int64_t n) {
    real *at = c->base ? c->base + c->used : NULL;
    c->used += (size_t)round_up(n, 16);
    return at;
}

/* The keys that some of the query blocks [from, to) see. */
static inline range keys_seen(const qkv_attention *a, int32_t s, int32_t from, int32_t to) {
    range keys = {INT32_MAX, 0};
    for (int32_t i = from; i < to; i++) {
        block b;
        look_at_block(a, s, i, &b);
        if (!b.n_seen) continue;
        keys.from = min32(keys.from, b.seen[0].from);
        keys.to = max32(keys.to, b.seen[b.n_seen - 1].to);
    }
    if (keys.from > keys.to) keys.from = keys.to;
    return keys;
}

#endif
