/* CoNLL-U: one word per line in ten columns (ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC),
 * a blank line after each sentence, comments ("# text = …", "# label = …") before its words. Only
 * ID, FORM, HEAD and MISC are read.
 *
 * A sentence must be a tree: words 1, 2, … in order, heads among 0 … n, no cycle. Everything
 * else is refused with its line, whatever the bytes are. */
#include "data/corpus.h"
#include "base/mem.h"
#include "data/lines.h"

#include <stdio.h>
#include <string.h>

/* A sentence while it is read. A surface token is a word, or a range of words. */
typedef struct surface {
    qkv_text form;
    int32_t first, last; /* words it stands for */
    bool no_space;       /* nothing between it and the next */
    int64_t line;
} surface;

typedef struct sentence {
    const char *path;
    int64_t line, first_line;
    qkv_text text, label; /* from the comments; data NULL: none */
    QKV_VEC(int32_t) head;
    QKV_VEC(surface) surface;
    int32_t range_end; /* words up to here belong to the range before them */
} sentence;

static qkv_status refuse(const sentence *s, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static qkv_status refuse(const sentence *s, const char *format, ...) {
    char text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return qkv_fail(QKV_BAD_FILE, "%s, line %lld: %s", s->path, (long long)s->line, text);
}

/* ---- lines ---- */

/* A number of at most six digits at *p, which moves behind it; −1: there is none. */
static int32_t number(const char **p, const char *end) {
    int32_t x = -1;
    for (int digits = 0; *p < end && **p >= '0' && **p <= '9' && digits < 6; digits++, (*p)++)
        x = (x < 0 ? 0 : x) * 10 + (**p - '0');
    return x;
}

static void read_comment(sentence *s, qkv_text line) {
    static const char *const keys[] = {"# text = ", "# label = "};
    qkv_text *const to[] = {&s->text, &s->label};
    for (int k = 0; k < 2; k++) {
        const size_t n = strlen(keys[k]);
        if (line.len > n && memcmp(line.data, keys[k], n) == 0)
            *to[k] = (qkv_text){line.data + n, line.len - n};
    }
}

bool qkv_conllu_line(qkv_text line, qkv_text column[QKV_CONLLU_COLUMNS]) {
    size_t n = 0;
    for (const char *at = line.data, *end = line.data + line.len; at <= end; n++) {
        const char *tab = memchr(at, '\t', (size_t)(end - at));
        const char *stop = tab ? tab : end;
        if (n == QKV_CONLLU_COLUMNS || stop == at) return false;
        column[n] = (qkv_text){at, (size_t)(stop - at)};
        at = stop + 1;
    }
    return n == QKV_CONLLU_COLUMNS;
}

static bool has_no_space(qkv_text misc) {
    static const char wanted[] = "SpaceAfter=No";
    const size_t n = sizeof wanted - 1;
    for (size_t i = 0; i + n <= misc.len; i++)
        if ((i == 0 || misc.data[i - 1] == '|') && memcmp(misc.data + i, wanted, n) == 0 &&
            (i + n == misc.len || misc.data[i + n] == '|'))
            return true;
    return false;
}

/* A line of columns: a word, a range, or an empty node. */
static qkv_status read_word(sentence *s, qkv_text line) {
    qkv_text column[QKV_CONLLU_COLUMNS];
    if (!qkv_conllu_line(line, column))
        return refuse(s, "not the ten columns, TABs between, of CoNLL-U");
    const char *at = column[QKV_CONLLU_ID].data, *end = at + column[QKV_CONLLU_ID].len;
    const int32_t words = (int32_t)s->head.n, id = number(&at, end);
    surface one = {.form = column[QKV_CONLLU_FORM],
                   .first = id,
                   .last = id,
                   .no_space = has_no_space(column[QKV_CONLLU_MISC]),
                   .line = s->line};
    if (id >= 0 && at < end && *at == '.') return QKV_OK; /* an empty node */
    if (id >= 0 && at < end && *at == '-') {
        at++;
        one.last = number(&at, end);
        if (at != end || id != words + 1 || one.last < id || one.last > QKV_TREE_WORDS ||
            words < s->range_end)
            return refuse(s, "the range of words \"%.*s\" makes no sense here",
                          (int)(column[QKV_CONLLU_ID].len < 20 ? column[QKV_CONLLU_ID].len : 20),
                          column[QKV_CONLLU_ID].data);
        s->range_end = one.last;
        return QKV_PUSH(s->surface, one) ? QKV_OK : QKV_FAILED;
    }
    if (at != end || id != words + 1)
        return refuse(s, "word %d was to come, not \"%.*s\"", words + 1,
                      (int)(column[QKV_CONLLU_ID].len < 20 ? column[QKV_CONLLU_ID].len : 20),
                      column[QKV_CONLLU_ID].data);
    if (id > QKV_TREE_WORDS) return refuse(s, "a sentence of more than %d words", QKV_TREE_WORDS);
    at = column[QKV_CONLLU_HEAD].data, end = at + column[QKV_CONLLU_HEAD].len;
    const int32_t head = number(&at, end);
    if (head < 0 || at != end) return refuse(s, "word %d has no head", id);
    if (!QKV_PUSH(s->head, head)) return QKV_FAILED;
    if (id <= s->range_end) return QKV_OK; /* its letters are those of the range */
    return QKV_PUSH(s->surface, one) ? QKV_OK : QKV_FAILED;
}

/* ---- sentences ---- */

/* Heads exist and lead to the root: each word is walked from once, marked with the walk's
 * number. */
static qkv_status check_tree(const sentence *s, int32_t *walk) {
    const int32_t n = (int32_t)s->head.n;
    for (int32_t i = 0; i < n; i++) {
        walk[i] = 0;
        if (s->head.at[i] > n)
            return refuse(s, "the sentence that ends here has no word %d, the head of word %d",
                          s->head.at[i], i + 1);
    }
    for (int32_t i = 0; i < n; i++)
        for (int32_t at = i + 1; at != 0;) {
            if (walk[at - 1] == i + 1)
                return refuse(
                    s, "in the sentence that ends here the heads of word %d run in a circle", at);
            if (walk[at - 1] != 0) break; /* an earlier walk found the root from here */
            walk[at - 1] = i + 1;
            at = s->head.at[at - 1];
        }
    if (s->range_end > n)
        return refuse(s, "the sentence ends before word %d of its range", s->range_end);
    return QKV_OK;
}

/* Of the words of a surface token, the one whose head is none of them. */
static int32_t outermost(const sentence *s, const surface *token) {
    for (int32_t w = token->first; w <= token->last; w++)
        if (s->head.at[w - 1] < token->first || s->head.at[w - 1] > token->last) return w;
    return token->first;
}

/* Without a comment that gives it, the text is the forms and the blanks between them. */
static qkv_status make_text(const sentence *s, qkv_arena *a, qkv_text *out) {
    qkv_buf text = {0};
    for (size_t i = 0; i < s->surface.n; i++) {
        const surface *token = &s->surface.at[i];
        qkv_buf_add(&text, token->form.data, token->form.len);
        if (!token->no_space && i + 1 < s->surface.n) qkv_buf_putc(&text, ' ');
    }
    qkv_status status = text.status;
    if (status == QKV_OK) {
        out->len = text.len;
        out->data = qkv_arena_strndup(a, text.data, text.len);
        if (!out->data) status = QKV_FAILED;
    }
    qkv_buf_free(&text);
    return status;
}

/* White space that may stand between words: blanks, and no-break spaces in UTF-8. */
static size_t space_at(qkv_text t, size_t at) {
    if (at < t.len && (t.data[at] == ' ' || t.data[at] == '\t')) return 1;
    return at + 2 <= t.len && memcmp(t.data + at, "\xC2\xA0", 2) == 0 ? 2 : 0;
}

/* Finds the surface tokens in the text, one after another. */
static qkv_status place_words(sentence *s, const qkv_tree *tree, qkv_tree_span *spans) {
    size_t at = 0;
    for (size_t i = 0; i < s->surface.n; i++) {
        const surface *token = &s->surface.at[i];
        for (size_t n; (n = space_at(tree->text, at)) > 0;) at += n;
        if (at + token->form.len > tree->text.len ||
            memcmp(tree->text.data + at, token->form.data, token->form.len) != 0) {
            s->line = token->line;
            return refuse(s, "\"%.*s\" is not the next word of the sentence's text",
                          (int)(token->form.len < 40 ? token->form.len : 40), token->form.data);
        }
        spans[i] =
            (qkv_tree_span){(uint32_t)at, (uint32_t)(at + token->form.len), outermost(s, token)};
        at += token->form.len;
    }
    return QKV_OK;
}

/* The end of a sentence: checks it and adds it to the set. */
static qkv_status end_sentence(sentence *s, qkv_trees *t) {
    qkv_arena *a = &t->memory;
    const size_t n = s->head.n;
    if (n == 0) return QKV_OK;
    int32_t *head = qkv_arena_alloc(a, (n + 1) * sizeof *head);
    qkv_tree_span *spans = qkv_arena_alloc(a, s->surface.n * sizeof *spans);
    if (!head || !spans) return QKV_FAILED;
    QKV_TRY(check_tree(s, head + 1));
    head[0] = -1;
    memcpy(head + 1, s->head.at, n * sizeof *head);
    qkv_tree tree = {.n = (int32_t)n,
                     .head = head,
                     .spans = spans,
                     .n_spans = s->surface.n,
                     .line = s->first_line};
    if (s->text.len >= UINT32_MAX) return refuse(s, "a sentence of %zu bytes", s->text.len);
    if (s->text.data) {
        tree.text = (qkv_text){qkv_arena_strndup(a, s->text.data, s->text.len), s->text.len};
        if (!tree.text.data) return QKV_FAILED;
    } else {
        QKV_TRY(make_text(s, a, &tree.text));
    }
    if (s->label.data) {
        tree.label = (qkv_text){qkv_arena_strndup(a, s->label.data, s->label.len), s->label.len};
        if (!tree.label.data) return QKV_FAILED;
    }
    QKV_TRY(place_words(s, &tree, spans));
    return QKV_PUSH(t->list, tree) ? QKV_OK : QKV_FAILED;
}

static void begin_sentence(sentence *s) {
    s->text = s->label = (qkv_text){0};
    s->head.n = s->surface.n = 0;
    s->range_end = 0;
    s->first_line = s->line + 1;
}

qkv_status qkv_trees_parse(qkv_trees *t, const char *path, qkv_text content) {
    sentence s = {.path = path, .first_line = 1};
    qkv_text line;
    qkv_status status = QKV_OK;
    while (status == QKV_OK && qkv_text_line(&content, &line)) {
        s.line++;
        if (line.len == 0) {
            status = end_sentence(&s, t);
            begin_sentence(&s);
        } else if (line.data[0] == '#') {
            read_comment(&s, line);
        } else {
            status = read_word(&s, line);
        }
    }
    if (status == QKV_OK) status = end_sentence(&s, t);
    qkv_free(s.head.at);
    qkv_free(s.surface.at);
    return status == QKV_OK ? qkv_trees_index(t) : status;
}

/* As a form of a corpus: the sentences are the rows, "# label = x" their labels. */
qkv_status qkv_read_conllu(qkv_reader *r) {
    qkv_trees *trees = &r->corpus->trees;
    const size_t before = trees->list.n;
    QKV_TRY(qkv_trees_parse(trees, r->path, (qkv_text){r->at, (size_t)(r->end - r->at)}));
    r->at = r->end;
    for (size_t i = before; i < trees->list.n; i++) {
        const qkv_tree *tree = &trees->list.at[i];
        if (r->spec->shape == QKV_CORPUS_LABELLED && !tree->label.data)
            return qkv_fail(
                QKV_BAD_FILE,
                "%s, line %lld: the sentence has no label; wanted a line \"# label = x\"", r->path,
                (long long)tree->line);
        QKV_TRY(qkv_reader_add(r, tree->label, tree->text, (qkv_text){0}, tree->line));
    }
    return QKV_OK;
}
