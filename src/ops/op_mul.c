/* z = x·y by element.   dx = dz·y,  dy = dz·x. */
#include "ops/ops.h"
#include "ops/expect.h"

static void backward(qkv_tape *t, qkv_node *node) {
    qkv_tensor *x = node->in[0], *y = node->in[1], *z = node->out[0];
    const int64_t n = z->rows * z->cols;
    real *dz = qkv_grad_of(t, z), *dy = qkv_grad_write(t, y, NULL);
    if (dy) qkv_kern_get()->mul(dz, x->data, dy, n);
    if (!x->wants_grad) return;
    qkv_kern_get()->mul(dz, y->data, dz, n);
    qkv_grad_pass(t, z, QKV_TENSORS(x));
}

const qkv_op qkv_op_mul = {.name = "mul", .backward = backward};

qkv_tensor *qkv_mul(qkv_tape *t, qkv_tensor *x, qkv_tensor *y) {
    if (qkv_tape_stopped(t) || !qkv_expect_same_shape(t, &qkv_op_mul, x, y) ||
        !qkv_expect_packed(t, &qkv_op_mul, "x", x) || !qkv_expect_packed(t, &qkv_op_mul, "y", y))
        return &t->nothing;
    qkv_tensor *z = qkv_tensor_new(t, x->rows, x->cols);
    if (qkv_tape_stopped(t)) return z;
    qkv_kern_get()->mul(x->data, y->data, z->data, x->rows * x->cols);
    return qkv_tape_record(t, &qkv_op_mul, QKV_TENSORS(x, y), QKV_TENSORS(z), NULL);
}

/* ---- cases ---- */

static qkv_tensor *build(qkv_tape *t, qkv_check *c) {
    qkv_tensor *x = qkv_check_input(t, c, 4, 5, 0, 1);
    return qkv_mul(t, x, qkv_check_variant(c) ? x : qkv_check_input(t, c, 4, 5, 0, 1));
}

const qkv_case qkv_cases_mul[] = {{"mul", build, 0}, {"mul: by itself", build, 1}, {0}};
