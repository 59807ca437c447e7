/* y = factor·x.   dx = factor·dy. */
#include "ops/ops.h"
#include "ops/expect.h"

static void backward(qkv_tape *t, qkv_node *node) {
    qkv_tensor *y = node->out[0];
    real *dy = qkv_grad_of(t, y);
    qkv_kern_get()->scale(*(const real *)node->saved, dy, dy, y->rows * y->cols);
    qkv_grad_pass(t, y, QKV_TENSORS(node->in[0]));
}

const qkv_op qkv_op_scale = {.name = "scale", .backward = backward};

qkv_tensor *qkv_scale(qkv_tape *t, qkv_tensor *x, real factor) {
    if (qkv_tape_stopped(t) || !qkv_expect_packed(t, &qkv_op_scale, "x", x)) return &t->nothing;
    qkv_tensor *y = qkv_tensor_new(t, x->rows, x->cols);
    real *kept = qkv_tape_alloc(t, &qkv_op_scale, sizeof *kept);
    if (!kept) return &t->nothing;
    *kept = factor;
    qkv_kern_get()->scale(factor, x->data, y->data, x->rows * x->cols);
    return qkv_tape_record(t, &qkv_op_scale, QKV_TENSORS(x), QKV_TENSORS(y), kept);
}

/* ---- cases ---- */

static qkv_tensor *build(qkv_tape *t, qkv_check *c) {
    return qkv_scale(t, qkv_check_input(t, c, 3, 5, 0, 1), (real)-1.7);
}

const qkv_case qkv_cases_scale[] = {{"scale", build, 0}, {0}};
