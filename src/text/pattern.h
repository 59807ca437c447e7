/* A pattern of the file: a plain string, a known regular expression (hand-written scanner), or any
 * other through PCRE2. */
#ifndef QKV_TEXT_PATTERN_H
#define QKV_TEXT_PATTERN_H

#include "base/json.h"
#include "text/scan.h"

typedef struct qkv_text_pattern {
    char *literal; /* not NULL: this string */
    size_t len;
    const qkv_scan_rules *rules; /* not NULL: this scanner */
    void *code;                  /* else a compiled expression */
    char *source;                /* of the expression, for messages */
} qkv_text_pattern;

/* From {"String": …} or {"Regex": …} (or a bare string, which is a String). Free even after
 * failure. */
qkv_status qkv_text_pattern_parse(qkv_text_pattern *p, qkv_json_at json);
qkv_status qkv_text_pattern_compile(qkv_text_pattern *p, const char *regex, size_t len);
void qkv_text_pattern_free(qkv_text_pattern *p);

/* One pass over a text. `match` and `context` are the scratch of the regular expression; free it
 * with qkv_search_end. */
typedef struct qkv_search {
    const qkv_text_pattern *p;
    const char *text;
    size_t len, at;
    void *match, *context;
} qkv_search;
qkv_search qkv_search_begin(const qkv_text_pattern *p, const char *text, size_t len);
/* The next match at or after `at`; *found false at the end. Matches of no length are passed over.
 */
qkv_status qkv_search_next(qkv_search *s, size_t *begin, size_t *end, bool *found);
void qkv_search_end(qkv_search *s);

#endif
