/* Pre-tokenizers that find stretches (by pattern or by character) and then say what becomes of
 * them: the five behaviours. */
#include "text/pattern.h"
#include "text/pipeline.h"
#include "text/unicode.h"
#include "base/utf8.h"

#include <string.h>

typedef enum behavior {
    REMOVED,
    ISOLATED,
    MERGED_WITH_PREVIOUS,
    MERGED_WITH_NEXT,
    CONTIGUOUS,
    BEHAVIORS
} behavior;
static const char *const behavior_names[BEHAVIORS] = {"Removed", "Isolated", "MergedWithPrevious",
                                                      "MergedWithNext", "Contiguous"};

static qkv_status get_behavior(qkv_json_at json, bool required, behavior *out) {
    int place = *out;
    QKV_TRY(qkv_json_get_choice(json, "behavior", required, behavior_names, BEHAVIORS, &place));
    *out = (behavior)place;
    return QKV_OK;
}

static qkv_status add(qkv_draft *w, size_t begin, size_t end, bool hit) {
    if (begin >= end) return QKV_OK;
    return QKV_PUSH(w->stretches, ((qkv_stretch){(uint32_t)begin, (uint32_t)end, hit}))
               ? QKV_OK
               : QKV_FAILED;
}

/* Turns the stretches of one piece into pieces. A hit joins a neighbour only if the neighbour is no
 * hit itself; in MergedWithNext that is decided from the end of the text, so of two hits in a row
 * the first stands alone. */
static qkv_status apply(qkv_draft *w, behavior how) {
    const qkv_stretch *s = w->stretches.at;
    const size_t n = w->stretches.n;
    for (size_t i = 0; i < n;) {
        size_t last = i;
        switch (how) {
        case REMOVED:
            if (s[i].hit) {
                i++;
                continue;
            }
            break;
        case CONTIGUOUS:
            while (last + 1 < n && s[last + 1].hit == s[i].hit) last++;
            break;
        case MERGED_WITH_PREVIOUS:
            if (!s[i].hit && i + 1 < n && s[i + 1].hit) last++;
            break;
        case MERGED_WITH_NEXT:
            if (s[i].hit && i + 1 < n && !s[i + 1].hit) last++;
            break;
        default:
            break;
        }
        QKV_TRY(qkv_draft_cut(w, s[i].begin, s[last].end));
        i = last + 1;
    }
    return QKV_OK;
}

/* ---- Split, by pattern ---- */

typedef struct split_args {
    qkv_text_pattern pattern;
    behavior how;
    bool invert;
} split_args;

static qkv_status split_parse(qkv_tokenizer *tok, qkv_json_at json, qkv_text_step *step) {
    split_args *a;
    qkv_json_at pattern;
    QKV_TRY_ALLOC(step->args = a = qkv_arena_zalloc(&tok->arena, sizeof *a));
    QKV_TRY(get_behavior(json, true, &a->how));
    QKV_TRY(qkv_json_get_bool(json, "invert", false, &a->invert));
    if (!qkv_json_member(json, "pattern", &pattern))
        return qkv_fail(QKV_BAD_FILE, "line %zu: Split without a pattern", qkv_json_line(json));
    return qkv_text_pattern_parse(&a->pattern, pattern);
}

static void split_drop(qkv_text_step *step) {
    split_args *a = step->args;
    if (a) qkv_text_pattern_free(&a->pattern);
}

static qkv_status find_stretches(const split_args *a, qkv_draft *w, qkv_piece piece) {
    qkv_search s = qkv_search_begin(&a->pattern, w->text + piece.begin, piece.end - piece.begin);
    size_t done = 0, begin, end;
    bool found;
    qkv_status status;
    w->stretches.n = 0;
    while ((status = qkv_search_next(&s, &begin, &end, &found)) == QKV_OK && found) {
        status = add(w, piece.begin + done, piece.begin + begin, a->invert);
        if (status == QKV_OK) status = add(w, piece.begin + begin, piece.begin + end, !a->invert);
        if (status != QKV_OK) break;
        done = end;
    }
    qkv_search_end(&s);
    QKV_TRY(status);
    return add(w, piece.begin + done, piece.end, a->invert);
}

static qkv_status split(const qkv_text_step *step, qkv_draft *w) {
    const split_args *a = step->args;
    const qkv_scan_rules *rules = a->pattern.rules;
    for (size_t p = 0; p < w->old.n; p++) {
        const qkv_piece piece = w->old.at[p];
        if (rules && a->how == ISOLATED) { /* the scanners leave no gaps: every match is a piece */
            const char *text = w->text + piece.begin;
            const size_t len = piece.end - piece.begin;
            for (size_t i = 0, end; i < len; i = end) {
                end = qkv_scan_next(rules, text, len, i);
                QKV_TRY(qkv_draft_cut(w, piece.begin + i, piece.begin + end));
            }
            continue;
        }
        QKV_TRY(find_stretches(a, w, piece));
        QKV_TRY(apply(w, a->how));
    }
    return QKV_OK;
}

const qkv_text_step_kind qkv_pre_split = {
    .name = "Split", .parse = split_parse, .split = split, .drop = split_drop};

/* ---- by character: Punctuation, Digits, CharDelimiterSplit ---- */

typedef struct char_args {
    uint8_t class;     /* characters of this class are hits, */
    int32_t delimiter; /* or this one */
    behavior how;
} char_args;

static qkv_status split_chars(const qkv_text_step *step, qkv_draft *w) {
    const char_args *a = step->args;
    for (size_t p = 0; p < w->old.n; p++) {
        const qkv_piece piece = w->old.at[p];
        size_t begin = piece.begin;
        w->stretches.n = 0;
        for (size_t i = begin; i < piece.end;) {
            int32_t cp;
            const size_t n = (size_t)qkv_utf8_decode(w->text + i, piece.end - i, &cp);
            if (a->class ? (qkv_unicode_class(cp) & a->class) != 0 : cp == a->delimiter) {
                QKV_TRY(add(w, begin, i, false));
                QKV_TRY(add(w, i, i + n, true));
                begin = i + n;
            }
            i += n;
        }
        QKV_TRY(add(w, begin, piece.end, false));
        QKV_TRY(apply(w, a->how));
    }
    return QKV_OK;
}

static qkv_status new_char_args(qkv_tokenizer *tok, qkv_text_step *step, char_args value) {
    char_args *a;
    QKV_TRY_ALLOC(step->args = a = qkv_arena_alloc(&tok->arena, sizeof *a));
    *a = value;
    return QKV_OK;
}

static qkv_status punctuation_parse(qkv_tokenizer *tok, qkv_json_at json, qkv_text_step *step) {
    char_args a = {.class = QKV_U_PUNCT, .how = ISOLATED};
    QKV_TRY(get_behavior(json, false, &a.how));
    return new_char_args(tok, step, a);
}

const qkv_text_step_kind qkv_pre_punctuation = {
    .name = "Punctuation", .parse = punctuation_parse, .split = split_chars};

static qkv_status digits_parse(qkv_tokenizer *tok, qkv_json_at json, qkv_text_step *step) {
    bool single = false;
    QKV_TRY(qkv_json_get_bool(json, "individual_digits", false, &single));
    return new_char_args(tok, step,
                         (char_args){.class = QKV_U_NUMBER, .how = single ? ISOLATED : CONTIGUOUS});
}

const qkv_text_step_kind qkv_pre_digits = {
    .name = "Digits", .parse = digits_parse, .split = split_chars};

static qkv_status delimiter_parse(qkv_tokenizer *tok, qkv_json_at json, qkv_text_step *step) {
    const char *text;
    size_t len;
    int32_t cp = -1;
    QKV_TRY(qkv_json_get_string(json, "delimiter", true, &text, &len));
    if (!len || (size_t)qkv_utf8_decode(text, len, &cp) != len)
        return qkv_fail(QKV_BAD_FILE, "line %zu: a delimiter must be one character",
                        qkv_json_line(json));
    return new_char_args(tok, step, (char_args){.delimiter = cp, .how = REMOVED});
}

const qkv_text_step_kind qkv_pre_delimiter = {
    .name = "CharDelimiterSplit", .parse = delimiter_parse, .split = split_chars};
