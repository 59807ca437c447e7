/* classify: one text, one of a set of labels. Targets are per sequence. */
#include "task/companion.h"

static void assemble(qkv_tape *t, const qkv_task_spec *spec, const qkv_batcher *b,
                     const int64_t *examples, int64_t n, qkv_batch *out) {
    (void)spec;
    int32_t *targets = qkv_tape_alloc(t, NULL, (size_t)n * sizeof *targets);
    if (!targets || !qkv_task_read(t, b, examples, n, out)) return;
    for (int64_t i = 0; i < n; i++) targets[i] = b->data->label[examples[i]];
    out->targets = targets;
    out->n_targets = n;
}

/* The encoder learns as if it were alone (the n-grams have learned already), and is judged together
 * with them: what is soon right must not keep the other from learning. */
static qkv_tensor *loss(qkv_tape *t, qkv_model *m, const qkv_task_spec *spec, const qkv_batch *b,
                        int64_t *n_right) {
    const bool training = t->mode == QKV_TRAIN;
    qkv_tensor *logits =
        training ? qkv_model_encoder_logits(t, m, &b->src) : qkv_model_classify(t, m, &b->src);
    real *weights = NULL;
    if (training && spec->class_weights) {
        weights = qkv_tape_alloc(t, NULL, (size_t)b->n_targets * sizeof *weights);
        if (!weights) return &t->nothing;
        for (int64_t i = 0; i < b->n_targets; i++) weights[i] = spec->class_weights[b->targets[i]];
    }
    return qkv_xent(t, logits, NULL, NULL,
                    &(qkv_xent_spec){.targets = b->targets,
                                     .weights = weights,
                                     .smoothing = training ? (real)spec->smoothing : 0,
                                     .agree = training ? (real)spec->r_drop : 0,
                                     .scale = 1,
                                     .n_right = n_right});
}

/* The answers of a batch: softmax, the largest, the loss of the true class. */
static qkv_status count(qkv_tape *t, qkv_model *m, const qkv_batch *b, qkv_tally *sum) {
    qkv_tensor *logits = qkv_model_classify(t, m, &b->src);
    QKV_TRY(qkv_tape_status(t));
    return qkv_task_count_classes(logits, b, sum);
}

/* A classifier grows too sure of itself long before it grows worse, which raises its loss: so more
 * right answers are better, and among equals the lower loss. With n-grams the votes are weighed
 * again for each validation, which makes up for that. */
static double score(const qkv_config *c, double loss, double right) {
    return qkv_companion_has(c, &qkv_companion_ngrams) ? -loss : right - 1e-6 * loss;
}

static const qkv_companion *const companions[] = {&qkv_companion_ngrams, NULL};

const qkv_task qkv_task_classify = {
    .name = "classify",
    .help = "one label of a set for each text",
    .use = "echo \"some text\" | qkv classify %s",
    .shape = {.encoder = true, .head = QKV_HEAD_CLASSES},
    .corpus = QKV_CORPUS_LABELLED,
    .recipe = &qkv_recipe_labels,
    .sides = 1,
    .unit = "examples",
    .counts_right = true,
    .companions = companions,
    .score = score,
    .assemble = assemble,
    .loss = loss,
    .count = count,
};
