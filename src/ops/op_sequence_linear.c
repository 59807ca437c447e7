/* Linformer's projection along the sequence: y_s = E[:r_s, :n_s] x_s, r_s = min(r, n_s), so that a
 * sequence of n_s rows becomes one of at most r; a shorter one is not lengthened. Columns may be in
 * groups (heads) with a block of E each: E (groups·r, N), x (R, D), y (Σ r_s, D).
 *
 *   dE[:r_s, :n_s] += dy_s x_sᵀ,   dx_s = E[:r_s, :n_s]ᵀ dy_s        by group */
#include "ops/ops.h"
#include "ops/expect.h"
#include "ops/product.h"

typedef struct saved {
    qkv_layout layout, out;
    int32_t groups;
} saved;

/* The operands of group g of sequence q. */
typedef struct block {
    int64_t len, r, cols; /* x_s is len×cols, its part of E r×len */
    int64_t x, e, y;      /* where they start */
} block;

static block find_block(const saved *s, const qkv_tensor *x, const qkv_tensor *e, int32_t q,
                        int32_t g) {
    block b = {.len = qkv_layout_len(&s->layout, q),
               .r = qkv_layout_len(&s->out, q),
               .cols = x->cols / s->groups};
    b.x = s->layout.start[q] * x->ld + g * b.cols;
    b.e = g * (e->rows / s->groups) * e->ld;
    b.y = s->out.start[q] * x->cols + g * b.cols;
    return b;
}

static void backward(qkv_tape *t, qkv_node *node) {
    const saved *s = node->saved;
    qkv_tensor *x = node->in[0], *e = node->in[1];
    const real *dy = qkv_grad_of(t, node->out[0]);
    const int64_t ldy = node->out[0]->ld;
    bool add;
    real *de = qkv_grad_add(t, e, NULL, 0), *dx = qkv_grad_write(t, x, &add);
    for (int32_t i = 0; i < s->layout.n * s->groups; i++) {
        const block b = find_block(s, x, e, i / s->groups, i % s->groups);
        qkv_gemm g = {.a = dy + b.y, .lda = ldy};
        if (de) {
            g.m = b.r, g.n = b.len, g.k = b.cols;
            g.b = x->data + b.x, g.ldb = x->ld, g.b_trans = true;
            g.c = de + b.e, g.ldc = e->ld, g.accumulate = true;
            qkv_product(t, &qkv_op_sequence_linear, g);
        }
        if (dx) {
            g = (qkv_gemm){.m = b.len, .n = b.cols, .k = b.r, .b = dy + b.y, .ldb = ldy};
            g.a = e->data + b.e, g.lda = e->ld, g.a_trans = true;
            g.c = dx + b.x, g.ldc = x->ld, g.accumulate = add;
            qkv_product(t, &qkv_op_sequence_linear, g);
        }
    }
}

const qkv_op qkv_op_sequence_linear = {.name = "sequence_linear", .backward = backward};

static bool arguments_fit(qkv_tape *t, const qkv_tensor *x, const qkv_tensor *e,
                          const qkv_layout *layout, int32_t groups) {
    const qkv_op *op = &qkv_op_sequence_linear;
    if (!qkv_expect_layout(t, op, "layout", layout, x->rows, true)) return false;
    if (groups < 1 || e->rows % groups || x->cols % groups) {
        qkv_tape_fail(
            t, op, QKV_USAGE,
            "x is %lld×%lld and e %lld×%lld; %d groups do not divide x's columns and e's rows",
            (long long)x->rows, (long long)x->cols, (long long)e->rows, (long long)e->cols, groups);
        return false;
    }
    for (int32_t s = 0; s < layout->n; s++)
        if (qkv_layout_len(layout, s) > e->cols) {
            qkv_tape_fail(t, op, QKV_USAGE,
                          "sequence %d has %d rows; e (%lld×%lld) projects at most %lld", s,
                          qkv_layout_len(layout, s), (long long)e->rows, (long long)e->cols,
                          (long long)e->cols);
            return false;
        }
    return true;
}

qkv_tensor *qkv_sequence_linear(qkv_tape *t, qkv_tensor *x, qkv_tensor *e, qkv_layout layout,
                                int32_t groups, qkv_layout *out) {
    if (qkv_tape_stopped(t) || !arguments_fit(t, x, e, &layout, groups)) return &t->nothing;
    saved *s = qkv_tape_alloc(t, &qkv_op_sequence_linear, sizeof *s);
    int32_t *start =
        qkv_tape_alloc(t, &qkv_op_sequence_linear, ((size_t)layout.n + 1) * sizeof *start);
    if (!s || !start) return &t->nothing;
    const int32_t r = (int32_t)(e->rows / groups);
    start[0] = 0;
    for (int32_t q = 0; q < layout.n; q++) {
        const int32_t len = qkv_layout_len(&layout, q);
        start[q + 1] = start[q] + (len < r ? len : r);
    }
    *s = (saved){.layout = layout, .out = {.n = layout.n, .start = start}, .groups = groups};
    *out = s->out;
    qkv_tensor *y = qkv_tensor_new(t, start[layout.n], x->cols);
    if (qkv_tape_stopped(t)) return y;
    for (int32_t i = 0; i < layout.n * groups; i++) {
        const block b = find_block(s, x, e, i / groups, i % groups);
        qkv_gemm g = {.m = b.r, .n = b.cols, .k = b.len, .a = e->data + b.e, .lda = e->ld};
        g.b = x->data + b.x, g.ldb = x->ld;
        g.c = y->data + b.y, g.ldc = y->ld;
        qkv_product(t, &qkv_op_sequence_linear, g);
    }
    return qkv_tape_record(t, &qkv_op_sequence_linear, QKV_TENSORS(x, e), QKV_TENSORS(y), s);
}

/* ---- cases ---- */

static const int32_t starts[] = {0, 3, 4, 9};

static qkv_tensor *build(qkv_tape *t, qkv_check *c) {
    const int32_t groups = qkv_check_variant(c);
    qkv_tensor *x = qkv_check_input(t, c, 9, 6, 0, 1),
               *e = qkv_check_input(t, c, 2 * groups, 5, 0, 1);
    qkv_layout out;
    return qkv_sequence_linear(t, x, e, (qkv_layout){.n = 3, .start = starts}, groups, &out);
}

const qkv_case qkv_cases_sequence_linear[] = {
    {"sequence_linear: shared", build, 1}, {"sequence_linear: by head", build, 2}, {0}};
