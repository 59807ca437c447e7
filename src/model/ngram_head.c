/* A linear classifier of n-grams, beside the encoder: each n-gram of 1 … N tokens has a weight for
 * each class, found by its hash. On little data this is hard to beat. The encoder learns what n-grams
 * cannot tell; the mean of the two sets of logits decides.
 *
 * A text's n-grams count once, however often they stand in it: a word said ten times is not ten times
 * the evidence. With n of them its logits are
 *     b + Σ w_g / √n
 * which grow with the length as the evidence does when much of it is said twice. A sequence
 * x₀ … x_{L−1} is framed, x₋₁ = x_L = a mark of its own, so that an n-gram of two or more tokens knows
 * whether it begins or ends the text; the mark alone, which every text has, carries b. The weights are
 * found before the encoder's training, by train/ngram_fit.c. */
#include <math.h>
#include <string.h>

#include "model/parts.h"

static const qkv_op ngrams_op = {.name = "ngrams"};

/* n-grams of a sequence of `len` tokens, and the mark. */
static int64_t count(int64_t len, int64_t longest) {
    int64_t n = 1 + len;
    for (int64_t k = 2; k <= longest && k <= len + 2; k++) n += len + 2 - k + 1;
    return n;
}

/* Slots of an open-addressing table that n rows fill at most by half. */
static int64_t slots_for(int64_t n) {
    int64_t slots = 4;
    while (slots < 2 * n) slots *= 2;
    return slots;
}

int64_t qkv_ngram_room(const qkv_config *c, int64_t len) {
    const int64_t n = count(len, c->ngrams);
    return n + slots_for(n);
}

#define START UINT64_C(0x9e3779b97f4a7c15)

/* Mixes one more token into a hash: multiply and fold, as splitmix64 does. */
static uint64_t mix(uint64_t hash, int32_t id) {
    hash = (hash ^ (uint64_t)(uint32_t)id) * UINT64_C(0xff51afd7ed558ccd);
    return hash ^ hash >> 32;
}

/* Rows met so far: `list` in order of their first place, `slot` to find them by. */
typedef struct met {
    int32_t *list, *slot;
    int64_t n, mask;
} met;

static void meet(met *m, int32_t row) {
    uint32_t at = (uint32_t)row * UINT32_C(2654435769);
    for (at >>= 7;; at++) {
        int32_t *slot = &m->slot[at & (uint64_t)m->mask];
        if (*slot == row) return;
        if (*slot >= 0) continue;
        *slot = m->list[m->n++] = row;
        return;
    }
}

int64_t qkv_ngram_mark(const qkv_config *c) {
    return (int64_t)(mix(START, -1) % (uint64_t)c->ngram_buckets);
}

real qkv_ngram_weight(int64_t n) {
    return n > 1 ? 1 / (real)sqrt((double)(n - 1)) : 0;
}

int64_t qkv_ngram_rows(const qkv_config *c, const int32_t *ids, int64_t len, int32_t *out) {
    const uint64_t rows = (uint64_t)c->ngram_buckets;
    const int64_t most = count(len, c->ngrams), slots = slots_for(most);
    met m = {.list = out, .slot = out + most, .mask = slots - 1};
    memset(m.slot, 0xff, (size_t)slots * sizeof *m.slot);
    meet(&m, (int32_t)qkv_ngram_mark(c));
    for (int64_t from = -1; from < len; from++) {
        uint64_t hash = START;
        for (int64_t to = from; to <= len && to < from + c->ngrams; to++) {
            hash = mix(hash, to < 0 || to == len ? -1 : ids[to]);
            meet(&m, (int32_t)(hash % rows));
        }
    }
    return m.n;
}

qkv_tensor *qkv_model_ngram_logits(qkv_tape *t, qkv_model *m, const qkv_tokens *src) {
    if (qkv_tape_stopped(t)) return &t->nothing;
    const qkv_config *c = &m->config;
    const int32_t n = src->layout.n;
    int64_t room = 0; /* all lists, the last one's slots behind it */
    for (int32_t s = 0; s < n; s++) room += qkv_ngram_room(c, qkv_layout_len(&src->layout, s));
    if (room > INT32_MAX)
        return qkv_tape_fail(t, &ngrams_op, QKV_USAGE,
                             "a batch of over 2^31 n-grams; lower batch_tokens");
    int32_t *start = qkv_tape_alloc(t, &ngrams_op, ((size_t)n + 1) * sizeof *start);
    int32_t *rows = qkv_tape_alloc(t, &ngrams_op, (size_t)room * sizeof *rows);
    real *weights = qkv_tape_alloc(t, &ngrams_op, (size_t)room * sizeof *weights);
    if (!start || !rows || !weights) return &t->nothing;
    start[0] = 0;
    for (int32_t s = 0; s < n; s++) {
        const int32_t at = start[s];
        const int64_t found = qkv_ngram_rows(c, src->ids + src->layout.start[s],
                                             qkv_layout_len(&src->layout, s), rows + at);
        const real each = qkv_ngram_weight(found);
        for (int64_t i = 0; i < found; i++) weights[at + i] = i ? each : 1;
        start[s + 1] = at + (int32_t)found;
    }
    const qkv_bag_spec bag = {.ids = rows, .weights = weights, .bags = n, .start = start};
    return qkv_embedding_bag(t, qkv_of(m->head.ngrams), &bag);
}
