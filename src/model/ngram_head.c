/* A linear classifier of n-grams, beside the encoder: each n-gram of 1 … N tokens has a weight for
 * each class, found by its hash, and a text's logits are the mean over its n-grams. This is what fastText
 * and its like do, and on little data it is hard to beat. The encoder learns what n-grams cannot tell;
 * the mean of the two sets of logits decides.
 *
 * A sequence x₀ … x_{L−1} is framed, x₋₁ = x_L = a mark of its own, so that an n-gram of two or more
 * tokens knows whether it begins or ends the text. */
#include <string.h>

#include "model/parts.h"

static const qkv_op ngrams_op = {.name = "ngrams"};

/* n-grams of a sequence of `len` tokens. */
static int64_t count(int64_t len, int64_t longest) {
    int64_t n = len;
    for (int64_t k = 2; k <= longest && k <= len + 2; k++) n += len + 2 - k + 1;
    return n;
}

/* Mixes one more token into a hash: multiply and fold, as splitmix64 does. */
static uint64_t mix(uint64_t hash, int32_t id) {
    hash = (hash ^ (uint64_t)(uint32_t)id) * UINT64_C(0xff51afd7ed558ccd);
    return hash ^ hash >> 32;
}

/* Writes the buckets of a sequence's n-grams: of those that begin at its first place, then the next. */
static void hash_all(const int32_t *ids, int64_t len, int64_t longest, uint64_t buckets,
                     int32_t *out) {
    for (int64_t from = -1; from <= len; from++) {
        uint64_t hash = UINT64_C(0x9e3779b97f4a7c15);
        for (int64_t to = from; to <= len && to < from + longest; to++) {
            const bool outside = to < 0 || to == len;
            hash = mix(hash, outside ? -1 : ids[to]);
            if (to == from && outside) continue; /* the frame alone says nothing */
            *out++ = (int32_t)(hash % buckets);
        }
    }
}

/* Weights of a training step: 0 for what is left out, so that the mean keeps its size. */
static const real *drop(qkv_tape *t, int64_t n, double p) {
    real *keep = qkv_tape_alloc(t, &ngrams_op, (size_t)n * sizeof *keep);
    if (!keep) return NULL;
    const qkv_rng rng = qkv_rng_derive(t->rng, 0x6e6772616d, 0);
    for (int64_t i = 0; i < n; i++)
        keep[i] = qkv_rng_uniform(rng, (uint64_t)i) < p ? 0 : (real)(1 / (1 - p));
    return keep;
}

qkv_tensor *qkv_ngram_logits(qkv_tape *t, const qkv_model *m, const qkv_tokens *src) {
    if (qkv_tape_stopped(t)) return &t->nothing;
    const qkv_config *c = &m->config;
    const int32_t n = src->layout.n;
    int32_t *start = qkv_tape_alloc(t, &ngrams_op, ((size_t)n + 1) * sizeof *start);
    if (!start) return &t->nothing;
    int64_t total = 0;
    for (int32_t s = 0; s < n; s++) {
        start[s] = (int32_t)total;
        total += count(qkv_layout_len(&src->layout, s), c->ngrams);
        if (total > INT32_MAX)
            return qkv_tape_fail(t, &ngrams_op, QKV_USAGE,
                                 "a batch of over 2^31 n-grams; lower batch_tokens");
    }
    start[n] = (int32_t)total;
    int32_t *ids = qkv_tape_alloc(t, &ngrams_op, (size_t)total * sizeof *ids);
    if (!ids) return &t->nothing;
    for (int32_t s = 0; s < n; s++)
        hash_all(src->ids + src->layout.start[s], qkv_layout_len(&src->layout, s), c->ngrams,
                 (uint64_t)c->ngram_buckets, ids + start[s]);
    qkv_bag_spec bag = {.ids = ids, .bags = n, .start = start, .mean = true};
    if (t->mode == QKV_TRAIN && c->ngram_dropout > 0)
        bag.weights = drop(t, total, c->ngram_dropout);
    return qkv_embedding_bag(t, qkv_of(m->head.ngrams), &bag);
}
