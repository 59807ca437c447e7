/* y = act(z),  z = x Wᵀ + b:  x (R, in), W (out, in), b (1, out).
 *
 * With L the loss and d· = ∂L/∂·:
 *   dz = dy · act'(z)              by element, in place of dy
 *   dW = dzᵀ x,  dx = dz W         since z_ro = Σ_i x_ri W_oi
 *   db = Σ_r dz_r
 * ReLU, tanh and sigmoid are differentiated from y alone; GELU and SiLU need z, which the product
 * leaves behind. */
#include "ops/ops.h"
#include "ops/product.h"

typedef struct saved {
    qkv_act act;
    real *z; /* NULL when y tells enough */
} saved;

static void backward(qkv_tape *t, qkv_node *node) {
    qkv_tensor *x = node->in[0], *w = node->in[1], *b = node->in[2], *y = node->out[0];
    const saved *s = node->saved;
    real *dz = qkv_grad_of(t, y);
    if (s->act != QKV_ACT_NONE)
        qkv_kern_get()->act_grad(s->act, s->z, y->data, dz, dz, y->rows * y->cols);
    if (!qkv_tensor_again(t, x)) return;
    const qkv_block rows = {x->data, x->ld, x->rows};
    qkv_product_grad_weights(t, &qkv_op_linear, dz, rows, w, b);
    qkv_tensor_done(x); /* before dx asks for memory */
    bool add;
    real *dx = qkv_grad_write(t, x, &add);
    if (dx) qkv_product_grad_input(t, &qkv_op_linear, dz, y->rows, w, (qkv_target){dx, x->ld, add});
}

const qkv_op qkv_op_linear = {.name = "linear", .backward = backward};

/* For one reader it is attention's to say how long: see op_attention.c. */
static qkv_life life_of(const qkv_tape *t, qkv_act act, bool one_reader) {
    if (one_reader) return t->precision == QKV_F32 ? QKV_LIFE_KEPT : QKV_LIFE_BRIEF;
    return act == QKV_ACT_NONE ? QKV_LIFE_SPARE : QKV_LIFE_STEP;
}

static qkv_tensor *linear(qkv_tape *t, qkv_tensor *x, qkv_tensor *w, qkv_tensor *b, qkv_act act,
                          bool brief) {
    if (qkv_tape_stopped(t)) return &t->nothing;
    if (x->cols != w->cols || (b && (b->rows != 1 || b->cols != w->rows)))
        return qkv_tape_fail(
            t, &qkv_op_linear, QKV_USAGE,
            "x is %lld×%lld, w %lld×%lld, b %lld×%lld; w must have x's columns and b w's rows",
            (long long)x->rows, (long long)x->cols, (long long)w->rows, (long long)w->cols,
            (long long)(b ? b->rows : 0), (long long)(b ? b->cols : 0));
    qkv_tensor *const in[] = {x, w, b};
    const bool records = qkv_tape_records(t, in, 3);
    qkv_tensor *y = qkv_tensor_make(t, life_of(t, act, brief && records), x->rows, w->rows);
    saved *s = qkv_tape_alloc(t, &qkv_op_linear, sizeof *s);
    if (!s) return &t->nothing;
    *s = (saved){.act = act};
    if (qkv_act_needs_input(act) && records)
        s->z = qkv_tape_alloc(t, &qkv_op_linear, (size_t)(y->rows * y->cols) * sizeof(real));
    qkv_rows_read(w, NULL, 0);
    qkv_gemm g = qkv_product_of((qkv_block){x->data, x->ld, x->rows}, w, b, y->data);
    g.ldc = y->ld, g.act = act, g.pre = s->z;
    qkv_product(t, &qkv_op_linear, g);
    qkv_tensor_done(x);
    return qkv_tape_record(t, &qkv_op_linear, in, 3, QKV_TENSORS(y), s);
}

qkv_tensor *qkv_linear(qkv_tape *t, qkv_tensor *x, qkv_tensor *w, qkv_tensor *b, qkv_act act) {
    return linear(t, x, w, b, act, false);
}

qkv_tensor *qkv_linear_brief(qkv_tape *t, qkv_tensor *x, qkv_tensor *w, qkv_tensor *b) {
    return linear(t, x, w, b, QKV_ACT_NONE, true);
}

/* ---- cases ---- */

static qkv_tensor *build(qkv_tape *t, qkv_check *c) {
    qkv_tensor *x = qkv_check_input(t, c, 5, 4, 0, 1), *w = qkv_check_input(t, c, 6, 4, 0, 1);
    return qkv_linear(t, x, w, qkv_check_input(t, c, 1, 6, 0, 1), (qkv_act)qkv_check_variant(c));
}

static qkv_tensor *build_no_bias(qkv_tape *t, qkv_check *c) {
    qkv_tensor *x = qkv_check_input(t, c, 3, 7, 0, 1);
    return qkv_linear(t, x, qkv_check_input(t, c, 2, 7, 0, 1), NULL, QKV_ACT_NONE);
}

/* The same weights twice, and x through views of its columns: gradients add up. */
static qkv_tensor *build_shared(qkv_tape *t, qkv_check *c) {
    qkv_tensor *x = qkv_check_input(t, c, 5, 8, 0, 1), *w = qkv_check_input(t, c, 4, 4, 0, 1);
    qkv_tensor *low = qkv_linear(t, qkv_tensor_columns(t, x, 0, 4), w, NULL, QKV_ACT_TANH);
    qkv_tensor *high = qkv_linear(t, qkv_tensor_columns(t, x, 3, 4), w, NULL, QKV_ACT_GELU);
    return qkv_linear(t, qkv_add(t, low, high, 0), w, NULL, QKV_ACT_NONE);
}

/* Weights and input that are parts of larger tensors. */
static qkv_tensor *build_parts(qkv_tape *t, qkv_check *c) {
    qkv_tensor *x = qkv_check_input(t, c, 6, 4, 0, 1), *w = qkv_check_input(t, c, 8, 4, 0, 1);
    qkv_tensor *y =
        qkv_linear(t, qkv_tensor_rows(t, x, 1, 4), qkv_tensor_rows(t, w, 2, 5), NULL, QKV_ACT_NONE);
    return qkv_linear(t, qkv_tensor_reshape(t, y, 5, 4), w, NULL, QKV_ACT_SILU);
}

const qkv_case qkv_cases_linear[] = {{"linear: no activation", build, QKV_ACT_NONE},
                                     {"linear: relu", build, QKV_ACT_RELU},
                                     {"linear: gelu", build, QKV_ACT_GELU},
                                     {"linear: gelu by tanh", build, QKV_ACT_GELU_TANH},
                                     {"linear: silu", build, QKV_ACT_SILU},
                                     {"linear: tanh", build, QKV_ACT_TANH},
                                     {"linear: sigmoid", build, QKV_ACT_SIGMOID},
                                     {"linear: no bias", build_no_bias, 0},
                                     {"linear: shared weights, views", build_shared, 0},
                                     {"linear: parts, other shape", build_parts, 0},
                                     {0}};
