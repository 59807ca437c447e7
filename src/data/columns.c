/* The columns, a row each: how much room one needs, and how it is made. */
#include "data/columns.h"
#include "base/utf8.h"

#include <string.h>

/* ---- trees ---- */

static qkv_status find_tree(const qkv_column_source *s, const qkv_tree **out) {
    *out = s->second.data ? NULL : qkv_trees_find(s->trees, s->text);
    if (*out) return QKV_OK;
    const int shown = (int)(s->text.len < 60 ? s->text.len : 60);
    if (s->line)
        return qkv_fail(QKV_BAD_FILE, "row of line %lld: %s \"%.*s\"", (long long)s->line,
                        s->second.data ? "a pair of texts has no tree:"
                                       : "no tree of the CoNLL-U file has the text",
                        shown, s->text.data);
    return qkv_fail(QKV_BAD_FILE, "structural positions: there is no tree for the text \"%.*s\"",
                    shown, s->text.data);
}

static uint32_t leading_space(qkv_text t) {
    uint32_t n = 0;
    while (n < t.len && (unsigned char)t.data[n] <= ' ') n++;
    return n;
}

static int64_t token_room(const qkv_column_source *s) {
    return s->to - s->from;
}

static qkv_status make_nodes(const qkv_column_source *s, int32_t *out, int64_t *n) {
    const qkv_tree *tree;
    QKV_TRY(find_tree(s, &tree));
    /* The tree's text is the row's but for white space at the ends. */
    const uint32_t lead = leading_space(s->text), own = leading_space(tree->text);
    for (int64_t i = s->from; i < s->to; i++) {
        const uint32_t begin = s->e->begin[i], end = s->e->end[i];
        *out++ = end <= lead ? 0
                             : qkv_tree_node(tree, (begin > lead ? begin - lead : 0) + own,
                                             end - lead + own);
    }
    *n = s->to - s->from;
    return QKV_OK;
}

static int64_t head_room(const qkv_column_source *s) {
    const qkv_tree *tree = s->second.data ? NULL : qkv_trees_find(s->trees, s->text);
    return tree ? tree->n + 1 : 0;
}

static qkv_status make_heads(const qkv_column_source *s, int32_t *out, int64_t *n) {
    const qkv_tree *tree;
    QKV_TRY(find_tree(s, &tree));
    *n = tree->n + 1;
    memcpy(out, tree->head, (size_t)*n * sizeof *out);
    return QKV_OK;
}

/* ---- characters ---- */

static int64_t char_room(const qkv_column_source *s) {
    return (int64_t)(s->text.len + 1 + s->second.len);
}

/* Where characters go: code points, or the byte of the text at which each begins. */
typedef struct chars {
    int32_t *code;   /* or NULL */
    uint32_t *place; /* or NULL */
    int64_t n;
} chars;

static void put_char(chars *out, int32_t c, size_t at) {
    if (out->code) out->code[out->n] = c;
    if (out->place) out->place[out->n] = (uint32_t)at;
    out->n++;
}

/* Code points, white space as one blank, none at the ends (−1 for what is no UTF-8). Places are
 * counted from the text's `first` byte. */
static void put_chars(qkv_text text, size_t first, chars *out) {
    bool gap = false;
    const int64_t before = out->n;
    size_t blank = 0; /* the first of a gap */
    for (size_t at = 0, n; at < text.len; at += n) {
        int32_t c;
        n = (size_t)qkv_utf8_decode(text.data + at, text.len - at, &c);
        const bool space = (c >= '\t' && c <= '\r') || c == ' ' || c == 0xa0 || c == 0x3000;
        if (!space && gap && out->n > before) put_char(out, ' ', first + blank);
        if (!space) put_char(out, c, first + at);
        if (space && !gap) blank = at;
        gap = space;
    }
}

/* The part of the text that the sequence's tokens stand for. */
static qkv_text part_of(const qkv_column_source *s) {
    const qkv_encoding *e = s->e;
    size_t begin = s->text.len, end = 0;
    for (int64_t i = s->from; i < s->to; i++) {
        if (e->begin[i] >= e->end[i]) continue; /* what the tokenizer adds */
        if (e->begin[i] < begin) begin = e->begin[i];
        if (e->end[i] > end) end = e->end[i];
    }
    return (qkv_text){s->text.data + begin, end > begin ? end - begin : 0};
}

/* Those of a pair stand on two lines. A piece of a text that was split has its own; a piece of a
 * pair has all of the pair's, as an offset does not say in which of the two texts it lies. */
static void take_chars(const qkv_column_source *s, chars *out) {
    const bool whole = s->second.data || (s->from == 0 && s->to == (int64_t)s->e->n);
    const qkv_text text = whole ? s->text : part_of(s);
    put_chars(text, (size_t)(text.data - s->text.data), out);
    if (!s->second.len) return;
    put_char(out, '\n', s->text.len);
    put_chars(s->second, s->text.len + 1, out);
}

static qkv_status make_chars(const qkv_column_source *s, int32_t *out, int64_t *n) {
    chars all = {.code = out};
    take_chars(s, &all);
    *n = all.n;
    return QKV_OK;
}

int64_t qkv_column_char_places(const qkv_column_source *s, uint32_t *out) {
    chars all = {.place = out};
    take_chars(s, &all);
    return all.n;
}

/* ---- words ---- */

static int64_t word_room(const qkv_column_source *s) {
    return (int64_t)s->words.n;
}

/* For each word of the text that begins among the sequence's tokens, the one that it begins at, in
 * `first`, or its label, in `tags`. A word that the tokenizer left nothing of has the token before,
 * so that it too has an answer; words that were cut off have none. */
static int64_t find_words(const qkv_column_source *s, int32_t *first, int32_t *tags) {
    const qkv_encoding *e = s->e;
    int64_t n = 0, at = s->from;
    size_t w = 0, last = 0; /* the last byte that the tokens stand for */
    for (int64_t i = s->from; i < s->to; i++)
        if (e->end[i] > last) last = e->end[i];
    while (s->from > 0 && w < s->words.n && s->words.at[w].begin < e->begin[s->from]) w++;
    for (; w < s->words.n && (s->words.at[w].begin < last || s->to == (int64_t)e->n); w++, n++) {
        if (s->words.at[w].begin >= last && e->cut) break;
        while (at < s->to && e->end[at] <= s->words.at[w].begin) at++;
        if (first) first[n] = (int32_t)((at < s->to ? at : s->to - 1) - s->from);
        if (tags) tags[n] = s->words.at[w].tag;
    }
    return n;
}

static qkv_status make_words(const qkv_column_source *s, int32_t *out, int64_t *n) {
    *n = find_words(s, out, NULL);
    return QKV_OK;
}

static qkv_status make_tags(const qkv_column_source *s, int32_t *out, int64_t *n) {
    *n = find_words(s, NULL, out);
    return QKV_OK;
}

/* ---- segments ---- */

/* As the tokenizer's post-processor says; a text by itself is of the first kind. */
static qkv_status make_segments(const qkv_column_source *s, int32_t *out, int64_t *n) {
    for (int64_t i = s->from; i < s->to; i++) *out++ = s->e->type ? s->e->type[i] : 0;
    *n = s->to - s->from;
    return QKV_OK;
}

/* ---- numbers, labels ---- */

static int64_t value_room(const qkv_column_source *s) {
    (void)s;
    return 1;
}

static qkv_status make_value(const qkv_column_source *s, int32_t *out, int64_t *n) {
    memcpy(out, &s->value, sizeof *out);
    *n = 1;
    return QKV_OK;
}

static int64_t label_room(const qkv_column_source *s) {
    return s->labels.n;
}

static qkv_status make_labels(const qkv_column_source *s, int32_t *out, int64_t *n) {
    for (int64_t i = 0; i < s->labels.n; i++) out[i] = s->labels.at[i];
    *n = s->labels.n;
    return QKV_OK;
}

/* ---- the table ---- */

static const struct {
    int64_t (*room)(const qkv_column_source *s);
    qkv_status (*make)(const qkv_column_source *s, int32_t *out, int64_t *n);
} rows[QKV_COLUMNS] = {
    [QKV_COLUMN_NODES] = {token_room, make_nodes},
    [QKV_COLUMN_HEADS] = {head_room, make_heads},
    [QKV_COLUMN_CHARS] = {char_room, make_chars},
    [QKV_COLUMN_WORDS] = {word_room, make_words},
    [QKV_COLUMN_TAGS] = {word_room, make_tags},
    [QKV_COLUMN_VALUE] = {value_room, make_value},
    [QKV_COLUMN_LABELS] = {label_room, make_labels},
    [QKV_COLUMN_SEGMENTS] = {token_room, make_segments},
};

int64_t qkv_column_room(qkv_column column, const qkv_column_source *s) {
    return rows[column].room(s);
}

qkv_status qkv_column_make(qkv_column column, const qkv_column_source *s, int32_t *out,
                           int64_t *n) {
    return rows[column].make(s, out, n);
}
