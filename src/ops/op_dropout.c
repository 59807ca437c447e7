/* y = x·m/(1 − p), with m a mask of zeros and ones that is never stored: it is made again from the
 * node's random stream, element by element.
 *   dx = dy·m/(1 − p) */
#include "ops/ops.h"
#include "ops/expect.h"

static void backward(qkv_tape *t, qkv_node *node) {
    qkv_tensor *y = node->out[0];
    real *dy = qkv_grad_of(t, y);
    qkv_kern_get()->dropout(dy, dy, y->rows * y->cols, *(const real *)node->saved,
                            qkv_tape_rng(t, node->index), 0);
    qkv_grad_pass(t, y, QKV_TENSORS(node->in[0]));
}

const qkv_op qkv_op_dropout = {.name = "dropout", .backward = backward};

qkv_tensor *qkv_dropout(qkv_tape *t, qkv_tensor *x, real p) {
    if (qkv_tape_stopped(t) || !qkv_expect_rate(t, &qkv_op_dropout, p)) return &t->nothing;
    if (t->mode != QKV_TRAIN || p <= 0) return x;
    if (!qkv_expect_packed(t, &qkv_op_dropout, "x", x)) return &t->nothing;
    qkv_tensor *y = qkv_tensor_new(t, x->rows, x->cols);
    real *rate = qkv_tape_alloc(t, &qkv_op_dropout, sizeof *rate);
    if (!rate) return &t->nothing;
    *rate = p;
    qkv_kern_get()->dropout(x->data, y->data, x->rows * x->cols, p,
                            qkv_tape_rng(t, qkv_tape_next_index(t)), 0);
    return qkv_tape_record(t, &qkv_op_dropout, QKV_TENSORS(x), QKV_TENSORS(y), rate);
}

/* ---- cases ---- */

static qkv_tensor *build(qkv_tape *t, qkv_check *c) {
    return qkv_dropout(t, qkv_check_input(t, c, 6, 7, 0, 1), (real)0.5);
}

const qkv_case qkv_cases_dropout[] = {{"dropout", build, 0}, {0}};
