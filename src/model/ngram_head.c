/* A linear classifier of n-grams, beside the encoder: each n-gram of 1 … N tokens has a weight for
 * each class, found by its hash. On little data this is hard to beat. The encoder learns what
 * n-grams cannot tell; the mean of the two sets of logits decides.
 *
 * A text's n-grams count once, however often they stand in it: a word said ten times is not ten
 * times the evidence. With n of them its logits are
 *     b + Σ w_g / √n
 * which grow with the length as the evidence does when much of it is said twice. Where the model
 * knows how rare each is (idf), common words make a text no longer than they should:
 *     b + Σ w_g / √(Σ idf_g²)
 * A sequence
 * x₀ … x_{L−1} is framed, x₋₁ = x_L = a mark of its own, so that an n-gram of two or more tokens
 * knows whether it begins or ends the text; the mark alone, which every text has, carries b. The
 * weights are found before the encoder's training, by task/ngram_fit.c.
 *
 * Where there is little text most words have been seen once or never, and how they are written is
 * all that is known of them. So n-grams of 3 … M characters may stand beside those of tokens, over
 * the running text between two blanks, cases kept: they see endings, names, numbers, and words that
 * often follow each other. There are many more of them and they say less,
 * hence each counts ½ / √m of m where rarity does not tell that. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "model/parts.h"

static const qkv_op ngrams_op = {.name = "ngrams"};

enum { FEWEST_CHARS = 3 }; /* in an n-gram of characters */

/* n-grams of `shortest` … `longest` in a sequence of `len`, framed by a mark on either side. */
static int64_t count(int64_t len, int64_t shortest, int64_t longest) {
    int64_t n = 0;
    for (int64_t k = shortest; k <= longest && k <= len + 2; k++) n += len + 2 - k + 1;
    return n;
}

/* Those of a text at most: of one token, of more with the mark, the mark,
 * and those of characters. */
static int64_t most_rows(const qkv_config *c, const qkv_ngram_text *text) {
    return text->n + count(text->n, 2, c->ngrams) + 1 +
           count(text->chars.n, FEWEST_CHARS, text->chars.n ? c->ngram_chars : 0);
}

/* Slots of an open-addressing table that n rows fill at most by half. */
static int64_t slots_for(int64_t n) {
    int64_t slots = 4;
    while (slots < 2 * n) slots *= 2;
    return slots;
}

int64_t qkv_ngram_room(const qkv_config *c, const qkv_ngram_text *text) {
    const int64_t n = most_rows(c, text);
    return n + slots_for(n);
}

#define START       UINT64_C(0x9e3779b97f4a7c15)
#define CHARS_START UINT64_C(0xbf58476d1ce4e5b9)
enum { MARK = -1 }; /* in the place of a token, before the first and after the last */

/* Mixes one more token into a hash: multiply and fold, as splitmix64 does. */
static uint64_t mix(uint64_t hash, int32_t id) {
    hash = (hash ^ (uint64_t)(uint32_t)id) * UINT64_C(0xff51afd7ed558ccd);
    return hash ^ hash >> 32;
}

/* The distinct rows so far: `list` in order of first appearance, `slot` a hash table of their
 * places in it. */
typedef struct distinct {
    int32_t *list, *slot;
    int64_t n, mask;
} distinct;

/* The slot of a row, or the free one where it would go. */
static int32_t *slot_of(const distinct *d, int32_t row) {
    uint32_t at = (uint32_t)row * UINT32_C(2654435769);
    for (at >>= 7;; at++) {
        int32_t *slot = &d->slot[at & (uint64_t)d->mask];
        if (*slot < 0 || d->list[*slot] == row) return slot;
    }
}

static void add_row(distinct *d, int32_t row) {
    int32_t *slot = slot_of(d, row);
    if (*slot >= 0) return;
    *slot = (int32_t)d->n;
    d->list[d->n++] = row;
}

int64_t qkv_ngram_mark(const qkv_config *c) {
    return (int64_t)(mix(START, MARK) % (uint64_t)c->ngram_buckets);
}

/* A kind of n-grams: of tokens, or of characters. */
typedef struct kind {
    uint64_t start; /* keeps its hashes from those of others */
    int32_t mark;   /* frames the sequence */
    int64_t shortest, longest;
} kind;

static kind token_kind(const qkv_config *c) {
    return (kind){START, MARK, 1, c->ngrams};
}

static kind char_kind(const qkv_config *c) {
    return (kind){CHARS_START, ' ', FEWEST_CHARS, c->ngram_chars};
}

/* Calls `use` with the row of every n-gram of the kind in x, which is x[from … to]; −1 and n are
 * the marks. Inlined, `use` too. */
static inline __attribute__((always_inline)) void
each_ngram(uint64_t buckets, const kind *k, const int32_t *x, int64_t n,
           void (*use)(void *user, int32_t row, int64_t from, int64_t to), void *user) {
    for (int64_t from = -1; from < n; from++) {
        uint64_t hash = k->start;
        for (int64_t to = from; to <= n && to < from + k->longest; to++) {
            hash = mix(hash, to < 0 || to == n ? k->mark : x[to]);
            if (to - from + 1 >= k->shortest) use(user, (int32_t)(hash % buckets), from, to);
        }
    }
}

static void use_row(void *user, int32_t row, int64_t from, int64_t to) {
    (void)from;
    (void)to;
    add_row(user, row);
}

/* Adds all n-grams of the kind in x. */
static void add_ngrams(distinct *d, uint64_t buckets, const kind *k, const int32_t *x, int64_t n) {
    each_ngram(buckets, k, x, n, use_row, d);
}

int64_t qkv_ngram_find(const qkv_config *c, const qkv_ngram_text *text, int32_t *rows,
                       int64_t *tokens) {
    const uint64_t buckets = (uint64_t)c->ngram_buckets;
    const int64_t most = most_rows(c, text), slots = slots_for(most);
    const kind of_tokens = token_kind(c), of_chars = char_kind(c);
    distinct d = {.list = rows, .slot = rows + most, .mask = slots - 1};
    memset(d.slot, 0xff, (size_t)slots * sizeof *d.slot);
    add_row(&d, (int32_t)qkv_ngram_mark(c));
    add_ngrams(&d, buckets, &of_tokens, text->ids, text->n);
    *tokens = d.n - 1;
    if (text->chars.n) add_ngrams(&d, buckets, &of_chars, text->chars.at, text->chars.n);
    return d.n;
}

real qkv_ngram_share(const qkv_config *c, bool chars) {
    return chars && !c->ngram_idf ? (real)0.5 : 1;
}

/* What each of n rows of a kind counts: `share` over the length of all. */
static void weigh(const real *idf, real share, const int32_t *rows, int64_t n, real *counts) {
    double sum = idf ? 0 : (double)n;
    for (int64_t i = 0; i < n && idf; i++) sum += (double)idf[rows[i]] * (double)idf[rows[i]];
    const real each = sum > 0 ? share / (real)sqrt(sum) : 0;
    for (int64_t i = 0; i < n; i++) counts[i] = each;
}

int64_t qkv_ngram_rows(const qkv_config *c, const qkv_ngram_text *text, const real *idf,
                       int32_t *rows, real *counts) {
    int64_t tokens;
    const int64_t n = qkv_ngram_find(c, text, rows, &tokens), chars = 1 + tokens;
    counts[0] = 1;
    weigh(idf, qkv_ngram_share(c, false), rows + 1, tokens, counts + 1);
    weigh(idf, qkv_ngram_share(c, true), rows + chars, n - chars, counts + chars);
    return n;
}

/* ---- where they stand ---- */

typedef struct visitor {
    distinct rows;
    int64_t n; /* length of the sequence */
    bool chars;
    void (*visit)(void *user, const qkv_ngram_place *place);
    void *user;
} visitor;

static void visit_row(void *user, int32_t row, int64_t from, int64_t to) {
    const visitor *v = user;
    const int32_t *slot = slot_of(&v->rows, row);
    assert(*slot >= 0);
    v->visit(v->user, &(qkv_ngram_place){.row = *slot,
                                         .from = from < 0 ? 0 : from,
                                         .to = to < v->n ? to + 1 : v->n,
                                         .chars = v->chars,
                                         .begins = from < 0,
                                         .ends = to == v->n});
}

void qkv_ngram_places(const qkv_config *c, const qkv_ngram_text *text, const int32_t *rows,
                      void (*visit)(void *user, const qkv_ngram_place *place), void *user) {
    const uint64_t buckets = (uint64_t)c->ngram_buckets;
    const int64_t most = most_rows(c, text);
    const kind of_tokens = token_kind(c), of_chars = char_kind(c);
    visitor v = {.rows = {.list = (int32_t *)rows,
                          .slot = (int32_t *)rows + most,
                          .mask = slots_for(most) - 1},
                 .n = text->n,
                 .visit = visit,
                 .user = user};
    each_ngram(buckets, &of_tokens, text->ids, text->n, visit_row, &v);
    v.n = text->chars.n, v.chars = true;
    if (v.n) each_ngram(buckets, &of_chars, text->chars.at, v.n, visit_row, &v);
}

void qkv_model_ngram_weights(const qkv_model *m, int64_t row, real *out) {
    const qkv_tensor *table = &m->head.ngrams->tensor;
    memcpy(out, table->data + row * table->ld, (size_t)table->cols * sizeof *out);
}

const real *qkv_model_ngram_idf(const qkv_model *m) {
    return m->head.ngram_idf ? m->head.ngram_idf->tensor.data : NULL;
}

/* ---- the logits ---- */

static qkv_ngram_text text_of(const qkv_tokens *src, int32_t s) {
    qkv_ngram_text text = {.ids = src->ids + src->layout.start[s],
                           .n = qkv_layout_len(&src->layout, s)};
    if (src->column[QKV_COLUMN_CHARS]) text.chars = src->column[QKV_COLUMN_CHARS][s];
    return text;
}

qkv_tensor *qkv_model_ngram_logits(qkv_tape *t, qkv_model *m, const qkv_tokens *src) {
    if (qkv_tape_stopped(t)) return &t->nothing;
    const qkv_config *c = &m->config;
    const int32_t n = src->layout.n;
    if (c->ngram_chars && !src->column[QKV_COLUMN_CHARS])
        return qkv_tape_fail(t, &ngrams_op, QKV_USAGE,
                             "this classifier has n-grams of characters, "
                             "and wants those of the texts");
    int64_t room = 0; /* all lists, the last one's slots behind it */
    for (int32_t s = 0; s < n; s++) {
        const qkv_ngram_text text = text_of(src, s);
        room += qkv_ngram_room(c, &text);
    }
    if (room > INT32_MAX)
        return qkv_tape_fail(t, &ngrams_op, QKV_USAGE,
                             "a batch of over 2^31 n-grams; lower batch_tokens");
    int32_t *start = qkv_tape_alloc(t, &ngrams_op, ((size_t)n + 1) * sizeof *start);
    int32_t *rows = qkv_tape_alloc(t, &ngrams_op, (size_t)room * sizeof *rows);
    real *counts = qkv_tape_alloc(t, &ngrams_op, (size_t)room * sizeof *counts);
    if (!start || !rows || !counts) return &t->nothing;
    start[0] = 0;
    const real *idf = qkv_model_ngram_idf(m);
    for (int32_t s = 0; s < n; s++) {
        const int32_t at = start[s];
        const qkv_ngram_text text = text_of(src, s);
        start[s + 1] = at + (int32_t)qkv_ngram_rows(c, &text, idf, rows + at, counts + at);
    }
    const qkv_bag_spec bag = {.ids = rows, .weights = counts, .bags = n, .start = start};
    return qkv_embedding_bag(t, qkv_of(m->head.ngrams), &bag);
}
