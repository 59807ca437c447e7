/* Rotary positions: a pair (a, b) of a head turns by the angle θ of its row's position, in place:
 *   a' = a cos θ − b sin θ,   b' = a sin θ + b cos θ
 * A rotation's transpose is its inverse, so the gradient is turned back by the same angle, in place
 * too: the result is a view of x and shares x's gradient. */
#include "ops/ops.h"
#include "ops/expect.h"

static void turn(const qkv_rope_spec *s, const qkv_tensor *x, real *data, int sign) {
    qkv_kern_get()->rotate(&(qkv_rotation){.rows = x->rows,
                                           .heads = s->heads,
                                           .d = (int32_t)(x->cols / s->heads),
                                           .turned = s->turned,
                                           .x = data,
                                           .ld = x->ld,
                                           .pos = s->pos,
                                           .cos = s->cos,
                                           .sin = s->sin,
                                           .half_split = s->half_split,
                                           .sign = sign});
}

static void backward(qkv_tape *t, qkv_node *node) {
    turn(node->saved, node->out[0], qkv_grad_of(t, node->out[0]), -1);
}

const qkv_op qkv_op_rope = {.name = "rope", .backward = backward};

qkv_tensor *qkv_rope(qkv_tape *t, qkv_tensor *x, const qkv_rope_spec *spec) {
    if (qkv_tape_stopped(t)) return &t->nothing;
    if (spec->heads < 1 || x->cols % (2 * spec->heads) || spec->turned % 2 || spec->turned < 0 ||
        spec->turned > x->cols / spec->heads)
        return qkv_tape_fail(
            t, &qkv_op_rope, QKV_USAGE,
            "x is %lld×%lld; its columns must be %d heads, turned in an even width",
            (long long)x->rows, (long long)x->cols, spec->heads);
    if (!qkv_expect_ids(t, &qkv_op_rope, "pos", spec->pos, x->rows, 0, spec->positions))
        return &t->nothing;
    qkv_rope_spec *keep = qkv_tape_alloc(t, &qkv_op_rope, sizeof *keep);
    qkv_tensor *y = qkv_tensor_columns(t, x, 0, x->cols);
    if (qkv_tape_stopped(t)) return y;
    *keep = *spec;
    if (!keep->turned) keep->turned = (int32_t)(x->cols / spec->heads);
    turn(keep, y, y->data, 1);
    return qkv_tape_record(t, &qkv_op_rope, QKV_TENSORS(x), QKV_TENSORS(y), keep);
}

/* ---- cases ---- */

enum { HALVES = 1, PART = 2 };
static const real cosines[] = {1, 1, (real)0.8, (real)-0.6, (real)0.28, (real)0.6};
static const real sines[] = {0, 0, (real)0.6, (real)0.8, (real)0.96, (real)-0.8};
static const int32_t positions[] = {0, 1, 2, 0, 1};

/* Two heads of four (the turned part of each: all, or two) in the middle of a copied row: the copy is what may be overwritten. */
static qkv_tensor *build(qkv_tape *t, qkv_check *c) {
    qkv_tensor *x = qkv_check_input(t, c, 5, 12, 0, 1), *all = qkv_concat(t, QKV_TENSORS(x));
    const qkv_rope_spec spec = {.heads = 2,
                                .pos = positions,
                                .cos = cosines,
                                .sin = sines,
                                .positions = 3,
                                .turned = qkv_check_variant(c) & PART ? 2 : 0,
                                .half_split = qkv_check_variant(c) & HALVES};
    qkv_tensor *turned = qkv_rope(t, qkv_tensor_columns(t, all, 2, 8), &spec);
    return qkv_concat(t, QKV_TENSORS(qkv_tensor_columns(t, all, 0, 2), turned));
}

const qkv_case qkv_cases_rope[] = {{"rope: neighbours", build, 0},
                                   {"rope: halves", build, HALVES},
                                   {"rope: neighbours, a part", build, PART},
                                   {"rope: halves, a part", build, HALVES | PART},
                                   {0}};
