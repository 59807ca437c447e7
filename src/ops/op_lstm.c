/* LSTM over packed sequences; k state width, d input width, σ by element:
 *   [γ_f γ_u γ_o γ_c] = x Wxᵀ + a₋ Whᵀ + b,  f, u, o = σ(γ_f, γ_u, γ_o),  c̃ = tanh γ_c
 *   c = f·c₋ + u·c̃,  a = o·tanh c
 *
 * Backward in time, with da from above plus what the next step sends, and dc likewise:
 *   dc += da·o·(1 − tanh²c),   dγ_o = da·tanh c·o(1−o),   dγ_c = dc·u·(1−c̃²)
 *   dγ_u = dc·c̃·u(1−u),   dγ_f = dc·c₋·f(1−f),   dc₋ = dc·f,   da₋ = dγ Wh
 *   dWx = dγᵀ x,  dWh = dγᵀ a₋,  db = Σ dγ,  dx = dγ Wx
 * Only da₋ is a chain of small products. x Wxᵀ, dWx, dWh and dx are one product each over all rows,
 * in the timeline's order. Kept: the gates (dγ takes their place) and c; a is the output. */
#include "ops/ops.h"
#include "ops/expect.h"
#include "ops/product.h"
#include "ops/timeline.h"

#include <string.h>

typedef struct saved {
    qkv_timeline line;
    int64_t k;
    real *gates; /* (R, 4k), the timeline's order, as c */
    real *c;     /* (R, k) */
    real *c0;    /* (n, k) */
} saved;

enum { X, W_X, W_H, B, H0, C0 }; /* the inputs */

/* The product of one time step with the recurrent weights: dst (m, n) += src (m, k)·op(Wh). */
static qkv_gemm step_product(const qkv_tensor *w_h, bool forward) {
    qkv_gemm g = {.b = w_h->data, .ldb = w_h->ld, .b_trans = forward, .accumulate = true};
    g.k = g.lda = forward ? w_h->cols : w_h->rows;
    g.n = g.ldc = forward ? w_h->rows : w_h->cols;
    return g;
}

/* Backward through time: the gates become their gradients. da (R, k) gets what each step sends
 * back; da0, dc (n, k). */
static void walk_back(qkv_tape *t, const saved *s, const qkv_tensor *w_h, real *da, real *da0,
                      real *dc) {
    const int64_t k = s->k;
    qkv_gemm g = step_product(w_h, false);
    if (!(g.b_packed = qkv_product_pack(t, &qkv_op_lstm, g))) return;
    for (int32_t step = s->line.steps; step-- > 0;) {
        const int64_t row = s->line.first[step], before = step ? s->line.first[step - 1] : 0;
        real *gates = s->gates + row * 4 * k;
        g.m = qkv_timeline_active(&s->line, step);
        qkv_kern_get()->lstm_grad(&(qkv_lstm_grad){.rows = g.m,
                                                   .k = k,
                                                   .gates = gates,
                                                   .c_prev = step ? s->c + before * k : s->c0,
                                                   .c = s->c + row * k,
                                                   .da = da + row * k,
                                                   .dc = dc,
                                                   .dgates = gates,
                                                   .ld_gates = 4 * k,
                                                   .ld_dgates = 4 * k});
        g.a = gates;
        g.c = step ? da + before * k : da0;
        qkv_product(t, &qkv_op_lstm, g);
    }
}

static void backward(qkv_tape *t, qkv_node *node) {
    const saved *s = node->saved;
    const int64_t rows = s->line.rows, k = s->k, n = s->line.n;
    qkv_tensor *const *in = node->in, *x = in[X], *y = node->out[0];
    real *a = qkv_tape_alloc(t, &qkv_op_lstm, (size_t)(2 * rows * k + 3 * n * k) * sizeof(real));
    real *xt = qkv_tape_alloc(t, &qkv_op_lstm, (size_t)(rows * x->cols) * sizeof(real));
    if (!xt) return;
    real *da = a + rows * k, *a0 = da + rows * k, *da0 = a0 + n * k, *dc = da0 + n * k;
    qkv_timeline_gather(&s->line, qkv_grad_of(t, y), y->ld, k, da);
    memset(da0, 0, (size_t)(2 * n * k) * sizeof(real));
    walk_back(t, s, in[W_H], da, da0, dc);
    if (qkv_tape_stopped(t)) return;
    qkv_timeline_scatter_states(t, &s->line, da0, k, in[H0]);
    qkv_timeline_scatter_states(t, &s->line, dc, k, in[C0]);

    qkv_timeline_gather_states(&s->line, in[H0], k, a0);
    qkv_timeline_gather(&s->line, y->data, y->ld, k, a);
    qkv_timeline_shift(&s->line, a, a0, k, da); /* da is used up: a₋ goes there */
    qkv_product_grad_weights(t, &qkv_op_lstm, s->gates, (qkv_block){da, k, rows}, in[W_H], NULL);
    qkv_timeline_gather(&s->line, x->data, x->ld, x->cols, xt);
    qkv_product_grad_weights(t, &qkv_op_lstm, s->gates, (qkv_block){xt, x->cols, rows}, in[W_X],
                             in[B]);
    bool add;
    real *dx = qkv_grad_write(t, x, &add);
    if (!dx || !qkv_product_grad_input(t, &qkv_op_lstm, s->gates, rows, in[W_X],
                                       (qkv_target){xt, x->cols, false}))
        return;
    qkv_timeline_scatter(&s->line, xt, x->cols, dx, x->ld, add);
}

const qkv_op qkv_op_lstm = {.name = "lstm", .backward = backward};

static bool arguments_fit(qkv_tape *t, const qkv_tensor *x, const qkv_tensor *w_x,
                          const qkv_tensor *w_h, const qkv_tensor *b,
                          const qkv_recurrent_spec *spec) {
    const qkv_op *op = &qkv_op_lstm;
    const int64_t k = w_h->cols;
    if ((spec->h_last || spec->c_last) && t->mode != QKV_EVAL) {
        qkv_tape_fail(t, op, QKV_USAGE, "last states have no gradient: ask for them in EVAL only");
        return false;
    }
    return qkv_expect_layout(t, op, "layout", &spec->layout, x->rows, true) &&
           qkv_expect_shape(t, op, "w_x", w_x, 4 * k, x->cols) &&
           qkv_expect_shape(t, op, "w_h", w_h, 4 * k, k) &&
           (!b || qkv_expect_shape(t, op, "b", b, 1, 4 * k)) &&
           (!spec->h0 || qkv_expect_shape(t, op, "h0", spec->h0, spec->layout.n, k)) &&
           (!spec->c0 || qkv_expect_shape(t, op, "c0", spec->c0, spec->layout.n, k));
}

/* Forward in time: gates hold x Wxᵀ + b. a (R, k) is made in the timeline's order. */
static void walk(qkv_tape *t, const saved *s, const qkv_tensor *w_h, const real *a0, real *a) {
    const int64_t k = s->k;
    qkv_gemm g = step_product(w_h, true);
    g.b_packed = w_h->packed ? w_h->packed : qkv_product_pack(t, &qkv_op_lstm, g);
    if (!g.b_packed) return;
    for (int32_t step = 0; step < s->line.steps; step++) {
        const int64_t row = s->line.first[step], before = step ? s->line.first[step - 1] : 0;
        g.m = qkv_timeline_active(&s->line, step);
        g.a = step ? a + before * k : a0;
        g.c = s->gates + row * 4 * k;
        if (!qkv_product(t, &qkv_op_lstm, g)) return;
        qkv_kern_get()->lstm(g.c, step ? s->c + before * k : s->c0, s->c + row * k, a + row * k,
                             g.m, k, 4 * k);
    }
}

qkv_tensor *qkv_lstm(qkv_tape *t, qkv_tensor *x, qkv_tensor *w_x, qkv_tensor *w_h, qkv_tensor *b,
                     const qkv_recurrent_spec *spec) {
    if (qkv_tape_stopped(t) || !arguments_fit(t, x, w_x, w_h, b, spec)) return &t->nothing;
    const qkv_op *op = &qkv_op_lstm;
    const int64_t rows = x->rows, k = w_h->cols, n = spec->layout.n;
    qkv_tensor *y = qkv_tensor_new(t, rows, k);
    saved *s = qkv_tape_alloc(t, op, sizeof *s);
    real *kept = qkv_tape_alloc(t, op, (size_t)((5 * rows + n) * k) * sizeof(real));
    if (!kept) return &t->nothing;
    *s = (saved){.k = k, .gates = kept, .c = kept + 4 * rows * k, .c0 = kept + 5 * rows * k};
    if (!qkv_timeline_make(t, op, &spec->layout, rows, spec->reverse, &s->line)) return &t->nothing;

    const qkv_arena_mark mark = qkv_arena_here(&t->arena); /* what follows is not kept */
    real *xt = qkv_tape_alloc(t, op, (size_t)(rows * x->cols) * sizeof(real));
    real *a = qkv_tape_alloc(t, op, (size_t)((rows + n) * k) * sizeof(real)), *a0 = a + rows * k;
    if (!a) return &t->nothing;
    qkv_timeline_gather(&s->line, x->data, x->ld, x->cols, xt);
    qkv_timeline_gather_states(&s->line, spec->h0, k, a0);
    qkv_timeline_gather_states(&s->line, spec->c0, k, s->c0);
    if (!qkv_product_forward(t, op, (qkv_block){xt, x->cols, rows}, w_x, b, s->gates))
        return &t->nothing;
    walk(t, s, w_h, a0, a);
    qkv_timeline_scatter(&s->line, a, k, y->data, y->ld, false);
    if (spec->h_last) *spec->h_last = qkv_timeline_last(t, &s->line, a, k);
    if (spec->c_last) *spec->c_last = qkv_timeline_last(t, &s->line, s->c, k);
    if (!spec->h_last && !spec->c_last) qkv_arena_rewind(&t->arena, mark);
    return qkv_tape_record(t, op, QKV_TENSORS(x, w_x, w_h, b, spec->h0, spec->c0), QKV_TENSORS(y),
                           s);
}

/* ---- cases ---- */

enum { REVERSE = 1, STATES = 2, TWO_LAYERS = 4 };

static const int32_t starts[] = {0, 2, 5, 6, 9};

static qkv_tensor *build(qkv_tape *t, qkv_check *c) {
    const int f = qkv_check_variant(c);
    const int64_t k = 3;
    qkv_recurrent_spec spec = {.layout = {.n = 4, .start = starts}, .reverse = f & REVERSE};
    qkv_tensor *x = qkv_check_input(t, c, 9, k, 0, 1), *w_x = qkv_check_input(t, c, 4 * k, k, 0, 1);
    qkv_tensor *w_h = qkv_check_input(t, c, 4 * k, k, 0, 1),
               *b = qkv_check_input(t, c, 1, 4 * k, 0, 1);
    if (f & STATES) {
        spec.h0 = qkv_check_input(t, c, 4, k, 0, 1);
        spec.c0 = qkv_check_input(t, c, 4, k, 0, 1);
    }
    qkv_tensor *y = qkv_lstm(t, x, w_x, w_h, b, &spec);
    spec.reverse = !spec.reverse;
    return f & TWO_LAYERS ? qkv_lstm(t, y, w_x, w_h, b, &spec) : y;
}

const qkv_case qkv_cases_lstm[] = {
    {"lstm", build, 0},
    {"lstm: reverse", build, REVERSE},
    {"lstm: initial states", build, STATES},
    {"lstm: reverse, initial states", build, REVERSE | STATES},
    {"lstm: both directions, shared weights", build, TWO_LAYERS | STATES},
    {0}};
