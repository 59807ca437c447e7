/* Losses by element, of z (R, C) against targets t, for what is no choice of one among C:
 *   square    ℓ = (z − t)²              dℓ/dz = 2 (z − t)
 *   sigmoid   ℓ = log(1 + eᶻ) − t z     dℓ/dz = σ(z) − t
 *   loss = scale·Σ ℓ
 * With m = z or m = σ(z), what each predicts, both are a constant times m − t: they are those of
 * the normal and the Bernoulli distribution, each in its natural parameter.
 *
 * With `agree` (R-Drop) the second half of the rows are the first half again, under other dropout.
 * How far two predictions are apart is then the symmetric divergence of the two distributions,
 * (m − m')(z − z'), half of which times `agree` is added for each pair:
 *   dz += ½ agree·(m − m' + (z − z')·dm/dz),  dm/dz = 1 or m (1 − m);  dz' likewise. */
#include "ops/ops.h"
#include "ops/expect.h"

#include <math.h>

typedef struct saved {
    const real *targets;
    qkv_point_kind kind;
    real agree, scale;
} saved;

static double predicted(qkv_point_kind kind, double z) {
    return kind == QKV_POINT_SQUARE ? z : 1 / (1 + exp(-z));
}

/* log(1 + eᶻ) without overflow. */
static double soft_plus(double z) {
    return (z > 0 ? z : 0) + log1p(exp(-fabs(z)));
}

static double loss_of(qkv_point_kind kind, double z, double t) {
    return kind == QKV_POINT_SQUARE ? (z - t) * (z - t) : soft_plus(z) - t * z;
}

static void backward(qkv_tape *t, qkv_node *node) {
    const saved *s = node->saved;
    qkv_tensor *x = node->in[0];
    const int64_t half = x->rows / 2;
    const double d = (double)qkv_grad_of(t, node->out[0])[0] * (double)s->scale,
                 slope = s->kind == QKV_POINT_SQUARE ? 2 : 1;
    real *dx = qkv_grad_write(t, x, NULL);
    for (int64_t r = 0; dx && r < x->rows; r++)
        for (int64_t c = 0; c < x->cols; c++) {
            const double z = (double)x->data[r * x->ld + c], m = predicted(s->kind, z);
            double dz = slope * (m - (double)s->targets[r * x->cols + c]);
            if (s->agree > 0) {
                const int64_t other = r < half ? r + half : r - half;
                const double z2 = (double)x->data[other * x->ld + c],
                             steep = s->kind == QKV_POINT_SQUARE ? 1 : m * (1 - m);
                dz += 0.5 * (double)s->agree * (m - predicted(s->kind, z2) + (z - z2) * steep);
            }
            dx[r * x->ld + c] = (real)(d * dz);
        }
}

const qkv_op qkv_op_pointwise = {.name = "pointwise", .backward = backward};

/* Rows all of whose answers (is z at least `edge`?) are as the targets say. */
static int64_t count_right(const qkv_tensor *x, const qkv_pointwise_spec *s) {
    int64_t n = 0;
    for (int64_t r = 0; r < x->rows; r++) {
        bool right = true;
        for (int64_t c = 0; c < x->cols; c++)
            right &=
                (x->data[r * x->ld + c] >= s->edge) == (s->targets[r * x->cols + c] >= (real)0.5);
        n += right;
    }
    return n;
}

static double sum_of(const qkv_tensor *x, const qkv_pointwise_spec *s) {
    const int64_t half = x->rows / 2;
    double sum = 0;
    for (int64_t r = 0; r < x->rows; r++)
        for (int64_t c = 0; c < x->cols; c++) {
            const double z = (double)x->data[r * x->ld + c];
            sum += loss_of(s->kind, z, (double)s->targets[r * x->cols + c]);
            if (s->agree > 0 && r < half) {
                const double z2 = (double)x->data[(r + half) * x->ld + c];
                sum += 0.5 * (double)s->agree * (predicted(s->kind, z) - predicted(s->kind, z2)) *
                       (z - z2);
            }
        }
    return sum;
}

qkv_tensor *qkv_pointwise(qkv_tape *t, qkv_tensor *x, const qkv_pointwise_spec *spec) {
    const qkv_op *op = &qkv_op_pointwise;
    if (qkv_tape_stopped(t)) return &t->nothing;
    if (spec->agree > 0 && x->rows % 2)
        return qkv_tape_fail(t, op, QKV_USAGE, "agree needs two views of each row");
    qkv_tensor *loss = qkv_tensor_new(t, 1, 1);
    saved *s = qkv_tape_alloc(t, op, sizeof *s);
    if (qkv_tape_stopped(t)) return &t->nothing;
    *s = (saved){spec->targets, spec->kind, spec->agree, spec->scale};
    loss->data[0] = (real)((double)spec->scale * sum_of(x, spec));
    if (spec->n_right) *spec->n_right = count_right(x, spec);
    return qkv_tape_record(t, op, QKV_TENSORS(x), QKV_TENSORS(loss), s);
}

/* ---- cases ---- */

enum { SIGMOID = 1, AGREE = 2 };

static qkv_tensor *build(qkv_tape *t, qkv_check *c) {
    static const real number[] = {(real)0.3, -1, 2, (real)0.7, 0, (real)-0.4,
                                  1,         -2, 0, (real)0.1, 3, (real)0.5},
                      yes[] = {1, 0, 0, 1, 0, 1, (real)0.9, (real)0.05, 1, 0, 0, 1};
    const int f = qkv_check_variant(c);
    return qkv_pointwise(
        t, qkv_check_input(t, c, 4, 3, 0, 1),
        &(qkv_pointwise_spec){.kind = f & SIGMOID ? QKV_POINT_SIGMOID : QKV_POINT_SQUARE,
                              .targets = f & SIGMOID ? yes : number,
                              .agree = f & AGREE ? (real)1.3 : 0,
                              .scale = (real)0.7});
}

const qkv_case qkv_cases_pointwise[] = {{"pointwise: square", build, 0},
                                        {"pointwise: sigmoid", build, SIGMOID},
                                        {"pointwise: square, agree", build, AGREE},
                                        {"pointwise: sigmoid, agree", build, SIGMOID | AGREE},
                                        {0}};
