/* Walking a parsed JSON text, and getters whose messages name the key, the line and the rule. */
#include "base/json_node.h"
#include "base/utf8.h"

#include <math.h>
#include <string.h>

static const qkv_json_node *node_of(qkv_json_at at) {
    return &at.doc->nodes[at.index];
}

qkv_json_at qkv_json_root(const qkv_json *doc) {
    return (qkv_json_at){.doc = doc, .index = 0};
}

qkv_json_kind qkv_json_kind_of(qkv_json_at at) {
    return (qkv_json_kind)node_of(at)->kind;
}

size_t qkv_json_count(qkv_json_at at) {
    return node_of(at)->kind >= QKV_JSON_ARRAY ? node_of(at)->count : 0;
}

/* Index behind the value at `index` and all that is in it. */
static uint32_t skip(const qkv_json *doc, uint32_t index) {
    const qkv_json_node *n = &doc->nodes[index];
    return n->kind >= QKV_JSON_ARRAY ? n->end : index + 1;
}

/* A member's value stands behind its key. */
static uint32_t key_width(qkv_json_at parent) {
    return node_of(parent)->kind == QKV_JSON_OBJECT;
}

bool qkv_json_first(qkv_json_at parent, qkv_json_at *child) {
    if (qkv_json_count(parent) == 0) return false;
    *child = (qkv_json_at){parent.doc, parent.index + 1 + key_width(parent)};
    return true;
}

bool qkv_json_next(qkv_json_at parent, qkv_json_at *child) {
    uint32_t next = skip(parent.doc, child->index);
    if (next >= node_of(parent)->end) return false;
    child->index = next + key_width(parent);
    return true;
}

void qkv_json_key(qkv_json_at child, const char **text, size_t *len) {
    qkv_json_string((qkv_json_at){child.doc, child.index - 1}, text, len);
}

bool qkv_json_member(qkv_json_at object, const char *key, qkv_json_at *out) {
    if (node_of(object)->kind != QKV_JSON_OBJECT) return false;
    size_t n = strlen(key);
    qkv_json_at at;
    for (bool more = qkv_json_first(object, &at); more; more = qkv_json_next(object, &at)) {
        const qkv_json_node *k = &at.doc->nodes[at.index - 1];
        if (k->where != n || memcmp(k->text, key, n) != 0) continue;
        *out = at;
        return true;
    }
    return false;
}

void qkv_json_string(qkv_json_at at, const char **text, size_t *len) {
    bool string = node_of(at)->kind == QKV_JSON_STRING;
    *text = string ? node_of(at)->text : "";
    *len = string ? node_of(at)->where : 0;
}

double qkv_json_number(qkv_json_at at) {
    return node_of(at)->kind == QKV_JSON_NUMBER ? node_of(at)->number : 0;
}

void qkv_json_number_text(qkv_json_at at, const char **text, size_t *len) {
    const qkv_json_node *n = node_of(at);
    *text = "";
    *len = 0;
    if (n->kind != QKV_JSON_NUMBER) return;
    *text = at.doc->text + n->where;
    while (n->where + *len < at.doc->len && strchr("0123456789+-.eE", (*text)[*len]) &&
           (*text)[*len])
        ++*len;
}

bool qkv_json_integer(qkv_json_at at, int64_t min, int64_t max, int64_t *out) {
    if (node_of(at)->kind != QKV_JSON_NUMBER) return false;
    /* From the digits, since a double holds only 53 bits; 1.0 and 1e3 are not written as integers.
     */
    const char *p = at.doc->text + node_of(at)->where, *end = at.doc->text + at.doc->len;
    bool negative = *p == '-';
    p += negative;
    int64_t value = 0;
    for (; p < end && *p >= '0' && *p <= '9'; p++) {
        int digit = *p - '0';
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, negative ? -digit : digit, &value))
            return false;
    }
    if (p < end && (*p == '.' || *p == 'e' || *p == 'E')) return false;
    if (value < min || value > max) return false;
    *out = value;
    return true;
}

size_t qkv_json_offset(const qkv_json *doc, uint32_t index) {
    const qkv_json_node *n = &doc->nodes[index];
    if (n->kind != QKV_JSON_STRING) return n->where;
    if (!n->escaped) return (size_t)(n->text - doc->text) - 1; /* the quote before it */
    uint32_t offset;
    memcpy(&offset, n->text - sizeof offset, sizeof offset);
    return offset;
}

size_t qkv_json_line(qkv_json_at at) {
    size_t line = 1, end = qkv_json_offset(at.doc, at.index);
    for (size_t i = 0; i < end; i++) line += at.doc->text[i] == '\n';
    return line;
}

/* ---- typed getters ---- */

/* Finds a member; *there says whether it is to be read. null counts as absent when it is not
 * required. */
static qkv_status look_up(qkv_json_at o, const char *key, bool required, qkv_json_at *at,
                          bool *there) {
    *there = qkv_json_member(o, key, at);
    if (*there && !required && qkv_json_kind_of(*at) == QKV_JSON_NULL) *there = false;
    if (*there || !required) return QKV_OK;
    return qkv_fail(QKV_BAD_FILE, "%s:%zu: \"%s\" is missing", o.doc->name, qkv_json_line(o), key);
}

/* What a value is, for messages: "a string", "the number 3.5". */
static const char *describe(qkv_json_at at) {
    static const char *const names[] = {"null",     "false",  "true",     "that number",
                                        "a string", "a list", "an object"};
    return names[qkv_json_kind_of(at)];
}

qkv_status qkv_json_get_int(qkv_json_at o, const char *key, bool required, int64_t min, int64_t max,
                            int64_t *out) {
    qkv_json_at at;
    bool there;
    QKV_TRY(look_up(o, key, required, &at, &there));
    if (!there || qkv_json_integer(at, min, max, out)) return QKV_OK;
    return qkv_fail(
        QKV_BAD_FILE, "%s:%zu: \"%s\" must be a whole number between %lld and %lld, not %s",
        o.doc->name, qkv_json_line(at), key, (long long)min, (long long)max, describe(at));
}

qkv_status qkv_json_get_real(qkv_json_at o, const char *key, bool required, double min, double max,
                             double *out) {
    qkv_json_at at;
    bool there;
    QKV_TRY(look_up(o, key, required, &at, &there));
    if (!there) return QKV_OK;
    double value = qkv_json_number(at);
    if (qkv_json_kind_of(at) != QKV_JSON_NUMBER || !(value >= min && value <= max))
        return qkv_fail(QKV_BAD_FILE, "%s:%zu: \"%s\" must be a number between %g and %g, not %s",
                        o.doc->name, qkv_json_line(at), key, min, max, describe(at));
    *out = value;
    return QKV_OK;
}

qkv_status qkv_json_get_bool(qkv_json_at o, const char *key, bool required, bool *out) {
    qkv_json_at at;
    bool there;
    QKV_TRY(look_up(o, key, required, &at, &there));
    if (!there) return QKV_OK;
    qkv_json_kind kind = qkv_json_kind_of(at);
    if (kind != QKV_JSON_TRUE && kind != QKV_JSON_FALSE)
        return qkv_fail(QKV_BAD_FILE, "%s:%zu: \"%s\" must be true or false, not %s", o.doc->name,
                        qkv_json_line(at), key, describe(at));
    *out = kind == QKV_JSON_TRUE;
    return QKV_OK;
}

qkv_status qkv_json_get_string(qkv_json_at o, const char *key, bool required, const char **text,
                               size_t *len) {
    qkv_json_at at;
    bool there;
    QKV_TRY(look_up(o, key, required, &at, &there));
    if (!there) return QKV_OK;
    if (qkv_json_kind_of(at) != QKV_JSON_STRING)
        return qkv_fail(QKV_BAD_FILE, "%s:%zu: \"%s\" must be a string, not %s", o.doc->name,
                        qkv_json_line(at), key, describe(at));
    qkv_json_string(at, text, len);
    return QKV_OK;
}

qkv_status qkv_json_get_choice(qkv_json_at o, const char *key, bool required,
                               const char *const *names, int n, int *out) {
    const char *text = NULL;
    size_t len;
    QKV_TRY(qkv_json_get_string(o, key, required, &text, &len));
    if (!text) return QKV_OK;
    for (int i = 0; i < n; i++)
        if (strlen(names[i]) == len && !memcmp(names[i], text, len)) {
            *out = i;
            return QKV_OK;
        }
    return qkv_fail(QKV_BAD_FILE, "%s:%zu: \"%s\" is \"%.*s\", which is none of %s … %s",
                    o.doc->name, qkv_json_line(o), key, (int)(len > 40 ? 40 : len), text, names[0],
                    names[n - 1]);
}
