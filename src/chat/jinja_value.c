/* Values of templates: what is true, what is the same, and how they are written. */
#include "chat/jinja_tree.h"

#include <stdio.h>
#include <string.h>

bool jinja_text_is(qkv_text t, const char *word) {
    return t.len == strlen(word) && !memcmp(t.data, word, t.len);
}

const qkv_jinja_value *jinja_member(const qkv_jinja_dict *d, qkv_text key) {
    for (size_t i = d->n; i-- > 0;)
        if (d->at[i].key.len == key.len && !memcmp(d->at[i].key.data, key.data, key.len))
            return &d->at[i].value;
    return NULL;
}

/* ---- making ---- */

bool qkv_jinja_put(qkv_arena *a, qkv_jinja_dict *d, const char *key, qkv_jinja_value value) {
    if (d->n == d->cap) {
        const size_t cap = d->cap ? 2 * d->cap : 8;
        qkv_jinja_pair *more = qkv_arena_alloc(a, cap * sizeof *more);
        if (!more) return false;
        if (d->n) memcpy(more, d->at, d->n * sizeof *more);
        d->at = more;
        d->cap = cap;
    }
    d->at[d->n++] = (qkv_jinja_pair){{key, strlen(key)}, value};
    return true;
}

static qkv_status list_of_json(qkv_arena *a, qkv_json_at json, qkv_jinja_value *out) {
    qkv_json_at at;
    const size_t n = qkv_json_count(json);
    const bool dict = qkv_json_kind_of(json) == QKV_JSON_OBJECT;
    qkv_jinja_list *list = NULL;
    qkv_jinja_dict *members = NULL;
    *out = (qkv_jinja_value){.type = dict ? QKV_JINJA_DICT : QKV_JINJA_LIST};
    if (dict) {
        QKV_TRY_ALLOC(members = out->dict = qkv_arena_zalloc(a, sizeof *members));
        QKV_TRY_ALLOC(members->at = qkv_arena_zalloc(a, (n + 1) * sizeof *members->at));
        members->n = members->cap = n;
    } else {
        QKV_TRY_ALLOC(list = out->list = qkv_arena_zalloc(a, sizeof *list));
        QKV_TRY_ALLOC(list->at = qkv_arena_zalloc(a, (n + 1) * sizeof *list->at));
        list->n = n;
    }
    size_t i = 0;
    for (bool more = qkv_json_first(json, &at); more; more = qkv_json_next(json, &at), i++) {
        if (dict) qkv_json_key(at, &members->at[i].key.data, &members->at[i].key.len);
        QKV_TRY(qkv_jinja_of_json(a, at, dict ? &members->at[i].value : &list->at[i]));
    }
    return QKV_OK;
}

qkv_status qkv_jinja_of_json(qkv_arena *a, qkv_json_at json, qkv_jinja_value *out) {
    const char *text;
    size_t len;
    *out = (qkv_jinja_value){.type = QKV_JINJA_NONE};
    switch (qkv_json_kind_of(json)) {
    case QKV_JSON_NULL:
        return QKV_OK;
    case QKV_JSON_FALSE:
    case QKV_JSON_TRUE:
        *out = qkv_jinja_truth(qkv_json_kind_of(json) == QKV_JSON_TRUE);
        return QKV_OK;
    case QKV_JSON_NUMBER:
        out->type = QKV_JINJA_INT;
        if (qkv_json_integer(json, INT64_MIN, INT64_MAX, &out->whole)) return QKV_OK;
        *out = (qkv_jinja_value){.type = QKV_JINJA_REAL, .real = qkv_json_number(json)};
        return QKV_OK;
    case QKV_JSON_STRING:
        qkv_json_string(json, &text, &len);
        *out = qkv_jinja_text(text, len);
        return QKV_OK;
    default:
        return list_of_json(a, json, out);
    }
}

qkv_status jinja_copy(jinja_run *r, const char *data, size_t n, qkv_text *out) {
    char *to = NULL;
    QKV_TRY(jinja_take(r, n + 1, &to));
    memcpy(to, data, n);
    *out = (qkv_text){to, n};
    return QKV_OK;
}

qkv_status jinja_new_list(jinja_run *r, size_t n, qkv_jinja_value *out) {
    qkv_jinja_list *list = NULL;
    QKV_TRY(jinja_take(r, sizeof *list, &list));
    *list = (qkv_jinja_list){.n = n};
    QKV_TRY(jinja_take(r, (n + 1) * sizeof *list->at, &list->at));
    memset(list->at, 0, (n + 1) * sizeof *list->at);
    *out = (qkv_jinja_value){.type = QKV_JINJA_LIST, .list = list};
    return QKV_OK;
}

qkv_status jinja_new_dict(jinja_run *r, size_t n, qkv_jinja_value *out) {
    qkv_jinja_dict *dict = NULL;
    QKV_TRY(jinja_take(r, sizeof *dict, &dict));
    *dict = (qkv_jinja_dict){.cap = n};
    QKV_TRY(jinja_take(r, (n + 1) * sizeof *dict->at, &dict->at));
    *out = (qkv_jinja_value){.type = QKV_JINJA_DICT, .dict = dict};
    return QKV_OK;
}

/* ---- asking ---- */

const char *jinja_type_name(const qkv_jinja_value *v) {
    static const char *const names[] = {"undefined",  "none",         "a truth",
                                        "an integer", "a number",     "a text",
                                        "a list",     "a dictionary", "a namespace"};
    return names[v->type];
}

bool jinja_is_true(const qkv_jinja_value *v) {
    switch (v->type) {
    case QKV_JINJA_BOOL:
        return v->truth;
    case QKV_JINJA_INT:
        return v->whole != 0;
    case QKV_JINJA_REAL:
        return v->real != 0;
    case QKV_JINJA_TEXT:
        return v->text.len > 0;
    case QKV_JINJA_LIST:
        return v->list->n > 0;
    case QKV_JINJA_DICT:
        return v->dict->n > 0;
    case QKV_JINJA_SPACE:
        return true;
    default:
        return false;
    }
}

/* A truth is a number in Python. */
static bool number_of(const qkv_jinja_value *v, double *out) {
    if (v->type == QKV_JINJA_BOOL) return *out = v->truth, true;
    if (v->type == QKV_JINJA_INT) return *out = (double)v->whole, true;
    if (v->type == QKV_JINJA_REAL) return *out = v->real, true;
    return false;
}

/* Lists and dictionaries are compared as what they are, not by what is in them, beyond one level:
 * a template has no use for more, and a file must not choose how deep we go. */
bool jinja_same(const qkv_jinja_value *a, const qkv_jinja_value *b) {
    double x, y;
    if (a->type == QKV_JINJA_INT && b->type == QKV_JINJA_INT) return a->whole == b->whole;
    if (number_of(a, &x) && number_of(b, &y)) return x == y;
    if (a->type != b->type) return false;
    switch (a->type) {
    case QKV_JINJA_TEXT:
        return a->text.len == b->text.len && !memcmp(a->text.data, b->text.data, a->text.len);
    case QKV_JINJA_LIST:
        return a->list == b->list || (a->list->n == 0 && b->list->n == 0);
    case QKV_JINJA_DICT:
    case QKV_JINJA_SPACE:
        return a->dict == b->dict || (a->dict->n == 0 && b->dict->n == 0);
    default:
        return true;
    }
}

/* ---- writing ---- */

/* The shortest decimal that is this number again, as Python writes it. */
static void write_real(double x, char out[40]) {
    for (int digits = 1; digits <= 17; digits++) {
        double back = 0;
        snprintf(out, 40, "%.*g", digits, x);
        if (sscanf(out, "%lf", &back) == 1 && back == x) break;
    }
    if (!strpbrk(out, ".en")) strcat(out, ".0");
}

qkv_status jinja_to_text(jinja_run *r, const jinja_node *at, const qkv_jinja_value *v,
                         qkv_text *out) {
    char number[40];
    switch (v->type) {
    case QKV_JINJA_TEXT:
        *out = v->text;
        return QKV_OK;
    case QKV_JINJA_UNDEFINED:
        *out = (qkv_text){"", 0};
        return QKV_OK;
    case QKV_JINJA_NONE:
        *out = (qkv_text){"None", 4};
        return QKV_OK;
    case QKV_JINJA_BOOL:
        *out = v->truth ? (qkv_text){"True", 4} : (qkv_text){"False", 5};
        return QKV_OK;
    case QKV_JINJA_INT:
        snprintf(number, sizeof number, "%lld", (long long)v->whole);
        return jinja_copy(r, number, strlen(number), out);
    case QKV_JINJA_REAL:
        write_real(v->real, number);
        return jinja_copy(r, number, strlen(number), out);
    default:
        return jinja_fail(at, "%s cannot be written as a text: use tojson", jinja_type_name(v));
    }
}
