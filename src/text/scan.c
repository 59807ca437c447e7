#include "text/scan.h"
#include "text/unicode.h"

#include <string.h>

#define CONTRACTIONS "'s|'t|'re|'ve|'m|'ll|'d"
#define WHITE        "\\s+(?!\\S)|\\s+"

const qkv_scan_rules qkv_scan_gpt2 = {.regex = CONTRACTIONS
                                      "| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|" WHITE};
/* tiktoken's expression, without its possessive forms (which other engines read otherwise) and with
 * \z for its $. It differs from Llama-3's only in the rule for white space at the end. */
const qkv_scan_rules qkv_scan_cl100k = {
    .regex = "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
             "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s+\\z|\\s*[\\r\\n]+|" WHITE,
    .digits = 3,
    .any_case = true,
    .letter_prefix = true,
    .line_ends = true,
    .final_space = true};

#define LLAMA3(digits)                                                                             \
    "(?i:" CONTRACTIONS ")|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" digits                                  \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|" WHITE
const qkv_scan_rules qkv_scan_llama3 = {.regex = LLAMA3("\\p{N}{1,3}"),
                                        .digits = 3,
                                        .any_case = true,
                                        .letter_prefix = true,
                                        .line_ends = true};
const qkv_scan_rules qkv_scan_qwen2 = {.regex = LLAMA3("\\p{N}"),
                                       .digits = 1,
                                       .any_case = true,
                                       .letter_prefix = true,
                                       .line_ends = true};

const qkv_scan_rules *qkv_scan_find(const char *regex, size_t len) {
    static const qkv_scan_rules *const all[] = {&qkv_scan_gpt2, &qkv_scan_cl100k, &qkv_scan_llama3,
                                                &qkv_scan_qwen2};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strlen(all[i]->regex) == len && !memcmp(all[i]->regex, regex, len)) return all[i];
    return NULL;
}

/* End of the run, from i, of characters that have a class of `want` and none of `not`. At most
 * `limit` characters (0: any number). */
static inline size_t run(const char *text, size_t len, size_t i, uint8_t want, uint8_t not,
                         int limit) {
    size_t n;
    for (int count = 0; i < len && (!limit || count < limit); i += n, count++) {
        const uint8_t c = qkv_unicode_class_at(text, len, i, &n);
        if ((want && !(c & want)) || (c & not )) break;
    }
    return i;
}

/* Length of 's, 't, 're, 've, 'm, 'll or 'd at text; 0: none. The long s folds to s. */
static size_t contraction(const char *text, size_t len, bool any_case) {
    if (len < 2) return 0;
    const char fold = any_case ? 0x20 : 0, a = text[1] | fold;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
    if (any_case && len >= 3 && !memcmp(text + 1, "\xC5\xBF", 2)) return 3;
    if (len < 3) return 0;
    const char b = text[2] | fold;
    return (b == 'e' && (a == 'r' || a == 'v')) || (a == 'l' && b == 'l') ? 3 : 0;
}

static size_t white_space(const qkv_scan_rules *r, const char *text, size_t len, size_t at) {
    size_t end = at, last = at, line = 0, n;
    for (; end < len && qkv_unicode_class_at(text, len, end, &n) & QKV_U_SPACE; end += n) {
        last = end;
        if (text[end] == '\n' || text[end] == '\r') line = end + 1;
    }
    if (r->final_space && end == len) return end;
    if (r->line_ends && line) return line;
    return end == len || last == at ? end : last; /* the last one leads the next word */
}

size_t qkv_scan_next(const qkv_scan_rules *r, const char *text, size_t len, size_t at) {
    enum { WORDY = QKV_U_LETTER | QKV_U_NUMBER };
    size_t n, n2;
    if (text[at] == '\'' && (n = contraction(text + at, len - at, r->any_case))) return at + n;
    const uint8_t c = qkv_unicode_class_at(text, len, at, &n);
    if (c & QKV_U_LETTER) return run(text, len, at + n, QKV_U_LETTER, 0, 0);
    if (c & QKV_U_NUMBER)
        return run(text, len, at + n, QKV_U_NUMBER, 0, r->digits ? r->digits - 1 : 0);
    const bool blank = text[at] == ' ';
    const bool line = text[at] == '\n' || text[at] == '\r';
    const uint8_t next = at + n < len ? qkv_unicode_class_at(text, len, at + n, &n2) : 0;
    if (next & QKV_U_LETTER && (blank || (r->letter_prefix && !line)))
        return run(text, len, at + n + n2, QKV_U_LETTER, 0, 0);
    if (next & QKV_U_NUMBER && blank && !r->digits)
        return run(text, len, at + n + n2, QKV_U_NUMBER, 0, 0);
    const bool mark_after_blank = blank && at + 1 < len && !(next & (WORDY | QKV_U_SPACE));
    if (mark_after_blank || !(c & QKV_U_SPACE)) {
        size_t end = run(text, len, at + n, 0, WORDY | QKV_U_SPACE, 0);
        if (r->line_ends)
            while (end < len && (text[end] == '\n' || text[end] == '\r')) end++;
        return end;
    }
    return white_space(r, text, len, at);
}
