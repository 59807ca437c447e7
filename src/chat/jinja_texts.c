/* What templates can do with texts. */
#include "chat/jinja_calls.h"

#include <string.h>

qkv_status jinja_mismatch(const jinja_call_args *c, const qkv_jinja_value *v) {
    return jinja_fail(c->n, "\"%.*s\" of %s", (int)c->n->name.len, c->n->name.data,
                      jinja_type_name(v));
}

qkv_status jinja_text_of(const jinja_call_args *c, const qkv_jinja_value *v, qkv_text *out) {
    if (v->type != QKV_JINJA_TEXT) return jinja_mismatch(c, v);
    *out = v->text;
    return QKV_OK;
}

static bool is_blank(char x) {
    return x == ' ' || (x >= '\t' && x <= '\r');
}

/* Cuts blanks, or the characters of a text, from either end. */
static qkv_status cut(jinja_call_args *c, bool left, bool right, qkv_jinja_value *out) {
    qkv_text t = {"", 0}, chars = {NULL, 0};
    if (c->of->type == QKV_JINJA_TEXT)
        t = c->of->text;
    else
        QKV_TRY(jinja_to_text(c->r, c->n, c->of, &t));
    if (jinja_has(c, 0) && c->arg[0].type != QKV_JINJA_NONE)
        QKV_TRY(jinja_text_of(c, &c->arg[0], &chars));
    for (size_t i = 0; i < chars.len; i++)
        if (chars.data[i] & 0x80) return jinja_fail(c->n, "only ASCII can be cut from texts");
#define CUTS(x) (chars.data ? memchr(chars.data, x, chars.len) != NULL : is_blank(x))
    while (left && t.len && CUTS(t.data[0])) t.data++, t.len--;
    while (right && t.len && CUTS(t.data[t.len - 1])) t.len--;
#undef CUTS
    *out = qkv_jinja_text(t.data, t.len);
    return QKV_OK;
}
qkv_status jinja_call_strip(jinja_call_args *c, qkv_jinja_value *out) {
    return cut(c, true, true, out);
}
qkv_status jinja_call_lstrip(jinja_call_args *c, qkv_jinja_value *out) {
    return cut(c, true, false, out);
}
qkv_status jinja_call_rstrip(jinja_call_args *c, qkv_jinja_value *out) {
    return cut(c, false, true, out);
}

/* ASCII letters; others would need the whole of Unicode's tables. */
static qkv_status recase(jinja_call_args *c, bool up, bool first_of_words, qkv_jinja_value *out) {
    qkv_text t = {"", 0}, to = {"", 0};
    QKV_TRY(jinja_text_of(c, c->of, &t));
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
qkv_status jinja_call_upper(jinja_call_args *c, qkv_jinja_value *out) {
    return recase(c, true, false, out);
}
qkv_status jinja_call_lower(jinja_call_args *c, qkv_jinja_value *out) {
    return recase(c, false, false, out);
}
qkv_status jinja_call_title(jinja_call_args *c, qkv_jinja_value *out) {
    return recase(c, true, true, out);
}
qkv_status jinja_call_capitalize(jinja_call_args *c, qkv_jinja_value *out) {
    QKV_TRY(recase(c, false, false, out));
    char *const s = (char *)out->text.data;
    if (out->text.len && s[0] >= 'a' && s[0] <= 'z') s[0] ^= 0x20;
    return QKV_OK;
}

static qkv_status edge(jinja_call_args *c, bool end, qkv_jinja_value *out) {
    qkv_text t = {"", 0}, with = {"", 0};
    QKV_TRY(jinja_text_of(c, c->of, &t));
    QKV_TRY(jinja_text_of(c, &c->arg[0], &with));
    *out = qkv_jinja_truth(with.len <= t.len &&
                           !memcmp(t.data + (end ? t.len - with.len : 0), with.data, with.len));
    return QKV_OK;
}
qkv_status jinja_call_startswith(jinja_call_args *c, qkv_jinja_value *out) {
    return edge(c, false, out);
}
qkv_status jinja_call_endswith(jinja_call_args *c, qkv_jinja_value *out) {
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

qkv_status jinja_call_replace(jinja_call_args *c, qkv_jinja_value *out) {
    qkv_text t = {"", 0}, old = {"", 0}, new = {"", 0};
    char *to = NULL;
    QKV_TRY(jinja_text_of(c, c->of, &t));
    QKV_TRY(jinja_text_of(c, &c->arg[0], &old));
    QKV_TRY(jinja_text_of(c, &c->arg[1], &new));
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

qkv_status jinja_call_split(jinja_call_args *c, qkv_jinja_value *out) {
    qkv_text t = {"", 0}, by = {NULL, 0};
    QKV_TRY(jinja_text_of(c, c->of, &t));
    if (jinja_has(c, 0) && c->arg[0].type != QKV_JINJA_NONE) {
        QKV_TRY(jinja_text_of(c, &c->arg[0], &by));
        if (!by.len) return jinja_fail(c->n, "an empty separator");
    }
    const int64_t most = c->arg[1].type == QKV_JINJA_INT ? c->arg[1].whole : -1;
    QKV_TRY(jinja_new_list(c->r, pieces(t, by, most, NULL), out));
    pieces(t, by, most, out->list->at);
    return QKV_OK;
}

qkv_status jinja_call_string(jinja_call_args *c, qkv_jinja_value *out) {
    out->type = QKV_JINJA_TEXT;
    return jinja_to_text(c->r, c->n, c->of, &out->text);
}

qkv_status jinja_call_int(jinja_call_args *c, qkv_jinja_value *out) {
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
