/* Attention and its gradients against a dense reference in double, for every instruction set; the
 * same bits for any number of threads; a sequence alone gives the bits it has in a packed batch. */
#include "harness.h"
#include "base/mem.h"
#include "base/thread.h"
#include "kern/kern.h"

#include <math.h>
#include <stdlib.h>

/* ---- patterns ---- */

static int causal(const void *p, int32_t n_k, int32_t q0, int32_t q1, qkv_span *out) {
    (void)p, (void)q0, (void)q1;
    out[0] = qkv_span_of(0, n_k, -QKV_SPAN_ANY, 0);
    return 1;
}

static int window(const void *p, int32_t n_k, int32_t q0, int32_t q1, qkv_span *out) {
    const int32_t w = *(const int32_t *)p;
    (void)q0, (void)q1;
    out[0] = qkv_span_of(0, n_k, -w, w);
    return 1;
}

/* Six first keys, a window of 20 keys back beyond them, and a few far keys that depend on the query
 * block. */
static int mixed(const void *p, int32_t n_k, int32_t q0, int32_t q1, qkv_span *out) {
    (void)p, (void)q1;
    const int32_t first = n_k < 6 ? n_k : 6, block = q0 / QKV_QUERY_BLOCK,
                  end = (block + 1) * QKV_QUERY_BLOCK;
    int n = 0;
    out[n++] = qkv_span_of(0, first, -QKV_SPAN_ANY, QKV_SPAN_ANY);
    out[n++] = qkv_span_of(first, n_k < end ? n_k : end, -20, 0);
    for (int32_t k = end + 3; k + 2 <= n_k && n < 8; k += 30 + 7 * block)
        out[n++] = qkv_span_of(k, k + 2, -QKV_SPAN_ANY, QKV_SPAN_ANY);
    return n;
}

/* Only even-numbered blocks of queries see anything, and of those only queries beyond key 10's
 * reach. */
static int sparse(const void *p, int32_t n_k, int32_t q0, int32_t q1, qkv_span *out) {
    (void)p, (void)q1;
    if (q0 / QKV_QUERY_BLOCK % 2) return 0;
    out[0] = qkv_span_of(n_k < 2 ? n_k : 2, n_k < 10 ? n_k : 10, 1, QKV_SPAN_ANY);
    return 1;
}

/* ---- cases ---- */

typedef struct shape {
    const char *name;
    int32_t heads, kv_heads, d_head, d_value;
    qkv_spans_fn spans;
    int32_t pattern;
    int32_t n, q_len[5], k_len[5]; /* k_len[0] = 0: as q_len */
    int32_t q_pos[5];
    qkv_relation_kind relation;
    int32_t relations, zero;
    bool bias, rel_k, rel_v;
    float dropout;
} shape;

/* clang-format off */
static const shape shapes[] = {
    {"full", 3, 3, 16, 16, NULL, 0, 3, .q_len = {70, 33, 1}},
    {"full, many keys", 1, 1, 16, 16, NULL, 0, 1, .q_len = {1300}},
    {"causal", 2, 2, 32, 32, causal, 0, 3, .q_len = {130, 64, 257}},
    {"causal, long", 1, 1, 48, 48, causal, 0, 1, .q_len = {1100}},
    {"window", 2, 2, 16, 16, window, 9, 2, .q_len = {200, 15}},
    {"window, long", 8, 8, 4, 5, window, 9, 2, .q_len = {1090, 70}, .dropout = 0.2f},
    {"spans", 2, 2, 24, 24, mixed, 0, 2, .q_len = {300, 61}},
    {"rows that see nothing", 2, 2, 16, 16, sparse, 0, 2, .q_len = {150, 5}},
    {"no keys", 2, 1, 8, 8, NULL, 0, 3, .q_len = {5, 4, 3}, .k_len = {0, 7, 0}},
    {"cross", 2, 2, 64, 64, NULL, 0, 3, .q_len = {7, 90, 65}, .k_len = {120, 3, 64}},
    {"grouped keys", 6, 2, 16, 16, causal, 0, 2, .q_len = {100, 40}},
    {"unequal widths", 2, 1, 24, 40, causal, 0, 2, .q_len = {80, 30}},
    {"odd widths", 2, 2, 5, 11, NULL, 0, 2, .q_len = {37, 66}},
    {"wide heads", 2, 2, 192, 192, causal, 0, 1, .q_len = {97}},
    {"one new token, grouped", 4, 2, 20, 12, mixed, 0, 3, .q_len = {1, 2, 4},
     .k_len = {300, 1, 67}, .q_pos = {299, 0, 64}},
    {"one new token, relative", 2, 2, 40, 72, causal, 0, 2, .q_len = {1, 2}, .k_len = {600, 9},
     .q_pos = {599, 7}, .relation = QKV_REL_DISTANCE, .relations = 9, .zero = 4, .bias = true,
     .rel_k = true, .rel_v = true},
    {"one new token", 4, 2, 64, 64, causal, 0, 3, .q_len = {1, 1, 3}, .k_len = {200, 1, 67},
     .q_pos = {199, 0, 64}},
    {"one new token, many heads", 40, 20, 8, 24, causal, 0, 5, .q_len = {1, 1, 2, 1, 4},
     .k_len = {700, 1, 130, 5, 4}, .q_pos = {699, 0, 128, 4, 0}},
    {"positions in mid-block", 2, 2, 16, 16, mixed, 0, 2, .q_len = {100, 7}, .k_len = {170, 90},
     .q_pos = {50, 63}},
    {"distance bias", 4, 4, 16, 16, causal, 0, 2, .q_len = {150, 20}, .relation = QKV_REL_DISTANCE,
     .relations = 33, .zero = 30, .bias = true},
    {"distance bias, long", 1, 1, 16, 16, NULL, 0, 1, .q_len = {700}, .relation = QKV_REL_DISTANCE,
     .relations = 1401, .zero = 700, .bias = true},
    {"matrix bias", 2, 2, 16, 16, NULL, 0, 2, .q_len = {90, 31}, .relation = QKV_REL_MATRIX,
     .relations = 12, .bias = true},
    {"relative keys", 2, 2, 16, 16, causal, 0, 2, .q_len = {90, 31}, .relation = QKV_REL_DISTANCE,
     .relations = 17, .zero = 8, .rel_k = true},
    {"relative values", 2, 2, 16, 16, NULL, 0, 2, .q_len = {90, 31}, .relation = QKV_REL_DISTANCE,
     .relations = 17, .zero = 8, .rel_v = true},
    {"relative, all", 4, 2, 16, 24, window, 30, 2, .q_len = {90, 131}, .relation = QKV_REL_MATRIX,
     .relations = 9, .bias = true, .rel_k = true, .rel_v = true},
    {"dropout", 2, 2, 16, 16, causal, 0, 2, .q_len = {150, 31}, .dropout = 0.3f},
    {"everything", 4, 2, 20, 12, mixed, 0, 3, .q_len = {140, 31, 70}, .relation = QKV_REL_DISTANCE,
     .relations = 25, .zero = 12, .bias = true, .rel_k = true, .rel_v = true, .dropout = 0.2f},
};
/* clang-format on */
#define N_SHAPES (sizeof shapes / sizeof *shapes)

/* A problem with its inputs and one set of outputs. */
typedef struct problem {
    const shape *shape;
    int32_t q_start[6], k_start[6];
    int64_t matrix_start[5];
    qkv_attention a;
    qkv_attention_grad g;
    int64_t rq, rk, n_rel_k, n_rel_v, n_bias;
    real *block; /* everything of reals */
    uint8_t *matrix;
    int64_t n_out; /* reals from `out` on: out, lse, dq, dk, dv, dbias, drel_k, drel_v */
} problem;

static int32_t key_len(const shape *s, int32_t i) {
    return s->k_len[0] || s->k_len[1] ? s->k_len[i] : s->q_len[i];
}

/* Every shape in fp32, then every shape in bf16. */
#define N_PROBLEMS (2 * N_SHAPES)

static void problem_make(problem *p, size_t index) {
    const shape *s = &shapes[index % N_SHAPES];
    *p = (problem){.shape = s};
    int64_t cells = 0;
    for (int32_t i = 0; i < s->n; i++) {
        p->q_start[i + 1] = p->q_start[i] + s->q_len[i];
        p->k_start[i + 1] = p->k_start[i] + key_len(s, i);
        p->matrix_start[i] = cells;
        cells += (int64_t)s->q_len[i] * key_len(s, i);
    }
    p->rq = p->q_start[s->n], p->rk = p->k_start[s->n];
    /* rows are wider than needed, as views of one projection are */
    const int64_t wq = (int64_t)s->heads * s->d_head + 3, wk = (int64_t)s->kv_heads * s->d_head + 1;
    const int64_t wv = (int64_t)s->kv_heads * s->d_value + 2,
                  wo = (int64_t)s->heads * s->d_value + 5;
    p->n_bias = (int64_t)s->heads * s->relations;
    p->n_rel_k = (int64_t)s->relations * s->d_head;
    p->n_rel_v = (int64_t)s->relations * s->d_value;
    const int64_t inputs =
        p->rq * (wq + wo) + p->rk * (wk + wv) + p->n_bias + p->n_rel_k + p->n_rel_v;
    p->n_out =
        p->rq * (wo + s->heads + wq) + p->rk * (wk + wv) + p->n_bias + p->n_rel_k + p->n_rel_v;
    p->block = qkv_alloc((size_t)(inputs + p->n_out) * sizeof(real));
    p->matrix = qkv_alloc((size_t)cells + 1);
    assert_true(p->block && p->matrix);
    fill(p->block, inputs, 11);
    for (int64_t i = 0; i < cells; i++)
        p->matrix[i] = (uint8_t)(qkv_rng_u32((qkv_rng){5, 5}, (uint64_t)i) %
                                 (uint32_t)(s->relations ? s->relations : 1));
    real *x = p->block;
    qkv_attention *a = &p->a;
    *a = (qkv_attention){
        .heads = s->heads,
        .kv_heads = s->kv_heads,
        .d_head = s->d_head,
        .d_value = s->d_value,
        .scale = (real)(1.5 / sqrt((double)s->d_head)),
        .q_layout = {.n = s->n, .start = p->q_start},
        .k_layout = {.n = s->n, .start = p->k_start},
        .q_pos = s->q_pos,
        .spans = s->spans,
        .pattern = &s->pattern,
        .ldq = wq,
        .ldk = wk,
        .ldv = wv,
        .ldo = wo,
        .relation = {s->relation, s->relations, s->zero, p->matrix, p->matrix_start},
        .dropout = s->dropout,
        .rng = {7, 9},
        .precision = index < N_SHAPES ? QKV_F32 : QKV_BF16,
    };
    a->q = x, x += p->rq * wq;
    a->k = x, x += p->rk * wk;
    a->v = x, x += p->rk * wv;
    p->g.dout = x, x += p->rq * wo;
    const real *bias = x, *rel_k = bias + p->n_bias, *rel_v = rel_k + p->n_rel_k;
    x += p->n_bias + p->n_rel_k + p->n_rel_v;
    a->bias = s->bias ? bias : NULL, a->rel_k = s->rel_k ? rel_k : NULL,
    a->rel_v = s->rel_v ? rel_v : NULL;
    a->out = x, x += p->rq * wo;
    a->lse = x, x += p->rq * s->heads;
    p->g.dq = x, x += p->rq * wq;
    p->g.dk = x, x += p->rk * wk;
    p->g.dv = x, x += p->rk * wv;
    p->g.dbias = s->bias ? x : NULL, x += p->n_bias;
    p->g.drel_k = s->rel_k ? x : NULL, x += p->n_rel_k;
    p->g.drel_v = s->rel_v ? x : NULL;
    p->g.lddq = wq, p->g.lddk = wk, p->g.lddv = wv, p->g.lddo = wo;
}

static void problem_free(problem *p) {
    qkv_free(p->block);
    qkv_free(p->matrix);
}

/* Outputs are filled with one value, so that elements that must stay alone are seen to. */
static void run(problem *p, const qkv_kern *k) {
    for (int64_t i = 0; i < p->n_out; i++) p->a.out[i] = (real)0.25;
    assert_true(k->attention(&p->a));
    assert_true(k->attention_grad(&p->a, &p->g));
}

/* ---- the reference: dense, in double ---- */

static int32_t relation_of(const qkv_attention *a, int32_t s, int32_t i, int32_t j) {
    const qkv_relation *r = &a->relation;
    if (r->kind == QKV_REL_MATRIX)
        return r->matrix[r->matrix_start[s] + (int64_t)i * qkv_layout_len(&a->k_layout, s) + j];
    const int32_t d = j - (i + (a->q_pos ? a->q_pos[s] : 0)) + r->zero;
    return d < 0 ? 0 : d >= r->n ? r->n - 1 : d;
}

static double dot(const real *x, const real *y, int32_t n) {
    double sum = 0;
    for (int32_t i = 0; i < n; i++) sum += (double)x[i] * (double)y[i];
    return sum;
}

static void axpy(double a, const real *x, double *y, int32_t n) {
    for (int32_t i = 0; i < n; i++) y[i] += a * (double)x[i];
}

/* seen[j] for the keys of query i */
static void look(const qkv_attention *a, int32_t s, int32_t i, bool *seen) {
    const int32_t n_k = qkv_layout_len(&a->k_layout, s), pos = (a->q_pos ? a->q_pos[s] : 0) + i;
    qkv_span spans[QKV_SPANS_MAX] = {qkv_span_of(0, n_k, -QKV_SPAN_ANY, QKV_SPAN_ANY)};
    const int32_t q0 = pos / QKV_QUERY_BLOCK * QKV_QUERY_BLOCK;
    const int n = a->spans ? a->spans(a->pattern, n_k, q0, q0 + QKV_QUERY_BLOCK, spans) : 1;
    memset(seen, 0, (size_t)n_k * sizeof *seen);
    for (int k = 0; k < n; k++)
        for (int32_t j = spans[k].k0; j < spans[k].k1; j++)
            if (pos >= spans[k].q0 && pos < spans[k].q1 && j >= pos + spans[k].lo &&
                j <= pos + spans[k].hi)
                seen[j] = true;
}

/* The gradients of the reference, one array per tensor, laid out as the kernel's. */
typedef struct wanted {
    double *out, *lse, *dq, *dk, *dv, *dbias, *drel_k, *drel_v, *block;
    double *p, *dp, *factor; /* one row */
    bool *seen;
} wanted;

static void reference_row(const problem *pr, wanted *w, int32_t s, int32_t h, int32_t i) {
    const qkv_attention *a = &pr->a;
    const int32_t n_k = qkv_layout_len(&a->k_layout, s), kv = h / (a->heads / a->kv_heads);
    const int64_t row = a->q_layout.start[s] + i, key0 = a->k_layout.start[s];
    const real *q = a->q + row * a->ldq + h * a->d_head,
               *dout = pr->g.dout + row * pr->g.lddo + h * a->d_value;
    double top = -INFINITY, sum = 0, inner = 0;
    look(a, s, i, w->seen);
    for (int32_t j = 0; j < n_k; j++) {
        const int32_t r = a->relation.n ? relation_of(a, s, i, j) : 0;
        w->p[j] = (double)a->scale * dot(q, a->k + (key0 + j) * a->ldk + kv * a->d_head, a->d_head);
        if (a->bias) w->p[j] += (double)a->bias[h * a->relation.n + r];
        if (a->rel_k) w->p[j] += dot(q, a->rel_k + r * a->d_head, a->d_head);
        if (w->seen[j]) top = fmax(top, w->p[j]);
    }
    for (int32_t j = 0; j < n_k; j++) sum += w->p[j] = w->seen[j] ? exp(w->p[j] - top) : 0;
    w->lse[row * a->heads + h] =
        sum > 0 ? (top + log(sum)) / log(2) : NAN; /* nobody looks at it there */
    for (int32_t j = 0; j < n_k && sum > 0; j++) {
        const int32_t r = a->relation.n ? relation_of(a, s, i, j) : 0;
        const uint32_t half = qkv_attention_drop_bits(a->rng, row, h, j);
        const double least = floor((double)a->dropout * 65536 + 0.5);
        w->factor[j] = (double)half < least ? 0 : 65536 / (65536 - least);
        w->p[j] /= sum;
        const double kept = w->p[j] * w->factor[j];
        const real *v = a->v + (key0 + j) * a->ldv + kv * a->d_value;
        axpy(kept, v, w->out + row * a->ldo + h * a->d_value, a->d_value);
        axpy(kept, dout, w->dv + (key0 + j) * pr->g.lddv + kv * a->d_value, a->d_value);
        w->dp[j] = dot(dout, v, a->d_value);
        if (a->rel_v) {
            axpy(kept, a->rel_v + r * a->d_value, w->out + row * a->ldo + h * a->d_value,
                 a->d_value);
            axpy(kept, dout, w->drel_v + r * a->d_value, a->d_value);
            w->dp[j] += dot(dout, a->rel_v + r * a->d_value, a->d_value);
        }
        w->dp[j] *= w->factor[j];
        inner += w->p[j] * w->dp[j];
    }
    for (int32_t j = 0; j < n_k && sum > 0; j++) {
        const int32_t r = a->relation.n ? relation_of(a, s, i, j) : 0;
        const double ds = w->p[j] * (w->dp[j] - inner);
        double *dq = w->dq + row * pr->g.lddq + h * a->d_head;
        axpy((double)a->scale * ds, a->k + (key0 + j) * a->ldk + kv * a->d_head, dq, a->d_head);
        axpy((double)a->scale * ds, q, w->dk + (key0 + j) * pr->g.lddk + kv * a->d_head, a->d_head);
        if (a->bias) w->dbias[h * a->relation.n + r] += ds;
        if (a->rel_k) {
            axpy(ds, a->rel_k + r * a->d_head, dq, a->d_head);
            axpy(ds, q, w->drel_k + r * a->d_head, a->d_head);
        }
    }
}

/* Where the kernel writes, 0; where it must not, or only adds to, the filling. */
static void clear_heads(double *x, int64_t rows, int64_t ld, int64_t width) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < width; c++) x[r * ld + c] = 0;
}

static void reference(const problem *p, wanted *w) {
    const qkv_attention *a = &p->a;
    int32_t most = 1;
    for (int32_t s = 0; s < a->k_layout.n; s++)
        if (qkv_layout_len(&a->k_layout, s) > most) most = qkv_layout_len(&a->k_layout, s);
    w->block = qkv_alloc((size_t)(p->n_out + 4 * most) * sizeof(double));
    assert_non_null(w->block);
    for (int64_t i = 0; i < p->n_out; i++) w->block[i] = 0.25;
    w->out = w->block, w->lse = w->out + p->rq * a->ldo, w->dq = w->lse + p->rq * a->heads;
    w->dk = w->dq + p->rq * a->ldq, w->dv = w->dk + p->rk * a->ldk,
    w->dbias = w->dv + p->rk * a->ldv;
    w->drel_k = w->dbias + p->n_bias, w->drel_v = w->drel_k + p->n_rel_k;
    w->p = w->block + p->n_out, w->dp = w->p + most, w->factor = w->dp + most;
    w->seen = (bool *)(w->factor + most);
    clear_heads(w->out, p->rq, a->ldo, (int64_t)a->heads * a->d_value);
    clear_heads(w->dq, p->rq, a->ldq, (int64_t)a->heads * a->d_head);
    clear_heads(w->dk, p->rk, a->ldk, (int64_t)a->kv_heads * a->d_head);
    clear_heads(w->dv, p->rk, a->ldv, (int64_t)a->kv_heads * a->d_value);
    for (int32_t s = 0; s < a->q_layout.n; s++)
        for (int32_t h = 0; h < a->heads; h++)
            for (int32_t i = 0; i < qkv_layout_len(&a->q_layout, s); i++)
                reference_row(p, w, s, h, i);
}

/* bf16 has 8 bits: an operand is off by 2⁻⁹ at most,
 * and a gradient has been through three products. */
static void compare(const problem *p, const char *set, const char *what, const real *got,
                    const double *want, int64_t n) {
    const double allowed = p->a.precision == QKV_F32 ? 2e-6 : 1e-2;
    double largest = 1, worst = 0;
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++)
        if (fabs(want[i]) > largest) largest = fabs(want[i]);
    for (int64_t i = 0; i < n; i++) {
        const double error = isnan(want[i]) ? 0 : fabs((double)got[i] - want[i]);
        if (!(error <= worst)) worst = error, at = i;
    }
    if (!(worst <= allowed * largest))
        fail_msg("%s, %s, %s: %s[%lld] is %.9g, wanted %.9g", set, p->shape->name,
                 p->a.precision == QKV_F32 ? "fp32" : "bf16", what, (long long)at, (double)got[at],
                 want[at]);
}

static void matches_reference(void **state) {
    (void)state;
    const qkv_kern *const *sets;
    const size_t n_sets = qkv_kern_list(&sets);
    for (size_t i = 0; i < N_PROBLEMS; i++) {
        problem p;
        wanted w;
        problem_make(&p, i);
        reference(&p, &w);
        for (size_t k = 0; k < n_sets; k++) {
            const char *set = sets[k]->name;
            run(&p, sets[k]);
            compare(&p, set, "out", p.a.out, w.out, p.rq * p.a.ldo);
            compare(&p, set, "lse", p.a.lse, w.lse, p.rq * p.a.heads);
            compare(&p, set, "dq", p.g.dq, w.dq, p.rq * p.a.ldq);
            compare(&p, set, "dk", p.g.dk, w.dk, p.rk * p.a.ldk);
            compare(&p, set, "dv", p.g.dv, w.dv, p.rk * p.a.ldv);
            if (p.g.dbias) compare(&p, set, "dbias", p.g.dbias, w.dbias, p.n_bias);
            if (p.g.drel_k) compare(&p, set, "drel_k", p.g.drel_k, w.drel_k, p.n_rel_k);
            if (p.g.drel_v) compare(&p, set, "drel_v", p.g.drel_v, w.drel_v, p.n_rel_v);
        }
        qkv_free(w.block);
        problem_free(&p);
    }
}

/* ---- bits ---- */

static void same_bits_for_any_threads(void **state) {
    (void)state;
    static const int threads[] = {2, 3, 8};
    for (size_t i = 0; i < N_PROBLEMS; i++) {
        problem p;
        problem_make(&p, i);
        real *one = qkv_alloc((size_t)p.n_out * sizeof *one);
        assert_non_null(one);
        qkv_threads_set(1);
        run(&p, qkv_kern_get());
        memcpy(one, p.a.out, (size_t)p.n_out * sizeof *one);
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
            qkv_threads_set(threads[t]);
            run(&p, qkv_kern_get());
            assert_same_bits(p.shape->name, p.a.out, one, p.n_out);
        }
        qkv_threads_set(0);
        qkv_free(one);
        problem_free(&p);
    }
}

static void packed_equals_alone(void **state) {
    (void)state;
    const qkv_kern *k = qkv_kern_get();
    for (size_t i = 0; i < N_PROBLEMS; i++) {
        if (shapes[i % N_SHAPES].dropout > 0) continue; /* its counters are the batch's rows' */
        problem p;
        problem_make(&p, i);
        run(&p, k);
        for (int32_t s = 0; s < p.shape->n; s++) {
            const int32_t q_start[2] = {0, p.shape->q_len[s]},
                          k_start[2] = {0, key_len(p.shape, s)};
            qkv_attention a = p.a;
            qkv_attention_grad g = p.g;
            const int64_t q0 = p.q_start[s], k0 = p.k_start[s], nq = q_start[1], nk = k_start[1];
            real *mine = qkv_alloc(
                (size_t)(nq * (a.ldo + a.heads + a.ldq) + nk * (a.ldk + a.ldv) + 1) * sizeof *mine);
            assert_non_null(mine);
            for (int64_t e = 0; e < nq * (a.ldo + a.heads + a.ldq) + nk * (a.ldk + a.ldv); e++)
                mine[e] = (real)0.25;
            a.q_layout = (qkv_layout){.n = 1, .start = q_start},
            a.k_layout = (qkv_layout){.n = 1, .start = k_start};
            a.q_pos = p.a.q_pos + s, a.relation.matrix_start = p.a.relation.matrix_start + s;
            a.q += q0 * a.ldq, a.k += k0 * a.ldk, a.v += k0 * a.ldv, g.dout += q0 * g.lddo;
            a.out = mine, a.lse = a.out + nq * a.ldo;
            g.dq = a.lse + nq * a.heads, g.dk = g.dq + nq * a.ldq, g.dv = g.dk + nk * a.ldk;
            assert_true(k->attention(&a) && k->attention_grad(&a, &g));
            assert_same_bits(p.shape->name, a.out, p.a.out + q0 * a.ldo, nq * a.ldo);
            assert_same_bits(p.shape->name, g.dq, p.g.dq + q0 * a.ldq, nq * a.ldq);
            assert_same_bits(p.shape->name, g.dk, p.g.dk + k0 * a.ldk, nk * a.ldk);
            assert_same_bits(p.shape->name, g.dv, p.g.dv + k0 * a.ldv, nk * a.ldv);
            qkv_free(mine);
        }
        problem_free(&p);
    }
}

/* Keys and values in another order, and a list of where each is. */
static void rows_may_lie_anyhow(void **state) {
    (void)state;
    const qkv_kern *const *sets;
    const size_t n_sets = qkv_kern_list(&sets);
    for (size_t i = 0; i < N_PROBLEMS; i++)
        for (size_t k = 0; k < n_sets; k++) {
            problem p;
            problem_make(&p, i);
            qkv_attention a = p.a;
            const int64_t n_out = p.rq * a.ldo;
            real *out = qkv_alloc((size_t)n_out * sizeof *out);
            real *keys = qkv_alloc((size_t)(p.rk * a.ldk + 1) * sizeof *keys);
            real *values = qkv_alloc((size_t)(p.rk * a.ldv + 1) * sizeof *values);
            int32_t *rows = qkv_alloc((size_t)(p.rk + 1) * sizeof *rows), len[5];
            assert_true(out && keys && values && rows);
            for (int64_t r = 0; r < n_out; r++) out[r] = p.a.out[r] = (real)0.25;
            for (int64_t r = 0; r < p.rk; r++) {
                rows[r] =
                    (int32_t)((r * 7919 + 3) % p.rk); /* a prime that no p.rk is a multiple of */
                memcpy(keys + rows[r] * a.ldk, a.k + r * a.ldk, (size_t)a.ldk * sizeof *keys);
                memcpy(values + rows[r] * a.ldv, a.v + r * a.ldv, (size_t)a.ldv * sizeof *values);
            }
            for (int32_t s = 0; s < p.shape->n; s++) len[s] = key_len(p.shape, s);
            assert_true(sets[k]->attention(&p.a));
            a.k = keys, a.v = values, a.out = out;
            a.k_layout.len = len, a.k_layout.rows = rows;
            assert_true(sets[k]->attention(&a));
            assert_same_bits(p.shape->name, out, p.a.out, n_out);
            qkv_free(out);
            qkv_free(keys);
            qkv_free(values);
            qkv_free(rows);
            problem_free(&p);
        }
}

/* Scratch memory holds what another kernel left there:
 * bits of integers, for example, that are anything as reals. */
static void what_memory_held_does_not_matter(void **state) {
    (void)state;
    const qkv_kern *const *sets;
    const size_t n_sets = qkv_kern_list(&sets);
    qkv_threads_set(1);
    for (size_t i = 0; i < N_PROBLEMS; i++)
        for (size_t k = 0; k < n_sets; k++) {
            problem p;
            problem_make(&p, i);
            real *clean = qkv_alloc((size_t)p.n_out * sizeof *clean);
            assert_non_null(clean);
            for (int held = 0; held <= 0x7f; held += 0x7f) {
                const size_t bytes = 1 << 21;
                for (int slot = 0; slot < QKV_SCRATCH_SLOTS; slot++) {
                    void *memory = qkv_kern_scratch(slot, bytes);
                    assert_non_null(memory);
                    memset(memory, held, bytes);
                }
                run(&p, sets[k]);
                if (held)
                    assert_same_bits(p.shape->name, p.a.out, clean, p.n_out);
                else
                    memcpy(clean, p.a.out, (size_t)p.n_out * sizeof *clean);
            }
            qkv_free(clean);
            problem_free(&p);
        }
    qkv_threads_set(0);
    qkv_kern_scratch_free();
}

/* Gradients that nobody asks for may be left out, and the others keep their bits. */
static void gradients_are_optional(void **state) {
    (void)state;
    const qkv_kern *k = qkv_kern_get();
    problem p;
    problem_make(&p, N_SHAPES - 1);
    run(&p, k);
    real *all = qkv_alloc((size_t)p.n_out * sizeof *all);
    assert_non_null(all);
    memcpy(all, p.a.out, (size_t)p.n_out * sizeof *all);
    for (int which = 0; which < 3; which++) {
        qkv_attention_grad g = {.dout = p.g.dout,
                                .lddq = p.g.lddq,
                                .lddk = p.g.lddk,
                                .lddv = p.g.lddv,
                                .lddo = p.g.lddo};
        real *const dst[3] = {p.g.dq, p.g.dk, p.g.dv};
        const int64_t count[3] = {p.rq * p.a.ldq, p.rk * p.a.ldk, p.rk * p.a.ldv};
        for (int64_t i = 0; i < count[which]; i++) dst[which][i] = (real)0.25;
        *(which == 0 ? &g.dq : which == 1 ? &g.dk : &g.dv) = dst[which];
        assert_true(k->attention_grad(&p.a, &g));
        assert_same_bits("alone", dst[which], all + (dst[which] - p.a.out), count[which]);
    }
    qkv_free(all);
    problem_free(&p);
}

static void assert_same_rows(const char *what, const real *x, const real *y, int64_t rows,
                             int64_t ld, int64_t width) {
    for (int64_t r = 0; r < rows; r++) assert_same_bits(what, x + r * ld, y + r * ld, width);
}

/* Gradients may be written over q, k and v. */
static void gradients_over_inputs(void **state) {
    (void)state;
    const qkv_kern *const *sets;
    const size_t n_sets = qkv_kern_list(&sets);
    for (size_t i = 0; i < N_PROBLEMS * n_sets; i++) {
        const qkv_kern *k = sets[i / N_PROBLEMS];
        problem p;
        problem_make(&p, i % N_PROBLEMS);
        run(&p, k);
        qkv_attention_grad over = p.g;
        over.dq = (real *)p.a.q, over.dk = (real *)p.a.k, over.dv = (real *)p.a.v;
        over.dbias = over.drel_k = over.drel_v = NULL;
        assert_true(k->attention_grad(&p.a, &over));
        const shape *s = p.shape;
        assert_same_rows(s->name, over.dq, p.g.dq, p.rq, p.a.ldq, (int64_t)s->heads * s->d_head);
        assert_same_rows(s->name, over.dk, p.g.dk, p.rk, p.a.ldk, (int64_t)s->kv_heads * s->d_head);
        assert_same_rows(s->name, over.dv, p.g.dv, p.rk, p.a.ldv,
                         (int64_t)s->kv_heads * s->d_value);
        problem_free(&p);
    }
}

static void memory_that_runs_out_is_reported(void **state) {
    (void)state;
    problem p;
    problem_make(&p, 0);
    qkv_kern_scratch_free();
    qkv_mem_fail(1, true);
    assert_false(qkv_kern_get()->attention(&p.a));
    qkv_mem_fail(0, false);
    assert_true(qkv_kern_get()->attention(&p.a));
    qkv_kern_scratch_free();
    qkv_mem_fail(1, true);
    assert_false(qkv_kern_get()->attention_grad(&p.a, &p.g));
    qkv_mem_fail(0, false);
    problem_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_reference),
        cmocka_unit_test(same_bits_for_any_threads),
        cmocka_unit_test(packed_equals_alone),
        cmocka_unit_test(rows_may_lie_anyhow),
        cmocka_unit_test(what_memory_held_does_not_matter),
        cmocka_unit_test(gradients_are_optional),
        cmocka_unit_test(gradients_over_inputs),
        cmocka_unit_test(memory_that_runs_out_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
