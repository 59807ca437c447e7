/* Filters, tests, methods and functions of templates: four tables. A row has the most arguments that
 * it takes; what else is written behind a name is an error. */
#include "chat/jinja_tree.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ARGS = 3 };

/* What a callee gets: the value that it acts on and its arguments, by place or by name. */
typedef struct call {
    jinja_run *r;
    const jinja_node *n;
    const qkv_jinja_value *of;
    qkv_jinja_value arg[ARGS];
    int n_args; /* by place */
} call;

typedef qkv_status (*callee)(call *c, qkv_jinja_value *out);
typedef struct row {
    const char *name;
    callee run;
    int most;
    const char *named[ARGS]; /* arguments that may be given by name, at their places */
} row;

static qkv_status mismatch(const call *c, const qkv_jinja_value *v) {
    return jinja_fail(c->n, "\"%.*s\" of %s", (int)c->n->name.len, c->n->name.data,
                      jinja_type_name(v));
}

static qkv_status text_of(const call *c, const qkv_jinja_value *v, qkv_text *out) {
    if (v->type != QKV_JINJA_TEXT) return mismatch(c, v);
    *out = v->text;
    return QKV_OK;
}

static bool has(const call *c, int i) {
    return c->arg[i].type != QKV_JINJA_UNDEFINED;
}

/* ---- texts ---- */

static bool is_blank(char x) {
    return x == ' ' || (x >= '\t' && x <= '\r');
}

/* Cuts blanks, or the characters of a text, from either end. */
static qkv_status cut(call *c, bool left, bool right, qkv_jinja_value *out) {
    qkv_text t = {"", 0}, chars = {NULL, 0};
    if (c->of->type == QKV_JINJA_TEXT)
        t = c->of->text;
    else
        QKV_TRY(jinja_to_text(c->r, c->n, c->of, &t));
    if (has(c, 0) && c->arg[0].type != QKV_JINJA_NONE) QKV_TRY(text_of(c, &c->arg[0], &chars));
    for (size_t i = 0; i < chars.len; i++)
        if (chars.data[i] & 0x80) return jinja_fail(c->n, "only ASCII can be cut from texts");
#define CUTS(x) (chars.data ? memchr(chars.data, x, chars.len) != NULL : is_blank(x))
    while (left && t.len && CUTS(t.data[0])) t.data++, t.len--;
    while (right && t.len && CUTS(t.data[t.len - 1])) t.len--;
#undef CUTS
    *out = qkv_jinja_text(t.data, t.len);
    return QKV_OK;
}
static qkv_status call_strip(call *c, qkv_jinja_value *out) {
    return cut(c, true, true, out);
}
static qkv_status call_lstrip(call *c, qkv_jinja_value *out) {
    return cut(c, true, false, out);
}
static qkv_status call_rstrip(call *c, qkv_jinja_value *out) {
    return cut(c, false, true, out);
}

/* ASCII letters; others would need the whole of Unicode's tables. */
static qkv_status recase(call *c, bool up, bool first_of_words, qkv_jinja_value *out) {
    qkv_text t = {"", 0}, to = {"", 0};
    QKV_TRY(text_of(c, c->of, &t));
    QKV_TRY(jinja_copy(c->r, t.data, t.len, &to));
    char *const s = (char *)to.data;
    bool first = true;
    for (size_t i = 0; i < to.len; i++) {
        const bool lower = s[i] >= 'a' && s[i] <= 'z', upper = s[i] >= 'A' && s[i] <= 'Z';
        if (s[i] & 0x80) return jinja_fail(c->n, "only ASCII letters change their case");
        const bool raise = first_of_words ? first : up;
        if (raise ? lower : upper) s[i] ^= 0x20;
        first = first_of_words && !lower && !upper;
    }
    *out = qkv_jinja_text(to.data, to.len);
    return QKV_OK;
}
static qkv_status call_upper(call *c, qkv_jinja_value *out) {
    return recase(c, true, false, out);
}
static qkv_status call_lower(call *c, qkv_jinja_value *out) {
    return recase(c, false, false, out);
}
static qkv_status call_title(call *c, qkv_jinja_value *out) {
    return recase(c, true, true, out);
}
static qkv_status call_capitalize(call *c, qkv_jinja_value *out) {
    QKV_TRY(recase(c, false, false, out));
    char *const s = (char *)out->text.data;
    if (out->text.len && s[0] >= 'a' && s[0] <= 'z') s[0] ^= 0x20;
    return QKV_OK;
}

static qkv_status edge(call *c, bool end, qkv_jinja_value *out) {
    qkv_text t = {"", 0}, with = {"", 0};
    QKV_TRY(text_of(c, c->of, &t));
    QKV_TRY(text_of(c, &c->arg[0], &with));
    *out = qkv_jinja_truth(with.len <= t.len &&
                           !memcmp(t.data + (end ? t.len - with.len : 0), with.data, with.len));
    return QKV_OK;
}
static qkv_status call_startswith(call *c, qkv_jinja_value *out) {
    return edge(c, false, out);
}
static qkv_status call_endswith(call *c, qkv_jinja_value *out) {
    return edge(c, true, out);
}

/* How often, and (to not NULL) the text with each replaced. */
static size_t replaced(qkv_text t, qkv_text old, qkv_text new, int64_t most, char *to) {
    size_t n = 0, at = 0, len = 0;
    while (at < t.len) {
        const char *hit = most < 0 || (int64_t)n < most
                              ? memmem(t.data + at, t.len - at, old.data, old.len)
                              : NULL;
        const size_t upto = hit ? (size_t)(hit - t.data) : t.len;
        if (to) memcpy(to + len, t.data + at, upto - at);
        len += upto - at;
        at = upto;
        if (!hit) break;
        if (to) memcpy(to + len, new.data, new.len);
        len += new.len;
        at += old.len;
        n++;
    }
    return n;
}

static qkv_status call_replace(call *c, qkv_jinja_value *out) {
    qkv_text t = {"", 0}, old = {"", 0}, new = {"", 0};
    char *to = NULL;
    QKV_TRY(text_of(c, c->of, &t));
    QKV_TRY(text_of(c, &c->arg[0], &old));
    QKV_TRY(text_of(c, &c->arg[1], &new));
    if (!old.len) return jinja_fail(c->n, "nothing cannot be replaced");
    const int64_t most = c->arg[2].type == QKV_JINJA_INT ? c->arg[2].whole : -1;
    const size_t n = replaced(t, old, new, most, NULL);
    if (new.len && n > JINJA_RUN_BYTES / new.len) return jinja_fail(c->n, "a text is too long");
    const size_t len = t.len - n * old.len + n * new.len;
    QKV_TRY(jinja_take(c->r, len + 1, &to));
    replaced(t, old, new, most, to);
    *out = qkv_jinja_text(to, len);
    return QKV_OK;
}

/* Pieces of a text between separators (NULL data: runs of blanks); `out` NULL: only counted. */
static size_t pieces(qkv_text t, qkv_text by, int64_t most, qkv_jinja_value *out) {
    size_t n = 0, at = 0;
    for (;;) {
        if (!by.data)
            while (at < t.len && is_blank(t.data[at])) at++;
        if (!by.data && at == t.len) return n;
        size_t end = at, next = t.len;
        const bool cuts = most < 0 || (int64_t)n < most;
        if (!by.data) {
            while (cuts && end < t.len && !is_blank(t.data[end])) end++;
            next = end = cuts ? end : t.len;
        } else {
            const char *hit = cuts ? memmem(t.data + at, t.len - at, by.data, by.len) : NULL;
            end = hit ? (size_t)(hit - t.data) : t.len;
            next = hit ? end + by.len : t.len + 1;
        }
        if (out) out[n] = qkv_jinja_text(t.data + at, end - at);
        n++;
        if (by.data ? next > t.len : next == t.len) return n;
        at = next;
    }
}

static qkv_status call_split(call *c, qkv_jinja_value *out) {
    qkv_text t = {"", 0}, by = {NULL, 0};
    QKV_TRY(text_of(c, c->of, &t));
    if (has(c, 0) && c->arg[0].type != QKV_JINJA_NONE) {
        QKV_TRY(text_of(c, &c->arg[0], &by));
        if (!by.len) return jinja_fail(c->n, "an empty separator");
    }
    const int64_t most = c->arg[1].type == QKV_JINJA_INT ? c->arg[1].whole : -1;
    QKV_TRY(jinja_new_list(c->r, pieces(t, by, most, NULL), out));
    pieces(t, by, most, out->list->at);
    return QKV_OK;
}

static qkv_status call_string(call *c, qkv_jinja_value *out) {
    out->type = QKV_JINJA_TEXT;
    return jinja_to_text(c->r, c->n, c->of, &out->text);
}

static qkv_status call_int(call *c, qkv_jinja_value *out) {
    int64_t x = 0;
    if (c->of->type == QKV_JINJA_INT) x = c->of->whole;
    if (c->of->type == QKV_JINJA_BOOL) x = c->of->truth;
    if (c->of->type == QKV_JINJA_REAL && c->of->real > -1e18 && c->of->real < 1e18)
        x = (int64_t)c->of->real;
    if (c->of->type == QKV_JINJA_TEXT) {
        size_t i = c->of->text.len && c->of->text.data[0] == '-';
        const bool minus = i;
        for (; i < c->of->text.len && x < INT64_MAX / 20; i++) {
            const char digit = c->of->text.data[i];
            if (digit < '0' || digit > '9') break;
            x = 10 * x + digit - '0';
        }
        if (i < c->of->text.len || i == (size_t)minus) x = 0; /* as Jinja's default */
        x = minus ? -x : x;
    }
    *out = (qkv_jinja_value){.type = QKV_JINJA_INT, .whole = x};
    return QKV_OK;
}

/* ---- lists ---- */

static qkv_status call_length(call *c, qkv_jinja_value *out) {
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
        return mismatch(c, c->of);
    }
}

static qkv_status call_first(call *c, qkv_jinja_value *out) {
    if (c->of->type != QKV_JINJA_LIST) return mismatch(c, c->of);
    *out = c->of->list->n ? c->of->list->at[0] : (qkv_jinja_value){0};
    return QKV_OK;
}
static qkv_status call_last(call *c, qkv_jinja_value *out) {
    if (c->of->type != QKV_JINJA_LIST) return mismatch(c, c->of);
    *out = c->of->list->n ? c->of->list->at[c->of->list->n - 1] : (qkv_jinja_value){0};
    return QKV_OK;
}
static qkv_status call_list(call *c, qkv_jinja_value *out) {
    if (c->of->type != QKV_JINJA_LIST) return mismatch(c, c->of);
    *out = *c->of;
    return QKV_OK;
}
static qkv_status call_reverse(call *c, qkv_jinja_value *out) {
    if (c->of->type != QKV_JINJA_LIST) return mismatch(c, c->of);
    const qkv_jinja_list *from = c->of->list;
    QKV_TRY(jinja_new_list(c->r, from->n, out));
    for (size_t i = 0; i < from->n; i++) out->list->at[i] = from->at[from->n - 1 - i];
    return QKV_OK;
}

static qkv_status call_join(call *c, qkv_jinja_value *out) {
    qkv_text by = {"", 0}, t = {"", 0};
    char *to = NULL;
    if (c->of->type != QKV_JINJA_LIST) return mismatch(c, c->of);
    if (has(c, 0)) QKV_TRY(text_of(c, &c->arg[0], &by));
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

static qkv_status pairs_of(call *c, int which, qkv_jinja_value *out) {
    if (c->of->type != QKV_JINJA_DICT) return mismatch(c, c->of);
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
static qkv_status call_keys(call *c, qkv_jinja_value *out) {
    return pairs_of(c, 0, out);
}
static qkv_status call_values(call *c, qkv_jinja_value *out) {
    return pairs_of(c, 1, out);
}
static qkv_status call_items(call *c, qkv_jinja_value *out) {
    return pairs_of(c, 2, out);
}
static qkv_status call_get(call *c, qkv_jinja_value *out) {
    qkv_text key = {"", 0};
    if (c->of->type != QKV_JINJA_DICT) return mismatch(c, c->of);
    QKV_TRY(text_of(c, &c->arg[0], &key));
    const qkv_jinja_value *found = jinja_member(c->of->dict, key);
    *out = found ? *found : has(c, 1) ? c->arg[1] : (qkv_jinja_value){.type = QKV_JINJA_NONE};
    return QKV_OK;
}

static bool passes(const qkv_jinja_value *v, qkv_text test, const qkv_jinja_value *with,
                   bool *known);

/* Items whose attribute passes a test (or is true), or does not. */
static qkv_status select_items(call *c, bool wanted, bool by_attribute, qkv_jinja_value *out) {
    static const qkv_jinja_value none;
    if (c->of->type != QKV_JINJA_LIST) return mismatch(c, c->of);
    const int at = by_attribute;
    qkv_text attribute = {"", 0}, test = {"", 0};
    if (by_attribute) QKV_TRY(text_of(c, &c->arg[0], &attribute));
    if (has(c, at)) QKV_TRY(text_of(c, &c->arg[at], &test));
    const qkv_jinja_list *from = c->of->list;
    QKV_TRY(jinja_new_list(c->r, from->n, out));
    out->list->n = 0;
    for (size_t i = 0; i < from->n; i++) {
        const qkv_jinja_value *v = &from->at[i];
        if (by_attribute && v->type != QKV_JINJA_DICT) return mismatch(c, v);
        if (by_attribute) v = jinja_member(v->dict, attribute);
        if (!v) v = &none;
        bool known = true;
        const bool yes = test.len ? passes(v, test, at + 1 < ARGS ? &c->arg[at + 1] : &none, &known)
                                  : jinja_is_true(v);
        if (!known)
            return jinja_fail(c->n, "the test \"%.*s\" is not implemented here", (int)test.len,
                              test.data);
        if (yes == wanted) out->list->at[out->list->n++] = from->at[i];
    }
    return QKV_OK;
}
static qkv_status call_selectattr(call *c, qkv_jinja_value *out) {
    return select_items(c, true, true, out);
}
static qkv_status call_rejectattr(call *c, qkv_jinja_value *out) {
    return select_items(c, false, true, out);
}
static qkv_status call_select(call *c, qkv_jinja_value *out) {
    return select_items(c, true, false, out);
}
static qkv_status call_reject(call *c, qkv_jinja_value *out) {
    return select_items(c, false, false, out);
}

/* map(attribute="name") */
static qkv_status call_map(call *c, qkv_jinja_value *out) {
    qkv_text attribute = {"", 0};
    if (c->of->type != QKV_JINJA_LIST) return mismatch(c, c->of);
    if (c->n_args || !has(c, 0)) return jinja_fail(c->n, "map without attribute=");
    QKV_TRY(text_of(c, &c->arg[0], &attribute));
    QKV_TRY(jinja_new_list(c->r, c->of->list->n, out));
    for (size_t i = 0; i < c->of->list->n; i++) {
        const qkv_jinja_value *v = &c->of->list->at[i];
        if (v->type != QKV_JINJA_DICT) return mismatch(c, v);
        v = jinja_member(v->dict, attribute);
        if (v) out->list->at[i] = *v;
    }
    return QKV_OK;
}

static qkv_status call_default(call *c, qkv_jinja_value *out) {
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

static qkv_status put_json(call *c, json_place p, const qkv_jinja_value *v) {
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
        return mismatch(c, v);
    }
}

static qkv_status call_tojson(call *c, qkv_jinja_value *out) {
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

static qkv_status call_raise(call *c, qkv_jinja_value *out) {
    qkv_text t = {"", 0};
    (void)out;
    QKV_TRY(jinja_to_text(c->r, c->n, &c->arg[0], &t));
    return qkv_fail(QKV_USAGE, "the chat template says: %.*s", (int)(t.len < 300 ? t.len : 300),
                    t.data);
}

static qkv_status call_range(call *c, qkv_jinja_value *out) {
    int64_t x[ARGS] = {0, 0, 1};
    for (int i = 0; i < c->n_args; i++) {
        if (c->arg[i].type != QKV_JINJA_INT) return mismatch(c, &c->arg[i]);
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
static qkv_status call_strftime_now(call *c, qkv_jinja_value *out) {
    char format[64], text[256];
    qkv_text t = {"", 0};
    struct tm today;
    const time_t now = time(NULL);
    QKV_TRY(text_of(c, &c->arg[0], &t));
    snprintf(format, sizeof format, "%.*s", (int)(t.len < 60 ? t.len : 60), t.data);
    if (!localtime_r(&now, &today)) return jinja_fail(c->n, "the date is not known");
    const size_t n = strftime(text, sizeof text, format, &today);
    out->type = QKV_JINJA_TEXT;
    return jinja_copy(c->r, text, n, &out->text);
}

/* ---- the tables ---- */

static const row filters[] = {
    {"trim", call_strip, 1, {NULL}},
    {"length", call_length, 0, {NULL}},
    {"count", call_length, 0, {NULL}},
    {"upper", call_upper, 0, {NULL}},
    {"lower", call_lower, 0, {NULL}},
    {"title", call_title, 0, {NULL}},
    {"capitalize", call_capitalize, 0, {NULL}},
    {"replace", call_replace, 3, {NULL}},
    {"string", call_string, 0, {NULL}},
    {"int", call_int, 0, {NULL}},
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
    {"strip", call_strip, 1, {NULL}},
    {"lstrip", call_lstrip, 1, {NULL}},
    {"rstrip", call_rstrip, 1, {NULL}},
    {"upper", call_upper, 0, {NULL}},
    {"lower", call_lower, 0, {NULL}},
    {"title", call_title, 0, {NULL}},
    {"capitalize", call_capitalize, 0, {NULL}},
    {"startswith", call_startswith, 1, {NULL}},
    {"endswith", call_endswith, 1, {NULL}},
    {"replace", call_replace, 3, {NULL}},
    {"split", call_split, 2, {NULL}},
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
static qkv_status place_of(const call *c, const row *to, const jinja_node *arg, int *out) {
    *out = c->n_args;
    if (arg->kind == JINJA_BLOCK)
        for (*out = 0; *out < ARGS; ++*out)
            if (to->named[*out] && jinja_text_is(arg->name, to->named[*out])) break;
    const int most = arg->kind == JINJA_BLOCK ? ARGS : to->most;
    if (*out < most) return QKV_OK;
    return arg->kind == JINJA_BLOCK
               ? jinja_fail(arg, "\"%s\" with the argument \"%.*s\" is not implemented", to->name,
                            (int)arg->name.len, arg->name.data)
               : jinja_fail(arg, "too many arguments of \"%s\"", to->name);
}

static qkv_status run_row(jinja_run *r, const jinja_node *n, const row *to,
                          const qkv_jinja_value *of, qkv_jinja_value *out) {
    call c = {.r = r, .n = n, .of = of};
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
