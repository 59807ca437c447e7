/* A training step large enough to run in parallel, small enough for tests: embedding → attention →
 * norm → gated feed-forward → loss. Parameters are plain arrays. */
#ifndef QKV_TESTS_SMALL_STEP_H
#define QKV_TESTS_SMALL_STEP_H

#include "harness.h"
#include "ops/ops.h"

enum { SMALL_D = 32, SMALL_V = 61, SMALL_POSITIONS = 40, SMALL_PARAMS = 9 };

static const int64_t small_shapes[SMALL_PARAMS][2] = {
    {SMALL_V, SMALL_D}, {SMALL_POSITIONS, SMALL_D}, {3 * SMALL_D, SMALL_D},
    {1, 3 * SMALL_D},   {SMALL_D, SMALL_D},         {1, SMALL_D},
    {1, SMALL_D},       {4 * SMALL_D, SMALL_D},     {SMALL_D, 2 * SMALL_D}};

typedef struct small_model {
    qkv_tensor param[SMALL_PARAMS];
    real values[20000], grads[20000];
    int64_t n;
} small_model;

static inline void small_init(small_model *m) {
    m->n = 0;
    for (int i = 0; i < SMALL_PARAMS; i++) {
        const int64_t rows = small_shapes[i][0], cols = small_shapes[i][1];
        m->param[i] =
            (qkv_tensor){.rows = rows, .cols = cols, .ld = cols, .data = m->values + m->n};
        m->param[i].grad = m->grads + m->n;
        m->param[i].wants_grad = true;
        m->param[i].life = QKV_LIFE_PARAM;
        m->param[i].name = "parameter";
        m->n += rows * cols;
    }
    assert_true(m->n <= 20000);
    fill(m->values, m->n, 3);
    for (int64_t i = 0; i < m->n; i++) m->values[i] *= (real)0.3;
    memset(m->grads, 0, sizeof m->grads);
}

/* A batch of n sequences whose lengths follow from the seed. */
typedef struct small_batch {
    int32_t n, rows;
    int32_t start[65], ids[2048], pos[2048], targets[2048];
} small_batch;

static inline void small_batch_make(small_batch *b, int32_t n, int32_t longest, uint64_t seed) {
    const qkv_rng rng = {.seed = seed, .stream = 9};
    b->n = n;
    b->rows = 0;
    for (int32_t s = 0; s < n; s++) {
        b->start[s] = b->rows;
        const int32_t len = 1 + (int32_t)qkv_rng_below(rng, (uint64_t)s, (uint64_t)longest);
        for (int32_t i = 0; i < len; i++, b->rows++) {
            b->pos[b->rows] = i;
            b->ids[b->rows] = (int32_t)qkv_rng_below(rng, (uint64_t)(1000 + b->rows), SMALL_V);
            b->targets[b->rows] = (int32_t)qkv_rng_below(rng, (uint64_t)(9000 + b->rows), SMALL_V);
        }
    }
    b->start[n] = b->rows;
}

/* The step's loss: cross-entropy of every row, with the embedding as output projection. */
static inline qkv_tensor *small_loss(qkv_tape *t, small_model *m, const small_batch *b,
                                     real dropout) {
    qkv_tensor *p = m->param;
    const qkv_embedding_spec embed = {
        .ids = b->ids, .rows = b->rows, .position = &p[1], .pos = b->pos, .dropout = dropout};
    qkv_tensor *x = qkv_embedding(t, &p[0], &embed), *sum;
    qkv_tensor *qkv = qkv_linear(t, x, &p[2], &p[3], QKV_ACT_NONE);
    const qkv_attention_spec attention = {
        .heads = 4, .q_layout = {.n = b->n, .start = b->start}, .dropout = dropout};
    qkv_tensor *a = qkv_attend(t, qkv_tensor_columns(t, qkv, 0, SMALL_D),
                               qkv_tensor_columns(t, qkv, SMALL_D, SMALL_D),
                               qkv_tensor_columns(t, qkv, 2 * SMALL_D, SMALL_D), &attention);
    a = qkv_linear(t, a, &p[4], NULL, QKV_ACT_GELU);
    x = qkv_norm(t, x, &p[5], &p[6], &(qkv_norm_spec){.residual = a, .dropout = dropout}, &sum);
    x = qkv_feed_forward(t, x,
                         &(qkv_feed_forward_spec){
                             .w_in = &p[7], .w_out = &p[8], .act = QKV_ACT_SILU, .gated = true});
    x = qkv_add(t, sum, x, dropout);
    return qkv_xent(t, x, &p[0], NULL,
                    &(qkv_xent_spec){.targets = b->targets, .smoothing = (real)0.1});
}

/* One whole step: forward, backward into m->grads. */
static inline qkv_status small_step(qkv_tape *t, small_model *m, const small_batch *b,
                                    uint64_t step, real *loss) {
    qkv_tape_begin(t, QKV_TRAIN, 5, step);
    qkv_tensor *root = small_loss(t, m, b, (real)0.1);
    if (qkv_tape_status(t) == QKV_OK && loss) *loss = root->data[0];
    return qkv_tape_backward(t, &root, 1);
}

#endif
