/* translate: a source, a target. The decoder reads "bos y₁ … yₙ" and predicts "y₁ … yₙ eos". */
#include "task/companion.h"

#include <string.h>

extern const qkv_task qkv_task_translate;

static void assemble(qkv_tape *t, const qkv_task_spec *spec, const qkv_batcher *b,
                     const int64_t *examples, int64_t n, qkv_batch *out) {
    const qkv_frame source = qkv_task_frame(&qkv_task_translate, spec, 0),
                    target = qkv_task_frame(&qkv_task_translate, spec, 1);
    int32_t *src = qkv_task_layout(t, b, examples, n, 0, source.after >= 0 ? 1 : 0, &out->src);
    int32_t *tgt = qkv_task_layout(t, b, examples, n, 1, 1, &out->tgt);
    int32_t *targets = qkv_tape_alloc(t, NULL, (size_t)out->tgt.rows * sizeof *targets);
    if (!src || !tgt || !targets) return;
    for (int64_t i = 0; i < n; i++) {
        int64_t len;
        const int32_t *from = qkv_batcher_ids(b, examples[i], 0, &len);
        int32_t *to = src + out->src.layout.start[i];
        memcpy(to, from, (size_t)len * sizeof *to);
        if (source.after >= 0)
            to[len] = source.after; /* marks the end, and leaves no source empty */
        from = qkv_batcher_ids(b, examples[i], 1, &len);
        to = tgt + out->tgt.layout.start[i];
        to[0] = target.before;
        memcpy(to + 1, from, (size_t)len * sizeof *to);
        to = targets + out->tgt.layout.start[i];
        memcpy(to, from, (size_t)len * sizeof *to);
        to[len] = spec->eos;
    }
    qkv_task_columns(t, b, examples, n, &out->src);
    out->targets = targets;
    out->n_targets = out->tgt.rows;
    out->tokens = out->src.rows + out->tgt.rows;
}

static qkv_tensor *loss(qkv_tape *t, qkv_model *m, const qkv_task_spec *spec, const qkv_batch *b,
                        int64_t *n_right) {
    qkv_tensor *memory = qkv_model_encode(t, m, &b->src);
    qkv_tensor *x = qkv_model_decode(t, m, &b->tgt, memory, &b->src, NULL);
    return qkv_task_vocab_loss(t, m, spec, b, x, n_right);
}

static const qkv_companion *const companions[] = {&qkv_companion_shortlist, NULL};

const qkv_task qkv_task_translate = {
    .name = "translate",
    .help = "one text from another",
    .use = "echo \"some text\" | qkv translate %s",
    .shape = {.encoder = true, .decoder = true, .head = QKV_HEAD_VOCAB},
    .corpus = QKV_CORPUS_PARALLEL,
    .framing = {.own = true, .source = QKV_MARK_END, .target = QKV_MARK_BEGIN},
    .recipe = &qkv_recipe_pairs,
    .sides = 2,
    .companions = companions,
    .unit = "tokens",
    .assemble = assemble,
    .loss = loss,
};
