/* Softmax cross-entropy of z = x Wᵀ + b against targets t, a chunk of rows at a time, so that the
 * logits of a whole batch never exist:
 *   loss = scale·Σ_r w_r·((1 − ε)·(lse_r − z_rt) + ε·(lse_r − mean_j z_rj)),  lse = log Σ_j exp z_j
 *
 *   dz = scale·w·(softmax(z) − (1 − ε)·[j = t] − ε/V),   dx = dz W,  dW += dzᵀ x,  db += Σ dz
 * While training the gradients are made in forward, when a chunk's logits are at hand; to make them
 * in backward would cost the first product again. That fixes the upstream gradient to 1, so the op
 * is a root: it must be a loss itself.
 *
 * With `agree` (R-Drop, Wu et al. 2021) the second half of the rows are the first half again, under
 * other dropout; a chunk is then as many rows of either, and the kernel adds how far two
 * predictions are apart (kern/isa/softmax.c has the gradient). */
#include "ops/ops.h"
#include "ops/expect.h"
#include "ops/product.h"
#include "base/thread.h"

#include <string.h>

/* Nothing is left to do; the tape has checked that the upstream gradient is 1. */
static void backward(qkv_tape *t, qkv_node *node) {
    (void)t, (void)node;
}

const qkv_op qkv_op_xent = {.name = "xent", .backward = backward, .root = true};

/* Rows of a chunk: logits of about 8 MB, so that they stay in the outer cache between their three
 * products, but not fewer rows than a product needs to be efficient. It depends on V only, so that
 * bits do not depend on the batch. */
#define CHUNK_LOGITS ((int64_t)1 << 21)
#define CHUNK_ROWS   128

typedef struct chunks {
    const qkv_xent_spec *spec;
    qkv_tensor *x, *w, *b;
    const real *data; /* of x */
    int64_t v, rows;  /* rows of a full chunk; of pairs: of either half */
    int64_t half;     /* from a row to its second view; 0: there is none */
    real scale;
    bool train;
    real *dx; /* NULL when not wanted */
    bool dx_add;
    real *z;      /* (rows, V) */
    real *lse;    /* rows; z_t beside it */
    real *z_t;    /* rows */
    double *loss; /* rows */
} chunks;

/* Is z_t the first of the largest of z? */
static bool is_right(const real *z, int64_t v, int32_t target) {
    int64_t larger = 0;
    const real top = z[target];
    for (int64_t j = 0; j < target; j++) larger += z[j] >= top;
    for (int64_t j = target; j < v; j++) larger += z[j] > top;
    return larger == 0;
}

/* What must be read from the logits before gradients take their place. */
static void look_at_logits(const chunks *c, const int32_t *targets, int64_t from, int64_t rows) {
    int64_t right = 0;
    const real *z = c->z + from * c->v;
    QKV_PRAGMA(omp parallel for schedule(static) num_threads(qkv_threads()) reduction(+ : right))
    for (int64_t r = 0; r < rows; r++) {
        if (targets[r] < 0) continue;
        c->z_t[from + r] = z[r * c->v + targets[r]];
        if (c->spec->n_right) right += is_right(z + r * c->v, c->v, targets[r]);
    }
    if (c->spec->n_right) *c->spec->n_right += right;
}

static bool make_logits(qkv_tape *t, const chunks *c, int64_t row, int64_t rows, real *z) {
    const real *x = c->data + row * c->x->ld;
    if (c->w)
        return qkv_product_forward(t, &qkv_op_xent, (qkv_block){x, c->x->ld, rows}, c->w, c->b, z);
    for (int64_t r = 0; r < rows; r++)
        memcpy(z + r * c->v, x + r * c->x->ld, (size_t)c->v * sizeof *x);
    return true;
}

/* z holds dz now. */
static void make_gradients(qkv_tape *t, const chunks *c, int64_t row, int64_t rows, const real *z) {
    const int64_t ld = c->x->ld;
    real *dx = c->dx ? c->dx + row * ld : NULL;
    if (c->w) {
        qkv_product_grad_weights(t, &qkv_op_xent, z, (qkv_block){c->data + row * ld, ld, rows},
                                 c->w, c->b);
        if (dx)
            qkv_product_grad_input(t, &qkv_op_xent, z, rows, c->w, (qkv_target){dx, ld, c->dx_add});
        return;
    }
    for (int64_t r = 0; dx && r < rows; r++)
        for (int64_t j = 0; j < c->v; j++)
            dx[r * ld + j] = z[r * c->v + j] + (c->dx_add ? dx[r * ld + j] : 0);
}

/* The loss of rows [row, row + rows), unscaled; of pairs: with their second views. */
static double run_chunk(qkv_tape *t, const chunks *c, int64_t row, int64_t rows) {
    const qkv_xent_spec *s = c->spec;
    const int32_t *targets = s->targets + row;
    const int64_t views = c->half ? 2 : 1;
    for (int64_t k = 0; k < views; k++) {
        if (!make_logits(t, c, row + k * c->half, rows, c->z + k * rows * c->v)) return 0;
        look_at_logits(c, targets, k * rows, rows);
    }
    const qkv_xent_rows chunk = {.rows = rows,
                                 .v = c->v,
                                 .z = c->z,
                                 .targets = targets,
                                 .weights = s->weights ? s->weights + row : NULL,
                                 .smoothing = s->smoothing,
                                 .agree = s->agree,
                                 .scale = c->scale,
                                 .grad = c->train,
                                 .loss = c->loss,
                                 .lse = c->lse};
    (c->half ? qkv_kern_get()->xent_pairs : qkv_kern_get()->xent)(&chunk);
    double sum = 0;
    for (int64_t k = 0; k < views; k++) {
        for (int64_t r = 0, i = k * rows; r < rows; r++, i++) {
            sum += c->loss[i];
            if (s->row_loss)
                s->row_loss[row + k * c->half + r] = targets[r] < 0 ? 0 : c->lse[i] - c->z_t[i];
        }
        if (c->train) make_gradients(t, c, row + k * c->half, rows, c->z + k * rows * c->v);
    }
    return sum;
}

/* Two views of a row must have one target (and weight). */
static bool pairs_fit(qkv_tape *t, const qkv_tensor *x, const qkv_xent_spec *s) {
    const int64_t half = x->rows / 2;
    bool same = x->rows % 2 == 0;
    for (int64_t r = 0; r < half && same; r++)
        same = s->targets[r] == s->targets[half + r] &&
               (!s->weights || s->weights[r] == s->weights[half + r]);
    if (!same)
        qkv_tape_fail(t, &qkv_op_xent, QKV_USAGE,
                      "agree needs two views of each row, with the same targets and weights");
    return same;
}

static bool arguments_fit(qkv_tape *t, const qkv_tensor *x, const qkv_tensor *w,
                          const qkv_tensor *b, const qkv_xent_spec *spec) {
    const qkv_op *op = &qkv_op_xent;
    const int64_t v = w ? w->rows : x->cols;
    if (b && !w) {
        qkv_tape_fail(t, op, QKV_USAGE, "a bias without weights");
        return false;
    }
    if (!(spec->smoothing >= 0 && spec->smoothing < 1)) {
        qkv_tape_fail(t, op, QKV_USAGE, "smoothing of %g; it must be at least 0 and below 1",
                      (double)spec->smoothing);
        return false;
    }
    return (!w || qkv_expect_shape(t, op, "w", w, v, x->cols)) &&
           (!b || qkv_expect_shape(t, op, "b", b, 1, v)) &&
           qkv_expect_ids(t, op, "targets", spec->targets, x->rows, -1, v) &&
           (!(spec->agree > 0) || pairs_fit(t, x, spec));
}

static bool allocate(qkv_tape *t, chunks *c) {
    const int64_t views = c->half ? 2 : 1, all = c->x->rows / views;
    c->rows = CHUNK_LOGITS / c->v / views / 64 * 64;
    if (c->rows < CHUNK_ROWS) c->rows = CHUNK_ROWS;
    if (c->rows > all) c->rows = all;
    const int64_t rows = views * c->rows;
    c->loss = qkv_tape_alloc(t, &qkv_op_xent, (size_t)rows * sizeof *c->loss);
    c->lse = qkv_tape_alloc(t, &qkv_op_xent, (size_t)(2 * rows) * sizeof(real));
    c->z = qkv_tape_alloc(t, &qkv_op_xent, (size_t)(rows * c->v) * sizeof(real));
    c->z_t = c->lse ? c->lse + rows : NULL;
    c->data = c->x->data;
    if (c->train) qkv_tensor_spend(c->x); /* a chunk's dx takes the place of its x */
    c->dx = c->train ? qkv_grad_write(t, c->x, &c->dx_add) : NULL;
    return !qkv_tape_stopped(t);
}

qkv_tensor *qkv_xent(qkv_tape *t, qkv_tensor *x, qkv_tensor *w, qkv_tensor *b,
                     const qkv_xent_spec *spec) {
    if (qkv_tape_stopped(t) || !arguments_fit(t, x, w, b, spec)) return &t->nothing;
    int64_t n = 0;
    for (int64_t r = 0; r < x->rows; r++) n += spec->targets[r] >= 0;
    if (spec->n_targets) *spec->n_targets = n;
    if (spec->n_right) *spec->n_right = 0;
    chunks c = {.spec = spec, .x = x, .w = w, .b = b, .v = w ? w->rows : x->cols};
    c.scale = spec->scale != 0 ? spec->scale : (real)(1 / (double)(n ? n : 1));
    c.half = spec->agree > 0 ? x->rows / 2 : 0;
    c.train = qkv_tape_records(t, QKV_TENSORS(x, w, b));

    qkv_tensor *loss = qkv_tensor_new(t, 1, 1);
    const qkv_arena_mark mark = qkv_arena_here(&t->arena); /* the chunk's memory is not kept */
    if (!allocate(t, &c)) return &t->nothing;
    const int64_t rows = c.half ? c.half : x->rows;
    double sum = 0;
    for (int64_t row = 0; row < rows && !qkv_tape_stopped(t); row += c.rows)
        sum += run_chunk(t, &c, row, c.rows < rows - row ? c.rows : rows - row);
    loss->data[0] = (real)((double)c.scale * sum);
    qkv_arena_rewind(&t->arena, mark);
    qkv_tensor_done(x);
    return qkv_tape_record(t, &qkv_op_xent, QKV_TENSORS(x, w, b), QKV_TENSORS(loss), NULL);
}

/* ---- cases ---- */

enum { LOGITS = 1, BIAS = 2, SMOOTH = 4, WEIGHTS = 8, IGNORED = 16, SHARED = 32, PAIRS = 64 };

static qkv_tensor *build(qkv_tape *t, qkv_check *c) {
    static const int32_t targets[] = {3, 0, 6, 6, 2}, some[] = {3, -1, 6, -1, 2},
                         paired[] = {3, -1, 6, 3, -1, 6};
    static const real weights[] = {1, (real)0.5, 2, 0, (real)1.5},
                      pair_weights[] = {1, (real)0.5, 2, 1, (real)0.5, 2};
    const int f = qkv_check_variant(c);
    const int64_t rows = f & PAIRS ? 6 : 5;
    const qkv_xent_spec spec = {.targets = f & PAIRS     ? paired
                                           : f & IGNORED ? some
                                                         : targets,
                                .weights = !(f & WEIGHTS) ? NULL
                                           : f & PAIRS    ? pair_weights
                                                          : weights,
                                .agree = f & PAIRS ? (real)1.3 : 0,
                                .smoothing = f & SMOOTH ? (real)0.1 : 0,
                                .scale = f & WEIGHTS ? (real)0.7 : 0};
    if (f & LOGITS) return qkv_xent(t, qkv_check_input(t, c, rows, 7, 0, 2), NULL, NULL, &spec);
    qkv_tensor *x = qkv_check_input(t, c, rows, 4, 0, 1), *w = qkv_check_input(t, c, 7, 4, 0, 1);
    if (f & SHARED)
        x = qkv_linear(t, qkv_linear(t, x, w, NULL, QKV_ACT_TANH),
                       qkv_check_input(t, c, 4, 7, 0, 1), NULL, 0);
    return qkv_xent(t, x, w, f & BIAS ? qkv_check_input(t, c, 1, 7, 0, 1) : NULL, &spec);
}

const qkv_case qkv_cases_xent[] = {
    {"xent", build, 0},
    {"xent: bias, smoothing", build, BIAS | SMOOTH},
    {"xent: weights, ignored, scale", build, WEIGHTS | IGNORED | SMOOTH},
    {"xent: of logits", build, LOGITS},
    {"xent: of logits, ignored, smoothing", build, LOGITS | IGNORED | SMOOTH},
    {"xent: tied weights", build, SHARED | BIAS},
    {"xent: pairs of logits", build, LOGITS | PAIRS},
    {"xent: pairs, bias, smoothing, weights", build, PAIRS | BIAS | SMOOTH | WEIGHTS},
    {0}};
