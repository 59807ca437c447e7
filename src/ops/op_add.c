/* z = x + dropout(y).   dx = dz,  dy = dropout(dz) with the same mask. */
#include "ops/ops.h"
#include "ops/expect.h"

static void backward(qkv_tape *t, qkv_node *node) {
    qkv_tensor *x = node->in[0], *y = node->in[1], *z = node->out[0];
    const real p = *(const real *)node->saved;
    if (p > 0) {
        real *dy = qkv_grad_write(t, y, NULL);
        if (dy)
            qkv_kern_get()->dropout(qkv_grad_of(t, z), dy, y->rows * y->cols, p,
                                    qkv_tape_rng(t, node->index), 0);
        qkv_grad_pass(t, z, QKV_TENSORS(x));
    } else {
        qkv_grad_pass(t, z, QKV_TENSORS(y, x));
    }
}

const qkv_op qkv_op_add = {.name = "add", .backward = backward};

qkv_tensor *qkv_add(qkv_tape *t, qkv_tensor *x, qkv_tensor *y, real p) {
    if (qkv_tape_stopped(t) || !qkv_expect_same_shape(t, &qkv_op_add, x, y) ||
        !qkv_expect_packed(t, &qkv_op_add, "x", x) || !qkv_expect_packed(t, &qkv_op_add, "y", y) ||
        !qkv_expect_rate(t, &qkv_op_add, p))
        return &t->nothing;
    qkv_tensor *z = qkv_tensor_new(t, x->rows, x->cols);
    real *rate = qkv_tape_alloc(t, &qkv_op_add, sizeof *rate);
    if (!rate) return &t->nothing;
    *rate = t->mode == QKV_TRAIN ? p : 0;
    const qkv_kern *kern = qkv_kern_get();
    const int64_t n = x->rows * x->cols;
    const real *second = y->data;
    if (*rate > 0) {
        kern->dropout(y->data, z->data, n, p, qkv_tape_rng(t, qkv_tape_next_index(t)), 0);
        second = z->data;
    }
    kern->add(x->data, second, z->data, n);
    return qkv_tape_record(t, &qkv_op_add, QKV_TENSORS(x, y), QKV_TENSORS(z), rate);
}

/* ---- cases ---- */

static qkv_tensor *build(qkv_tape *t, qkv_check *c) {
    qkv_tensor *x = qkv_check_input(t, c, 4, 5, 0, 1);
    return qkv_add(t, x, qkv_check_input(t, c, 4, 5, 0, 1), (real)qkv_check_variant(c) / 10);
}

/* One tensor on both sides and in two ops. */
static qkv_tensor *build_twice(qkv_tape *t, qkv_check *c) {
    qkv_tensor *x = qkv_check_input(t, c, 4, 5, 0, 1),
               *y = qkv_add(t, x, x, (real)qkv_check_variant(c) / 10);
    return qkv_add(t, y, x, (real)qkv_check_variant(c) / 10);
}

const qkv_case qkv_cases_add[] = {{"add", build, 0},
                                  {"add: dropout", build, 3},
                                  {"add: to itself", build_twice, 0},
                                  {"add: to itself, dropout", build_twice, 3},
                                  {0}};
