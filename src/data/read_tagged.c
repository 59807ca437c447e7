/* Sentences whose words have labels.
 *
 *   conllu   ten columns; the label is UPOS
 *   conll    a word a line, columns by TABs or blanks: the first is the word, the last its label; a
 *            blank line (or -DOCSTART-) ends a sentence. Words of one column have the label O
 *   jsonl    {"tokens": […], "tags": […]}, or {"text": …, "spans": [{"start", "end", "label"}]},
 *            places counted in characters: B- and I- are made of the spans
 *
 * The text of a sentence is its words with a blank between them, as in use (use/tag_text.c): so no
 * token reaches over two of them. */
#include "data/corpus.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

typedef struct sentence {
    qkv_reader *r;
    qkv_buf text;
    qkv_word_list words;
    int64_t line; /* of its first word */
} sentence;

static qkv_status refuse(const qkv_reader *r, const char *why) {
    return qkv_fail(QKV_BAD_FILE, "%s, line %lld: %s", r->path, (long long)r->line, why);
}

static qkv_status add_numbered(sentence *s, qkv_text form, int32_t tag) {
    if (s->words.n == 0) s->line = s->r->line;
    if (s->words.n) qkv_buf_putc(&s->text, ' ');
    const size_t begin = s->text.len;
    qkv_buf_add(&s->text, form.data, form.len);
    QKV_TRY(s->text.status);
    const qkv_text_word word = {(uint32_t)begin, (uint32_t)s->text.len, tag};
    return QKV_PUSH(s->words, word) ? QKV_OK : QKV_FAILED;
}

static qkv_status add_word(sentence *s, qkv_text form, qkv_text label) {
    int32_t tag;
    QKV_TRY(qkv_reader_label(s->r, label, s->r->line, &tag));
    return add_numbered(s, form, tag);
}

static qkv_status end_sentence(sentence *s) {
    if (s->words.n == 0) return QKV_OK;
    QKV_TRY(qkv_reader_add_words(s->r, (qkv_text){s->text.data, s->text.len},
                                 (qkv_text_words){s->words.at, s->words.n}, s->line));
    s->words.n = s->text.len = 0;
    return QKV_OK;
}

static qkv_status close_sentence(sentence *s, qkv_status status) {
    if (status == QKV_OK) status = end_sentence(s);
    qkv_free(s->words.at);
    qkv_buf_free(&s->text);
    return status;
}

/* ---- columns ---- */

enum { COLUMNS = 64 };

/* The fields of a line, TABs between where it has any, else blanks; returns how many. */
static size_t split(qkv_text line, qkv_text *field) {
    const char *between = memchr(line.data, '\t', line.len) ? "\t" : " ";
    size_t n = 0;
    for (size_t at = 0; at <= line.len && n < COLUMNS;) {
        const size_t from = at;
        while (at < line.len && line.data[at] != *between) at++;
        if (at > from || *between == '\t') field[n++] = (qkv_text){line.data + from, at - from};
        at++;
    }
    return n;
}

static bool is(qkv_text t, const char *word) {
    return t.len == strlen(word) && memcmp(t.data, word, t.len) == 0;
}

static qkv_status conll_line(sentence *s, qkv_text line) {
    static const qkv_text outside = {"O", 1};
    qkv_text field[COLUMNS];
    const size_t n = split(line, field);
    if (n == 0 || field[0].len == 0) return refuse(s->r, "the first column, the word, is empty");
    if (is(field[0], "-DOCSTART-")) return end_sentence(s);
    if (n > 1 && field[n - 1].len == 0) return refuse(s->r, "the last column, the label, is empty");
    return add_word(s, field[0], n > 1 ? field[n - 1] : outside);
}

qkv_status qkv_read_conll(qkv_reader *r) {
    sentence s = {.r = r};
    qkv_text line;
    qkv_status status = QKV_OK;
    while (status == QKV_OK && qkv_reader_line(r, &line)) {
        while (line.len && (line.data[line.len - 1] == ' ' || line.data[line.len - 1] == '\t'))
            line.len--;
        status = line.len ? conll_line(&s, line) : end_sentence(&s);
    }
    return close_sentence(&s, status);
}

/* ---- CoNLL-U ---- */

/* Surface tokens of several words (1-2) and empty nodes (1.1) are no words. */
static qkv_status conllu_line(sentence *s, qkv_text line) {
    qkv_text field[QKV_CONLLU_COLUMNS];
    if (!qkv_conllu_line(line, field))
        return refuse(s->r, "not the ten columns, TABs between, of CoNLL-U");
    const qkv_text id = field[QKV_CONLLU_ID];
    if (memchr(id.data, '.', id.len) || memchr(id.data, '-', id.len)) return QKV_OK;
    return add_word(s, field[QKV_CONLLU_FORM], field[QKV_CONLLU_UPOS]);
}

qkv_status qkv_read_tagged_conllu(qkv_reader *r) {
    sentence s = {.r = r};
    qkv_text line;
    qkv_status status = QKV_OK;
    while (status == QKV_OK && qkv_reader_line(r, &line)) {
        if (line.len && line.data[0] == '#') continue;
        status = line.len ? conllu_line(&s, line) : end_sentence(&s);
    }
    return close_sentence(&s, status);
}

/* ---- JSON lines ---- */

/* A string that is not empty. */
static bool word_of(qkv_json_at at, qkv_text *out) {
    qkv_json_string(at, &out->data, &out->len);
    return out->len > 0;
}

static qkv_status read_tokens(sentence *s, qkv_json_at tokens, qkv_json_at tags) {
    qkv_json_at a, b;
    bool more = qkv_json_first(tokens, &a), other = qkv_json_first(tags, &b);
    while (more && other) {
        qkv_text form = {0}, tag = {0};
        if (!word_of(a, &form) || !word_of(b, &tag))
            return qkv_fail(QKV_BAD_FILE, "\"tokens\" and \"tags\" must be lists of strings");
        QKV_TRY(add_word(s, form, tag));
        more = qkv_json_next(tokens, &a), other = qkv_json_next(tags, &b);
    }
    if (more != other)
        return qkv_fail(QKV_BAD_FILE, "\"tokens\" and \"tags\" are not of one length");
    return end_sentence(s);
}

/* The byte at which character `place` begins; the text's length past its end. */
static size_t byte_of(qkv_text t, int64_t place) {
    size_t at = 0;
    for (int32_t c; place > 0 && at < t.len; place--)
        at += (size_t)qkv_utf8_decode(t.data + at, t.len - at, &c);
    return at;
}

/* Marks the words that a span touches: B-label, I-label, … */
static qkv_status mark(qkv_reader *r, qkv_text text, qkv_json_at span, qkv_word_list *words) {
    qkv_json_at at[3];
    int64_t start, end;
    qkv_text label;
    if (!qkv_json_member(span, "start", &at[0]) || !qkv_json_member(span, "end", &at[1]) ||
        !qkv_json_member(span, "label", &at[2]) ||
        !qkv_json_integer(at[0], 0, (int64_t)text.len, &start) ||
        !qkv_json_integer(at[1], start, (int64_t)text.len, &end) || !word_of(at[2], &label))
        return qkv_fail(QKV_BAD_FILE, "a span needs \"start\", \"end\" (characters of the text, in "
                                      "order) and \"label\"");
    const size_t from = byte_of(text, start), to = byte_of(text, end);
    bool inside = false;
    for (size_t i = 0; i < words->n; i++) {
        qkv_text_word *w = &words->at[i];
        qkv_buf name = {0};
        if (w->end <= from || w->begin >= to) continue;
        qkv_buf_printf(&name, "%c-%.*s", inside ? 'I' : 'B', (int)label.len, label.data);
        qkv_status status = name.status;
        if (status == QKV_OK)
            status = qkv_reader_label(r, (qkv_text){name.data, name.len}, r->line, &w->tag);
        qkv_buf_free(&name);
        QKV_TRY(status);
        inside = true;
    }
    return QKV_OK;
}

static qkv_status read_spans(sentence *s, qkv_text text, qkv_json_at spans, qkv_word_list *words) {
    int32_t outside;
    QKV_TRY(qkv_words_split(text, false, words));
    QKV_TRY(qkv_reader_label(s->r, (qkv_text){"O", 1}, s->r->line, &outside));
    for (size_t i = 0; i < words->n; i++) words->at[i].tag = outside;
    qkv_json_at span;
    for (bool more = qkv_json_first(spans, &span); more; more = qkv_json_next(spans, &span))
        QKV_TRY(mark(s->r, text, span, words));
    for (size_t i = 0; i < words->n; i++) {
        const qkv_text_word *w = &words->at[i];
        QKV_TRY(add_numbered(s, (qkv_text){text.data + w->begin, w->end - w->begin}, w->tag));
    }
    return end_sentence(s);
}

static qkv_status read_text(sentence *s, qkv_json_at of_text, qkv_json_at spans) {
    qkv_text text;
    qkv_word_list words = {0};
    if (!word_of(of_text, &text)) return QKV_OK;
    const qkv_status status = read_spans(s, text, spans, &words);
    qkv_free(words.at);
    return status;
}

static qkv_status read_object(sentence *s, qkv_json_at root) {
    qkv_json_at a, b;
    if (qkv_json_member(root, "tokens", &a) &&
        (qkv_json_member(root, "tags", &b) || qkv_json_member(root, "ner_tags", &b)))
        return read_tokens(s, a, b);
    if (qkv_json_member(root, "text", &a) &&
        (qkv_json_member(root, "spans", &b) || qkv_json_member(root, "entities", &b)))
        return read_text(s, a, b);
    return qkv_fail(QKV_BAD_FILE, "wanted \"tokens\" and \"tags\", or \"text\" and \"spans\"");
}

qkv_status qkv_read_tagged_jsonl(qkv_reader *r) {
    const qkv_json_limits limits = {.bytes = (size_t)64 << 20, .nodes = 1000000, .depth = 32};
    sentence s = {.r = r};
    qkv_text line;
    qkv_status status = QKV_OK;
    while (status == QKV_OK && qkv_reader_line(r, &line)) {
        qkv_json doc;
        if (line.len == 0) continue;
        status = qkv_json_parse(&doc, r->path, line.data, line.len, limits);
        if (status == QKV_OK) {
            status = read_object(&s, qkv_json_root(&doc));
            qkv_json_free(&doc);
        }
        status = qkv_reader_blame(r, status);
    }
    return close_sentence(&s, status);
}
