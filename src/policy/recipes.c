/* The recipes; see recipe.h. Figures are of docs/RESULTS.md, which names data, split and seed. */
#include "policy/recipe.h"

#include <math.h>

/* IMDb 91.6 %, TREC 91.1 %, SST-2 83.5 %, hotel reviews 89.4 % with these and nothing else. */
const qkv_recipe qkv_recipe_labels = {
    /* A rare word is taken for unknown: its pieces would only remind of other words. */
    .tokenizer = "word",
    .lowercase = true,
    .bytes_per_entry = 50,
    .vocab_most = 30000,
    .presets = QKV_PRESETS_LABELS,
    .regularizer = "classifier",
    .passes = {10, 8, 5}, /* few labels are soon known by heart */
    /* Unsmoothed, an encoder grows so sure of the few labels that the vote of the n-grams does not
     * count. */
    .smoothing = 0.1,
    .average = {4, 0}, /* on little text one validation is as good as the next: average them */
    .adamw_from_scratch = true, /* as good as Muon there, and a step is cheaper */
};

/* UD English EWT, parts of speech: see docs/TASKS.md. */
const qkv_recipe qkv_recipe_words = {
    /* How a word ends tells its part of speech, how it begins that it is a name: pieces, in the case
     * in which they were written. */
    .tokenizer = "wordpiece", .bytes_per_entry = 50,
    .vocab_most = 16000,      .presets = QKV_PRESETS_WORDS,
    .passes = {20, 10, 5},    .smoothing = 0.1,
    .average = {4, 4},
};

/* Multi30k 38.2 BLEU (en-de). */
const qkv_recipe qkv_recipe_pairs = {
    .tokenizer = "bpe", /* what is written must be made of pieces */
    .bytes_per_entry = 100,
    .vocab_most = 16000,
    .passes = {30, 12, 5},
    .smoothing = 0.1, /* Vaswani et al. 2017 */
    .smooth_overfit = true,
    .average = {5, 5},
};

/* Shakespeare, characters: 1.438 nats. */
const qkv_recipe qkv_recipe_writing = {
    .tokenizer = "bpe",
    .byte_level = true,
    .bytes_per_entry = 100,
    .vocab_most = 16000,
    .passes = {30, 12, 5}, /* text as such takes longer than labels */
};

/* Encoders read words, whatever their case. */
const qkv_recipe qkv_recipe_reading = {
    .tokenizer = "wordpiece",
    .lowercase = true,
    .bytes_per_entry = 50,
    .vocab_most = 30000,
    .passes = {30, 12, 5},
};

static int64_t between(int64_t x, int64_t least, int64_t most) {
    return x < least ? least : x > most ? most : x;
}

/* Most entries are then seen often enough to be learned. */
int64_t qkv_recipe_vocab(const qkv_recipe *r, int64_t bytes) {
    return between(bytes / r->bytes_per_entry, 500, r->vocab_most);
}

int64_t qkv_recipe_passes(const qkv_recipe *r, int64_t tokens, bool goes_on) {
    const int64_t passes = r->passes[tokens < QKV_LITTLE_TOKENS     ? 0
                                     : tokens < QKV_MIDDLING_TOKENS ? 1
                                                                    : 2];
    return goes_on ? (passes + 1) / 2 : passes;
}

int64_t qkv_recipe_average(const qkv_recipe *r, int64_t tokens) {
    return r->average[tokens < QKV_LITTLE_TOKENS ? 0 : 1];
}

int64_t qkv_recipe_batch(int64_t tokens) {
    return between(tokens / 60, 512, 4096);
}

double qkv_recipe_rate(bool muon, int64_t d_model, bool gentle) {
    const double rate = muon ? 0.01 : 1e-3 * sqrt(64 / (double)d_model);
    return rate * (gentle ? 0.3 : 1);
}

/* Below 8 MB how words are written tells more than it costs. */
enum { LITTLE_TEXT = 1 << 23 };

void qkv_recipe_ngrams(int64_t bytes, int64_t classes, int64_t *chars, int64_t *buckets) {
    if (*chars < 0) *chars = bytes < LITTLE_TEXT ? 5 : 0;
    if (*buckets) return;
    int64_t rows = 1 << 16;
    while (rows < 2 * bytes && rows < 1 << 21 && rows * classes < 1 << 25) rows *= 2;
    *buckets = rows;
}
