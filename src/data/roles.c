/* What the names of columns say. */
#include "base/utf8.h"
#include "data/corpus.h"

#include <string.h>

enum { NAME_MAX_BYTES = 48 };

#define TEXTS " text sentence review content comment question description sentence1 premise "
#define MORE_TEXTS                                                                                 \
    " texts body message tweet document utterance phrase query post abstract title headline sms "  \
    "email article statement input text1 text_a sentence_a sentence_1 question1 "
#define PAIRS      " text_pair sentence2 hypothesis "
#define MORE_PAIRS " text2 text_b sentence_b sentence_2 question2 "

/* Names that say it outright, and those that are taken where nothing does. */
static const struct {
    qkv_corpus_shape shape;
    qkv_role role;
    const char *outright, *perhaps;
} roles[] = {
    {QKV_CORPUS_LABELLED, QKV_ROLE_LABEL, " label class category sentiment intent target y ",
     " labels tag tags topic topics emotion polarity class_index gold_label coarse_label stance "
     "genre score rating stars is_duplicate "},
    {QKV_CORPUS_LABELLED, QKV_ROLE_TEXT, TEXTS, MORE_TEXTS},
    {QKV_CORPUS_LABELLED, QKV_ROLE_PAIR, PAIRS, MORE_PAIRS},
    {QKV_CORPUS_RATED, QKV_ROLE_LABEL,
     " score rating stars similarity number value label target y ",
     " labels rank grade points price quality polarity valence relevance relatedness gold "
     "average "},
    {QKV_CORPUS_RATED, QKV_ROLE_TEXT, TEXTS, MORE_TEXTS},
    {QKV_CORPUS_RATED, QKV_ROLE_PAIR, PAIRS, MORE_PAIRS},
    {QKV_CORPUS_PARALLEL, QKV_ROLE_TEXT, " source src input ", " source_text "},
    {QKV_CORPUS_PARALLEL, QKV_ROLE_PAIR, " target tgt output ", " target_text "},
    {QKV_CORPUS_LINES, QKV_ROLE_TEXT,
     " text sentence review content comment question description sentence1 premise ",
     " texts body message tweet document utterance phrase query post abstract "},
};
enum { N_ROLES = sizeof roles / sizeof *roles };

/* Words that make of "text" something beside it: "text_id", "label date". */
static const char beside[] = " id ids idx index date time url link count length len number num "
                             "lang language confidence ";

/* The name in lower case, blanks and dashes as underscores, a blank at either end; false when it is
 * too long for a name. */
static bool plain_name(qkv_text name, char out[NAME_MAX_BYTES]) {
    while (name.len && name.data[0] == ' ') name.data++, name.len--;
    while (name.len && name.data[name.len - 1] == ' ') name.len--;
    if (name.len == 0 || name.len + 3 > NAME_MAX_BYTES) return false;
    out[0] = ' ';
    for (size_t i = 0; i < name.len; i++) {
        const char c = name.data[i];
        out[i + 1] = c >= 'A' && c <= 'Z' ? (char)(c | 32) : c == ' ' || c == '-' ? '_' : c;
    }
    memcpy(out + name.len + 1, " ", 2);
    return true;
}

/* Is one of the parts of the name ("review_text") among the words, and none a thing beside it? */
static bool has_part(const char *words, const char *name) {
    bool found = false;
    for (const char *at = name + 1; *at && *at != ' ';) {
        char part[NAME_MAX_BYTES] = " ";
        const size_t n = strcspn(at, "_. ");
        memcpy(part + 1, at, n);
        memcpy(part + 1 + n, " ", 2);
        if (n && strstr(beside, part)) return false;
        found |= n && strstr(words, part);
        at += n + (at[n] == '_' || at[n] == '.');
    }
    return found;
}

int qkv_column_rank(qkv_corpus_shape shape, qkv_role role, qkv_text name) {
    char plain[NAME_MAX_BYTES];
    if (!plain_name(name, plain)) return 0;
    for (size_t i = 0; i < N_ROLES; i++) {
        if (roles[i].shape != shape || roles[i].role != role) continue;
        return strstr(roles[i].outright, plain)     ? 3
               : strstr(roles[i].perhaps, plain)    ? 2
               : has_part(roles[i].outright, plain) ? 1
                                                    : 0;
    }
    return 0;
}

size_t qkv_column_number(const char *wanted) {
    size_t n = 0;
    for (const char *c = wanted; *c; c++) {
        if (*c < '0' || *c > '9' || n > 100000) return 0;
        n = 10 * n + (size_t)(*c - '0');
    }
    return n;
}

/* A name as it is shown: short, and of one line. */
static void put_name(qkv_buf *out, qkv_text name) {
    const size_t n = name.len > 40 ? qkv_utf8_start(name.data, 38) : name.len;
    qkv_buf_putc(out, '"');
    for (size_t i = 0; i < n; i++)
        qkv_buf_putc(out, (unsigned char)name.data[i] < ' ' ? ' ' : name.data[i]);
    qkv_buf_puts(out, n < name.len ? "…\"" : "\"");
}

qkv_status qkv_name_list(qkv_arena *a, const qkv_text *names, size_t n, size_t most,
                         qkv_text *out) {
    qkv_buf list = {0};
    for (size_t i = 0; i < n && i < most; i++) {
        if (i) qkv_buf_puts(&list, ", ");
        put_name(&list, names[i]);
    }
    if (n > most) qkv_buf_printf(&list, " and %zu more", n - most);
    qkv_status status = list.status;
    *out = (qkv_text){"", 0};
    if (status == QKV_OK && list.len) {
        out->len = list.len;
        out->data = qkv_arena_strndup(a, list.data, list.len);
        if (!out->data) status = QKV_FAILED;
    }
    qkv_buf_free(&list);
    return status;
}
