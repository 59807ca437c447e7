/* s = x + dropout(r),  h = (s − μ)·ρ,  y = h·gain + bias,  by row.
 * Layer norm: μ is the row's mean, ρ one over its deviation. RMS norm: μ = 0, ρ = 1/√(mean s²).
 *
 * With g = dy·gain and means over the row (μ and ρ depend on s too):
 *   ds = ρ·(g − mean g − h·mean(g·h)) + what arrives at s from elsewhere;  RMS: without mean g
 *   dgain = Σ dy·h,  dbias = Σ dy,   dx = ds,   dr = dropout(ds) with the same mask
 * Kept: s and two numbers per row (and y, unless it is brief: made again from those). ds takes the
 * place of dy and is handed on to x without a copy. */
#include "ops/ops.h"
#include "ops/expect.h"

typedef struct saved {
    qkv_norm_kind kind;
    real dropout;
    const real *s;
    real *stats; /* (R, 2) */
} saved;

/* dr = dropout(ds) */
static void residual_backward(qkv_tape *t, qkv_node *node, qkv_tensor *ds) {
    const saved *s = node->saved;
    qkv_tensor *r = node->in[1];
    real *dr = qkv_grad_write(t, r, NULL);
    if (dr)
        qkv_kern_get()->dropout(qkv_grad_of(t, ds), dr, r->rows * r->cols, s->dropout,
                                qkv_tape_rng(t, node->index), 0);
}

/* dy becomes ds. */
static bool norm_backward(qkv_tape *t, const qkv_node *node, real *dy, const real *ds_in) {
    const saved *s = node->saved;
    qkv_tensor *gain = node->in[2];
    const qkv_norm_grad spec = {.kind = s->kind,
                                .rows = node->out[0]->rows,
                                .d = node->out[0]->cols,
                                .s = s->s,
                                .gain = gain->data,
                                .stats = s->stats,
                                .dy = dy,
                                .ds_in = ds_in,
                                .ds = dy,
                                .dgain = qkv_grad_add(t, gain, NULL, 0),
                                .dbias = qkv_grad_add(t, node->in[3], NULL, 0)};
    return qkv_kern_get()->norm_grad(&spec);
}

static void backward(qkv_tape *t, qkv_node *node) {
    qkv_tensor *x = node->in[0], *y = node->out[0], *sum = node->out[1];
    const saved *s = node->saved;
    real *dy = qkv_grad_of(t, y), *ds_in = qkv_grad_of(t, sum);
    qkv_tensor *ds = dy ? y : sum; /* whose gradient becomes ds */
    if (dy && !norm_backward(t, node, dy, ds_in)) {
        qkv_tape_fail_below(t, &qkv_op_norm);
        return;
    }
    if (s->dropout > 0) residual_backward(t, node, ds);
    qkv_grad_pass(t, ds, QKV_TENSORS(s->dropout > 0 ? NULL : node->in[1], x));
}

static void remake(const qkv_node *node, int64_t row0, int64_t rows, real *out) {
    const saved *s = node->saved;
    const qkv_tensor *gain = node->in[2], *bias = node->in[3];
    const int64_t d = node->out[0]->cols;
    qkv_kern_get()->norm_again(s->s + row0 * d, gain->data, bias ? bias->data : NULL,
                               s->stats + 2 * row0, out, rows, d);
}

const qkv_op qkv_op_norm = {.name = "norm", .backward = backward, .remake = remake};

static bool arguments_fit(qkv_tape *t, const qkv_tensor *x, const qkv_tensor *gain,
                          const qkv_tensor *bias, const qkv_norm_spec *spec) {
    const qkv_op *op = &qkv_op_norm;
    const qkv_tensor *r = spec->residual;
    return qkv_expect_packed(t, op, "x", x) && qkv_expect_shape(t, op, "gain", gain, 1, x->cols) &&
           (!bias || qkv_expect_shape(t, op, "bias", bias, 1, x->cols)) &&
           (!r || (qkv_expect_shape(t, op, "residual", r, x->rows, x->cols) &&
                   qkv_expect_packed(t, op, "residual", r))) &&
           qkv_expect_rate(t, op, spec->dropout);
}

/* Where s goes: over r when neither r's maker nor another reader needs it, else new memory. */
static qkv_tensor *sum_in(qkv_tape *t, const qkv_tensor *r, bool last_reader) {
    return last_reader && qkv_may_overwrite(t, r) ? qkv_tensor_wrap(t, r->data, r->rows, r->cols)
                                                  : qkv_tensor_new(t, r->rows, r->cols);
}

qkv_tensor *qkv_norm(qkv_tape *t, qkv_tensor *x, qkv_tensor *gain, qkv_tensor *bias,
                     const qkv_norm_spec *spec, qkv_tensor **sum) {
    if (sum) *sum = &t->nothing;
    if (qkv_tape_stopped(t) || !arguments_fit(t, x, gain, bias, spec)) return &t->nothing;
    qkv_tensor *r = spec->residual;
    qkv_tensor *const in[] = {x, r, gain, bias};
    const bool brief = spec->brief && qkv_tape_records(t, in, 4);
    qkv_tensor *y = qkv_tensor_make(t, brief ? QKV_LIFE_BRIEF : QKV_LIFE_STEP, x->rows, x->cols);
    qkv_tensor *s = r ? sum_in(t, r, spec->last_reader) : NULL;
    saved *keep = qkv_tape_alloc(t, &qkv_op_norm, sizeof *keep);
    real *stats = qkv_tape_alloc(t, &qkv_op_norm, (size_t)(2 * x->rows) * sizeof(real));
    if (!stats) return &t->nothing;
    *keep = (saved){.kind = spec->kind,
                    .dropout = t->mode == QKV_TRAIN && r ? spec->dropout : 0,
                    .stats = stats};
    keep->s = s ? s->data : x->data;
    qkv_kern_get()->norm(&(qkv_norm_rows){.kind = spec->kind,
                                          .rows = x->rows,
                                          .d = x->cols,
                                          .x = x->data,
                                          .r = r ? r->data : NULL,
                                          .dropout = keep->dropout,
                                          .rng = qkv_tape_rng(t, qkv_tape_next_index(t)),
                                          .gain = gain->data,
                                          .bias = bias ? bias->data : NULL,
                                          .eps = spec->eps > 0 ? spec->eps : (real)1e-5,
                                          .s = s ? s->data : NULL,
                                          .y = y->data,
                                          .stats = stats});
    qkv_tensor *out = qkv_tape_record(t, &qkv_op_norm, in, 4, QKV_TENSORS(y, s), keep);
    if (sum && !qkv_tape_stopped(t)) *sum = s ? s : x;
    return out;
}

/* ---- cases ---- */

enum { RMS = 1, BIAS = 2, RESIDUAL = 4, SUM_USED = 8, DROPOUT = 16, SUM_ONLY = 32, IN_PLACE = 64 };

static qkv_tensor *build(qkv_tape *t, qkv_check *c) {
    const int v = qkv_check_variant(c);
    qkv_tensor *x = qkv_check_input(t, c, 5, 6, 0.3, 1),
               *gain = qkv_check_input(t, c, 1, 6, 1, 0.5), *sum;
    qkv_tensor *r = v & RESIDUAL ? qkv_check_input(t, c, 5, 6, 0, 1) : NULL;
    if (v & IN_PLACE) r = qkv_linear(t, r, qkv_check_input(t, c, 6, 6, 0, 1), NULL, QKV_ACT_NONE);
    const qkv_norm_spec spec = {.kind = v & RMS ? QKV_NORM_RMS : QKV_NORM_LAYER,
                                .residual = r,
                                .last_reader = v & IN_PLACE,
                                .dropout = v & DROPOUT ? (real)0.4 : 0};
    qkv_tensor *y =
        qkv_norm(t, x, gain, v & BIAS ? qkv_check_input(t, c, 1, 6, 0, 1) : NULL, &spec, &sum);
    if (v & SUM_ONLY) return sum;
    return v & SUM_USED ? qkv_mul(t, sum, y) : y;
}

const qkv_case qkv_cases_norm[] = {
    {"norm: layer", build, BIAS},
    {"norm: layer, no bias", build, 0},
    {"norm: rms", build, RMS},
    {"norm: layer, residual", build, BIAS | RESIDUAL},
    {"norm: layer, residual, sum used", build, BIAS | RESIDUAL | SUM_USED},
    {"norm: layer, residual, only sum used", build, BIAS | RESIDUAL | SUM_ONLY},
    {"norm: rms, residual, dropout, sum used", build, RMS | RESIDUAL | DROPOUT | SUM_USED},
    {"norm: layer, sum in place of the residual, dropout, sum used", build,
     BIAS | RESIDUAL | IN_PLACE | DROPOUT | SUM_USED},
    {"norm: layer, sum without residual used", build, BIAS | SUM_USED},
    {0}};
