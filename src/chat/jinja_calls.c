/* Filters, tests, methods and functions of templates: four tables. A row has the most arguments
 * that it takes; what else is written behind a name is an error. */
#include "chat/jinja_calls.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

typedef qkv_status (*callee)(jinja_call_args *c, qkv_jinja_value *out);
typedef struct row {
    const char *name;
    callee run;
    int most;
    const char *named[JINJA_ARGS]; /* arguments that may be given by name, at their places */
} row;

/* ---- lists ---- */

static qkv_status call_length(jinja_call_args *c, qkv_jinja_value *out) {
    *out = (qkv_jinja_value){.type = QKV_JINJA_INT};
    switch (c->of->type) {
    case QKV_JINJA_TEXT: /* characters */
        for (size_t i = 0; i < c->of->text.len; i++)
            out->whole += (c->of->text.data[i] & 0xc0) != 0x80;
        return QKV_OK;
    case QKV_JINJA_LIST:
        out->whole = (int64_t)c->of->list->n;
        return QKV_OK;
    case QKV_JINJA_DICT:
        out->whole = (int64_t)c->of->dict->n;
        return QKV_OK;
    case QKV_JINJA_UNDEFINED:
        return QKV_OK;
    default:
        return jinja_mismatch(c, c->of);
    }
}

static qkv_status call_first(jinja_call_args *c, qkv_jinja_value *out) {
    if (c->of->type != QKV_JINJA_LIST) return jinja_mismatch(c, c->of);
    *out = c->of->list->n ? c->of->list->at[0] : (qkv_jinja_value){0};
    return QKV_OK;
}
static qkv_status call_last(jinja_call_args *c, qkv_jinja_value *out) {
    if (c->of->type != QKV_JINJA_LIST) return jinja_mismatch(c, c->of);
    *out = c->of->list->n ? c->of->list->at[c->of->list->n - 1] : (qkv_jinja_value){0};
    return QKV_OK;
}
static qkv_status call_list(jinja_call_args *c, qkv_jinja_value *out) {
    if (c->of->type != QKV_JINJA_LIST) return jinja_mismatch(c, c->of);
    *out = *c->of;
    return QKV_OK;
}
static qkv_status call_reverse(jinja_call_args *c, qkv_jinja_value *out) {
    if (c->of->type != QKV_JINJA_LIST) return jinja_mismatch(c, c->of);
    const qkv_jinja_list *from = c->of->list;
    QKV_TRY(jinja_new_list(c->r, from->n, out));
    for (size_t i = 0; i < from->n; i++) out->list->at[i] = from->at[from->n - 1 - i];
    return QKV_OK;
}

static qkv_status call_join(jinja_call_args *c, qkv_jinja_value *out) {
    qkv_text by = {"", 0}, t = {"", 0};
    char *to = NULL;
    if (c->of->type != QKV_JINJA_LIST) return jinja_mismatch(c, c->of);
    if (jinja_has(c, 0)) QKV_TRY(jinja_text_of(c, &c->arg[0], &by));
    size_t len = 0, at = 0;
    const qkv_jinja_list *l = c->of->list;
    for (int pass = 0; pass < 2; pass++) {
        if (pass) QKV_TRY(jinja_take(c->r, len + 1, &to));
        for (size_t i = 0; i < l->n; i++) {
            QKV_TRY(jinja_to_text(c->r, c->n, &l->at[i], &t));
            if (!pass) {
                len += t.len + (i ? by.len : 0);
                if (len > JINJA_RUN_BYTES) return jinja_fail(c->n, "a text is too long");
                continue;
            }
            if (i) memcpy(to + at, by.data, by.len), at += by.len;
            memcpy(to + at, t.data, t.len);
            at += t.len;
        }
    }
    *out = qkv_jinja_text(to, len);
    return QKV_OK;
}

static qkv_status pairs_of(jinja_call_args *c, int which, qkv_jinja_value *out) {
    if (c->of->type != QKV_JINJA_DICT) return jinja_mismatch(c, c->of);
    const qkv_jinja_dict *d = c->of->dict;
    QKV_TRY(jinja_new_list(c->r, d->n, out));
    for (size_t i = 0; i < d->n; i++) {
        const qkv_jinja_value key = qkv_jinja_text(d->at[i].key.data, d->at[i].key.len);
        qkv_jinja_value *const to = &out->list->at[i];
        *to = which == 0 ? key : d->at[i].value;
        if (which < 2) continue;
        QKV_TRY(jinja_new_list(c->r, 2, to));
        to->list->at[0] = key;
        to->list->at[1] = d->at[i].value;
    }
    return QKV_OK;
}
static qkv_status call_keys(jinja_call_args *c, qkv_jinja_value *out) {
    return pairs_of(c, 0, out);
}
static qkv_status call_values(jinja_call_args *c, qkv_jinja_value *out) {
    return pairs_of(c, 1, out);
}
static qkv_status call_items(jinja_call_args *c, qkv_jinja_value *out) {
    return pairs_of(c, 2, out);
}
static qkv_status call_get(jinja_call_args *c, qkv_jinja_value *out) {
    qkv_text key = {"", 0};
    if (c->of->type != QKV_JINJA_DICT) return jinja_mismatch(c, c->of);
    QKV_TRY(jinja_text_of(c, &c->arg[0], &key));
    const qkv_jinja_value *found = jinja_member(c->of->dict, key);
    *out = found ? *found : jinja_has(c, 1) ? c->arg[1] : (qkv_jinja_value){.type = QKV_JINJA_NONE};
    return QKV_OK;
}

static bool passes(const qkv_jinja_value *v, qkv_text test, const qkv_jinja_value *with,
                   bool *known);

/* Items whose attribute passes a test (or is true), or does not. */
static qkv_status select_items(jinja_call_args *c, bool wanted, bool by_attribute,
                               qkv_jinja_value *out) {
    static const qkv_jinja_value none;
    if (c->of->type != QKV_JINJA_LIST) return jinja_mismatch(c, c->of);
    const int at = by_attribute;
    qkv_text attribute = {"", 0}, test = {"", 0};
    if (by_attribute) QKV_TRY(jinja_text_of(c, &c->arg[0], &attribute));
    if (jinja_has(c, at)) QKV_TRY(jinja_text_of(c, &c->arg[at], &test));
    const qkv_jinja_list *from = c->of->list;
    QKV_TRY(jinja_new_list(c->r, from->n, out));
    out->list->n = 0;
    for (size_t i = 0; i < from->n; i++) {
        const qkv_jinja_value *v = &from->at[i];
        if (by_attribute && v->type != QKV_JINJA_DICT) return jinja_mismatch(c, v);
        if (by_attribute) v = jinja_member(v->dict, attribute);
        if (!v) v = &none;
        bool known = true;
        const bool yes =
            test.len ? passes(v, test, at + 1 < JINJA_ARGS ? &c->arg[at + 1] : &none, &known)
                     : jinja_is_true(v);
        if (!known)
            return jinja_fail(c->n, "the test \"%.*s\" is not implemented here", (int)test.len,
                              test.data);
        if (yes == wanted) out->list->at[out->list->n++] = from->at[i];
    }
    return QKV_OK;
}
static qkv_status call_selectattr(jinja_call_args *c, qkv_jinja_value *out) {
    return select_items(c, true, true, out);
}
static qkv_status call_rejectattr(jinja_call_args *c, qkv_jinja_value *out) {
    return select_items(c, false, true, out);
}
static qkv_status call_select(jinja_call_args *c, qkv_jinja_value *out) {
    return select_items(c, true, false, out);
}
static qkv_status call_reject(jinja_call_args *c, qkv_jinja_value *out) {
    return select_items(c, false, false, out);
}

/* map(attribute="name") */
static qkv_status call_map(jinja_call_args *c, qkv_jinja_value *out) {
    qkv_text attribute = {"", 0};
    if (c->of->type != QKV_JINJA_LIST) return jinja_mismatch(c, c->of);
    if (c->n_args || !jinja_has(c, 0)) return jinja_fail(c->n, "map without attribute=");
    QKV_TRY(jinja_text_of(c, &c->arg[0], &attribute));
    QKV_TRY(jinja_new_list(c->r, c->of->list->n, out));
    for (size_t i = 0; i < c->of->list->n; i++) {
        const qkv_jinja_value *v = &c->of->list->at[i];
        if (v->type != QKV_JINJA_DICT) return jinja_mismatch(c, v);
        v = jinja_member(v->dict, attribute);
        if (v) out->list->at[i] = *v;
    }
    return QKV_OK;
}

static qkv_status call_default(jinja_call_args *c, qkv_jinja_value *out) {
    const bool falsy = jinja_is_true(&c->arg[1]) && !jinja_is_true(c->of);
    *out = c->of->type == QKV_JINJA_UNDEFINED || falsy ? c->arg[0] : *c->of;
    if (out->type == QKV_JINJA_UNDEFINED) *out = qkv_jinja_text("", 0);
    return QKV_OK;
}

/* ---- JSON ---- */

typedef struct json_place {
    qkv_buf *out;
    int64_t indent; /* −1: one line */
    int depth;
} json_place;

static void new_line(const json_place *p, int depth) {
    if (p->indent < 0) return;
    qkv_buf_putc(p->out, '\n');
    for (int64_t i = 0; i < p->indent * depth; i++) qkv_buf_putc(p->out, ' ');
}

/* As Python's json.dumps(…, ensure_ascii=False). */
static void put_json_text(qkv_buf *out, qkv_text t) {
    qkv_buf_putc(out, '"');
    for (size_t i = 0; i < t.len; i++) {
        static const char special[] = "\"\\\n\r\t\b\f", escape[] = "\"\\nrtbf";
        const char x = t.data[i], *at = x ? strchr(special, x) : NULL;
        if (at)
            qkv_buf_printf(out, "\\%c", escape[at - special]);
        else if ((unsigned char)x < 0x20)
            qkv_buf_printf(out, "\\u%04x", (unsigned)(unsigned char)x);
        else
            qkv_buf_putc(out, x);
    }
    qkv_buf_putc(out, '"');
}

static qkv_status put_json(jinja_call_args *c, json_place p, const qkv_jinja_value *v) {
    if (p.depth > JINJA_DEPTH || p.out->len > JINJA_RUN_BYTES)
        return jinja_fail(c->n, "a value too deep or too long for JSON");
    const char *comma = p.indent < 0 ? ", " : ",";
    qkv_text text = {"", 0};
    json_place in = p;
    in.depth++;
    switch (v->type) {
    case QKV_JINJA_NONE:
        qkv_buf_puts(p.out, "null");
        return p.out->status;
    case QKV_JINJA_BOOL:
        qkv_buf_puts(p.out, v->truth ? "true" : "false");
        return p.out->status;
    case QKV_JINJA_TEXT:
        put_json_text(p.out, v->text);
        return p.out->status;
    case QKV_JINJA_INT:
    case QKV_JINJA_REAL:
        QKV_TRY(jinja_to_text(c->r, c->n, v, &text));
        qkv_buf_add(p.out, text.data, text.len);
        return p.out->status;
    case QKV_JINJA_LIST:
        qkv_buf_putc(p.out, '[');
        for (size_t i = 0; i < v->list->n; i++) {
            if (i) qkv_buf_puts(p.out, comma);
            new_line(&p, in.depth);
            QKV_TRY(put_json(c, in, &v->list->at[i]));
        }
        if (v->list->n) new_line(&p, p.depth);
        qkv_buf_putc(p.out, ']');
        return p.out->status;
    case QKV_JINJA_DICT:
        qkv_buf_putc(p.out, '{');
        for (size_t i = 0; i < v->dict->n; i++) {
            if (i) qkv_buf_puts(p.out, comma);
            new_line(&p, in.depth);
            put_json_text(p.out, v->dict->at[i].key);
            qkv_buf_puts(p.out, ": ");
            QKV_TRY(put_json(c, in, &v->dict->at[i].value));
        }
        if (v->dict->n) new_line(&p, p.depth);
        qkv_buf_putc(p.out, '}');
        return p.out->status;
    default:
        return jinja_mismatch(c, v);
    }
}

static qkv_status call_tojson(jinja_call_args *c, qkv_jinja_value *out) {
    qkv_buf json = {0};
    json_place p = {.out = &json, .indent = -1};
    if (c->arg[0].type == QKV_JINJA_INT)
        p.indent = c->arg[0].whole < 0 ? 0 : c->arg[0].whole > 16 ? 16 : c->arg[0].whole;
    qkv_status status = put_json(c, p, c->of);
    out->type = QKV_JINJA_TEXT;
    if (status == QKV_OK) status = jinja_copy(c->r, json.data, json.len, &out->text);
    qkv_buf_free(&json);
    return status;
}

/* ---- tests ---- */

static bool passes(const qkv_jinja_value *v, qkv_text test, const qkv_jinja_value *with,
                   bool *known) {
    const qkv_jinja_type t = v->type;
    const bool number = t == QKV_JINJA_INT || t == QKV_JINJA_REAL || t == QKV_JINJA_BOOL;
    const bool whole = t == QKV_JINJA_INT;
    const struct {
        const char *name;
        bool answer;
    } tests[] = {
        {"defined", t != QKV_JINJA_UNDEFINED},
        {"undefined", t == QKV_JINJA_UNDEFINED},
        {"none", t == QKV_JINJA_NONE},
        {"boolean", t == QKV_JINJA_BOOL},
        {"true", t == QKV_JINJA_BOOL && v->truth},
        {"false", t == QKV_JINJA_BOOL && !v->truth},
        {"integer", whole},
        {"float", t == QKV_JINJA_REAL},
        {"number", number},
        {"string", t == QKV_JINJA_TEXT},
        {"mapping", t == QKV_JINJA_DICT},
        {"iterable", t == QKV_JINJA_TEXT || t == QKV_JINJA_LIST || t == QKV_JINJA_DICT ||
                         t == QKV_JINJA_UNDEFINED},
        {"sequence", t == QKV_JINJA_TEXT || t == QKV_JINJA_LIST || t == QKV_JINJA_DICT ||
                         t == QKV_JINJA_UNDEFINED},
        {"odd", whole && v->whole % 2 != 0},
        {"even", whole && v->whole % 2 == 0},
        {"divisibleby",
         whole && with->type == QKV_JINJA_INT && with->whole > 0 && v->whole % with->whole == 0},
        {"equalto", jinja_same(v, with)},
        {"eq", jinja_same(v, with)},
        {"ne", !jinja_same(v, with)},
    };
    *known = false;
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (jinja_text_is(test, tests[i].name)) return *known = true, tests[i].answer;
    return false;
}

bool jinja_knows_test(qkv_text name) {
    static const qkv_jinja_value none;
    bool known;
    passes(&none, name, &none, &known);
    return known;
}

qkv_status jinja_test(jinja_run *r, const jinja_node *n, const qkv_jinja_value *v, bool *out) {
    qkv_jinja_value with = {0};
    bool known;
    if (n->list) QKV_TRY(jinja_evaluate(r, n->list, &with));
    *out = passes(v, n->name, &with, &known);
    return QKV_OK;
}

/* ---- functions ---- */

static qkv_status call_raise(jinja_call_args *c, qkv_jinja_value *out) {
    qkv_text t = {"", 0};
    (void)out;
    QKV_TRY(jinja_to_text(c->r, c->n, &c->arg[0], &t));
    return qkv_fail(QKV_USAGE, "the chat template says: %.*s", (int)(t.len < 300 ? t.len : 300),
                    t.data);
}

static qkv_status call_range(jinja_call_args *c, qkv_jinja_value *out) {
    int64_t x[JINJA_ARGS] = {0, 0, 1};
    for (int i = 0; i < c->n_args; i++) {
        if (c->arg[i].type != QKV_JINJA_INT) return jinja_mismatch(c, &c->arg[i]);
        x[c->n_args == 1 ? 1 : i] = c->arg[i].whole;
    }
    if (x[2] <= 0) return jinja_fail(c->n, "range by steps that do not go up is not implemented");
    const int64_t limit = 100000;
    if (x[0] < -limit || x[1] > limit || x[0] > limit || x[1] < -limit)
        return jinja_fail(c->n, "a range beyond %lld", (long long)limit);
    const int64_t n = x[1] > x[0] ? (x[1] - x[0] + x[2] - 1) / x[2] : 0;
    QKV_TRY(jinja_new_list(c->r, (size_t)n, out));
    for (int64_t i = 0; i < n; i++)
        out->list->at[i] = (qkv_jinja_value){.type = QKV_JINJA_INT, .whole = x[0] + i * x[2]};
    return QKV_OK;
}

/* Today, for templates that tell the model the date. */
static qkv_status call_strftime_now(jinja_call_args *c, qkv_jinja_value *out) {
    char format[64], text[256];
    qkv_text t = {"", 0};
    struct tm today;
    const time_t now = time(NULL);
    QKV_TRY(jinja_text_of(c, &c->arg[0], &t));
    snprintf(format, sizeof format, "%.*s", (int)(t.len < 60 ? t.len : 60), t.data);
    if (!localtime_r(&now, &today)) return jinja_fail(c->n, "the date is not known");
    const size_t n = strftime(text, sizeof text, format, &today);
    out->type = QKV_JINJA_TEXT;
    return jinja_copy(c->r, text, n, &out->text);
}

/* ---- the tables ---- */

static const row filters[] = {
    {"trim", jinja_call_strip, 1, {NULL}},
    {"length", call_length, 0, {NULL}},
    {"count", call_length, 0, {NULL}},
    {"upper", jinja_call_upper, 0, {NULL}},
    {"lower", jinja_call_lower, 0, {NULL}},
    {"title", jinja_call_title, 0, {NULL}},
    {"capitalize", jinja_call_capitalize, 0, {NULL}},
    {"replace", jinja_call_replace, 3, {NULL}},
    {"string", jinja_call_string, 0, {NULL}},
    {"int", jinja_call_int, 0, {NULL}},
    {"first", call_first, 0, {NULL}},
    {"last", call_last, 0, {NULL}},
    {"list", call_list, 0, {NULL}},
    {"reverse", call_reverse, 0, {NULL}},
    {"join", call_join, 1, {"d"}},
    {"items", call_items, 0, {NULL}},
    {"selectattr", call_selectattr, 3, {NULL}},
    {"rejectattr", call_rejectattr, 3, {NULL}},
    {"select", call_select, 2, {NULL}},
    {"reject", call_reject, 2, {NULL}},
    {"map", call_map, 1, {"attribute"}},
    {"default", call_default, 2, {"default_value", "boolean"}},
    {"d", call_default, 2, {"default_value", "boolean"}},
    {"tojson", call_tojson, 1, {"indent"}},
    {0},
};

static const row methods[] = {
    {"strip", jinja_call_strip, 1, {NULL}},
    {"lstrip", jinja_call_lstrip, 1, {NULL}},
    {"rstrip", jinja_call_rstrip, 1, {NULL}},
    {"upper", jinja_call_upper, 0, {NULL}},
    {"lower", jinja_call_lower, 0, {NULL}},
    {"title", jinja_call_title, 0, {NULL}},
    {"capitalize", jinja_call_capitalize, 0, {NULL}},
    {"startswith", jinja_call_startswith, 1, {NULL}},
    {"endswith", jinja_call_endswith, 1, {NULL}},
    {"replace", jinja_call_replace, 3, {NULL}},
    {"split", jinja_call_split, 2, {NULL}},
    {"keys", call_keys, 0, {NULL}},
    {"values", call_values, 0, {NULL}},
    {"items", call_items, 0, {NULL}},
    {"get", call_get, 2, {NULL}},
    {0},
};

static const row functions[] = {
    {"raise_exception", call_raise, 1, {NULL}},
    {"range", call_range, 3, {NULL}},
    {"strftime_now", call_strftime_now, 1, {NULL}},
    {0},
};

static const row *find(const row *table, qkv_text name) {
    for (; table->name; table++)
        if (jinja_text_is(name, table->name)) return table;
    return NULL;
}

bool jinja_knows_filter(qkv_text name) {
    return find(filters, name) != NULL;
}
bool jinja_knows_method(qkv_text name) {
    return find(methods, name) != NULL;
}
bool jinja_knows_function(qkv_text name) {
    return find(functions, name) || jinja_text_is(name, "namespace") || jinja_text_is(name, "dict");
}

/* Where an argument goes: its place, or that of its name. */
static qkv_status place_of(const jinja_call_args *c, const row *to, const jinja_node *arg,
                           int *out) {
    *out = c->n_args;
    if (arg->kind == JINJA_BLOCK)
        for (*out = 0; *out < JINJA_ARGS; ++*out)
            if (to->named[*out] && jinja_text_is(arg->name, to->named[*out])) break;
    const int most = arg->kind == JINJA_BLOCK ? JINJA_ARGS : to->most;
    if (*out < most) return QKV_OK;
    return arg->kind == JINJA_BLOCK
               ? jinja_fail(arg, "\"%s\" with the argument \"%.*s\" is not implemented", to->name,
                            (int)arg->name.len, arg->name.data)
               : jinja_fail(arg, "too many arguments of \"%s\"", to->name);
}

static qkv_status run_row(jinja_run *r, const jinja_node *n, const row *to,
                          const qkv_jinja_value *of, qkv_jinja_value *out) {
    jinja_call_args c = {.r = r, .n = n, .of = of};
    for (const jinja_node *arg = n->list; arg; arg = arg->next) {
        int place = 0;
        QKV_TRY(place_of(&c, to, arg, &place));
        QKV_TRY(jinja_evaluate(r, arg, &c.arg[place]));
        c.n_args += arg->kind != JINJA_BLOCK;
    }
    qkv_jinja_value result = {0};
    QKV_TRY(to->run(&c, &result));
    *out = result;
    return QKV_OK;
}

qkv_status jinja_filter(jinja_run *r, const jinja_node *n, qkv_jinja_value *v) {
    return run_row(r, n, find(filters, n->name), v, v);
}

qkv_status jinja_method(jinja_run *r, const jinja_node *n, const qkv_jinja_value *v,
                        qkv_jinja_value *out) {
    return run_row(r, n, find(methods, n->name), v, out);
}

/* namespace(a=1) and dict(a=1): any names. */
static qkv_status new_space(jinja_run *r, const jinja_node *n, qkv_jinja_value *out) {
    size_t count = 0;
    for (const jinja_node *arg = n->list; arg; arg = arg->next) count++;
    QKV_TRY(jinja_new_dict(r, count, out));
    if (jinja_text_is(n->name, "namespace")) out->type = QKV_JINJA_SPACE;
    for (const jinja_node *arg = n->list; arg; arg = arg->next) {
        if (arg->kind != JINJA_BLOCK) return jinja_fail(arg, "arguments need names here");
        qkv_jinja_pair *const p = &out->dict->at[out->dict->n];
        p->key = arg->name;
        QKV_TRY(jinja_evaluate(r, arg, &p->value));
        out->dict->n++;
    }
    return QKV_OK;
}

qkv_status jinja_call(jinja_run *r, const jinja_node *n, qkv_jinja_value *out) {
    const row *to = find(functions, n->name);
    static const qkv_jinja_value none;
    return to ? run_row(r, n, to, &none, out) : new_space(r, n, out);
}
