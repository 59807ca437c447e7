/* Why an answer was given: the words of the text, the answer and its runner-up, and what the two
 * voters say about each word. What is explained of which head is a row of `explainers`. */
#include "use/explain.h"
#include "use/tag_text.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "text/unicode.h"

#include <math.h>
#include <string.h>

/* ---- words ---- */

/* Scripts that are written without blanks: each of their characters is a word of its own. */
static bool stands_alone(int32_t c) {
    static const int32_t ranges[][2] = {
        {0x0e00, 0x0eff}, /* Thai, Lao */
        {0x1000, 0x109f}, /* Burmese */
        {0x1780, 0x17ff}, /* Khmer */
        {0x3040, 0x30ff}, /* kana */
    };
    if (qkv_unicode_class(c) & QKV_U_HAN) return true;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (c >= ranges[i][0] && c <= ranges[i][1]) return true;
    return false;
}

static bool add_word(qkv_word_list *out, uint32_t from, uint32_t to) {
    return from == to || QKV_PUSH(*out, ((qkv_text_word){from, to, -1}));
}

/* A word, cut where such characters stand; marks above a character go with it. */
static qkv_status cut_word(qkv_text text, qkv_text_word w, qkv_word_list *out) {
    uint32_t from = w.begin;
    bool alone = false;
    for (uint32_t at = w.begin, n; at < w.end; at += n) {
        int32_t c;
        n = (uint32_t)qkv_utf8_decode(text.data + at, w.end - at, &c);
        const bool is = c >= 0 && stands_alone(c);
        if ((!is && !alone) || at == from || (c >= 0 && qkv_unicode_is_mark(c))) {
            alone = at == from ? is : alone;
            continue;
        }
        if (!add_word(out, from, at)) return QKV_FAILED;
        from = at;
        alone = is;
    }
    return add_word(out, from, w.end) ? QKV_OK : QKV_FAILED;
}

static qkv_status find_words(qkv_explaining *x) {
    qkv_word_list words = {0}, cut = {0};
    qkv_status status = qkv_words_split(x->text, false, &words);
    for (size_t i = 0; i < words.n && status == QKV_OK; i++)
        status = cut_word(x->text, words.at[i], &cut);
    qkv_text_word *own = qkv_arena_alloc(&x->memory, (cut.n + 1) * sizeof *own);
    if (status == QKV_OK && !own) status = QKV_FAILED;
    if (status == QKV_OK && cut.n) memcpy(own, cut.at, cut.n * sizeof *own);
    x->words = (qkv_text_words){own, cut.n};
    qkv_free(words.at);
    qkv_free(cut.at);
    return status;
}

/* Once its words are known: the text's tokens, and the words that its bytes belong to. */
static qkv_status read_text(qkv_explaining *x) {
    QKV_TRY(qkv_texts_encode(x->m, &x->text, 1, true, &x->e));
    const size_t n = x->words.n + 1;
    x->owner = qkv_arena_alloc(&x->memory, (x->text.len + 1) * sizeof *x->owner);
    x->encoder = qkv_arena_alloc(&x->memory, n * sizeof *x->encoder);
    x->ngrams = qkv_arena_alloc(&x->memory, n * sizeof *x->ngrams);
    if (!x->owner || !x->encoder || !x->ngrams) return QKV_FAILED;
    size_t w = 0;
    for (size_t i = 0; i < x->text.len; i++) {
        while (w < x->words.n && x->words.at[w].begin <= i) w++;
        x->owner[i] = (int32_t)w - 1;
    }
    return QKV_OK;
}

void qkv_explain_share(const qkv_explaining *x, double *to, uint32_t begin, uint32_t end,
                       double amount) {
    uint32_t inside = 0;
    if (begin >= end) return;
    for (uint32_t i = begin; i < end; i++)
        inside += x->owner[i] >= 0 && i < x->words.at[x->owner[i]].end;
    if (!inside && x->owner[begin] >= 0) to[x->owner[begin]] += amount;
    for (uint32_t i = begin; i < end && inside; i++)
        if (x->owner[i] >= 0 && i < x->words.at[x->owner[i]].end)
            to[x->owner[i]] += amount / inside;
}

/* ---- one answer ---- */

/* Where explanations are gathered. */
typedef struct gathering {
    qkv_explain_by how;
    qkv_arena *memory; /* of the result */
    qkv_text text;     /* as it was given, in that memory */
    QKV_VEC(qkv_explanation) list;
} gathering;

/* An answer that is to be explained. */
typedef struct answer {
    qkv_explained what;
    double lead, probability;
    uint32_t begin, end;        /* what it is about */
    const qkv_text_word *place; /* of each of x->words in the text as it was given */
} answer;

/* NULL: no such label, of a model that answers with a number. */
static qkv_status copy_label(gathering *g, const qkv_labels *labels, int32_t i, const char **out) {
    *out = NULL;
    if (i < 0 || i >= labels->n) return QKV_OK;
    *out = qkv_arena_strndup(g->memory, labels->names[i], strlen(labels->names[i]));
    return *out ? QKV_OK : QKV_FAILED;
}

static qkv_status put_result(gathering *g, const qkv_explaining *x, const answer *a,
                             const qkv_explain_path *path, const qkv_explain_votes *votes) {
    qkv_explain_word *words = qkv_arena_alloc(g->memory, (x->words.n + 1) * sizeof *words);
    qkv_explain_ngram *ngrams = qkv_arena_alloc(g->memory, (votes->n + 1) * sizeof *ngrams);
    qkv_explanation r = {.text = g->text, .begin = a->begin, .end = a->end, .lead = a->lead};
    if (!words || !ngrams) return QKV_FAILED;
    QKV_TRY(copy_label(g, &x->m->labels, a->what.plus, &r.label));
    QKV_TRY(copy_label(g, &x->m->labels, a->what.minus, &r.against));
    r.probability = a->probability;
    r.words = words, r.n = x->words.n;
    r.ngrams = ngrams, r.n_ngrams = votes->n;
    r.votes = votes->largest != NULL;
    r.start = path->start + votes->start + a->what.shift;
    r.passes = path->passes;
    r.rest = a->lead;
    if (votes->n) memcpy(ngrams, votes->largest, votes->n * sizeof *ngrams);
    for (size_t i = 0; i < x->words.n; i++) {
        words[i] = (qkv_explain_word){.begin = a->place[i].begin,
                                      .end = a->place[i].end,
                                      .weight = x->encoder[i] + x->ngrams[i],
                                      .ngrams = x->ngrams[i]};
        r.rest -= words[i].weight;
    }
    return QKV_PUSH(g->list, r) ? QKV_OK : QKV_FAILED;
}

static qkv_status explain_answer(gathering *g, qkv_explaining *x, const answer *a) {
    const qkv_config *c = qkv_model_config(x->m->model);
    const bool votes = a->what.token < 0 && c->ngrams > 0;
    qkv_explain_path path = {.factor = 1, .lead = a->lead};
    qkv_explain_votes by_ngrams = {0};
    memset(x->encoder, 0, x->words.n * sizeof *x->encoder);
    memset(x->ngrams, 0, x->words.n * sizeof *x->ngrams);
    if (votes) {
        path.factor = 0.5 * c->encoder_vote;
        QKV_TRY(qkv_explain_votes_run(x, &a->what, 0.5 * c->ngram_vote, g->how, &by_ngrams));
        path.others = by_ngrams.sum;
    }
    QKV_TRY(qkv_explain_path_run(x, &a->what, g->how, &path));
    return put_result(g, x, a, &path, &by_ngrams);
}

/* The largest of n outputs but `but` (−1: of all); −1: there is none. */
static int32_t largest(const real *y, int64_t n, int32_t but) {
    int32_t best = -1;
    for (int32_t i = 0; i < n; i++)
        if (i != but && (best < 0 || y[i] > y[best])) best = i;
    return best;
}

/* What the model says to the text, in EVAL: (rows, outputs), those of the head as it is used. */
static qkv_tensor *run_head(qkv_explaining *x, const int32_t *rows, int64_t n) {
    qkv_tape *t = x->tape;
    qkv_tape_begin(t, QKV_EVAL, 0, 0);
    int32_t start[] = {0, (int32_t)x->e.n};
    qkv_tokens batch = {
        .layout = {.n = 1, .start = start}, .ids = x->e.ids, .rows = (int64_t)x->e.n};
    const qkv_use_texts texts = {&x->text, x->given.at ? &x->given : NULL};
    if (qkv_texts_columns(t, x->m, texts, &x->e, &batch) != QKV_OK) qkv_tape_fail_below(t, NULL);
    return rows ? qkv_model_tag(t, x->m->model, &batch, rows, n)
                : qkv_model_classify(t, x->m->model, &batch);
}

/* ---- heads ---- */

/* Of a kind of head: how its answers are explained, and where a text has one row which those are:
 * `choose` says of at most n answers what is explained, its lead and its probability; it may
 * destroy the n outputs. */
typedef struct explainer {
    qkv_status (*explain)(gathering *g, qkv_explaining *x, const struct explainer *how);
    size_t (*choose)(const qkv_config *c, real *y, int64_t n, answer *out);
} explainer;

/* Labels each of which is there or not: those over the threshold, or else the likeliest. The lead of
 * one is its logit. */
static size_t choose_labels(const qkv_config *c, real *y, int64_t n, answer *out) {
    size_t found = 0;
    for (int32_t best; found < (size_t)n; y[best] = -INFINITY) {
        best = largest(y, n, -1);
        const double p = 1 / (1 + exp(-(double)y[best]));
        if (found && p < c->threshold) break;
        out[found] = (answer){.what = {best, -1, 1, 0, -1}, .probability = p};
        out[found].lead = qkv_explained_part(&out[found].what, y);
        found++;
    }
    return found;
}

/* A classifier's one answer. */
static size_t choose_class(const qkv_config *c, real *y, int64_t n, answer *out) {
    if (c->several) return choose_labels(c, y, n, out);
    const int32_t best = largest(y, n, -1);
    *out = (answer){.what = {best, largest(y, n, best), 1, 0, -1}};
    out->lead = qkv_explained_part(&out->what, y);
    qkv_kern_get()->softmax(y, y, 1, n);
    out->probability = (double)y[best];
    return 1;
}

/* A number is a lead over none, in the units that it was learned in. */
static size_t choose_number(const qkv_config *c, real *y, int64_t n, answer *out) {
    (void)n;
    *out = (answer){.what = {0, -1, c->rate_deviation, c->rate_mean, -1}, .probability = NAN};
    out->lead = qkv_explained_part(&out->what, y) + c->rate_mean;
    return 1;
}

/* The answers that a head with one row a text gives. */
static qkv_status explain_chosen(gathering *g, qkv_explaining *x, const explainer *how) {
    x->text = g->text;
    QKV_TRY(find_words(x));
    QKV_TRY(read_text(x));
    const qkv_tensor *y = run_head(x, NULL, 0);
    QKV_TRY(qkv_tape_status(x->tape));
    answer *all = qkv_arena_alloc(&x->memory, (size_t)y->cols * sizeof *all);
    if (!all) return QKV_FAILED;
    const size_t n = how->choose(qkv_model_config(x->m->model), y->data, y->cols, all);
    for (size_t i = 0; i < n; i++) {
        all[i].end = (uint32_t)x->text.len;
        all[i].place = x->words.at;
        QKV_TRY(explain_answer(g, x, &all[i]));
    }
    return QKV_OK;
}

/* The words of a part: those of the text as it was given that lie at `place`. */
static qkv_status explain_part(gathering *g, qkv_explaining *x, const qkv_text_word *place,
                               const int32_t *label, const float *probability) {
    x->words = x->given;
    QKV_TRY(read_text(x));
    const qkv_column_source s = {
        .text = x->text, .words = x->given, .e = &x->e, .to = (int64_t)x->e.n};
    int32_t *rows = qkv_arena_alloc(&x->memory, (x->words.n + 1) * sizeof *rows);
    int64_t n;
    if (!rows) return QKV_FAILED;
    QKV_TRY(qkv_column_make(QKV_COLUMN_WORDS, &s, rows, &n));
    const qkv_tensor *y = run_head(x, rows, n);
    QKV_TRY(qkv_tape_status(x->tape));
    answer *all = qkv_arena_alloc(&x->memory, (size_t)(n + 1) * sizeof *all);
    if (!all) return QKV_FAILED;
    for (int64_t i = 0; i < n; i++) {
        const real *outputs = y->data + i * y->ld;
        all[i] = (answer){.what = {label[i], largest(outputs, y->cols, label[i]), 1, 0, rows[i]},
                          .probability = (double)probability[i],
                          .begin = place[i].begin,
                          .end = place[i].end,
                          .place = place};
        all[i].lead = qkv_explained_part(&all[i].what, outputs);
    }
    for (int64_t i = 0; i < n; i++) QKV_TRY(explain_answer(g, x, &all[i]));
    return QKV_OK;
}

static qkv_status explain_words(gathering *g, qkv_explaining *x, const qkv_spelled *all,
                                qkv_tag_parts *parts) {
    float *probability = qkv_arena_alloc(g->memory, (all->words.n + 1) * sizeof *probability);
    int32_t *label = qkv_arena_alloc(g->memory, (all->words.n + 1) * sizeof *label);
    if (!probability || !label) return QKV_FAILED;
    QKV_TRY(qkv_tag_words(x->m, &all->text, &all->words, 1, probability));
    for (size_t i = 0; i < all->words.n; i++) label[i] = all->words.at[i].tag;
    QKV_TRY(qkv_tag_cut(x->m, all->text, all->words, parts));
    for (size_t i = 0, at = 0; i < parts->text.n; at += parts->words.at[i++].n) {
        const qkv_arena_mark mark = qkv_arena_here(&x->memory);
        x->text = parts->text.at[i];
        x->given = parts->words.at[i];
        QKV_TRY(explain_part(g, x, all->places.at + at, label + at, probability + at));
        qkv_encoding_free(&x->e);
        qkv_arena_rewind(&x->memory, mark);
    }
    return QKV_OK;
}

static qkv_status explain_tags(gathering *g, qkv_explaining *x, const explainer *how) {
    (void)how;
    qkv_spelled all;
    qkv_tag_parts parts = {0};
    qkv_status status = qkv_tag_spell(g->text, false, g->memory, &all);
    if (status == QKV_OK && all.words.n) status = explain_words(g, x, &all, &parts);
    qkv_free(all.places.at);
    qkv_tag_parts_free(&parts);
    return status;
}

static const explainer explainers[] = {
    [QKV_HEAD_CLASSES] = {explain_chosen, choose_class},
    [QKV_HEAD_NUMBER] = {explain_chosen, choose_number},
    [QKV_HEAD_TAGS] = {explain_tags, NULL},
};

/* ---- the public face ---- */

static qkv_status explain(gathering *g, const qkv_text_model *m, const qkv_text *text,
                          qkv_explaining *x) {
    const qkv_head_kind head = qkv_task_of(qkv_model_config(m->model))->shape.head;
    if ((size_t)head >= sizeof explainers / sizeof *explainers || !explainers[head].explain)
        return qkv_fail(QKV_USAGE,
                        "this model was trained to %s: only answers of classify, rate and tag are "
                        "explained; qkv attention shows what others look at",
                        qkv_text_model_task(m));
    if (text->len >= UINT32_MAX)
        return qkv_fail(QKV_USAGE, "explain: a text of %zu bytes; cut it into parts", text->len);
    const char *own = qkv_arena_strndup(g->memory, text->len ? text->data : "", text->len);
    if (!own) return QKV_FAILED;
    g->text = (qkv_text){own, text->len};
    QKV_TRY(qkv_text_model_plain(m, &x->plain));
    QKV_TRY(qkv_text_model_take_tape(m, &x->tape));
    const qkv_status status = explainers[head].explain(g, x, &explainers[head]);
    qkv_text_model_give_tape(m, x->tape);
    return status;
}

qkv_status qkv_explain(const qkv_text_model *m, const qkv_text *text, qkv_explain_by how,
                       qkv_explanations *out) {
    gathering g = {.how = how};
    qkv_explaining x = {.m = m};
    *out = (qkv_explanations){0};
    QKV_TRY_ALLOC(g.memory = qkv_zalloc(1, sizeof *g.memory));
    qkv_arena_init(g.memory);
    qkv_arena_init(&x.memory);
    out->memory = g.memory;
    qkv_status status = explain(&g, m, text, &x);
    qkv_explanation *at = qkv_arena_alloc(g.memory, (g.list.n + 1) * sizeof *at);
    if (status == QKV_OK && !at) status = QKV_FAILED;
    if (status == QKV_OK && g.list.n) memcpy(at, g.list.at, g.list.n * sizeof *at);
    out->at = at, out->n = g.list.n;
    qkv_free(g.list.at);
    qkv_encoding_free(&x.e);
    qkv_arena_free(&x.memory);
    if (status != QKV_OK) qkv_explanations_free(out);
    return status;
}

void qkv_explanations_free(qkv_explanations *e) {
    if (e->memory) qkv_arena_free(e->memory);
    qkv_free(e->memory);
    *e = (qkv_explanations){0};
}
