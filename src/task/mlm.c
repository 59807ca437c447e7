/* mlm: 15 % of the tokens are to be guessed; of these 80 % are shown as the mask, 10 % as some
 * other token, 10 % as they are. Drawn in every step, keyed by the step and the row (never
 * stored). With `continues` words are drawn instead of tokens, and all tokens of a word are
 * guessed. Every batch has at least one target, so that a loss always exists. Only the rows that
 * are to be guessed are multiplied by the vocabulary's: for the others that would be most of the
 * work, and for nothing. */
#include "task/task.h"

#include <string.h>

static void assemble(qkv_tape *t, const qkv_task_spec *spec, const qkv_batcher *b,
                     const int64_t *examples, int64_t n, qkv_batch *out) {
    const int64_t extra = b->window ? -1 : 0; /* a window's further token is no row here */
    int32_t *ids = qkv_task_layout(t, b, examples, n, 0, extra, &out->src);
    const size_t bytes = (size_t)out->src.rows * sizeof(int32_t);
    int32_t *targets = qkv_tape_alloc(t, NULL, bytes), *at = qkv_tape_alloc(t, NULL, bytes);
    if (!ids || !targets || !at) return;
    for (int64_t i = 0; i < n; i++) {
        int64_t len;
        const int32_t *from = qkv_batcher_ids(b, examples[i], 0, &len);
        memcpy(ids + out->src.layout.start[i], from, (size_t)(len + extra) * sizeof *ids);
    }
    if (!b->window) qkv_task_columns(t, b, examples, n, &out->src);
    const qkv_rng rng = qkv_rng_derive(t->rng, 0x6d6c6d, 0);
    const double rate = spec->mask_rate > 0 ? spec->mask_rate : QKV_MASK_RATE;
    const uint64_t others = (uint64_t)(spec->vocab_size - spec->n_special);
    uint64_t word = 0; /* the row that a word began at: its number decides for all of the word */
    for (int64_t r = 0, seq = 0; r < out->src.rows; r++) {
        const uint64_t k = 3 * (uint64_t)r;
        while (seq < n && out->src.layout.start[seq] < r) seq++;
        const bool first = seq < n && out->src.layout.start[seq] == r;
        if (first || !spec->continues || !spec->continues[ids[r]]) word = k;
        if (ids[r] < spec->n_special || qkv_rng_uniform(rng, word) >= rate) continue;
        at[out->n_targets] = (int32_t)r;
        targets[out->n_targets++] = ids[r];
        const double how = qkv_rng_uniform(rng, k + 1);
        if (how < 0.8)
            ids[r] = spec->mask;
        else if (how < 0.9)
            ids[r] = spec->n_special + (int32_t)qkv_rng_below(rng, k + 2, others);
    }
    if (out->n_targets == 0) {
        at[0] = 0;
        targets[0] = ids[0];
        ids[0] = spec->mask;
        out->n_targets = 1;
    }
    out->targets = targets;
    out->target_rows = at;
    out->tokens = out->src.rows;
}

static qkv_tensor *loss(qkv_tape *t, qkv_model *m, const qkv_task_spec *spec, const qkv_batch *b,
                        int64_t *n_right) {
    qkv_tensor *x = qkv_model_encode(t, m, &b->src);
    const qkv_embedding_spec guessed = {.ids = b->target_rows, .rows = b->n_targets};
    return qkv_task_vocab_loss(t, m, spec, b, qkv_embedding(t, x, &guessed), n_right);
}

const qkv_task qkv_task_mlm = {
    .name = "mlm",
    .help = "hidden tokens of a text, to start other tasks from",
    .use = "qkv train classify --train FILE --init %s --out DIR",
    .shape = {.encoder = true, .head = QKV_HEAD_VOCAB},
    .corpus = QKV_CORPUS_LINES,
    .recipe = &qkv_recipe_reading,
    .sides = 1,
    .whole_words = true,
    .one_view = true,
    .unit = "tokens",
    .assemble = assemble,
    .loss = loss,
};
