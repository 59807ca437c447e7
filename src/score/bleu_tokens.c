/* BLEU's tokenisations: replacements of text, then rules on one or two neighbouring characters
 * that put blanks around them. Each rule runs over the whole line, left to right, and goes on
 * behind what it matched, as the regular expressions do that define the tokenisations. */
#include "score/score.h"
#include "base/utf8.h"

#include <string.h>
#include <utf8proc.h>

/* ---- classes of characters ---- */

typedef bool (*class_of)(int32_t cp);

static bool is_digit(int32_t cp) {
    return cp >= '0' && cp <= '9';
}
static bool is_not_digit(int32_t cp) {
    return !is_digit(cp);
}
static bool is_stop(int32_t cp) {
    return cp == '.' || cp == ',';
}
static bool is_dash(int32_t cp) {
    return cp == '-';
}
/* ASCII punctuation but ' , - . */
static bool is_mark(int32_t cp) {
    return (cp >= '{' && cp <= '~') || (cp >= '[' && cp <= '`') || (cp >= ' ' && cp <= '&') ||
           (cp >= '(' && cp <= '+') || (cp >= ':' && cp <= '@') || cp == '/';
}

static bool in_categories(int32_t cp, utf8proc_category_t first, utf8proc_category_t last) {
    const utf8proc_category_t c = utf8proc_category(cp);
    return c >= first && c <= last;
}
static bool is_not_number(int32_t cp) {
    return !in_categories(cp, UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO);
}
static bool is_punctuation(int32_t cp) {
    return in_categories(cp, UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO);
}
static bool is_symbol(int32_t cp) {
    return in_categories(cp, UTF8PROC_CATEGORY_SM, UTF8PROC_CATEGORY_SO);
}
static bool is_any(int32_t cp) {
    (void)cp;
    return true;
}

/* What sacrebleu's zh takes for Chinese. Its ranges beyond the first plane are written with escapes
 * of four digits, so that they say U+2001 … U+2A6D (dashes, quotes, arrows) and U+2F81 … U+2FA1;
 * figures are the same only with these. */
static bool is_chinese(int32_t cp) {
    static const struct {
        int32_t from, to;
    } ranges[] = {{0x2001, 0x2A6D}, {0x2E80, 0x2EFF}, {0x2F00, 0x2FDF}, {0x2FF0, 0x303F},
                  {0x3100, 0x312F}, {0x31A0, 0x31BF}, {0x31C0, 0x31EF}, {0x3200, 0x33FF},
                  {0x3400, 0x4DB5}, {0x4E00, 0x9FBB}, {0xF900, 0xFA2D}, {0xFA30, 0xFA6A},
                  {0xFA70, 0xFAD9}, {0xFE10, 0xFE1F}, {0xFE30, 0xFE4F}, {0xFF00, 0xFFEF}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (cp >= ranges[i].from && cp <= ranges[i].to) return true;
    return false;
}

/* ---- the table ---- */

typedef struct rule {
    class_of first, second;      /* second NULL: a rule on one character */
    bool before, between, after; /* where blanks go */
} rule;

typedef struct replacement {
    const char *from, *to;
} replacement;

static const replacement escapes[] = {{"<skipped>", ""}, {"-\n", ""},    {"\n", " "},
                                      {"&quot;", "\""},  {"&amp;", "&"}, {"&lt;", "<"},
                                      {"&gt;", ">"},     {NULL, NULL}};
/* 13a is what follows the first. */
static const rule rules_zh[] = {
    {is_chinese, NULL, true, false, true},      {is_mark, NULL, true, false, true},
    {is_not_digit, is_stop, false, true, true}, {is_stop, is_not_digit, true, true, false},
    {is_digit, is_dash, false, true, true},     {0}};
static const rule rules_intl[] = {{is_not_number, is_punctuation, false, true, true},
                                  {is_punctuation, is_not_number, true, true, false},
                                  {is_symbol, NULL, true, false, true},
                                  {0}};
static const rule rules_char[] = {{is_any, NULL, true, false, true}, {0}};
static const rule rules_none[] = {{0}};

static const struct tokenisation {
    const replacement *replace; /* or NULL */
    bool framed;                /* a blank at either end, */
    bool bare;                  /* or none at the beginning */
    const rule *rules;          /* a row of zeros ends them */
} table[QKV_BLEU_TOKENS] = {
    [QKV_BLEU_13A] = {escapes, true, false, rules_zh + 1},
    [QKV_BLEU_INTL] = {NULL, false, false, rules_intl},
    [QKV_BLEU_CHAR] = {NULL, false, false, rules_char},
    [QKV_BLEU_NONE] = {NULL, false, false, rules_none},
    [QKV_BLEU_ZH] = {NULL, false, true, rules_zh},
};

const char *const qkv_bleu_token_names[] = {"13a", "intl", "char", "zh", "none", NULL};

/* ---- running it ---- */

/* `text` with every `from` made `to`, in place: no replacement is longer than what it replaces. */
static size_t replace(char *text, size_t n, const replacement *r) {
    const size_t from = strlen(r->from), to = strlen(r->to);
    size_t kept = 0;
    for (size_t i = 0; i < n;) {
        if (n - i >= from && memcmp(text + i, r->from, from) == 0) {
            memcpy(text + kept, r->to, to);
            kept += to;
            i += from;
        } else {
            text[kept++] = text[i++];
        }
    }
    return kept;
}

/* Writes the characters in[0 … n) to w->to with the rule's blanks. */
static qkv_status apply(const rule *r, const int32_t *in, size_t n, qkv_score_words *w) {
    w->to.n = 0;
    for (size_t i = 0; i < n; i++) {
        const bool hit = r->first(in[i]) && (!r->second || (i + 1 < n && r->second(in[i + 1])));
        bool ok = !(hit && r->before) || QKV_PUSH(w->to, ' ');
        ok = ok && QKV_PUSH(w->to, in[i]);
        ok = ok && (!(hit && r->between) || QKV_PUSH(w->to, ' '));
        if (hit && r->second) ok = ok && QKV_PUSH(w->to, in[++i]);
        ok = ok && (!(hit && r->after) || QKV_PUSH(w->to, ' '));
        if (!ok) return QKV_FAILED;
    }
    return QKV_OK;
}

/* Bytes of the line without the white space at its end. */
static size_t trimmed(qkv_text line) {
    size_t end = 0;
    for (size_t i = 0; i < line.len;) {
        int32_t cp;
        i += (size_t)qkv_utf8_decode(line.data + i, line.len - i, &cp);
        if (!qkv_score_is_space(cp)) end = i;
    }
    return end;
}

/* The line as code points in w->from: white space at its end dropped, texts replaced, framed. */
static qkv_status prepare(const struct tokenisation *t, qkv_text line, qkv_score_words *w) {
    qkv_buf_clear(&w->text);
    qkv_buf_add(&w->text, line.data, trimmed(line));
    QKV_TRY(w->text.status);
    for (const replacement *r = t->replace; r && r->from; r++)
        w->text.len = replace(w->text.data, w->text.len, r);
    w->from.n = 0;
    for (size_t i = 0; i < w->text.len + 2; i++)
        if (!QKV_PUSH(w->from, ' ')) return QKV_FAILED;
    size_t n;
    QKV_TRY(qkv_score_decode((qkv_text){w->text.data, w->text.len}, w->from.at + t->framed, &n));
    if (t->framed) w->from.at[n + 1] = ' ';
    w->from.n = n + (t->framed ? 2 : 0);
    size_t first = 0;
    while (t->bare && first < n && qkv_score_is_space(w->from.at[first])) first++;
    w->from.n -= first;
    if (first) memmove(w->from.at, w->from.at + first, w->from.n * sizeof *w->from.at);
    return QKV_OK;
}

qkv_status qkv_bleu_tokenise(qkv_bleu_tokens how, qkv_text line, qkv_score_words *w) {
    const struct tokenisation *t = &table[how];
    QKV_TRY(prepare(t, line, w));
    for (const rule *r = t->rules; r->first; r++) {
        QKV_TRY(apply(r, w->from.at, w->from.n, w));
        w->from.n = 0;
        for (size_t i = 0; i < w->to.n; i++)
            if (!QKV_PUSH(w->from, w->to.at[i])) return QKV_FAILED;
    }
    const int32_t *c = w->from.at;
    for (size_t i = 0, begin = 0; i <= w->from.n; i++) {
        if (i < w->from.n && !qkv_score_is_space(c[i])) continue;
        QKV_TRY(qkv_score_words_add(w, c + begin, i - begin));
        begin = i + 1;
    }
    return QKV_OK;
}
