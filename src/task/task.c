/* The table of tasks and what they share: laying out a batch, one forward pass. */
#include "task/task.h"

#define TASKS(X) X(CLASSIFY, classify) X(TRANSLATE, translate) X(LM, lm) X(MLM, mlm)

#define TASK_EXTERN(id, name) extern const qkv_task qkv_task_##name;
TASKS(TASK_EXTERN)

const qkv_task *qkv_task_get(qkv_task_kind kind) {
#define TASK_ROW(id, name) [QKV_TASK_##id] = &qkv_task_##name,
    static const qkv_task *const table[QKV_TASK_COUNT] = {TASKS(TASK_ROW)};
    return table[kind];
}

qkv_tensor *qkv_task_vocab_loss(qkv_tape *t, qkv_model *m, const qkv_task_spec *spec,
                                const qkv_batch *b, qkv_tensor *x, int64_t *n_right) {
    const bool training = t->mode == QKV_TRAIN;
    return qkv_model_vocab_loss(t, m, x,
                                &(qkv_xent_spec){.targets = b->targets,
                                                 .smoothing = training ? (real)spec->smoothing : 0,
                                                 .agree = training ? (real)spec->r_drop : 0,
                                                 .scale = 1,
                                                 .n_right = n_right});
}

int32_t *qkv_task_layout(qkv_tape *t, const qkv_batcher *b, const int64_t *examples, int64_t n,
                         int side, int64_t extra, qkv_tokens *out) {
    int32_t *start = qkv_tape_alloc(t, NULL, ((size_t)n + 1) * sizeof *start);
    if (!start) return NULL;
    int64_t rows = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t len;
        qkv_batcher_ids(b, examples[i], side, &len);
        start[i] = (int32_t)rows;
        rows += len + extra;
        if (rows > INT32_MAX) {
            qkv_tape_fail(t, NULL, QKV_USAGE, "a batch of over 2^31 tokens; lower batch_tokens");
            return NULL;
        }
    }
    start[n] = (int32_t)rows;
    int32_t *ids = qkv_tape_alloc(t, NULL, (size_t)rows * sizeof *ids);
    *out = (qkv_tokens){.layout = {.n = (int32_t)n, .start = start}, .ids = ids, .rows = rows};
    return ids;
}

/* The list and the list again, in the arena. */
static const int64_t *twice(qkv_tape *t, const int64_t *examples, int64_t n) {
    int64_t *list = qkv_tape_alloc(t, NULL, 2 * (size_t)n * sizeof *list);
    for (int64_t i = 0; i < 2 * n && list; i++) list[i] = examples[i % n];
    return list;
}

qkv_status qkv_task_forward(qkv_tape *t, qkv_model *m, const qkv_task_spec *spec,
                            const qkv_batcher *b, const int64_t *examples, int64_t n,
                            qkv_batch *batch, qkv_tensor **loss, qkv_loss_out *out) {
    const qkv_task *task = qkv_task_get(qkv_model_config(m)->task);
    if (t->mode == QKV_TRAIN && spec->r_drop > 0) {
        examples = twice(t, examples, n);
        n *= 2;
        if (!examples) return qkv_tape_status(t);
    }
    *batch = (qkv_batch){.n_sequences = n};
    *out = (qkv_loss_out){0};
    task->assemble(t, spec, b, examples, n, batch);
    if (qkv_tape_stopped(t)) return qkv_tape_status(t);
    qkv_tensor *root = task->loss(t, m, spec, batch, &out->n_right);
    QKV_TRY(qkv_tape_status(t));
    out->loss = (double)root->data[0];
    if (loss) *loss = root;
    return QKV_OK;
}
