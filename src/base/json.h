/* JSON: a bounded, strict reader and a small writer.
 *
 * The reader makes one pass over the text and leaves a flat array of nodes (16 bytes each); no
 * recursion, no tree of allocations. Limits are the caller's: bytes, nodes, depth. Duplicate keys,
 * bad UTF-8, lone surrogates and trailing garbage are refused with line and column.
 * Numbers do not follow the locale. */
#ifndef QKV_BASE_JSON_H
#define QKV_BASE_JSON_H

#include "base/arena.h"
#include "base/buf.h"

typedef enum qkv_json_kind {
    QKV_JSON_NULL,
    QKV_JSON_FALSE,
    QKV_JSON_TRUE,
    QKV_JSON_NUMBER,
    QKV_JSON_STRING,
    QKV_JSON_ARRAY,
    QKV_JSON_OBJECT
} qkv_json_kind;

typedef struct qkv_json_node qkv_json_node;

typedef struct qkv_json {
    const char *name; /* the file, for messages */
    const char *text; /* must outlive the document: strings without escapes point into it */
    size_t len;
    qkv_json_node *nodes;
    size_t n_nodes;
    qkv_arena strings; /* unescaped copies */
} qkv_json;

typedef struct qkv_json_limits {
    size_t bytes, nodes, depth;
} qkv_json_limits;

/* A place in a document; index 0 is the root. */
typedef struct qkv_json_at {
    const qkv_json *doc;
    uint32_t index;
} qkv_json_at;

qkv_status qkv_json_parse(qkv_json *doc, const char *name, const char *text, size_t len,
                          qkv_json_limits limits);
void qkv_json_free(qkv_json *doc);
qkv_json_at qkv_json_root(const qkv_json *doc);

qkv_json_kind qkv_json_kind_of(qkv_json_at at);
size_t qkv_json_count(qkv_json_at at); /* elements of an array, members of an object; else 0 */
/* Linear: for small objects. */
bool qkv_json_member(qkv_json_at object, const char *key, qkv_json_at *out);
/* Iteration: first child, then next sibling; for objects a child is the value,
 * its key beside it. */
bool qkv_json_first(qkv_json_at parent, qkv_json_at *child);
bool qkv_json_next(qkv_json_at parent, qkv_json_at *child);
void qkv_json_key(qkv_json_at child, const char **text, size_t *len);
void qkv_json_string(qkv_json_at at, const char **text, size_t *len); /* "" for other kinds */
double qkv_json_number(qkv_json_at at);                               /* 0 for other kinds */
/* A number as the file spells it; "" for other kinds. */
void qkv_json_number_text(qkv_json_at at, const char **text, size_t *len);
/* False: not such an integer. */
bool qkv_json_integer(qkv_json_at at, int64_t min, int64_t max, int64_t *out);
size_t qkv_json_line(qkv_json_at at); /* for messages */

/* Typed getters with the failing key, line and rule in the message.
 * `required` false leaves *out alone. */
qkv_status qkv_json_get_int(qkv_json_at o, const char *key, bool required, int64_t min, int64_t max,
                            int64_t *out);
qkv_status qkv_json_get_real(qkv_json_at o, const char *key, bool required, double min, double max,
                             double *out);
qkv_status qkv_json_get_bool(qkv_json_at o, const char *key, bool required, bool *out);
qkv_status qkv_json_get_string(qkv_json_at o, const char *key, bool required, const char **text,
                               size_t *len);
/* A string that must be one of n names: *out is its place among them. */
qkv_status qkv_json_get_choice(qkv_json_at o, const char *key, bool required,
                               const char *const *names, int n, int *out);

/* Writer: appends to a buffer; commas and indentation are its business. */
typedef struct qkv_json_out {
    qkv_buf *buf;
    int depth, indent; /* indent 0: one line */
    bool first, after_key;
} qkv_json_out;

qkv_json_out qkv_json_begin(qkv_buf *buf, int indent);
void qkv_json_open(qkv_json_out *j, char bracket); /* '{' or '[' */
void qkv_json_close(qkv_json_out *j, char bracket);
void qkv_json_put_key(qkv_json_out *j, const char *key);
void qkv_json_put_key_n(qkv_json_out *j, const char *key, size_t len); /* may hold any bytes */
/* A value that is JSON already, put as it is. */
void qkv_json_put_raw(qkv_json_out *j, const char *json);
/* Invalid UTF-8 becomes U+FFFD. */
void qkv_json_put_string(qkv_json_out *j, const char *text, size_t len);
void qkv_json_put_text(qkv_json_out *j, const char *text);
void qkv_json_put_int(qkv_json_out *j, int64_t value);
void qkv_json_put_real(qkv_json_out *j, double value, int digits); /* not finite → null */
void qkv_json_put_bool(qkv_json_out *j, bool value);
void qkv_json_put_null(qkv_json_out *j);

#endif
