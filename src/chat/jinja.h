/* Chat templates: the part of Jinja that those of language models use.
 *
 * A template is parsed to a small tree and run on a context of values; what is written is the
 * prompt. The language: text, {{ … }}, {# … #}, if/elif/else, for (with else, conditions, loop.…,
 * break, continue), set (of names, of fields of a namespace, of blocks), literals, lists,
 * dictionaries, slices, operators, inline if, and the filters, tests, methods and functions that
 * jinja_calls.c lists. Whitespace as transformers has it (trim_blocks, lstrip_blocks). Whatever
 * else a template says is an error that names it.
 *
 * A template comes from a file, so it is bounded: its bytes, the depth of its nesting, the steps it
 * runs, and the bytes of texts and values that it makes. Nothing is reachable from it but the
 * context. */
#ifndef QKV_CHAT_JINJA_H
#define QKV_CHAT_JINJA_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "qkv.h"

typedef enum qkv_jinja_type {
    QKV_JINJA_UNDEFINED,
    QKV_JINJA_NONE,
    QKV_JINJA_BOOL,
    QKV_JINJA_INT,
    QKV_JINJA_REAL,
    QKV_JINJA_TEXT,
    QKV_JINJA_LIST,
    QKV_JINJA_DICT,
    QKV_JINJA_SPACE /* a namespace: a dictionary whose fields can be set */
} qkv_jinja_type;

typedef struct qkv_jinja_value {
    qkv_jinja_type type;
    union {
        bool truth;
        int64_t whole;
        double real;
        qkv_text text;
        struct qkv_jinja_list *list;
        struct qkv_jinja_dict *dict;
    };
} qkv_jinja_value;

typedef struct qkv_jinja_list {
    qkv_jinja_value *at;
    size_t n;
} qkv_jinja_list;

typedef struct qkv_jinja_pair {
    qkv_text key;
    qkv_jinja_value value;
} qkv_jinja_pair;
typedef struct qkv_jinja_dict {
    qkv_jinja_pair *at;
    size_t n, cap;
} qkv_jinja_dict;

static inline qkv_jinja_value qkv_jinja_truth(bool x) {
    return (qkv_jinja_value){.type = QKV_JINJA_BOOL, .truth = x};
}
static inline qkv_jinja_value qkv_jinja_text(const char *data, size_t len) {
    return (qkv_jinja_value){.type = QKV_JINJA_TEXT, .text = {data, len}};
}
/* Sets a member; false (message set): no memory. The key must live as long as the dictionary. */
bool qkv_jinja_put(qkv_arena *a, qkv_jinja_dict *d, const char *key, qkv_jinja_value value);
/* The value of a JSON document; its texts point into it. */
qkv_status qkv_jinja_of_json(qkv_arena *a, qkv_json_at json, qkv_jinja_value *out);

typedef struct qkv_jinja qkv_jinja;
/* The text may go afterwards. Messages say the line. */
qkv_status qkv_jinja_parse(const char *text, size_t len, qkv_jinja **out);
void qkv_jinja_free(qkv_jinja *t);
/* Appends what the template writes. A template may be run by several threads at once. */
qkv_status qkv_jinja_run(const qkv_jinja *t, const qkv_jinja_dict *context, qkv_buf *out);

#endif
