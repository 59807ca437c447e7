/* Regular expressions come from files, so they are hostile until shown otherwise: PCRE2 runs with a
 * limit on its steps and on its memory, and a pattern that exceeds them fails the call instead of
 * hanging it. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/pattern.h"
#include "base/mem.h"

#include <pcre2.h>
#include <string.h>

#define MATCH_LIMIT 1000000u
#define HEAP_KIB    65536u
#define PATTERN_MAX 65536u
#define NESTING_MAX 100u

static void *pcre_alloc(PCRE2_SIZE n, void *unused) {
    (void)unused;
    return qkv_alloc(n);
}

static void pcre_free(void *p, void *unused) {
    (void)unused;
    qkv_free(p);
}

qkv_status qkv_text_pattern_compile(qkv_text_pattern *p, const char *regex, size_t len) {
    if (len > PATTERN_MAX)
        return qkv_fail(QKV_BAD_FILE, "a regular expression of %zu bytes: at most %u are read", len,
                        PATTERN_MAX);
    QKV_TRY_ALLOC(p->source = qkv_strndup(regex, len));
    p->rules = qkv_scan_find(regex, len);
    if (p->rules) return QKV_OK;
    pcre2_general_context *general = pcre2_general_context_create(pcre_alloc, pcre_free, NULL);
    pcre2_compile_context *context = general ? pcre2_compile_context_create(general) : NULL;
    int error = PCRE2_ERROR_NOMEMORY;
    PCRE2_SIZE at = 0;
    if (context) {
        pcre2_set_parens_nest_limit(context, NESTING_MAX);
        const uint32_t options =
            PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C;
        p->code = pcre2_compile((PCRE2_SPTR)regex, len, options, &error, &at, context);
    }
    pcre2_compile_context_free(context);
    pcre2_general_context_free(general);
    if (!p->code) {
        PCRE2_UCHAR words[128];
        pcre2_get_error_message(error, words, sizeof words);
        return qkv_fail(QKV_BAD_FILE, "regular expression \"%.200s\": %s, at byte %zu", p->source,
                        (char *)words, at);
    }
    return QKV_OK;
}

qkv_status qkv_text_pattern_parse(qkv_text_pattern *p, qkv_json_at json) {
    *p = (qkv_text_pattern){0};
    const char *text;
    qkv_json_at value = json;
    const bool regex = qkv_json_member(json, "Regex", &value);
    if (!regex && qkv_json_kind_of(json) == QKV_JSON_OBJECT &&
        !qkv_json_member(json, "String", &value))
        return qkv_fail(QKV_BAD_FILE,
                        "line %zu: a pattern must be {\"String\": …} or {\"Regex\": …}",
                        qkv_json_line(json));
    if (qkv_json_kind_of(value) != QKV_JSON_STRING)
        return qkv_fail(QKV_BAD_FILE, "line %zu: a pattern must be a string", qkv_json_line(json));
    qkv_json_string(value, &text, &p->len);
    if (regex) return qkv_text_pattern_compile(p, text, p->len);
    QKV_TRY_ALLOC(p->literal = qkv_strndup(text, p->len));
    return QKV_OK;
}

void qkv_text_pattern_free(qkv_text_pattern *p) {
    qkv_free(p->literal);
    qkv_free(p->source);
    pcre2_code_free(p->code);
    *p = (qkv_text_pattern){0};
}

qkv_search qkv_search_begin(const qkv_text_pattern *p, const char *text, size_t len) {
    return (qkv_search){.p = p, .text = text, .len = len};
}

void qkv_search_end(qkv_search *s) {
    pcre2_match_data_free(s->match);
    pcre2_match_context_free(s->context);
    s->match = s->context = NULL;
}

/* Makes the scratch of the search, with its limits, when the first match is looked for. */
static qkv_status make_scratch(qkv_search *s) {
    s->match = pcre2_match_data_create_from_pattern(s->p->code, NULL);
    s->context = pcre2_match_context_create(NULL);
    if (!s->match || !s->context)
        return qkv_fail(QKV_FAILED, "out of memory: matching \"%.200s\"", s->p->source);
    pcre2_set_match_limit(s->context, MATCH_LIMIT);
    pcre2_set_heap_limit(s->context, HEAP_KIB);
    return QKV_OK;
}

static qkv_status next_regex(qkv_search *s, size_t *begin, size_t *end, bool *found) {
    if (!s->match) QKV_TRY(make_scratch(s));
    int result;
    const PCRE2_SIZE *place = pcre2_get_ovector_pointer(s->match);
    uint32_t options = 0;
    for (;;) {
        result = pcre2_match(s->p->code, (PCRE2_SPTR)s->text, s->len, s->at, options, s->match,
                             s->context);
        if (result < 0 || place[1] > place[0]) break;
        if (place[0] >= s->len) { /* an empty match at the end */
            result = PCRE2_ERROR_NOMATCH;
            break;
        }
        s->at = place[0];
        options = PCRE2_NOTEMPTY_ATSTART;
    }
    if (result == PCRE2_ERROR_NOMATCH) return QKV_OK;
    if (result < 0) {
        PCRE2_UCHAR words[128];
        pcre2_get_error_message(result, words, sizeof words);
        return qkv_fail(QKV_BAD_FILE, "regular expression \"%.200s\" on a text of %zu bytes: %s",
                        s->p->source, s->len, (char *)words);
    }
    *begin = place[0];
    *end = s->at = place[1];
    *found = true;
    return QKV_OK;
}

qkv_status qkv_search_next(qkv_search *s, size_t *begin, size_t *end, bool *found) {
    *found = false;
    if (s->at >= s->len) return QKV_OK;
    if (s->p->rules) {
        *begin = s->at;
        *end = s->at = qkv_scan_next(s->p->rules, s->text, s->len, s->at);
        *found = true;
        return QKV_OK;
    }
    if (!s->p->literal) return next_regex(s, begin, end, found);
    if (!s->p->len) return QKV_OK;
    const char *hit = memmem(s->text + s->at, s->len - s->at, s->p->literal, s->p->len);
    if (!hit) return QKV_OK;
    *begin = (size_t)(hit - s->text);
    *end = s->at = *begin + s->p->len;
    *found = true;
    return QKV_OK;
}
