/* Reading templates: the tokens of a tag, and the nodes that are made of them. */
#include "chat/jinja_parser.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

qkv_status jinja_refuse(const jinja_parser *p, const char *format, ...) {
    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return qkv_fail(QKV_BAD_FILE, "chat template, line %d: %s", p->line, what);
}

qkv_status jinja_new_node(jinja_parser *p, jinja_kind kind, jinja_node **out) {
    if (++p->nodes > JINJA_NODES)
        return jinja_refuse(p, "a template with more than %u parts", JINJA_NODES);
    QKV_TRY_ALLOC(*out = qkv_arena_zalloc(p->arena, sizeof **out));
    (*out)->kind = kind;
    (*out)->line = p->line;
    return QKV_OK;
}

/* A node with all its operands: what is run by recursion must not be too high. */
qkv_status jinja_complete(const jinja_parser *p, jinja_node *n) {
    const jinja_node *const part[] = {n->a, n->b, n->c, n->d};
    for (int i = 0; i < 4; i++)
        if (part[i] && part[i]->height > n->height) n->height = part[i]->height;
    for (const jinja_node *i = n->list; i; i = i->next)
        if (i->height > n->height) n->height = i->height;
    return ++n->height > JINJA_HEIGHT
               ? jinja_refuse(p, "an expression of more than %d parts", JINJA_HEIGHT)
               : QKV_OK;
}

/* ---- tokens of a tag ---- */

static bool is_name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
}
static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static int hex_of(const char *s, int n, const char *end) {
    int value = 0;
    for (int i = 0; i < n; i++) {
        if (s + i >= end) return -1;
        const char c = s[i];
        const int digit = is_digit(c)            ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) return -1;
        value = 16 * value + digit;
    }
    return value;
}

/* One escape, as Python has them; an unknown one stays what it is. */
static size_t unescape(const char *s, const char *end, char *out, size_t *n) {
    static const char from[] = "ntr\\'\"0abfv", to[] = "\n\t\r\\'\"\0\a\b\f\v";
    const char *known = s < end && *s ? strchr(from, *s) : NULL;
    if (known) {
        out[(*n)++] = to[known - from];
        return 1;
    }
    const int digits = s < end && *s == 'x' ? 2 : s < end && *s == 'u' ? 4 : 0;
    const int code = digits ? hex_of(s + 1, digits, end) : -1;
    if (code >= 0 && (code < 0xd800 || code > 0xdfff)) {
        *n += (size_t)qkv_utf8_encode(code, out + *n);
        return 1 + (size_t)digits;
    }
    out[(*n)++] = '\\';
    return 0;
}

static qkv_status text_token(jinja_parser *p, jinja_token *t) {
    const char quote = *p->at++, *last = p->at;
    while (last < p->end && *last != quote) last += *last == '\\' && last + 1 < p->end ? 2 : 1;
    char *to = qkv_arena_alloc(p->arena, (size_t)(last - p->at) + 1);
    if (!to) return QKV_FAILED;
    size_t n = 0;
    while (p->at < p->end && *p->at != quote) {
        if (*p->at == '\n') p->line++;
        if (*p->at == '\\') {
            p->at++;
            p->at += unescape(p->at, p->end, to, &n);
        } else {
            to[n++] = *p->at++;
        }
    }
    if (p->at == p->end) return jinja_refuse(p, "a text without its closing %c", quote);
    p->at++;
    t->kind = T_TEXT;
    t->text = (qkv_text){to, n};
    return QKV_OK;
}

static void number_token(jinja_parser *p, jinja_token *t) {
    const char *from = p->at;
    while (p->at < p->end && is_digit(*p->at)) p->at++;
    t->kind = T_INT;
    if (p->at + 1 < p->end && *p->at == '.' && is_digit(p->at[1])) {
        p->at++;
        while (p->at < p->end && is_digit(*p->at)) p->at++;
        t->kind = T_REAL;
    }
    t->text = (qkv_text){from, (size_t)(p->at - from)};
    char copy[40];
    snprintf(copy, sizeof copy, "%.*s", (int)(t->text.len < 39 ? t->text.len : 39), from);
    t->whole = strtoll(copy, NULL, 10);
    /* not strtod: the locale */
    double unit = 1;
    t->real = (double)t->whole;
    for (const char *d = memchr(copy, '.', strlen(copy)); d && *++d;)
        t->real += (*d - '0') * (unit /= 10);
}

/* Length of the closing mark of a tag at s, its sign counted; 0: none. */
static size_t closing(const char *s, const char *end) {
    const size_t sign = s < end && (*s == '-' || *s == '+');
    if (end - s < (ptrdiff_t)sign + 2) return 0;
    return (s[sign] == '%' || s[sign] == '}') && s[sign + 1] == '}' ? sign + 2 : 0;
}

qkv_status jinja_advance(jinja_parser *p) {
    static const char *const pairs[] = {"==", "!=", "<=", ">=", "//", "**"};
    jinja_token *t = &p->next;
    while (p->at < p->end && strchr(" \t\n\r\f\v", *p->at) && *p->at) p->line += *p->at++ == '\n';
    *t = (jinja_token){.from = p->at};
    if (p->at == p->end) return QKV_OK;
    const char c = *p->at;
    if (c == '"' || c == '\'') return text_token(p, t);
    if (is_digit(c)) {
        number_token(p, t);
        return QKV_OK;
    }
    size_t n = 1;
    t->kind = T_MARK;
    if (is_name_char(c)) {
        while (p->at + n < p->end && is_name_char(p->at[n])) n++;
        t->kind = T_NAME;
    } else if (closing(p->at, p->end)) { /* "}}" of {{ {} }} is told apart by who asks */
        t->kind = T_CLOSE;
        n = closing(p->at, p->end);
    } else {
        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
            if (p->end - p->at >= 2 && !memcmp(p->at, pairs[i], 2)) n = 2;
        if (!strchr("()[]{}.,:|=<>+-*/%~!", c))
            return jinja_refuse(p, "the character \"%c\" means nothing here", c >= ' ' ? c : '?');
    }
    t->text = (qkv_text){p->at, n};
    p->at += n;
    return QKV_OK;
}

bool jinja_sees(const jinja_parser *p, const char *word) {
    return (p->next.kind == T_MARK || p->next.kind == T_NAME) && jinja_text_is(p->next.text, word);
}

/* A mark; the closing brace of a dictionary may begin what looks like the end of a tag. */
static bool sees_mark(jinja_parser *p, const char *mark) {
    if (p->next.kind == T_CLOSE && !strcmp(mark, "}") && *p->next.text.data == '}') {
        p->at = p->next.from + 1;
        p->next.kind = T_MARK;
        p->next.text.len = 1;
    }
    return jinja_sees(p, mark);
}

qkv_status jinja_skip(jinja_parser *p, const char *word, bool *found) {
    *found = sees_mark(p, word);
    return *found ? jinja_advance(p) : QKV_OK;
}

qkv_status jinja_expect(jinja_parser *p, const char *word) {
    bool found;
    QKV_TRY(jinja_skip(p, word, &found));
    if (found) return QKV_OK;
    return jinja_refuse(p, "\"%s\" expected before \"%.*s\"", word, (int)p->next.text.len,
                        p->next.text.data ? p->next.text.data : "");
}

qkv_status jinja_read_name(jinja_parser *p, qkv_text *out) {
    if (p->next.kind != T_NAME) return jinja_refuse(p, "a name expected");
    *out = p->next.text;
    return jinja_advance(p);
}

qkv_status jinja_deeper(jinja_parser *p) {
    return ++p->depth > JINJA_DEPTH ? jinja_refuse(p, "nested deeper than %d", JINJA_DEPTH)
                                    : QKV_OK;
}
