/* A stack of layers put together by hand on the tape, and trained: one Transformer layer learns
 * whether the first and the last of four bits agree.
 *
 * The tape is not part of qkv.h: this program includes the library's own headers and links the
 * static library. It shows how little a model is:
 * declare parameters, run ops, ask for the gradient, step downhill. */
#include "nn/stack.h"

#include <stdio.h>

enum { VOCAB = 2, WIDTH = 16, LENGTH = 4, BATCH = 16, STEPS = 400 };

/* What the model is made of. */
typedef struct agreement {
    qkv_params params;
    qkv_param *table;
    qkv_stack stack;
    qkv_dense head;
} agreement;

static qkv_status declare(agreement *m) {
    const qkv_stack_spec spec = {
        .layers = 1,
        .pre_norm = true,
        .norm_kind = QKV_NORM_LAYER,
        .norm_eps = 1e-5,
        .attention = {.d_model = WIDTH,
                      .d_head = 8,
                      .heads = 2,
                      .kv_heads = 2,
                      .projections = true,
                      .qkv_bias = true,
                      .out_bias = true,
                      .init = QKV_INIT_SCHEME_XAVIER,
                      .out_gain = 1},
        .ffn = {.kind = QKV_FFN_GELU,
                .d_model = WIDTH,
                .d_ff = 4 * WIDTH,
                .bias = true,
                .init = QKV_INIT_SCHEME_XAVIER,
                .out_gain = 1},
        .position = {.kind = QKV_POSITION_LEARNED,
                     .d_model = WIDTH,
                     .d_head = 8,
                     .heads = 2,
                     .layers = 1,
                     .max_len = LENGTH},
    };
    qkv_params_init(&m->params);
    m->table = qkv_param_declare(
        &m->params,
        &(qkv_param_spec){.rows = VOCAB, .cols = WIDTH, .init = QKV_INIT_NORMAL, .gain = 1},
        "table");
    QKV_TRY(qkv_stack_declare(&m->stack, &spec, &m->params, "layer"));
    m->head = qkv_dense_declare(
        &m->params,
        &(qkv_dense_spec){.in = WIDTH, .out = 2, .bias = true, .init = QKV_INIT_SCHEME_XAVIER},
        "head");
    QKV_TRY(qkv_params_allocate(&m->params, true));
    qkv_params_initialise(&m->params, 1);
    return qkv_stack_allocate(&m->stack);
}

/* The forward pass: embed, one layer, the mean of the rows, two logits; then the loss. */
static qkv_tensor *loss_of(qkv_tape *t, agreement *m, const int32_t *ids, const int32_t *labels,
                           int64_t *right) {
    static int32_t start[BATCH + 1], pos[BATCH * LENGTH];
    for (int i = 0; i <= BATCH; i++) start[i] = i * LENGTH;
    for (int i = 0; i < BATCH * LENGTH; i++) pos[i] = i % LENGTH;
    const qkv_layout layout = {.n = BATCH, .start = start};
    const qkv_place place = {
        .layout = layout, .rows = BATCH * LENGTH, .pos = pos, .n_positions = LENGTH};
    const qkv_pass pass = {.place = place,
                           .terms = qkv_position_begin(t, &m->stack.position, &place)};
    qkv_tensor *x = qkv_embedding(t, qkv_of(m->table),
                                  &(qkv_embedding_spec){.ids = ids,
                                                        .rows = BATCH * LENGTH,
                                                        .position = pass.terms.table,
                                                        .pos = pos}); /* (B·L, D) */
    x = qkv_stack_apply(t, &m->stack, x, &pass);
    x = qkv_pool(t, x, layout, QKV_POOL_MEAN); /* (B, D) */
    return qkv_xent(t, x, qkv_of(m->head.weight), qkv_of(m->head.bias),
                    &(qkv_xent_spec){.targets = labels, .n_right = right});
}

static void descend(qkv_params *p, real rate) {
    for (int64_t i = 0; i < p->length; i++) p->values[i] -= rate * p->grads[i];
}

static qkv_status train(qkv_tape *t, agreement *m) {
    int32_t ids[BATCH * LENGTH], labels[BATCH];
    int64_t right = 0;
    for (int b = 0; b < BATCH; b++) { /* all sixteen texts of four bits */
        for (int i = 0; i < LENGTH; i++) ids[b * LENGTH + i] = b >> i & 1;
        labels[b] = ids[b * LENGTH] == ids[b * LENGTH + LENGTH - 1];
    }
    for (int step = 0; step < STEPS; step++) {
        qkv_tape_begin(t, QKV_TRAIN, 1, (uint64_t)step);
        qkv_params_zero_grads(&m->params);
        qkv_tensor *loss = loss_of(t, m, ids, labels, &right);
        QKV_TRY(qkv_tape_backward(t, &loss, 1));
        descend(&m->params, (real)0.1);
        if (step % 100 == 99)
            printf("step %d: loss %.4f, %d of %d right\n", step + 1, (double)loss->data[0],
                   (int)right, BATCH);
    }
    return right == BATCH ? QKV_OK : qkv_fail(QKV_NUMERIC, "it was not learned");
}

int main(void) {
    qkv_tape tape;
    qkv_threads_set(1); /* for so little work one is the fastest */
    agreement model = {0};
    qkv_status status = qkv_tape_init(&tape);
    if (status == QKV_OK) status = declare(&model);
    if (status == QKV_OK) status = train(&tape, &model);
    if (status != QKV_OK) fprintf(stderr, "layers: %s\n", qkv_error());
    qkv_stack_free(&model.stack);
    qkv_params_free(&model.params);
    qkv_tape_free(&tape);
    return qkv_status_exit_code(status);
}
