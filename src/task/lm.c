/* lm: the next token. A window of n + 1 ids gives n inputs and n targets. A document kept apart is
 * "bos x₁ … xₙ", predicting "x₁ … xₙ eos" (without such tokens: x₁ … xₙ₋₁ predict x₂ … xₙ). */
#include "task/task.h"

#include <string.h>

static void assemble(qkv_tape *t, const qkv_task_spec *spec, const qkv_batcher *b,
                     const int64_t *examples, int64_t n, qkv_batch *out) {
    const bool framed = !b->window && spec->bos >= 0 && spec->eos >= 0;
    int32_t *ids = qkv_task_layout(t, b, examples, n, 0, framed ? 1 : -1, &out->tgt);
    int32_t *targets = qkv_tape_alloc(t, NULL, (size_t)out->tgt.rows * sizeof *targets);
    if (!ids || !targets) return;
    for (int64_t i = 0; i < n; i++) {
        int64_t len;
        const int32_t *from = qkv_batcher_ids(b, examples[i], 0, &len);
        int32_t *in = ids + out->tgt.layout.start[i], *to = targets + out->tgt.layout.start[i];
        if (framed) {
            in[0] = spec->bos;
            memcpy(in + 1, from, (size_t)len * sizeof *in);
            memcpy(to, from, (size_t)len * sizeof *to);
            to[len] = spec->eos;
        } else {
            memcpy(in, from, (size_t)(len - 1) * sizeof *in);
            memcpy(to, from + 1, (size_t)(len - 1) * sizeof *to);
        }
    }
    out->targets = targets;
    out->n_targets = out->tokens = out->tgt.rows;
}

static qkv_tensor *loss(qkv_tape *t, qkv_model *m, const qkv_task_spec *spec, const qkv_batch *b,
                        int64_t *n_right) {
    qkv_tensor *x = qkv_model_decode(t, m, &b->tgt, NULL, NULL, NULL);
    return qkv_task_vocab_loss(t, m, spec, b, x, n_right);
}

const qkv_task qkv_task_lm = {
    .name = "lm",
    .help = "the next token of running text",
    .use = "qkv generate %s --prompt \"Once upon a time\"",
    .shape = {.decoder = true, .head = QKV_HEAD_VOCAB},
    .corpus = QKV_CORPUS_STREAM,
    .framing = {.own = true, .target = QKV_MARK_BEGIN},
    .recipe = &qkv_recipe_writing,
    .sides = 1,
    .stream = true,
    .unit = "tokens",
    .assemble = assemble,
    .loss = loss,
};
