/* classify: one text, one of a set of labels; or (`several`) any number of them, each of which is
 * there or not. Targets are per sequence. */
#include "task/companion.h"

#include <math.h>

/* A row of the batch has 1 for each of its labels, 0 for the others; smoothed while training, a
 * share of which is spread over all. Labels that the model does not know are −1. */
static void assemble_lists(qkv_tape *t, const qkv_task_spec *spec, int64_t n, qkv_batch *out) {
    const int64_t classes = spec->classes;
    const double share = t->mode == QKV_TRAIN ? spec->smoothing : 0;
    real *numbers = qkv_tape_alloc(t, NULL, (size_t)(n * classes) * sizeof *numbers);
    if (!numbers) return;
    for (int64_t i = 0; i < n * classes; i++) numbers[i] = (real)(share / (double)classes);
    for (int64_t i = 0; i < n; i++) {
        const qkv_cells labels = out->src.column[QKV_COLUMN_LABELS][i];
        for (int64_t k = 0; k < labels.n; k++)
            if (labels.at[k] >= 0) numbers[i * classes + labels.at[k]] += (real)(1 - share);
    }
    out->numbers = numbers;
}

static void assemble(qkv_tape *t, const qkv_task_spec *spec, const qkv_batcher *b,
                     const int64_t *examples, int64_t n, qkv_batch *out) {
    out->n_targets = n;
    if (spec->several) {
        if (qkv_task_read(t, b, examples, n, out)) assemble_lists(t, spec, n, out);
        return;
    }
    int32_t *targets = qkv_tape_alloc(t, NULL, (size_t)n * sizeof *targets);
    if (!targets || !qkv_task_read(t, b, examples, n, out)) return;
    for (int64_t i = 0; i < n; i++) targets[i] = b->data->label[examples[i]];
    out->targets = targets;
}

/* The logit at which a label is given. */
static double edge_of(const qkv_config *c) {
    return log(c->threshold / (1 - c->threshold));
}

/* The encoder learns as if it were alone (the n-grams have learned already), and is judged together
 * with them: what is soon right must not keep the other from learning. */
static qkv_tensor *loss(qkv_tape *t, qkv_model *m, const qkv_task_spec *spec, const qkv_batch *b,
                        int64_t *n_right) {
    const bool training = t->mode == QKV_TRAIN;
    qkv_tensor *logits =
        training ? qkv_model_encoder_logits(t, m, &b->src) : qkv_model_classify(t, m, &b->src);
    if (spec->several)
        return qkv_pointwise(
            t, logits,
            &(qkv_pointwise_spec){.kind = QKV_POINT_SIGMOID,
                                  .targets = b->numbers,
                                  .agree = training ? (real)spec->r_drop : 0,
                                  .scale = 1,
                                  .edge = training ? 0 : (real)edge_of(qkv_model_config(m)),
                                  .n_right = n_right});
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

/* Labels given and labels true, by class; a row is right when they are the same. */
static void count_lists(const qkv_tensor *logits, const qkv_batch *b, double edge, qkv_tally *sum) {
    const int32_t classes = sum->classes;
    for (int64_t i = 0; i < logits->rows; i++) {
        const qkv_cells labels = b->src.column[QKV_COLUMN_LABELS][i];
        bool right = labels.n == 0 || labels.at[0] >= 0; /* what is unknown is never given */
        for (int32_t c = 0; c < classes; c++) {
            const double z = (double)logits->data[i * logits->ld + c];
            const bool truth = b->numbers[i * classes + c] >= (real)0.5, given = z >= edge;
            const int64_t counts[] = {truth, given, truth && given};
            for (int k = 0; k < 3; k++) {
                sum->labels[c][k] += counts[k];
                sum->labels[classes][k] += counts[k];
            }
            sum->loss += (z > 0 ? z : 0) + log1p(exp(-fabs(z))) - (truth ? z : 0);
            right &= truth == given;
        }
        sum->n_right += right;
        sum->n_targets++;
    }
}

/* The answers of a batch: softmax, the largest, the loss of the true class. */
static qkv_status count(qkv_tape *t, qkv_model *m, const qkv_batch *b, qkv_tally *sum) {
    qkv_tensor *logits = qkv_model_classify(t, m, &b->src);
    QKV_TRY(qkv_tape_status(t));
    if (!b->numbers) return qkv_task_count_classes(logits, b, sum);
    count_lists(logits, b, edge_of(qkv_model_config(m)), sum);
    return QKV_OK;
}

/* A classifier grows too sure of itself long before it grows worse, which raises its loss: so more
 * right answers are better, and among equals the lower loss. With n-grams the votes are weighed
 * again for each validation, which makes up for that. */
static double score(const qkv_config *c, double loss, double right) {
    return qkv_companion_has(c, &qkv_companion_ngrams) ? -loss : right - 1e-6 * loss;
}

static const qkv_companion *const companions[] = {&qkv_companion_ngrams, &qkv_companion_threshold,
                                                  NULL};

const qkv_task qkv_task_classify = {
    .name = "classify",
    .help = "one label of a set for each text, or several",
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
