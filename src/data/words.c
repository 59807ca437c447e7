/* Cutting a text into words, as treebanks do. */
#include "data/words.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "text/unicode.h"

#include <string.h>

typedef struct stretch {
    size_t from, to;
} stretch;

/* The bytes of the character at `at`; *punctuation: is it a mark, so that it can end a word? */
static size_t look(qkv_text t, size_t at, bool *space, bool *punctuation) {
    size_t n;
    const uint8_t class = qkv_unicode_class_at(t.data, t.len, at, &n);
    *space = class & QKV_U_SPACE;
    *punctuation = !(class & (QKV_U_WORD | QKV_U_SPACE));
    return n;
}

static bool add(qkv_word_list *out, size_t from, size_t to) {
    return from == to || QKV_PUSH(*out, ((qkv_text_word){(uint32_t)from, (uint32_t)to, -1}));
}

/* Where the clitic at the end of [from, to) begins; `to`: there is none. */
static size_t clitic(qkv_text t, stretch s) {
    static const char *const endings[] = {"n't", "'s", "'re", "'ve", "'ll", "'d", "'m", NULL};
    for (const char *const *e = endings; *e; e++) {
        const size_t n = strlen(*e);
        if (s.to - s.from <= n) continue;
        bool same = true;
        for (size_t i = 0; i < n && same; i++) {
            const char c = t.data[s.to - n + i];
            same = (c >= 'A' && c <= 'Z' ? (char)(c | 32) : c) == (*e)[i];
        }
        if (same) return s.to - n;
    }
    return s.to;
}

/* What stands between two blanks: marks in front and behind are words, the rest is one. A full stop
 * inside ("U.S.", "3.5", "a-b") does not end it. */
static bool cut(qkv_text t, stretch s, qkv_word_list *out) {
    bool space, mark;
    for (size_t n; s.from < s.to; s.from += n) {
        n = look(t, s.from, &space, &mark);
        if (!mark) break;
        if (!add(out, s.from, s.from + n)) return false;
    }
    const size_t end = s.to;
    while (s.to > s.from) {
        const size_t at = qkv_utf8_start(t.data, s.to - 1);
        look(t, at, &space, &mark);
        if (!mark) break;
        s.to = at;
    }
    const size_t ending = clitic(t, s);
    if (!add(out, s.from, ending) || !add(out, ending, s.to)) return false;
    for (size_t at = s.to, n; at < end; at += n) {
        n = look(t, at, &space, &mark);
        if (!add(out, at, at + n)) return false;
    }
    return true;
}

qkv_status qkv_words_split(qkv_text text, bool blanks, qkv_word_list *out) {
    for (size_t at = 0; at < text.len;) {
        bool space = true, mark;
        size_t n = look(text, at, &space, &mark);
        if (space) {
            at += n;
            continue;
        }
        stretch s = {at, at};
        while (s.to < text.len && (n = look(text, s.to, &space, &mark), !space)) s.to += n;
        if (!(blanks ? add(out, s.from, s.to) : cut(text, s, out))) return QKV_FAILED;
        at = s.to;
    }
    return QKV_OK;
}
