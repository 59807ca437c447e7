/* Labels of words. A text is cut into words, which a blank each sets apart for the model, as in
 * training; texts that are longer than the model reads are cut into parts between two words. */
#include "use/tag_text.h"
#include "use/predict.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

/* ---- parts ---- */

void qkv_tag_parts_free(qkv_tag_parts *p) {
    qkv_free(p->text.at);
    qkv_free(p->words.at);
    qkv_arena_free(&p->memory);
}

/* Words [from, to) of a text as a text of their own. */
static qkv_status add_part(qkv_tag_parts *p, qkv_text text, qkv_text_words words, size_t from,
                           size_t to) {
    const uint32_t begin = words.at[from].begin, end = words.at[to - 1].end;
    qkv_text_word *own = qkv_arena_alloc(&p->memory, (to - from) * sizeof *own);
    if (!own) return QKV_FAILED;
    for (size_t i = from; i < to; i++)
        own[i - from] = (qkv_text_word){words.at[i].begin - begin, words.at[i].end - begin, -1};
    return QKV_PUSH(p->text, ((qkv_text){text.data + begin, end - begin})) &&
                   QKV_PUSH(p->words, ((qkv_text_words){own, to - from}))
               ? QKV_OK
               : QKV_FAILED;
}

/* As many words as fit; a single word of more tokens than the model reads is cut by it. */
qkv_status qkv_tag_cut(const qkv_text_model *m, qkv_text text, qkv_text_words words,
                       qkv_tag_parts *p) {
    const int64_t max_len = qkv_model_config(m->model)->max_len;
    const size_t most = max_len > 2 ? (size_t)max_len - 2 : 1; /* room for marks */
    qkv_encoding e = {0};
    const qkv_encode_options how = {.no_special = true, .offsets = true, .max_tokens = INT32_MAX};
    qkv_status status = qkv_tokenizer_encode(m->tokenizer, text.data, text.len, NULL, 0, &how, &e);
    size_t from = 0, at = 0, first = 0; /* token at hand; token at which the part began */
    for (size_t w = 0; w < words.n && status == QKV_OK; w++) {
        const size_t start = at;
        while (at < e.n && e.begin[at] < words.at[w].end) at++;
        if (at - first <= most || w == from) continue;
        status = add_part(p, text, words, from, w);
        from = w, first = start;
    }
    if (status == QKV_OK && from < words.n) status = add_part(p, text, words, from, words.n);
    qkv_encoding_free(&e);
    return status;
}

/* ---- labels ---- */

static qkv_tensor *tag_rows(qkv_tape *t, qkv_model *m, const qkv_tokens *batch) {
    int64_t n = 0;
    const qkv_cells *words = batch->column[QKV_COLUMN_WORDS];
    for (int32_t i = 0; i < batch->layout.n; i++) n += words[i].n;
    int32_t *rows = qkv_tape_alloc(t, NULL, (size_t)n * sizeof *rows), *at = rows;
    if (!rows) return &t->nothing;
    for (int32_t i = 0; i < batch->layout.n; i++)
        for (int64_t k = 0; k < words[i].n; k++) *at++ = batch->layout.start[i] + words[i].at[k];
    qkv_tensor *y = qkv_model_tag(t, m, batch, rows, n);
    if (!qkv_tape_stopped(t)) qkv_kern_get()->softmax(y->data, y->data, y->rows, y->cols);
    return y;
}

typedef struct choice {
    const qkv_text_model *m;
    float *score; /* (words of a text, labels) */
    int32_t *from, *label;
} choice;

static int32_t largest(const float *p, int32_t n) {
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (p[i] > p[best]) best = i;
    return best;
}

/* Labels of the n words of one text, whose probabilities are p. */
static void choose(const choice *c, const float *p, size_t n, qkv_text_word *words,
                   float *probability) {
    const int32_t k = c->m->labels.n;
    const size_t all = n * (size_t)k;
    if (c->m->spans.spans) {
        for (size_t i = 0; i < all; i++) c->score[i] = logf(fmaxf(p[i], 1e-30f));
        qkv_spans_decode(&c->m->spans, c->score, n, c->from, c->label);
    } else {
        for (size_t i = 0; i < n; i++) c->label[i] = largest(p + i * (size_t)k, k);
    }
    for (size_t i = 0; i < n; i++) {
        words[i].tag = c->label[i];
        probability[i] = p[i * (size_t)k + (size_t)c->label[i]];
    }
}

static qkv_status choose_all(const qkv_text_model *m, const float *p, const qkv_text_words *words,
                             size_t n, float *probability) {
    const size_t k = (size_t)m->labels.n;
    size_t most = 0;
    for (size_t i = 0; i < n; i++)
        if (words[i].n > most) most = words[i].n;
    choice c = {.m = m,
                .score = qkv_alloc((most * k + 1) * sizeof(float)),
                .from = qkv_alloc((most * k + 1) * sizeof(int32_t)),
                .label = qkv_alloc((most + 1) * sizeof(int32_t))};
    const bool ok = c.score && c.from && c.label;
    for (size_t i = 0; ok && i < n; i++) {
        choose(&c, p, words[i].n, words[i].at, probability);
        p += words[i].n * k, probability += words[i].n;
    }
    qkv_free(c.score);
    qkv_free(c.from);
    qkv_free(c.label);
    return ok ? QKV_OK : QKV_FAILED;
}

qkv_status qkv_tag_words(const qkv_text_model *m, const qkv_text *texts,
                         const qkv_text_words *words, size_t n, float *probability) {
    const size_t k = (size_t)m->labels.n;
    size_t all = 0;
    for (size_t i = 0; i < n; i++) all += words[i].n;
    float *p = qkv_alloc((all * k + 1) * sizeof *p);
    qkv_tag_parts cut = {0};
    qkv_arena_init(&cut.memory);
    qkv_status status = p ? QKV_OK : QKV_FAILED;
    for (size_t i = 0; i < n && status == QKV_OK; i++)
        if (words[i].n) status = qkv_tag_cut(m, texts[i], words[i], &cut);
    if (status == QKV_OK)
        status = qkv_rows_of_texts(m, (qkv_use_texts){cut.text.at, cut.words.at}, cut.text.n,
                                   tag_rows, k, p);
    if (status == QKV_OK) status = choose_all(m, p, words, n, probability);
    qkv_tag_parts_free(&cut);
    qkv_free(p);
    return status;
}

/* ---- the public face ---- */

typedef struct request {
    qkv_arena memory;
    qkv_text *texts;       /* as the model gets them */
    qkv_text_words *words; /* of those */
    float *probability;
    QKV_VEC(qkv_tag_word) found; /* places in the texts as they were given */
    size_t *first;
} request;

qkv_status qkv_tag_spell(qkv_text text, bool blanks, qkv_arena *memory, qkv_spelled *out) {
    *out = (qkv_spelled){0};
    if (text.len >= UINT32_MAX)
        return qkv_fail(QKV_USAGE, "tag: a text of %zu bytes; cut it into parts", text.len);
    QKV_TRY(qkv_words_split(text, blanks, &out->places));
    const qkv_word_list *list = &out->places;
    size_t room = list->n, len = 0;
    for (size_t k = 0; k < list->n; k++) room += list->at[k].end - list->at[k].begin;
    char *joined = qkv_arena_alloc(memory, room + 1);
    qkv_text_word *own = qkv_arena_alloc(memory, list->n * sizeof *own);
    if (!joined || !own) return QKV_FAILED;
    for (size_t k = 0; k < list->n; k++) {
        const qkv_text_word w = list->at[k];
        if (k) joined[len++] = ' ';
        own[k] = (qkv_text_word){(uint32_t)len, (uint32_t)len + w.end - w.begin, -1};
        memcpy(joined + len, text.data + w.begin, w.end - w.begin);
        len += w.end - w.begin;
    }
    out->text = (qkv_text){joined, len};
    out->words = (qkv_text_words){own, list->n};
    return QKV_OK;
}

/* Text i. */
static qkv_status spell(request *r, size_t i, qkv_text text, bool blanks) {
    qkv_spelled s;
    qkv_status status = qkv_tag_spell(text, blanks, &r->memory, &s);
    for (size_t k = 0; k < s.words.n && status == QKV_OK; k++) {
        const qkv_text_word w = s.places.at[k];
        if (!QKV_PUSH(r->found, ((qkv_tag_word){.begin = w.begin, .end = w.end})))
            status = QKV_FAILED;
    }
    r->texts[i] = s.text;
    r->words[i] = s.words;
    r->first[i + 1] = r->found.n;
    qkv_free(s.places.at);
    return status;
}

static qkv_status tag_all(const qkv_text_model *m, request *r, const qkv_text *texts, size_t n,
                          bool blanks) {
    r->texts = qkv_arena_alloc(&r->memory, n * sizeof *r->texts);
    r->words = qkv_arena_alloc(&r->memory, n * sizeof *r->words);
    QKV_TRY_ALLOC(r->first = qkv_zalloc(n + 1, sizeof *r->first));
    if (!r->texts || !r->words) return QKV_FAILED;
    for (size_t i = 0; i < n; i++) QKV_TRY(spell(r, i, texts[i], blanks));
    r->probability = qkv_arena_alloc(&r->memory, (r->found.n + 1) * sizeof *r->probability);
    if (!r->probability) return QKV_FAILED;
    QKV_TRY(qkv_tag_words(m, r->texts, r->words, n, r->probability));
    for (size_t i = 0, at = 0; i < n; i++)
        for (size_t k = 0; k < r->words[i].n; k++, at++) {
            r->found.at[at].label = r->words[i].at[k].tag;
            r->found.at[at].probability = r->probability[at];
        }
    return QKV_OK;
}

qkv_status qkv_tag(const qkv_text_model *m, const qkv_text *texts, size_t n, bool blanks,
                   qkv_tags *out) {
    *out = (qkv_tags){0};
    if (qkv_task_of(qkv_model_config(m->model))->shape.head != QKV_HEAD_TAGS)
        return qkv_other_use(m, "tag words");
    request r = {0};
    qkv_arena_init(&r.memory);
    const qkv_status status = tag_all(m, &r, texts, n, blanks);
    qkv_arena_free(&r.memory);
    *out = (qkv_tags){.words = r.found.at, .first = r.first, .n = n};
    if (status != QKV_OK) qkv_tags_free(out);
    return status;
}

void qkv_tags_free(qkv_tags *t) {
    qkv_free(t->words);
    qkv_free(t->first);
    *t = (qkv_tags){0};
}

size_t qkv_tag_spans(const qkv_text_model *m, const qkv_tag_word *words, size_t n,
                     qkv_tag_span *out) {
    size_t count = 0;
    int32_t last = -1; /* type of the span that is open */
    for (size_t i = 0; i < n; i++) {
        const qkv_span_label l = m->spans.label[words[i].label];
        if (l.part == 'I' && l.type == last) {
            qkv_tag_span *s = &out[count - 1];
            s->end = words[i].end;
            if (words[i].probability < s->probability) s->probability = words[i].probability;
        } else if (l.type >= 0) {
            out[count++] = (qkv_tag_span){.begin = words[i].begin,
                                          .end = words[i].end,
                                          .type = m->spans.types.names[l.type],
                                          .probability = words[i].probability};
        }
        last = l.type;
    }
    return count;
}

bool qkv_tags_are_spans(const qkv_text_model *m) {
    return m->spans.spans;
}
