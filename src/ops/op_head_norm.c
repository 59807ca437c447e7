/* RMS norm of each head of queries and keys, side by side in a row: with x one head of K elements,
 *
 *     ρ = 1/√(mean x² + ε),  h = ρ·x,  y = h·gain
 *
 * where the first heads have one gain and the rest another. With g = dy·gain and the mean over a head:
 *
 *     dx = ρ·(g − h·mean(g·h)),  dgain = Σ dy·h
 *
 * Kept: ρ of each head; x is read again. */
#include "ops/ops.h"
#include "ops/expect.h"
#include "base/thread.h"

#include <math.h>

typedef struct saved {
    int32_t heads, first;
    real *rho; /* (R, heads) */
} saved;

static void backward_row(const saved *s, const qkv_node *node, int64_t r, const real *dy,
                         real *dx) {
    const qkv_tensor *x = node->in[0];
    const int64_t k = x->cols / s->heads;
    for (int32_t h = 0; h < s->heads; h++) {
        const real *gain = node->in[h < s->first ? 1 : 2]->data, rho = s->rho[r * s->heads + h];
        const real *xs = x->data + r * x->ld + h * k, *dys = dy + h * k;
        double sum = 0; /* of g·h */
        for (int64_t j = 0; j < k; j++) sum += (double)(dys[j] * gain[j] * xs[j] * rho);
        const real mean = (real)(sum / (double)k);
        for (int64_t j = 0; j < k; j++)
            dx[h * k + j] = rho * (dys[j] * gain[j] - xs[j] * rho * mean);
    }
}

/* In the order of the rows, so that the sum has the same bits for any number of threads. */
static void gain_backward(const saved *s, const qkv_node *node, const real *dy, int side,
                          real *dgain) {
    const qkv_tensor *x = node->in[0];
    const int64_t k = x->cols / s->heads;
    const int32_t from = side ? s->first : 0, to = side ? s->heads : s->first;
    for (int64_t r = 0; r < x->rows; r++)
        for (int32_t h = from; h < to; h++)
            for (int64_t j = 0; j < k; j++)
                dgain[j] += dy[r * x->cols + h * k + j] * x->data[r * x->ld + h * k + j] *
                            s->rho[r * s->heads + h];
}

static void backward(qkv_tape *t, qkv_node *node) {
    const saved *s = node->saved;
    qkv_tensor *x = node->in[0];
    const real *dy = qkv_grad_of(t, node->out[0]);
    for (int side = 0; side < 2; side++) {
        real *dgain = qkv_grad_add(t, node->in[1 + side], NULL, 0);
        if (dgain) gain_backward(s, node, dy, side, dgain);
    }
    real *dx = qkv_grad_write(t, x, NULL);
    if (!dx) return;
    QKV_PARALLEL_FOR
    for (int64_t r = 0; r < x->rows; r++)
        backward_row(s, node, r, dy + r * x->cols, dx + r * x->ld);
}

const qkv_op qkv_op_head_norm = {.name = "head norm", .backward = backward};

static void forward_row(const saved *s, const qkv_head_norm_spec *spec, const qkv_tensor *x,
                        int64_t r, real *y) {
    const int64_t k = x->cols / s->heads;
    for (int32_t h = 0; h < s->heads; h++) {
        const real *xs = x->data + r * x->ld + h * k;
        const real *gain = (h < s->first ? spec->first_gain : spec->rest_gain)->data;
        double squares = 0;
        for (int64_t j = 0; j < k; j++) squares += (double)xs[j] * (double)xs[j];
        const real rho = (real)(1 / sqrt(squares / (double)k + (double)spec->eps));
        for (int64_t j = 0; j < k; j++) y[h * k + j] = xs[j] * rho * gain[j];
        s->rho[r * s->heads + h] = rho;
    }
}

qkv_tensor *qkv_head_norm(qkv_tape *t, qkv_tensor *x, const qkv_head_norm_spec *spec) {
    const qkv_op *op = &qkv_op_head_norm;
    if (qkv_tape_stopped(t)) return &t->nothing;
    if (spec->heads < 1 || spec->first < 0 || spec->first > spec->heads || x->cols % spec->heads)
        return qkv_tape_fail(t, op, QKV_USAGE, "x is %lld×%lld; its columns must be %d heads",
                             (long long)x->rows, (long long)x->cols, (int)spec->heads);
    const int64_t k = x->cols / spec->heads;
    if (!qkv_expect_shape(t, op, "first_gain", spec->first_gain, 1, k) ||
        !qkv_expect_shape(t, op, "rest_gain", spec->rest_gain, 1, k))
        return &t->nothing;
    qkv_tensor *y = qkv_tensor_new(t, x->rows, x->cols);
    saved *s = qkv_tape_alloc(t, op, sizeof *s);
    real *rho = qkv_tape_alloc(t, op, (size_t)(x->rows * spec->heads) * sizeof *rho);
    if (!rho) return &t->nothing;
    *s = (saved){.heads = spec->heads, .first = spec->first, .rho = rho};
    QKV_PARALLEL_FOR
    for (int64_t r = 0; r < x->rows; r++) forward_row(s, spec, x, r, y->data + r * x->cols);
    return qkv_tape_record(t, op, QKV_TENSORS(x, spec->first_gain, spec->rest_gain), QKV_TENSORS(y),
                           s);
}

/* ---- cases ---- */

/* Three heads of four in the middle of a row; the first one or two have a gain of their own. */
static qkv_tensor *build(qkv_tape *t, qkv_check *c) {
    qkv_tensor *x = qkv_tensor_columns(t, qkv_check_input(t, c, 5, 15, 0, 1), 2, 12);
    const qkv_head_norm_spec spec = {.heads = 3,
                                     .first = qkv_check_variant(c),
                                     .eps = (real)0.01,
                                     .first_gain = qkv_check_input(t, c, 1, 4, 1, 0.5),
                                     .rest_gain = qkv_check_input(t, c, 1, 4, 1, 0.5)};
    return qkv_head_norm(t, x, &spec);
}

const qkv_case qkv_cases_head_norm[] = {
    {"head norm: one of three", build, 1}, {"head norm: two of three", build, 2}, {0}};
