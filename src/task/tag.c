/* tag: a label for each word of a text. A word's row is that of the token it begins at. */
#include "task/task.h"

static void assemble(qkv_tape *t, const qkv_task_spec *spec, const qkv_batcher *b,
                     const int64_t *examples, int64_t n, qkv_batch *out) {
    (void)spec;
    if (!qkv_task_read(t, b, examples, n, out)) return;
    const qkv_cells *words = out->src.column[QKV_COLUMN_WORDS],
                    *tags = out->src.column[QKV_COLUMN_TAGS];
    for (int64_t i = 0; i < n; i++) out->n_targets += words[i].n;
    int32_t *targets = qkv_tape_alloc(t, NULL, (size_t)out->n_targets * sizeof *targets),
            *at = qkv_tape_alloc(t, NULL, (size_t)out->n_targets * sizeof *at);
    if (!targets || !at) return;
    out->targets = targets;
    out->target_rows = at;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < words[i].n; k++) {
            *at++ = out->src.layout.start[i] + words[i].at[k];
            *targets++ = tags[i].at[k];
        }
}

static qkv_tensor *loss(qkv_tape *t, qkv_model *m, const qkv_task_spec *spec, const qkv_batch *b,
                        int64_t *n_right) {
    const bool training = t->mode == QKV_TRAIN;
    qkv_tensor *logits = qkv_model_tag(t, m, &b->src, b->target_rows, b->n_targets);
    return qkv_xent(t, logits, NULL, NULL,
                    &(qkv_xent_spec){.targets = b->targets,
                                     .smoothing = training ? (real)spec->smoothing : 0,
                                     .agree = training ? (real)spec->r_drop : 0,
                                     .scale = 1,
                                     .n_right = n_right});
}

static qkv_status count(qkv_tape *t, qkv_model *m, const qkv_batch *b, qkv_tally *sum) {
    qkv_tensor *logits = qkv_model_tag(t, m, &b->src, b->target_rows, b->n_targets);
    QKV_TRY(qkv_tape_status(t));
    return qkv_task_count_classes(logits, b, sum);
}

static double score(const qkv_config *c, double loss, double right) {
    (void)c;
    return right - 1e-6 * loss;
}

const qkv_task qkv_task_tag = {
    .name = "tag",
    .help = "a label for each word: names, parts of speech",
    .use = "echo \"some text\" | qkv tag %s",
    .shape = {.encoder = true, .head = QKV_HEAD_TAGS},
    .corpus = QKV_CORPUS_TAGGED,
    .recipe = &qkv_recipe_words,
    .sides = 1,
    .columns = QKV_COLUMNS_WORD,
    .unit = "words",
    .counts_right = true,
    .score = score,
    .assemble = assemble,
    .loss = loss,
    .count = count,
};
