/* y = act(x) by element.   dx = dy·act'(x). */
#include "ops/ops.h"
#include "ops/expect.h"

static void backward(qkv_tape *t, qkv_node *node) {
    qkv_tensor *x = node->in[0], *y = node->out[0];
    real *dy = qkv_grad_of(t, y);
    qkv_kern_get()->act_grad(*(const qkv_act *)node->saved, x->data, y->data, dy, dy,
                             y->rows * y->cols);
    qkv_grad_pass(t, y, QKV_TENSORS(x));
}

const qkv_op qkv_op_activation = {.name = "activation", .backward = backward};

qkv_tensor *qkv_activation(qkv_tape *t, qkv_tensor *x, qkv_act act) {
    if (qkv_tape_stopped(t) || !qkv_expect_packed(t, &qkv_op_activation, "x", x))
        return &t->nothing;
    if (act == QKV_ACT_NONE) return x;
    qkv_tensor *y = qkv_tensor_new(t, x->rows, x->cols);
    qkv_act *kept = qkv_tape_alloc(t, &qkv_op_activation, sizeof *kept);
    if (!kept) return &t->nothing;
    *kept = act;
    qkv_kern_get()->act(act, x->data, y->data, x->rows * x->cols);
    return qkv_tape_record(t, &qkv_op_activation, QKV_TENSORS(x), QKV_TENSORS(y), kept);
}

/* ---- cases ---- */

static qkv_tensor *build(qkv_tape *t, qkv_check *c) {
    return qkv_activation(t, qkv_check_input(t, c, 4, 9, 0, 3), (qkv_act)qkv_check_variant(c));
}

const qkv_case qkv_cases_activation[] = {{"activation: relu", build, QKV_ACT_RELU},
                                         {"activation: gelu", build, QKV_ACT_GELU},
                                         {"activation: gelu by tanh", build, QKV_ACT_GELU_TANH},
                                         {"activation: silu", build, QKV_ACT_SILU},
                                         {"activation: tanh", build, QKV_ACT_TANH},
                                         {"activation: sigmoid", build, QKV_ACT_SIGMOID},
                                         {0}};
