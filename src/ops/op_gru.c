/* GRU over packed sequences, as PyTorch defines it; k state width, d input width:
 *   [g_r g_z g_n] = x Wxᵀ + bx,   [p_r p_z p_n] = h₋ Whᵀ + bh
 *   r = σ(g_r + p_r),  z = σ(g_z + p_z),  n = tanh(g_n + r·p_n),  h = (1 − z)·n + z·h₋
 *
 * Backward in time, with dh from above plus what the next step sends:
 *   dg_n = dh·(1−z)·(1−n²),          dp_n = dg_n·r
 *   dg_r = dp_r = dg_n·p_n·r(1−r),   dg_z = dp_z = dh·(h₋ − n)·z(1−z)
 *   dh₋ = dh·z + dp Wh
 *   dWx = dgᵀ x,  dbx = Σ dg,  dWh = dpᵀ h₋,  dbh = Σ dp,  dx = dg Wx
 * dg and dp differ in their last third only, so dp is kept as two parts: (dg_r dg_z) and dp_n. As
 * for the LSTM, all products but those of dh₋ run once over all rows, in the timeline's order. */
#include "ops/ops.h"
#include "ops/expect.h"
#include "ops/product.h"
#include "ops/timeline.h"

#include <string.h>

typedef struct saved {
    qkv_timeline line;
    int64_t k;
    real *gates; /* (R, 3k): r, z, n in the timeline's order; backward turns them into dg */
    real *p_n;   /* (R, k); backward turns it into dp_n */
} saved;

enum { X, W_X, W_H, B_X, B_H, H0 }; /* the inputs */

/* The two parts of the recurrent weights: rows of r and z, rows of n. As tensors of their own, they
 * can stand in a product and have gradients. */
typedef struct parts {
    qkv_tensor *rz, *n;
} parts;

static parts split_rows(qkv_tape *t, qkv_tensor *w, int64_t k) {
    return (parts){qkv_tensor_rows(t, w, 0, 2 * k), qkv_tensor_rows(t, w, 2 * k, k)};
}

static parts split_columns(qkv_tape *t, qkv_tensor *b, int64_t k) {
    if (!b) return (parts){0};
    return (parts){qkv_tensor_columns(t, b, 0, 2 * k), qkv_tensor_columns(t, b, 2 * k, k)};
}

/* ---- backward ---- */

/* The states and their gradients, in the timeline's order. */
typedef struct states {
    real *h, *dh;   /* (R, k) */
    real *h0, *dh0; /* (n, k): before the first step */
    real *back;     /* (n, k): scratch */
} states;

/* The gates become dg, p_n becomes dp_n. dh gets what each step sends back, dh0 what the first
 * does. */
static void walk_back(qkv_tape *t, const saved *s, parts w, const states *at) {
    const int64_t k = s->k;
    qkv_gemm rz = {.n = k,
                   .k = 2 * k,
                   .lda = 3 * k,
                   .b = w.rz->data,
                   .ldb = w.rz->ld,
                   .c = at->back,
                   .ldc = k};
    qkv_gemm n = {
        .n = k, .k = k, .lda = k, .b = w.n->data, .ldb = w.n->ld, .c = at->back, .ldc = k};
    rz.accumulate = n.accumulate = true;
    rz.b_packed = qkv_product_pack(t, &qkv_op_gru, rz);
    n.b_packed = qkv_product_pack(t, &qkv_op_gru, n);
    for (int32_t step = s->line.steps; step-- > 0 && !qkv_tape_stopped(t);) {
        const int64_t row = s->line.first[step], before = step ? s->line.first[step - 1] : 0;
        real *gates = s->gates + row * 3 * k, *p_n = s->p_n + row * k,
             *to = step ? at->dh + before * k : at->dh0;
        rz.m = n.m = qkv_timeline_active(&s->line, step);
        qkv_kern_get()->gru_grad(&(qkv_gru_grad){.rows = rz.m,
                                                 .k = k,
                                                 .gates = gates,
                                                 .hn = p_n,
                                                 .h_prev = step ? at->h + before * k : at->h0,
                                                 .dh = at->dh + row * k,
                                                 .dh_prev = at->back,
                                                 .dgates = gates,
                                                 .dhn = p_n,
                                                 .ld_gates = 3 * k,
                                                 .ld_hn = k,
                                                 .ld_dgates = 3 * k,
                                                 .ld_dhn = k});
        rz.a = gates, n.a = p_n;
        qkv_product(t, &qkv_op_gru, rz);
        qkv_product(t, &qkv_op_gru, n);
        qkv_kern_get()->axpy(1, at->back, to, rz.m * k);
    }
}

/* dWh and dbh from dp, given h₋ of every row. */
static void recurrent_weights(qkv_tape *t, const saved *s, const real *h_before, parts w, parts b) {
    const int64_t rows = s->line.rows, k = s->k;
    qkv_product_grad_weights(t, &qkv_op_gru, s->p_n, (qkv_block){h_before, k, rows}, w.n, b.n);
    real *db = qkv_grad_add(t, b.rz, NULL, 0), *dw = qkv_grad_add(t, w.rz, NULL, 0);
    if (db) qkv_kern_get()->column_sums(s->gates, rows, 2 * k, 3 * k, db);
    qkv_gemm g = {.m = 2 * k,
                  .n = k,
                  .k = rows,
                  .a = s->gates,
                  .lda = 3 * k,
                  .a_trans = true,
                  .b = h_before,
                  .ldb = k};
    g.c = dw, g.ldc = w.rz->ld, g.accumulate = true;
    if (dw) qkv_product(t, &qkv_op_gru, g);
}

static void backward(qkv_tape *t, qkv_node *node) {
    const saved *s = node->saved;
    const int64_t rows = s->line.rows, k = s->k, n = s->line.n;
    qkv_tensor *const *in = node->in, *x = in[X], *y = node->out[0];
    real *h = qkv_tape_alloc(t, &qkv_op_gru, (size_t)(2 * rows * k + 3 * n * k) * sizeof(real));
    real *xt = qkv_tape_alloc(t, &qkv_op_gru, (size_t)(rows * x->cols) * sizeof(real));
    const parts w = split_rows(t, in[W_H], k), b = split_columns(t, in[B_H], k);
    if (qkv_tape_stopped(t)) return;
    const states at = {.h = h,
                       .dh = h + rows * k,
                       .h0 = h + 2 * rows * k,
                       .dh0 = h + (2 * rows + n) * k,
                       .back = h + (2 * rows + 2 * n) * k};
    qkv_timeline_gather(&s->line, y->data, y->ld, k, h);
    qkv_timeline_gather(&s->line, qkv_grad_of(t, y), y->ld, k, at.dh);
    qkv_timeline_gather_states(&s->line, in[H0], k, at.h0);
    memset(at.dh0, 0, (size_t)(n * k) * sizeof(real));
    walk_back(t, s, w, &at);
    qkv_timeline_scatter_states(t, &s->line, at.dh0, k, in[H0]);

    qkv_timeline_shift(&s->line, h, at.h0, k, at.dh); /* dh is used up: h₋ goes there */
    recurrent_weights(t, s, at.dh, w, b);
    qkv_timeline_gather(&s->line, x->data, x->ld, x->cols, xt);
    qkv_product_grad_weights(t, &qkv_op_gru, s->gates, (qkv_block){xt, x->cols, rows}, in[W_X],
                             in[B_X]);
    bool add;
    real *dx = qkv_grad_write(t, x, &add);
    if (!dx || !qkv_product_grad_input(t, &qkv_op_gru, s->gates, rows, in[W_X],
                                       (qkv_target){xt, x->cols, false}))
        return;
    qkv_timeline_scatter(&s->line, xt, x->cols, dx, x->ld, add);
}

const qkv_op qkv_op_gru = {.name = "gru", .backward = backward};

/* ---- forward ---- */

static bool arguments_fit(qkv_tape *t, const qkv_tensor *x, const qkv_tensor *w_x,
                          const qkv_tensor *w_h, const qkv_tensor *b_x, const qkv_tensor *b_h,
                          const qkv_recurrent_spec *spec) {
    const qkv_op *op = &qkv_op_gru;
    const int64_t k = w_h->cols;
    if ((spec->h_last) && t->mode != QKV_EVAL) {
        qkv_tape_fail(t, op, QKV_USAGE, "last states have no gradient: ask for them in EVAL only");
        return false;
    }
    return qkv_expect_layout(t, op, "layout", &spec->layout, x->rows, true) &&
           qkv_expect_shape(t, op, "w_x", w_x, 3 * k, x->cols) &&
           qkv_expect_shape(t, op, "w_h", w_h, 3 * k, k) &&
           (!b_x || qkv_expect_shape(t, op, "b_x", b_x, 1, 3 * k)) &&
           (!b_h || qkv_expect_shape(t, op, "b_h", b_h, 1, 3 * k)) &&
           (!spec->h0 || qkv_expect_shape(t, op, "h0", spec->h0, spec->layout.n, k));
}

/* Forward in time: gates hold x Wxᵀ + bx. h (R, k) is made in the timeline's order. packed: Wh as
 * qkv_params_pack leaves it, the rows of r and z first, then those of n; or NULL. */
static void walk(qkv_tape *t, const saved *s, parts w, const real *packed, parts b, const real *h0,
                 real *h) {
    const int64_t k = s->k;
    qkv_gemm rz = {.n = 2 * k,
                   .k = k,
                   .lda = k,
                   .b = w.rz->data,
                   .ldb = w.rz->ld,
                   .b_trans = true,
                   .ldc = 3 * k};
    qkv_gemm n = {
        .n = k, .k = k, .lda = k, .b = w.n->data, .ldb = w.n->ld, .b_trans = true, .ldc = k};
    rz.accumulate = true;
    rz.bias = b.rz ? b.rz->data : NULL, n.bias = b.n ? b.n->data : NULL;
    rz.b_packed = packed ? packed : qkv_product_pack(t, &qkv_op_gru, rz);
    n.b_packed =
        packed ? packed + qkv_kern_get()->gemm_pack_size(&rz) : qkv_product_pack(t, &qkv_op_gru, n);
    for (int32_t step = 0; step < s->line.steps && !qkv_tape_stopped(t); step++) {
        const int64_t row = s->line.first[step];
        const real *h_before = step ? h + s->line.first[step - 1] * k : h0;
        rz.m = n.m = qkv_timeline_active(&s->line, step);
        rz.a = n.a = h_before;
        rz.c = s->gates + row * 3 * k, n.c = s->p_n + row * k;
        if (!qkv_product(t, &qkv_op_gru, rz) || !qkv_product(t, &qkv_op_gru, n)) return;
        qkv_kern_get()->gru(&(qkv_gru_step){.rows = rz.m,
                                            .k = k,
                                            .gates = rz.c,
                                            .hn = n.c,
                                            .h_prev = h_before,
                                            .h = h + row * k,
                                            .ld_gates = 3 * k,
                                            .ld_hn = k});
    }
}

qkv_tensor *qkv_gru(qkv_tape *t, qkv_tensor *x, qkv_tensor *w_x, qkv_tensor *w_h, qkv_tensor *b_x,
                    qkv_tensor *b_h, const qkv_recurrent_spec *spec) {
    if (qkv_tape_stopped(t) || !arguments_fit(t, x, w_x, w_h, b_x, b_h, spec)) return &t->nothing;
    const qkv_op *op = &qkv_op_gru;
    const int64_t rows = x->rows, k = w_h->cols, n = spec->layout.n;
    qkv_tensor *y = qkv_tensor_new(t, rows, k);
    saved *s = qkv_tape_alloc(t, op, sizeof *s);
    real *kept = qkv_tape_alloc(t, op, (size_t)(4 * rows * k) * sizeof(real));
    if (!kept) return &t->nothing;
    *s = (saved){.k = k, .gates = kept, .p_n = kept + 3 * rows * k};
    if (!qkv_timeline_make(t, op, &spec->layout, rows, spec->reverse, &s->line)) return &t->nothing;

    const qkv_arena_mark mark = qkv_arena_here(&t->arena); /* what follows is not kept */
    real *xt = qkv_tape_alloc(t, op, (size_t)(rows * x->cols) * sizeof(real));
    real *h = qkv_tape_alloc(t, op, (size_t)((rows + n) * k) * sizeof(real)), *h0 = h + rows * k;
    const parts w = split_rows(t, w_h, k), b = split_columns(t, b_h, k);
    if (qkv_tape_stopped(t)) return &t->nothing;
    qkv_timeline_gather(&s->line, x->data, x->ld, x->cols, xt);
    qkv_timeline_gather_states(&s->line, spec->h0, k, h0);
    if (!qkv_product_forward(t, op, (qkv_block){xt, x->cols, rows}, w_x, b_x, s->gates))
        return &t->nothing;
    walk(t, s, w, w_h->packed, b, h0, h);
    qkv_timeline_scatter(&s->line, h, k, y->data, y->ld, false);
    if (spec->h_last)
        *spec->h_last = qkv_timeline_last(t, &s->line, h, k);
    else
        qkv_arena_rewind(&t->arena, mark);
    return qkv_tape_record(t, op, QKV_TENSORS(x, w_x, w_h, b_x, b_h, spec->h0), QKV_TENSORS(y), s);
}

/* ---- cases ---- */

enum { REVERSE = 1, STATES = 2, TWO_LAYERS = 4, NO_BIAS = 8 };

static const int32_t starts[] = {0, 2, 5, 6, 9};

static qkv_tensor *build(qkv_tape *t, qkv_check *c) {
    const int f = qkv_check_variant(c);
    const int64_t k = 3;
    qkv_recurrent_spec spec = {.layout = {.n = 4, .start = starts}, .reverse = f & REVERSE};
    qkv_tensor *x = qkv_check_input(t, c, 9, k, 0, 1), *w_x = qkv_check_input(t, c, 3 * k, k, 0, 1);
    qkv_tensor *w_h = qkv_check_input(t, c, 3 * k, k, 0, 1), *b_x = NULL, *b_h = NULL;
    if (!(f & NO_BIAS)) {
        b_x = qkv_check_input(t, c, 1, 3 * k, 0, 1);
        b_h = qkv_check_input(t, c, 1, 3 * k, 0, 1);
    }
    if (f & STATES) spec.h0 = qkv_check_input(t, c, 4, k, 0, 1);
    qkv_tensor *y = qkv_gru(t, x, w_x, w_h, b_x, b_h, &spec);
    spec.reverse = !spec.reverse;
    return f & TWO_LAYERS ? qkv_gru(t, y, w_x, w_h, b_x, b_h, &spec) : y;
}

const qkv_case qkv_cases_gru[] = {
    {"gru", build, 0},
    {"gru: reverse", build, REVERSE},
    {"gru: initial states, no bias", build, STATES | NO_BIAS},
    {"gru: reverse, initial states", build, REVERSE | STATES},
    {"gru: both directions, shared weights", build, TWO_LAYERS | STATES},
    {0}};
