/* The feed-forward layer: y = h W₂ᵀ + b₂, h = act(z) or, gated, act(z_a)·z_b;  z = x W₁ᵀ + b₁.
 *
 *   dh = dy W₂,  dW₂ = dyᵀ h,  db₂ = Σ_r dy_r
 *   dz = dh·act'(z);  gated: dz_a = dh·z_b·act'(z_a),  dz_b = dh·act(z_a)
 *   dx = dz W₁,  dW₁ = dzᵀ x,  db₁ = Σ_r dz_r
 *
 * One op, since its hidden rows are wide and have no other reader: they pass by in blocks of rows
 * that stay in the cache, forward and backward. Kept is z, or h where act' follows from it (ReLU,
 * tanh, sigmoid); in bf16 runs as bf16, to which it is rounded before anybody reads it. dx is
 * written over dy, whose rows are used up block by block. */
#include "ops/ops.h"
#include "ops/product.h"

/* Rows of a block: hidden ones of about 2 MB, but enough for products at full speed. It depends on
 * the width alone, so that bits do not depend on the batch. */
#define BLOCK_REALS ((int64_t)1 << 19)
#define BLOCK_LEAST 128
#define BLOCK_MOST  1024

typedef struct saved {
    qkv_feed_forward_spec spec;
    real *kept;       /* (R, rows of W₁); or */
    uint16_t *narrow; /* the same as bf16 */
} saved;

/* What a pass works with beside its tensors: blocks of rows, and weights packed once for all. */
typedef struct work {
    real *z, *h, *dh, *x;
    real *packed_in, *packed_out;
    const real *up; /* backward: dy, whose memory dx may have */
    qkv_target dx;  /* data NULL when not wanted */
} work;

static bool needs_z(const qkv_feed_forward_spec *s) {
    return s->gated || qkv_act_needs_input(s->act);
}

static int64_t min64(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t block_rows(const qkv_feed_forward_spec *s) {
    const int64_t rows = BLOCK_REALS / s->w_in->rows / 64 * 64;
    return rows < BLOCK_LEAST ? BLOCK_LEAST : min64(rows, BLOCK_MOST);
}

static real *take(qkv_tape *t, int64_t n) {
    return qkv_tape_take(t, &qkv_op_feed_forward, QKV_LIFE_BRIEF, (size_t)n * sizeof(real));
}

/* The weights of g's product, for all blocks; NULL when one block packs them on its way. */
static real *pack(qkv_tape *t, qkv_gemm g, int64_t rows) {
    if (rows <= g.m || g.b_packed || qkv_tape_stopped(t)) return NULL;
    g.precision = (qkv_precision)t->precision;
    real *packed = take(t, (int64_t)qkv_kern_get()->gemm_pack_size(&g));
    if (packed) qkv_kern_get()->gemm_pack(&g, packed);
    return packed;
}

static void give(work *k) {
    real *const all[] = {k->z, k->h, k->dh, k->x, k->packed_in, k->packed_out};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) qkv_heap_give(all[i]);
}

/* ---- forward ---- */

/* The hidden rows of a block that begins at row r0; what backward needs of them is kept. */
static const real *hidden_rows(qkv_tape *t, const saved *s, const work *k, const qkv_tensor *x,
                               int64_t r0, int64_t rows) {
    const qkv_kern *kern = qkv_kern_get();
    const qkv_feed_forward_spec *f = &s->spec;
    const int64_t wide = f->w_in->rows, n = rows * wide;
    real *const z = s->kept ? s->kept + r0 * wide : k->z;
    qkv_gemm g =
        qkv_product_of((qkv_block){x->data + r0 * x->ld, x->ld, rows}, f->w_in, f->b_in, z);
    if (k->packed_in) g.b_packed = k->packed_in;
    if (!f->gated && (!needs_z(f) || !s->narrow)) g.act = f->act;
    if (s->kept && needs_z(f) && !f->gated) g.c = k->h, g.pre = z;
    if (!qkv_product(t, &qkv_op_feed_forward, g)) return NULL;
    if (s->narrow) kern->narrow(z, s->narrow + r0 * wide, n);
    if (f->gated)
        kern->gate(f->act, z, k->h, rows, wide / 2);
    else if (s->narrow && needs_z(f))
        kern->act(f->act, z, z, n);
    return f->gated ? k->h : g.c;
}

static void forward(qkv_tape *t, const saved *s, const work *k, const qkv_tensor *x,
                    qkv_tensor *y) {
    const qkv_feed_forward_spec *f = &s->spec;
    const int64_t step = block_rows(f);
    for (int64_t r0 = 0; r0 < x->rows && !qkv_tape_stopped(t); r0 += step) {
        const int64_t rows = min64(step, x->rows - r0);
        const real *h = hidden_rows(t, s, k, x, r0, rows);
        qkv_gemm g = qkv_product_of((qkv_block){h, f->w_out->cols, rows}, f->w_out, f->b_out,
                                    y->data + r0 * y->ld);
        if (k->packed_out) g.b_packed = k->packed_out;
        qkv_product(t, &qkv_op_feed_forward, g);
    }
}

/* ---- backward ---- */

/* dz of a block from its dh, and dW₂ from its h on the way. */
static const real *slopes_of_block(qkv_tape *t, const saved *s, const work *k, const real *dy,
                                   int64_t r0, int64_t rows) {
    const qkv_kern *kern = qkv_kern_get();
    const qkv_feed_forward_spec *f = &s->spec;
    const int64_t wide = f->w_in->rows, width = f->w_out->cols, n = rows * wide;
    real *const z = s->kept ? s->kept + r0 * wide : k->z, *h = k->h;
    if (s->narrow) kern->widen(s->narrow + r0 * wide, z, n);
    if (f->gated)
        kern->gate(f->act, z, h, rows, width);
    else if (needs_z(f))
        kern->act_slopes(f->act, z, h, n);
    else
        h = z;
    qkv_product_grad_weights(t, &qkv_op_feed_forward, dy, (qkv_block){h, width, rows}, f->w_out,
                             f->b_out);
    if (f->gated) {
        kern->gate_grad(f->act, z, k->dh, z, rows, width);
        return z;
    }
    if (needs_z(f))
        kern->mul(k->dh, z, k->dh, n);
    else
        kern->act_grad(f->act, NULL, h, k->dh, k->dh, n);
    return k->dh;
}

static void backward_blocks(qkv_tape *t, const saved *s, const work *k, const qkv_tensor *x) {
    const qkv_op *const op = &qkv_op_feed_forward;
    const qkv_feed_forward_spec *f = &s->spec;
    const int64_t step = block_rows(f);
    for (int64_t r0 = 0; r0 < x->rows && !qkv_tape_stopped(t); r0 += step) {
        const int64_t rows = min64(step, x->rows - r0);
        const real *const up = k->up + r0 * f->w_out->rows;
        qkv_gemm g = qkv_product_back(up, rows, f->w_out, k->dh);
        g.b_packed = k->packed_out;
        if (!qkv_product(t, op, g)) return;
        const real *dz = slopes_of_block(t, s, k, up, r0, rows);
        const real *again = qkv_tensor_rows_again(x, r0, rows, k->x);
        qkv_product_grad_weights(t, op, dz, (qkv_block){again, x->ld, rows}, f->w_in, f->b_in);
        if (!k->dx.data) continue;
        g = qkv_product_back(dz, rows, f->w_in, k->dx.data + r0 * k->dx.ld);
        g.ldc = k->dx.ld;
        g.b_packed = k->packed_in;
        g.accumulate = k->dx.add;
        qkv_product(t, op, g);
    }
}

static void backward(qkv_tape *t, qkv_node *node) {
    qkv_tensor *x = node->in[0], *y = node->out[0];
    saved *s = node->saved;
    const qkv_feed_forward_spec *f = &s->spec;
    const int64_t rows = min64(block_rows(f), x->rows), width = f->w_out->cols;
    work k = {.up = qkv_grad_of(t, y), .dx.ld = x->ld};
    k.dx.data = qkv_grad_write(t, x, &k.dx.add);
    if (f->w_in->weight || f->w_out->weight) {
        qkv_product_refuse_gradient(t, &qkv_op_feed_forward);
        return;
    }
    k.dh = take(t, rows * width);
    if (!x->data) k.x = take(t, rows * x->cols);
    if (needs_z(f)) k.h = take(t, rows * width);
    if (s->narrow) k.z = take(t, rows * f->w_in->rows);
    k.packed_out = pack(t, qkv_product_back(k.up, rows, f->w_out, NULL), x->rows);
    if (k.dx.data) k.packed_in = pack(t, qkv_product_back(k.up, rows, f->w_in, NULL), x->rows);
    backward_blocks(t, s, &k, x);
    give(&k);
    qkv_heap_give(s->kept);
    qkv_heap_give(s->narrow);
}

const qkv_op qkv_op_feed_forward = {
    .name = "feed_forward", .backward = backward, .over_output = true};

/* ---- the op ---- */

static bool arguments_fit(qkv_tape *t, const qkv_tensor *x, const qkv_feed_forward_spec *s) {
    const qkv_tensor *w1 = s->w_in, *b1 = s->b_in, *w2 = s->w_out, *b2 = s->b_out;
    const int64_t hidden = s->gated ? w1->rows / 2 : w1->rows;
    if (x->cols == w1->cols && hidden == w2->cols && (!s->gated || w1->rows % 2 == 0) &&
        (!b1 || (b1->rows == 1 && b1->cols == w1->rows)) &&
        (!b2 || (b2->rows == 1 && b2->cols == w2->rows)))
        return true;
    qkv_tape_fail(t, &qkv_op_feed_forward, QKV_USAGE,
                  "x is %lld×%lld, w_in %lld×%lld, b_in %lld×%lld, w_out %lld×%lld, b_out "
                  "%lld×%lld; w_in must have x's columns, w_out as many columns as w_in has rows "
                  "(gated: half as many), a bias the rows of its weights",
                  (long long)x->rows, (long long)x->cols, (long long)w1->rows, (long long)w1->cols,
                  (long long)(b1 ? b1->rows : 0), (long long)(b1 ? b1->cols : 0),
                  (long long)w2->rows, (long long)w2->cols, (long long)(b2 ? b2->rows : 0),
                  (long long)(b2 ? b2->cols : 0));
    return false;
}

qkv_tensor *qkv_feed_forward(qkv_tape *t, qkv_tensor *x, const qkv_feed_forward_spec *spec) {
    if (qkv_tape_stopped(t) || !arguments_fit(t, x, spec)) return &t->nothing;
    const qkv_op *const op = &qkv_op_feed_forward;
    qkv_tensor *const in[] = {x, spec->w_in, spec->b_in, spec->w_out, spec->b_out};
    const bool records = qkv_tape_records(t, in, 5), rounded = t->precision == QKV_BF16;
    const int64_t rows = min64(block_rows(spec), x->rows);
    const int64_t wide = spec->w_in->rows, width = spec->w_out->cols;
    qkv_tensor *y = qkv_tensor_make(t, QKV_LIFE_SPARE, x->rows, spec->w_out->rows);
    saved *s = qkv_tape_alloc(t, op, sizeof *s);
    if (!s) return &t->nothing;
    *s = (saved){.spec = *spec};
    qkv_rows_read(spec->w_in, NULL, 0);
    qkv_rows_read(spec->w_out, NULL, 0);
    work k = {0};
    if (records && rounded)
        s->narrow =
            qkv_tape_take(t, op, QKV_LIFE_KEPT, (size_t)(x->rows * wide) * sizeof *s->narrow);
    else if (records)
        s->kept = qkv_tape_take(t, op, QKV_LIFE_KEPT, (size_t)(x->rows * wide) * sizeof *s->kept);
    if (!s->kept) k.z = take(t, rows * wide);
    if (spec->gated || (s->kept && needs_z(spec))) k.h = take(t, rows * width);
    k.packed_in =
        pack(t, qkv_product_of((qkv_block){.rows = rows}, spec->w_in, NULL, NULL), x->rows);
    k.packed_out =
        pack(t, qkv_product_of((qkv_block){.rows = rows}, spec->w_out, NULL, NULL), x->rows);
    if (!qkv_tape_stopped(t)) forward(t, s, &k, x, y);
    give(&k);
    qkv_tensor_done(x);
    return qkv_tape_record(t, op, in, 5, QKV_TENSORS(y), s);
}

/* ---- cases ---- */

enum { GATED = 16, LONG = 32 };

/* After a norm whose rows are made again; LONG: more than one block, checked where one ends and the
 * next begins. */
static qkv_tensor *build(qkv_tape *t, qkv_check *c) {
    const int v = qkv_check_variant(c);
    const int64_t rows = v & LONG ? BLOCK_MOST + 3 : 5, hidden = 3;
    qkv_tensor *x = qkv_check_input(t, c, rows, 4, 0, 1);
    qkv_tensor *gain = qkv_check_input(t, c, 1, 4, 1, 0.5);
    x = qkv_norm(t, x, gain, qkv_check_input(t, c, 1, 4, 0, 1), &(qkv_norm_spec){.brief = true},
                 NULL);
    const int64_t wide = v & GATED ? 2 * hidden : hidden;
    qkv_feed_forward_spec spec = {.act = (qkv_act)(v % GATED), .gated = v & GATED};
    spec.w_in = qkv_check_input(t, c, wide, 4, 0, 1),
    spec.b_in = qkv_check_input(t, c, 1, wide, 0, 1);
    spec.w_out = qkv_check_input(t, c, 4, hidden, 0, 1);
    spec.b_out = qkv_check_input(t, c, 1, 4, 0, 1);
    qkv_tensor *y = qkv_feed_forward(t, x, &spec);
    return v & LONG ? qkv_tensor_rows(t, y, BLOCK_MOST - 2, 5) : y;
}

/* No biases, another width behind, and x has other readers: its gradient is added to. */
static qkv_tensor *build_shared(qkv_tape *t, qkv_check *c) {
    qkv_tensor *x = qkv_check_input(t, c, 5, 4, 0, 1), *w = qkv_check_input(t, c, 4, 4, 0, 1);
    const qkv_feed_forward_spec narrow = {
        .w_in = w, .w_out = qkv_check_input(t, c, 3, 4, 0, 1), .act = QKV_ACT_GELU};
    const qkv_feed_forward_spec same = {.w_in = w, .w_out = w, .act = QKV_ACT_TANH};
    qkv_tensor *y = qkv_add(t, qkv_feed_forward(t, x, &same), x, 0);
    return qkv_concat(t, QKV_TENSORS(qkv_feed_forward(t, x, &narrow), y));
}

const qkv_case qkv_cases_feed_forward[] = {
    {"feed_forward: relu", build, QKV_ACT_RELU},
    {"feed_forward: gelu", build, QKV_ACT_GELU},
    {"feed_forward: gelu by tanh", build, QKV_ACT_GELU_TANH},
    {"feed_forward: silu", build, QKV_ACT_SILU},
    {"feed_forward: tanh", build, QKV_ACT_TANH},
    {"feed_forward: no activation", build, QKV_ACT_NONE},
    {"feed_forward: gated by relu (ReGLU)", build, GATED | QKV_ACT_RELU},
    {"feed_forward: gated by gelu (GEGLU)", build, GATED | QKV_ACT_GELU},
    {"feed_forward: gated by gelu in the tanh form", build, GATED | QKV_ACT_GELU_TANH},
    {"feed_forward: gated by silu (SwiGLU)", build, GATED | QKV_ACT_SILU},
    {"feed_forward: gated by tanh", build, GATED | QKV_ACT_TANH},
    {"feed_forward: gated by sigmoid (GLU)", build, GATED | QKV_ACT_SIGMOID},
    {"feed_forward: bilinear", build, GATED | QKV_ACT_NONE},
    {"feed_forward: two blocks, gelu", build, LONG | QKV_ACT_GELU},
    {"feed_forward: two blocks, gated", build, LONG | GATED | QKV_ACT_SILU},
    {"feed_forward: shared weights, several readers", build_shared, 0},
    {0}};
