/* Normalizers that look at one character, or at one pattern, at a time. */
#include "text/pattern.h"
#include "text/pipeline.h"
#include "text/unicode.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <string.h>

/* ---- Lowercase ---- */

static qkv_status lowercase(const qkv_text_step *step, qkv_draft *w) {
    (void)step;
    qkv_draft_begin(w);
    for (size_t i = 0; i < w->len;) {
        int32_t cp, low[2];
        const size_t n = (size_t)qkv_utf8_decode(w->text + i, w->len - i, &cp);
        if (cp < 0)
            qkv_draft_keep(w, i, i + n);
        else
            for (int k = 0, count = qkv_unicode_lower(cp, low); k < count; k++)
                qkv_draft_put_char(w, low[k], i, i + n);
        i += n;
    }
    return qkv_draft_end(w);
}

const qkv_text_step_kind qkv_norm_lowercase = {.name = "Lowercase", .normalize = lowercase};

/* ---- Strip ---- */

typedef struct strip_args {
    bool left, right;
} strip_args;

static qkv_status strip_parse(qkv_tokenizer *tok, qkv_json_at json, qkv_text_step *step) {
    strip_args *a;
    QKV_TRY_ALLOC(step->args = a = qkv_arena_zalloc(&tok->arena, sizeof *a));
    QKV_TRY(qkv_json_get_bool(json, "strip_left", true, &a->left));
    return qkv_json_get_bool(json, "strip_right", true, &a->right);
}

/* The text without its white space at the ends is a view of itself. */
static qkv_status strip(const qkv_text_step *step, qkv_draft *w) {
    const strip_args *a = step->args;
    size_t begin = 0, end = w->len;
    qkv_unicode_trim(w->text, &begin, &end, a->left, a->right);
    w->text += begin;
    w->len = end - begin;
    if (w->track && begin) { /* an empty text has no offsets at all */
        w->from += begin;
        w->to += begin;
    }
    return QKV_OK;
}

const qkv_text_step_kind qkv_norm_strip = {
    .name = "Strip", .parse = strip_parse, .normalize = strip};

/* ---- StripAccents, Nmt: some characters dropped, some made a blank ---- */

enum { KEEP, DROP, BLANK };

static qkv_status sift(qkv_draft *w, int (*fate)(int32_t cp)) {
    qkv_draft_begin(w);
    for (size_t i = 0; i < w->len;) {
        int32_t cp;
        const size_t n = (size_t)qkv_utf8_decode(w->text + i, w->len - i, &cp);
        switch (fate(cp)) {
        case KEEP:
            qkv_draft_keep(w, i, i + n);
            break;
        case BLANK:
            qkv_draft_put(w, " ", 1, i, i + n);
            break;
        default:
            break;
        }
        i += n;
    }
    return qkv_draft_end(w);
}

static int accent_fate(int32_t cp) {
    return qkv_unicode_is_mark(cp) ? DROP : KEEP;
}

static qkv_status strip_accents(const qkv_text_step *step, qkv_draft *w) {
    (void)step;
    return sift(w, accent_fate);
}

const qkv_text_step_kind qkv_norm_strip_accents = {.name = "StripAccents",
                                                   .normalize = strip_accents};

static int nmt_fate(int32_t cp) {
    if ((cp >= 1 && cp <= 8) || cp == 0xB || (cp >= 0xE && cp <= 0x1F) || cp == 0x7F ||
        cp == 0x8F || cp == 0x9F)
        return DROP;
    if (cp == 9 || cp == 0xA || cp == 0xC || cp == 0xD || cp == 0x1680 ||
        (cp >= 0x200B && cp <= 0x200F) || cp == 0x2028 || cp == 0x2029 || cp == 0x2581 ||
        cp == 0xFEFF || cp == 0xFFFD)
        return BLANK;
    return KEEP;
}

static qkv_status nmt(const qkv_text_step *step, qkv_draft *w) {
    (void)step;
    return sift(w, nmt_fate);
}

const qkv_text_step_kind qkv_norm_nmt = {.name = "Nmt", .normalize = nmt};

/* ---- Replace ---- */

typedef struct replace_args {
    qkv_text_pattern pattern;
    char *content;
    size_t len;
} replace_args;

static qkv_status replace_parse(qkv_tokenizer *tok, qkv_json_at json, qkv_text_step *step) {
    replace_args *a;
    qkv_json_at pattern;
    const char *content;
    QKV_TRY_ALLOC(step->args = a = qkv_arena_zalloc(&tok->arena, sizeof *a));
    if (!qkv_json_member(json, "pattern", &pattern))
        return qkv_fail(QKV_BAD_FILE, "line %zu: Replace without a pattern", qkv_json_line(json));
    QKV_TRY(qkv_json_get_string(json, "content", true, &content, &a->len));
    QKV_TRY_ALLOC(a->content = qkv_arena_strndup(&tok->arena, content, a->len));
    return qkv_text_pattern_parse(&a->pattern, pattern);
}

static void replace_drop(qkv_text_step *step) {
    replace_args *a = step->args;
    if (a) qkv_text_pattern_free(&a->pattern);
}

static qkv_status replace(const qkv_text_step *step, qkv_draft *w) {
    const replace_args *a = step->args;
    qkv_search s = qkv_search_begin(&a->pattern, w->text, w->len);
    size_t done = 0, begin, end;
    bool found;
    qkv_draft_begin(w);
    qkv_status status;
    while ((status = qkv_search_next(&s, &begin, &end, &found)) == QKV_OK && found) {
        qkv_draft_keep(w, done, begin);
        qkv_draft_put(w, a->content, a->len, begin, end);
        done = end;
    }
    qkv_search_end(&s);
    QKV_TRY(status);
    if (!done) return QKV_OK; /* nothing found: the text stays as it is */
    qkv_draft_keep(w, done, w->len);
    return qkv_draft_end(w);
}

const qkv_text_step_kind qkv_norm_replace = {
    .name = "Replace", .parse = replace_parse, .normalize = replace, .drop = replace_drop};

/* ---- Prepend ---- */

static qkv_status prepend_parse(qkv_tokenizer *tok, qkv_json_at json, qkv_text_step *step) {
    const char *text;
    size_t len;
    QKV_TRY(qkv_json_get_string(json, "prepend", true, &text, &len));
    QKV_TRY_ALLOC(step->args = qkv_arena_strndup(&tok->arena, text, len));
    return QKV_OK;
}

static qkv_status prepend(const qkv_text_step *step, qkv_draft *w) {
    const char *text = step->args;
    if (!w->len) return QKV_OK;
    int32_t cp;
    qkv_draft_begin(w);
    qkv_draft_put(w, text, strlen(text), 0, (size_t)qkv_utf8_decode(w->text, w->len, &cp));
    qkv_draft_keep(w, 0, w->len);
    return qkv_draft_end(w);
}

const qkv_text_step_kind qkv_norm_prepend = {
    .name = "Prepend", .parse = prepend_parse, .normalize = prepend};

/* ---- ByteLevel ---- */

static qkv_status byte_level(const qkv_text_step *step, qkv_draft *w) {
    (void)step;
    qkv_buf name = {0};
    qkv_draft_begin(w);
    for (size_t i = 0; i < w->len; i++) {
        qkv_buf_clear(&name);
        qkv_byte_level_name(w->text + i, 1, &name);
        qkv_draft_put(w, name.data, name.len, i, i + 1);
    }
    const qkv_status status = name.status;
    qkv_buf_free(&name);
    QKV_TRY(status);
    return qkv_draft_end(w);
}

const qkv_text_step_kind qkv_norm_byte_level = {.name = "ByteLevel", .normalize = byte_level};
