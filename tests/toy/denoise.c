/* denoise: a text from what is left of it once one token in eight was taken away. The task that
 * CONTRIBUTING.md adds: this file and one row (toy_tasks.def).
 *
 * The encoder reads what is left, the decoder "bos x₁ … xₙ", and predicts "x₁ … xₙ eos". Which
 * tokens go is a function of the step and the place, as all random numbers are. */
#include "task/task.h"

#include <string.h>

extern const qkv_task qkv_task_denoise;

enum { ONE_IN = 8 };

static void assemble(qkv_tape *t, const qkv_task_spec *spec, const qkv_batcher *b,
                     const int64_t *examples, int64_t n, qkv_batch *out) {
    const qkv_frame source = qkv_task_frame(&qkv_task_denoise, spec, 0),
                    target = qkv_task_frame(&qkv_task_denoise, spec, 1);
    int32_t *src = qkv_task_layout(t, b, examples, n, 0, 1, &out->src);
    int32_t *tgt = qkv_task_layout(t, b, examples, n, 0, 1, &out->tgt);
    int32_t *start = qkv_tape_alloc(t, NULL, ((size_t)n + 1) * sizeof *start);
    int32_t *targets = qkv_tape_alloc(t, NULL, (size_t)out->tgt.rows * sizeof *targets);
    if (!src || !tgt || !start || !targets) return;
    const qkv_rng rng = qkv_rng_derive(t->rng, 0x6e6f697365, 0);
    int32_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t len;
        const int32_t *from = qkv_batcher_ids(b, examples[i], 0, &len);
        const int32_t first = out->tgt.layout.start[i];
        start[i] = kept;
        for (int64_t k = 0; k < len; k++)
            if (qkv_rng_below(rng, (uint64_t)(first + k), ONE_IN)) src[kept++] = from[k];
        src[kept++] = source.after;
        tgt[first] = target.before;
        memcpy(tgt + first + 1, from, (size_t)len * sizeof *tgt);
        memcpy(targets + first, from, (size_t)len * sizeof *targets);
        targets[first + len] = spec->eos;
    }
    start[n] = kept;
    out->src.layout.start = start;
    out->src.rows = kept;
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

const qkv_task qkv_task_denoise = {
    .name = "denoise",
    .help = "a text from what is left of it",
    .use = "echo \"some text\" | qkv translate %s",
    .shape = {.encoder = true, .decoder = true, .head = QKV_HEAD_VOCAB},
    .corpus = QKV_CORPUS_LINES,
    .framing = {.own = true, .source = QKV_MARK_END, .target = QKV_MARK_BEGIN},
    .recipe = &qkv_recipe_pairs,
    .sides = 1,
    .unit = "tokens",
    .assemble = assemble,
    .loss = loss,
};
