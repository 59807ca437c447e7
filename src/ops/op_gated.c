/* y = act(a)·b by element,  [a b] = x Wᵀ + bias:  W (2F, in) holds the rows of a above those of b.
 *
 *   da = dy·b·act'(a),  db = dy·act(a);   dW, dx, dbias as for a linear map with dz = [da db]
 * Only [a b] is kept, and dz takes its place; y is brief. */
#include "ops/ops.h"
#include "ops/product.h"

typedef struct saved {
    qkv_act act;
    real *ab; /* (R, 2F) */
} saved;

static void backward(qkv_tape *t, qkv_node *node) {
    qkv_tensor *x = node->in[0], *w = node->in[1], *b = node->in[2], *y = node->out[0];
    const saved *s = node->saved;
    real *dz = s->ab;
    qkv_kern_get()->gate_grad(s->act, s->ab, qkv_grad_of(t, y), dz, y->rows, y->cols);
    if (!qkv_tensor_again(t, x)) return;
    qkv_product_grad_weights(t, &qkv_op_gated, dz, y->rows, x->data, x->ld, w, b);
    qkv_tensor_done(x);
    bool add;
    real *dx = qkv_grad(t, x, &add);
    if (dx) qkv_product_grad_input(t, &qkv_op_gated, dz, y->rows, w, dx, x->ld, add);
}

static void remake(qkv_tape *t, qkv_node *node) {
    const saved *s = node->saved;
    qkv_tensor *y = node->out[0];
    (void)t;
    qkv_kern_get()->gate(s->act, s->ab, y->data, y->rows, y->cols);
}

const qkv_op qkv_op_gated = {.name = "gated", .backward = backward, .remake = remake};

qkv_tensor *qkv_gated(qkv_tape *t, qkv_tensor *x, qkv_tensor *w, qkv_tensor *b, qkv_act act) {
    if (qkv_tape_stopped(t)) return &t->nothing;
    if (x->cols != w->cols || w->rows % 2 || (b && (b->rows != 1 || b->cols != w->rows)))
        return qkv_tape_fail(t, &qkv_op_gated, QKV_USAGE,
                             "x is %lld×%lld, w %lld×%lld, b %lld×%lld; w must have x's columns "
                             "and an even number of "
                             "rows, b w's rows",
                             (long long)x->rows, (long long)x->cols, (long long)w->rows,
                             (long long)w->cols, (long long)(b ? b->rows : 0),
                             (long long)(b ? b->cols : 0));
    qkv_tensor *y = qkv_tensor_new_brief(t, QKV_TENSORS(x, w, b), x->rows, w->rows / 2);
    saved *s = qkv_tape_alloc(t, &qkv_op_gated, sizeof *s);
    real *ab = qkv_tape_alloc(t, &qkv_op_gated, (size_t)(x->rows * w->rows) * sizeof(real));
    if (!ab) return &t->nothing;
    *s = (saved){.act = act, .ab = ab};
    if (!qkv_product_forward(t, &qkv_op_gated, x->data, x->ld, x->rows, w, b, ab))
        return &t->nothing;
    qkv_tensor_done(x);
    qkv_kern_get()->gate(act, ab, y->data, y->rows, y->cols);
    return qkv_tape_record(t, &qkv_op_gated, QKV_TENSORS(x, w, b), QKV_TENSORS(y), s);
}

/* ---- cases ---- */

static qkv_tensor *build(qkv_tape *t, qkv_check *c) {
    qkv_tensor *x = qkv_check_input(t, c, 5, 4, 0, 1), *w = qkv_check_input(t, c, 6, 4, 0, 1);
    return qkv_gated(t, x, w, qkv_check_input(t, c, 1, 6, 0, 1), (qkv_act)qkv_check_variant(c));
}

static qkv_tensor *build_layer(qkv_tape *t, qkv_check *c) {
    return qkv_linear(t, build(t, c), qkv_check_input(t, c, 2, 3, 0, 1), NULL, QKV_ACT_NONE);
}

const qkv_case qkv_cases_gated[] = {{"gated: bilinear", build, QKV_ACT_NONE},
                                    {"gated: relu (ReGLU)", build, QKV_ACT_RELU},
                                    {"gated: gelu (GEGLU)", build, QKV_ACT_GELU},
                                    {"gated: gelu by tanh", build, QKV_ACT_GELU_TANH},
                                    {"gated: silu (SwiGLU)", build, QKV_ACT_SILU},
                                    {"gated: tanh", build, QKV_ACT_TANH},
                                    {"gated: sigmoid (GLU)", build, QKV_ACT_SIGMOID},
                                    {"gated: made again (SwiGLU)", build_layer, QKV_ACT_SILU},
                                    {0}};
