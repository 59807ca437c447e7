/* What each n-gram adds to the n-grams' part of the lead, and through it each word. Exact, since
 * their logits are a sum over the distinct rows of the table that a text's n-grams hash to:
 *
 *     lead = bias + Σ_g v_g,   v_g = factor · count_g · (w_g[plus] − w_g[minus])
 *
 * A row's v is shared equally to the places where its n-grams stand (it counts once, however often
 * that is), there to their tokens or characters, and by those to words. Marks and blanks get none
 * of it. By occlusion a word has the whole of v where every place of the row lies on it, so that it
 * would be gone with the word. */
#include "use/explain.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

enum { LARGEST = 24 }; /* n-grams that are listed by themselves */

/* A row, and where it was first found. */
typedef struct vote {
    double lead;
    int32_t places;
    int32_t first,
        last; /* words that all places lie on: from the largest first to the least last */
    uint32_t begin, end; /* bytes of the first place */
    bool chars, begins, ends;
    bool several; /* more than one token */
} vote;

typedef struct counting {
    qkv_explaining *x;
    const int32_t *chars;
    const uint32_t *place; /* of each character */
    vote *votes;
} counting;

/* ---- where n-grams stand ---- */

/* Bytes of the text that an n-gram covers, without tokens that stand for nothing and blanks at its
 * ends: all of them in words. */
static bool bytes_of(const counting *c, const qkv_ngram_place *p, uint32_t *begin, uint32_t *end) {
    const qkv_explaining *x = c->x;
    *begin = UINT32_MAX, *end = 0;
    for (int64_t i = p->from; i < p->to; i++) {
        uint32_t from, to;
        if (p->chars) {
            if (c->chars[i] >= 0 && c->chars[i] <= ' ') continue;
            from = c->place[i], to = from + 1;
            while (to < x->text.len && ((uint8_t)x->text.data[to] & 0xc0) == 0x80) to++;
        } else {
            from = x->e.begin[i], to = x->e.end[i];
            while (from < to && x->text.data[from] == ' ') from++;
            if (from >= to) continue;
        }
        if (from < *begin) *begin = from;
        if (to > *end) *end = to;
    }
    return *begin < *end;
}

/* An n-gram of characters is shown with its blanks. */
static void show_place(const counting *c, const qkv_ngram_place *p, uint32_t begin, uint32_t end,
                       vote *v) {
    v->begin = p->chars && c->place[p->from] < begin ? c->place[p->from] : begin;
    v->end = p->chars && c->place[p->to - 1] >= end ? c->place[p->to - 1] + 1 : end;
    v->chars = p->chars, v->begins = p->begins, v->ends = p->ends;
    v->several = p->to - p->from + p->begins + p->ends > 1;
}

static void count_place(void *user, const qkv_ngram_place *p) {
    const counting *c = user;
    vote *v = &c->votes[p->row];
    uint32_t begin, end;
    int32_t first = INT32_MAX, last = -1; /* no word */
    if (bytes_of(c, p, &begin, &end)) {
        first = c->x->owner[begin], last = c->x->owner[end - 1];
        if (!v->places) show_place(c, p, begin, end, v);
    }
    if (!v->places) v->last = INT32_MAX;
    if (first > v->first) v->first = first;
    if (last < v->last) v->last = last;
    v->places++;
}

static void share_place(void *user, const qkv_ngram_place *p) {
    const counting *c = user;
    const vote *v = &c->votes[p->row];
    const qkv_explaining *x = c->x;
    int64_t n = 0;
    for (int64_t i = p->from; i < p->to; i++)
        n += p->chars ? c->chars[i] < 0 || c->chars[i] > ' ' : x->e.begin[i] < x->e.end[i];
    const double each = n ? v->lead / v->places / (double)n : 0;
    for (int64_t i = p->from; i < p->to && n; i++) {
        if (!p->chars)
            qkv_explain_share(x, x->ngrams, x->e.begin[i], x->e.end[i], each);
        else if (c->chars[i] < 0 || c->chars[i] > ' ')
            qkv_explain_share(x, x->ngrams, c->place[i], c->place[i] + 1, each);
    }
}

/* ---- the rows ---- */

static void hide_words(const counting *c, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        const vote *v = &c->votes[i];
        for (int32_t w = v->first; w <= v->last && v->places && v->lead != 0; w++)
            if (w >= 0) c->x->ngrams[w] += v->lead;
    }
}

/* The largest first; of equal ones the earlier. */
static void keep_largest(const counting *c, int64_t n, qkv_explain_votes *out) {
    for (int64_t i = 1; i < n; i++) {
        const vote *v = &c->votes[i];
        if (!v->several || v->end == 0 || v->lead == 0) continue;
        size_t at = out->n;
        while (at > 0 && fabs(out->largest[at - 1].weight) < fabs(v->lead)) at--;
        if (at == LARGEST) continue;
        if (out->n < LARGEST) out->n++;
        memmove(out->largest + at + 1, out->largest + at, (out->n - at - 1) * sizeof *out->largest);
        out->largest[at] = (qkv_explain_ngram){.begin = v->begin,
                                               .end = v->end,
                                               .weight = v->lead,
                                               .places = v->places,
                                               .characters = v->chars,
                                               .begins = v->begins,
                                               .ends = v->ends};
    }
}

/* v of each of the n rows; row 0 is the mark's, the bias. */
static qkv_status weigh_votes(const counting *c, const qkv_explained *what, double factor,
                              const int32_t *rows, const real *counts, int64_t n) {
    const qkv_model *model = c->x->m->model;
    real *w = qkv_alloc((size_t)qkv_model_config(model)->classes * sizeof *w);
    if (!w) return QKV_FAILED;
    for (int64_t i = 0; i < n; i++) {
        qkv_model_ngram_weights(model, rows[i], w);
        c->votes[i] =
            (vote){.lead = factor * (double)counts[i] * qkv_explained_part(what, w), .first = -1};
    }
    qkv_free(w);
    return QKV_OK;
}

/* The text as the n-grams see it. */
static qkv_status look(counting *c, const qkv_config *config, qkv_ngram_text *text) {
    qkv_explaining *x = c->x;
    *text = (qkv_ngram_text){.ids = x->e.ids, .n = (int64_t)x->e.n};
    if (!config->ngram_chars) return QKV_OK;
    qkv_column_source s = {.text = x->text, .e = &x->e, .to = (int64_t)x->e.n};
    if (x->m->pairs) QKV_TRY(qkv_pair_split(x->text, &s.text, &s.second));
    const size_t room = (size_t)qkv_column_room(QKV_COLUMN_CHARS, &s);
    int32_t *chars = qkv_arena_alloc(&x->memory, room * sizeof *chars);
    uint32_t *place = qkv_arena_alloc(&x->memory, room * sizeof *place);
    if (!chars || !place) return QKV_FAILED;
    QKV_TRY(qkv_column_make(QKV_COLUMN_CHARS, &s, chars, &text->chars.n));
    qkv_column_char_places(&s, place);
    text->chars.at = c->chars = chars;
    c->place = place;
    return QKV_OK;
}

qkv_status qkv_explain_votes_run(qkv_explaining *x, const qkv_explained *what, double factor,
                                 qkv_explain_by how, qkv_explain_votes *out) {
    const qkv_config *config = qkv_model_config(x->m->model);
    counting c = {.x = x};
    qkv_ngram_text text;
    *out =
        (qkv_explain_votes){.largest = qkv_arena_alloc(&x->memory, LARGEST * sizeof *out->largest)};
    if (!out->largest) return QKV_FAILED;
    const qkv_arena_mark mark = qkv_arena_here(&x->memory);
    QKV_TRY(look(&c, config, &text));
    const size_t room = (size_t)qkv_ngram_room(config, &text);
    int32_t *rows = qkv_arena_alloc(&x->memory, room * sizeof *rows);
    real *counts = qkv_arena_alloc(&x->memory, room * sizeof *counts);
    if (!rows || !counts) return QKV_FAILED;
    const int64_t n = qkv_ngram_rows(config, &text, qkv_model_ngram_idf(x->m->model), rows, counts);
    c.votes = qkv_arena_alloc(&x->memory, (size_t)n * sizeof *c.votes);
    if (!c.votes) return QKV_FAILED;
    QKV_TRY(weigh_votes(&c, what, factor, rows, counts, n));
    out->start = c.votes[0].lead;
    for (int64_t i = 1; i < n; i++) out->sum += c.votes[i].lead;
    c.votes[0].lead = 0; /* an n-gram that collides with the mark is part of the bias */
    qkv_ngram_places(config, &text, rows, count_place, &c);
    if (how == QKV_EXPLAIN_OCCLUSION)
        hide_words(&c, n);
    else
        qkv_ngram_places(config, &text, rows, share_place, &c);
    keep_largest(&c, n, out);
    qkv_arena_rewind(&x->memory, mark);
    return QKV_OK;
}
