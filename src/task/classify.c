/* classify: one text, one of a set of labels. Targets are per sequence. */
#include "task/task.h"

#include <string.h>

static void assemble(qkv_tape *t, const qkv_task_spec *spec, const qkv_batcher *b,
                     const int64_t *examples, int64_t n, qkv_batch *out) {
    (void)spec;
    int32_t *ids = qkv_task_layout(t, b, examples, n, 0, 0, &out->src);
    int32_t *targets = qkv_tape_alloc(t, NULL, (size_t)n * sizeof *targets);
    if (!ids || !targets) return;
    for (int64_t i = 0; i < n; i++) {
        int64_t len;
        const int32_t *from = qkv_batcher_ids(b, examples[i], 0, &len);
        memcpy(ids + out->src.layout.start[i], from, (size_t)len * sizeof *ids);
        targets[i] = b->data->label[examples[i]];
    }
    qkv_task_trees(t, b, examples, n, &out->src);
    out->targets = targets;
    out->n_targets = n;
    out->tokens = out->src.rows;
}

/* Voters learn side by side, each from its own loss, and are judged together: one that is soon
 * right must not keep the other from learning. A voter's loss has a share of the weight, so that
 * the sum is that of one classifier. */
static qkv_tensor *loss(qkv_tape *t, qkv_model *m, const qkv_task_spec *spec, const qkv_batch *b,
                        int64_t *n_right) {
    int32_t voters = 1;
    const bool training = t->mode == QKV_TRAIN;
    qkv_tensor *logits =
        training ? qkv_model_votes(t, m, &b->src, &voters) : qkv_model_classify(t, m, &b->src);
    const size_t rows = (size_t)(b->n_targets * voters);
    int32_t *targets = qkv_tape_alloc(t, NULL, rows * sizeof *targets);
    real *weights = qkv_tape_alloc(t, NULL, rows * sizeof *weights);
    if (!targets || !weights) return &t->nothing;
    for (size_t i = 0; i < rows; i++) {
        targets[i] = b->targets[i / (size_t)voters];
        const bool weighed = training && spec->class_weights;
        weights[i] = (weighed ? spec->class_weights[targets[i]] : 1) / (real)voters;
    }
    qkv_tensor *root = qkv_xent(t, logits, NULL, NULL,
                                &(qkv_xent_spec){.targets = targets,
                                                 .weights = weights,
                                                 .smoothing = training ? (real)spec->smoothing : 0,
                                                 .agree = training ? (real)spec->r_drop : 0,
                                                 .scale = 1,
                                                 .n_right = n_right});
    if (n_right) *n_right /= voters;
    return root;
}

const qkv_task qkv_task_classify = {
    .name = "classify", .sides = 1, .unit = "examples", .assemble = assemble, .loss = loss};
