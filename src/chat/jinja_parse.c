/* Parsing templates: text and tags, then expressions by recursive descent, as Jinja's grammar has
 * them: or, and, not, comparisons, + −, ~, * / // %, unary, and closest the postfixes, filters and
 * tests. */
#include "chat/jinja_tree.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum token_kind { T_END, T_NAME, T_INT, T_REAL, T_TEXT, T_MARK, T_CLOSE } token_kind;

typedef struct token {
    token_kind kind;
    qkv_text text;
    const char *from; /* where it begins */
    int64_t whole;
    double real;
} token;

typedef struct parser {
    qkv_arena *arena;
    const char *start, *at, *end;
    token next; /* of a tag */
    int line, depth, loops;
    size_t nodes;
} parser;

static qkv_status refuse(const parser *p, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static qkv_status refuse(const parser *p, const char *format, ...) {
    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return qkv_fail(QKV_BAD_FILE, "chat template, line %d: %s", p->line, what);
}

static qkv_status new_node(parser *p, jinja_kind kind, jinja_node **out) {
    if (++p->nodes > JINJA_NODES)
        return refuse(p, "a template with more than %u parts", JINJA_NODES);
    QKV_TRY_ALLOC(*out = qkv_arena_zalloc(p->arena, sizeof **out));
    (*out)->kind = kind;
    (*out)->line = p->line;
    return QKV_OK;
}

/* A node with all its operands: what is run by recursion must not be too high. */
static qkv_status complete(const parser *p, jinja_node *n) {
    const jinja_node *const part[] = {n->a, n->b, n->c, n->d};
    for (int i = 0; i < 4; i++)
        if (part[i] && part[i]->height > n->height) n->height = part[i]->height;
    for (const jinja_node *i = n->list; i; i = i->next)
        if (i->height > n->height) n->height = i->height;
    return ++n->height > JINJA_HEIGHT
               ? refuse(p, "an expression of more than %d parts", JINJA_HEIGHT)
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

static qkv_status text_token(parser *p, token *t) {
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
    if (p->at == p->end) return refuse(p, "a text without its closing %c", quote);
    p->at++;
    t->kind = T_TEXT;
    t->text = (qkv_text){to, n};
    return QKV_OK;
}

static void number_token(parser *p, token *t) {
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

static qkv_status advance(parser *p) {
    static const char *const pairs[] = {"==", "!=", "<=", ">=", "//", "**"};
    token *t = &p->next;
    while (p->at < p->end && strchr(" \t\n\r\f\v", *p->at) && *p->at) p->line += *p->at++ == '\n';
    *t = (token){.from = p->at};
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
            return refuse(p, "the character \"%c\" means nothing here", c >= ' ' ? c : '?');
    }
    t->text = (qkv_text){p->at, n};
    p->at += n;
    return QKV_OK;
}

static bool sees(const parser *p, const char *word) {
    return (p->next.kind == T_MARK || p->next.kind == T_NAME) && jinja_text_is(p->next.text, word);
}

/* A mark; the closing brace of a dictionary may begin what looks like the end of a tag. */
static bool sees_mark(parser *p, const char *mark) {
    if (p->next.kind == T_CLOSE && !strcmp(mark, "}") && *p->next.text.data == '}') {
        p->at = p->next.from + 1;
        p->next.kind = T_MARK;
        p->next.text.len = 1;
    }
    return sees(p, mark);
}

static qkv_status skip(parser *p, const char *word, bool *found) {
    *found = sees_mark(p, word);
    return *found ? advance(p) : QKV_OK;
}

static qkv_status expect(parser *p, const char *word) {
    bool found;
    QKV_TRY(skip(p, word, &found));
    if (found) return QKV_OK;
    return refuse(p, "\"%s\" expected before \"%.*s\"", word, (int)p->next.text.len,
                  p->next.text.data ? p->next.text.data : "");
}

static qkv_status name(parser *p, qkv_text *out) {
    if (p->next.kind != T_NAME) return refuse(p, "a name expected");
    *out = p->next.text;
    return advance(p);
}

/* ---- expressions ---- */

static qkv_status expression(parser *p, jinja_node **out);
static qkv_status unary(parser *p, bool filters, jinja_node **out);

static qkv_status deeper(parser *p) {
    return ++p->depth > JINJA_DEPTH ? refuse(p, "nested deeper than %d", JINJA_DEPTH) : QKV_OK;
}

/* Expressions up to a closing mark; in calls "name=" may stand before them. */
static qkv_status arguments(parser *p, const char *close, bool named, jinja_node **list) {
    bool done;
    jinja_node *last = NULL;
    QKV_TRY(skip(p, close, &done));
    while (!done) {
        jinja_node *arg = NULL;
        QKV_TRY(expression(p, &arg));
        if (named && arg->kind == JINJA_NAME && sees(p, "=")) {
            const qkv_text before = arg->name;
            QKV_TRY(advance(p));
            QKV_TRY(expression(p, &arg));
            jinja_node *wrapped = NULL; /* an operand may have a name of its own */
            QKV_TRY(new_node(p, JINJA_BLOCK, &wrapped));
            wrapped->a = arg;
            wrapped->name = before;
            QKV_TRY(complete(p, wrapped));
            arg = wrapped;
        }
        if (last)
            last->next = arg;
        else
            *list = arg;
        last = arg;
        bool comma;
        QKV_TRY(skip(p, ",", &comma));
        if (comma)
            QKV_TRY(skip(p, close, &done));
        else {
            QKV_TRY(expect(p, close));
            done = true;
        }
    }
    return QKV_OK;
}

static qkv_status dictionary(parser *p, jinja_node *n) {
    bool done;
    jinja_node **end = &n->list;
    QKV_TRY(skip(p, "}", &done));
    while (!done) {
        QKV_TRY(expression(p, end));
        QKV_TRY(expect(p, ":"));
        end = &(*end)->next;
        QKV_TRY(expression(p, end));
        end = &(*end)->next;
        bool comma;
        QKV_TRY(skip(p, ",", &comma));
        if (comma)
            QKV_TRY(skip(p, "}", &done));
        else {
            QKV_TRY(expect(p, "}"));
            done = true;
        }
    }
    return QKV_OK;
}

static qkv_status literal(parser *p, qkv_jinja_value v, jinja_node **out) {
    QKV_TRY(new_node(p, JINJA_LITERAL, out));
    (*out)->literal = v;
    return advance(p);
}

static bool word_literal(qkv_text t, qkv_jinja_value *out) {
    static const struct {
        const char *word;
        qkv_jinja_type type;
        bool truth;
    } words[] = {{"true", QKV_JINJA_BOOL, true},   {"True", QKV_JINJA_BOOL, true},
                 {"false", QKV_JINJA_BOOL, false}, {"False", QKV_JINJA_BOOL, false},
                 {"none", QKV_JINJA_NONE, false},  {"None", QKV_JINJA_NONE, false}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (jinja_text_is(t, words[i].word)) {
            *out = (qkv_jinja_value){.type = words[i].type};
            if (words[i].type == QKV_JINJA_BOOL) out->truth = words[i].truth;
            return true;
        }
    return false;
}

/* Texts side by side are one. */
static qkv_status text_literal(parser *p, jinja_node **out) {
    QKV_TRY(literal(p, qkv_jinja_text(p->next.text.data, p->next.text.len), out));
    while (p->next.kind == T_TEXT) {
        qkv_text *const t = &(*out)->literal.text, more = p->next.text;
        char *both = qkv_arena_alloc(p->arena, t->len + more.len + 1);
        if (!both) return QKV_FAILED;
        memcpy(both, t->data, t->len);
        memcpy(both + t->len, more.data, more.len);
        *t = (qkv_text){both, t->len + more.len};
        QKV_TRY(advance(p));
    }
    return QKV_OK;
}

static qkv_status parenthesis(parser *p, jinja_node **out) {
    jinja_node *list = NULL;
    QKV_TRY(advance(p));
    QKV_TRY(expression(p, out));
    if (sees(p, ",")) { /* a tuple is a list here */
        QKV_TRY(advance(p));
        QKV_TRY(arguments(p, ")", false, &list));
        jinja_node *first = *out;
        first->next = list;
        QKV_TRY(new_node(p, JINJA_LIST_OF, out));
        (*out)->list = first;
        return complete(p, *out);
    }
    return expect(p, ")");
}

static qkv_status primary(parser *p, jinja_node **out) {
    qkv_jinja_value v = {0};
    switch (p->next.kind) {
    case T_TEXT:
        return text_literal(p, out);
    case T_INT:
        return literal(p, (qkv_jinja_value){.type = QKV_JINJA_INT, .whole = p->next.whole}, out);
    case T_REAL:
        return literal(p, (qkv_jinja_value){.type = QKV_JINJA_REAL, .real = p->next.real}, out);
    case T_NAME:
        if (word_literal(p->next.text, &v)) return literal(p, v, out);
        QKV_TRY(new_node(p, JINJA_NAME, out));
        return name(p, &(*out)->name);
    default:
        break;
    }
    if (sees(p, "(")) return parenthesis(p, out);
    if (sees(p, "[")) {
        QKV_TRY(new_node(p, JINJA_LIST_OF, out));
        QKV_TRY(advance(p));
        QKV_TRY(arguments(p, "]", false, &(*out)->list));
        return complete(p, *out);
    }
    if (sees(p, "{")) {
        QKV_TRY(new_node(p, JINJA_DICT_OF, out));
        QKV_TRY(advance(p));
        QKV_TRY(dictionary(p, *out));
        return complete(p, *out);
    }
    return refuse(p, "a value expected before \"%.*s\"", (int)p->next.text.len,
                  p->next.text.data ? p->next.text.data : "");
}

/* a[…]: an index or a slice. */
static qkv_status subscript(parser *p, jinja_node *of, jinja_node **out) {
    QKV_TRY(new_node(p, JINJA_INDEX, out));
    jinja_node **const part[] = {&(*out)->b, &(*out)->c, &(*out)->d};
    (*out)->a = of;
    for (int i = 0; i < 3; i++) {
        bool colon;
        if (!sees(p, ":") && !sees(p, "]")) QKV_TRY(expression(p, part[i]));
        if (sees(p, "]")) break;
        QKV_TRY(skip(p, ":", &colon));
        if (!colon) break;
        (*out)->kind = JINJA_SLICE;
    }
    if ((*out)->kind == JINJA_INDEX && !(*out)->b) return refuse(p, "an index expected");
    return expect(p, "]");
}

static qkv_status call(parser *p, jinja_node *of, jinja_node **out) {
    QKV_TRY(new_node(p, JINJA_CALL, out));
    if (of->kind != JINJA_NAME && of->kind != JINJA_FIELD)
        return refuse(p, "only functions and methods can be called");
    (*out)->name = of->name;
    (*out)->a = of->a;
    if (of->a ? !jinja_knows_method(of->name) : !jinja_knows_function(of->name))
        return refuse(p, "the %s \"%.*s\" is not implemented", of->a ? "method" : "function",
                      (int)of->name.len, of->name.data);
    QKV_TRY(advance(p));
    return arguments(p, ")", true, &(*out)->list);
}

static qkv_status postfix(parser *p, jinja_node **out) {
    for (;;) {
        jinja_node *of = *out;
        if (sees(p, ".")) {
            QKV_TRY(advance(p));
            QKV_TRY(new_node(p, JINJA_FIELD, out));
            (*out)->a = of;
            QKV_TRY(name(p, &(*out)->name));
        } else if (sees(p, "[")) {
            QKV_TRY(advance(p));
            QKV_TRY(subscript(p, of, out));
        } else if (sees(p, "(")) {
            QKV_TRY(call(p, of, out));
        } else {
            return QKV_OK;
        }
        QKV_TRY(complete(p, *out));
    }
}

static qkv_status filter(parser *p, jinja_node **out) {
    jinja_node *of = *out;
    QKV_TRY(advance(p));
    QKV_TRY(new_node(p, JINJA_FILTER, out));
    (*out)->a = of;
    QKV_TRY(name(p, &(*out)->name));
    if (!jinja_knows_filter((*out)->name))
        return refuse(p, "the filter \"%.*s\" is not implemented", (int)(*out)->name.len,
                      (*out)->name.data);
    bool has;
    QKV_TRY(skip(p, "(", &has));
    return has ? arguments(p, ")", true, &(*out)->list) : QKV_OK;
}

/* Can the token begin the argument of a test that has no parenthesis? */
static bool begins_argument(const parser *p) {
    static const char *const not_these[] = {"else", "or", "and", "is", "if", "not", "in"};
    if (p->next.kind == T_INT || p->next.kind == T_REAL || p->next.kind == T_TEXT) return true;
    if (p->next.kind != T_NAME) return sees(p, "[") || sees(p, "{");
    for (size_t i = 0; i < sizeof not_these / sizeof *not_these; i++)
        if (sees(p, not_these[i])) return false;
    return true;
}

static qkv_status test(parser *p, jinja_node **out) {
    jinja_node *of = *out;
    QKV_TRY(advance(p));
    QKV_TRY(new_node(p, JINJA_TEST, out));
    (*out)->a = of;
    QKV_TRY(skip(p, "not", &(*out)->negated));
    QKV_TRY(name(p, &(*out)->name));
    if (!jinja_knows_test((*out)->name))
        return refuse(p, "the test \"%.*s\" is not implemented", (int)(*out)->name.len,
                      (*out)->name.data);
    if (sees(p, "(")) {
        QKV_TRY(advance(p));
        return arguments(p, ")", true, &(*out)->list);
    }
    if (!begins_argument(p)) return QKV_OK;
    QKV_TRY(primary(p, &(*out)->list));
    return postfix(p, &(*out)->list);
}

static qkv_status unary(parser *p, bool filters, jinja_node **out) {
    QKV_TRY(deeper(p));
    if (sees(p, "-") || sees(p, "+")) {
        const bool minus = sees(p, "-");
        jinja_node *of = NULL;
        QKV_TRY(advance(p));
        QKV_TRY(unary(p, false, &of));
        *out = of;
        if (minus) {
            QKV_TRY(new_node(p, JINJA_MINUS, out));
            (*out)->a = of;
            QKV_TRY(complete(p, *out));
        }
    } else {
        QKV_TRY(primary(p, out));
    }
    QKV_TRY(postfix(p, out));
    p->depth--;
    while (filters) {
        if (sees(p, "|"))
            QKV_TRY(filter(p, out));
        else if (sees(p, "is"))
            QKV_TRY(test(p, out));
        else
            break;
        QKV_TRY(complete(p, *out));
    }
    if (sees(p, "**")) return refuse(p, "the operator \"**\" is not implemented");
    return QKV_OK;
}

/* Operators that bind alike, from the loosest level on. */
static const struct {
    const char *mark;
    int level;
    jinja_kind kind;
} operators[] = {{"==", 0, JINJA_EQ},    {"!=", 0, JINJA_NE}, {"<=", 0, JINJA_LE},
                 {">=", 0, JINJA_GE},    {"<", 0, JINJA_LT},  {">", 0, JINJA_GT},
                 {"in", 0, JINJA_IN},    {"+", 1, JINJA_ADD}, {"-", 1, JINJA_SUB},
                 {"~", 2, JINJA_JOIN},   {"*", 3, JINJA_MUL}, {"/", 3, JINJA_DIV},
                 {"//", 3, JINJA_FLOOR}, {"%", 3, JINJA_MOD}};
enum { LEVELS = 4 };

static bool operator_at(const parser *p, int level, jinja_kind *kind) {
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (operators[i].level == level && sees(p, operators[i].mark))
            return *kind = operators[i].kind, true;
    return false;
}

static qkv_status binary(parser *p, int level, jinja_node **out) {
    if (level == LEVELS) return unary(p, true, out);
    QKV_TRY(binary(p, level + 1, out));
    bool compared = false;
    for (jinja_kind kind;;) {
        jinja_node *left = *out;
        if (level == 0 && sees(p, "not")) { /* only "not in" may follow a value */
            QKV_TRY(advance(p));
            if (!sees(p, "in")) return refuse(p, "\"in\" expected after \"not\"");
            kind = JINJA_NOT_IN;
        } else if (!operator_at(p, level, &kind)) {
            return QKV_OK;
        }
        if (level == 0 && compared) return refuse(p, "comparisons in a row are not implemented");
        compared = true;
        QKV_TRY(advance(p));
        QKV_TRY(new_node(p, kind, out));
        (*out)->a = left;
        QKV_TRY(binary(p, level + 1, &(*out)->b));
        QKV_TRY(complete(p, *out));
    }
}

static qkv_status negation(parser *p, jinja_node **out) {
    if (!sees(p, "not")) return binary(p, 0, out);
    QKV_TRY(deeper(p));
    QKV_TRY(advance(p));
    QKV_TRY(new_node(p, JINJA_NOT, out));
    QKV_TRY(negation(p, &(*out)->a));
    p->depth--;
    return complete(p, *out);
}

static qkv_status chain(parser *p, bool any, jinja_node **out) {
    QKV_TRY(any ? chain(p, false, out) : negation(p, out));
    while (sees(p, any ? "or" : "and")) {
        jinja_node *left = *out;
        QKV_TRY(advance(p));
        QKV_TRY(new_node(p, any ? JINJA_OR : JINJA_AND, out));
        (*out)->a = left;
        QKV_TRY(any ? chain(p, false, &(*out)->b) : negation(p, &(*out)->b));
        QKV_TRY(complete(p, *out));
    }
    return QKV_OK;
}

static qkv_status expression(parser *p, jinja_node **out) {
    QKV_TRY(deeper(p));
    QKV_TRY(chain(p, true, out));
    while (sees(p, "if")) {
        jinja_node *then = *out;
        bool otherwise;
        QKV_TRY(advance(p));
        QKV_TRY(new_node(p, JINJA_CHOOSE, out));
        (*out)->b = then;
        QKV_TRY(chain(p, true, &(*out)->a));
        QKV_TRY(skip(p, "else", &otherwise));
        if (otherwise) QKV_TRY(expression(p, &(*out)->c));
        QKV_TRY(complete(p, *out));
    }
    p->depth--;
    return QKV_OK;
}

/* ---- statements ---- */

/* The end of a tag: "%}" (or "}}"), and what it takes of the text behind. */
static qkv_status close_tag(parser *p, char mark) {
    const qkv_text t = p->next.text;
    if (p->next.kind != T_CLOSE || t.data[t.len - 2] != mark)
        return refuse(p, "the end of the tag expected before \"%.*s\"", (int)t.len,
                      t.data ? t.data : "");
    if (t.data[0] == '-')
        while (p->at < p->end && strchr(" \t\n\r\f\v", *p->at) && *p->at)
            p->line += *p->at++ == '\n';
    else if (mark == '%' && t.data[0] != '+' && p->at < p->end && *p->at == '\n')
        p->at++, p->line++;
    return QKV_OK;
}

/* The next tag begins here, or p->end. */
static const char *find_tag(const parser *p) {
    for (const char *s = p->at; s + 1 < p->end; s++)
        if (*s == '{' && (s[1] == '{' || s[1] == '%' || s[1] == '#')) return s;
    return p->end;
}

/* The text before a tag, without what the tag takes of it. */
static qkv_status text_before(parser *p, const char *tag, jinja_node ***end) {
    const char *from = p->at, *to = tag;
    const bool block = tag < p->end && tag[1] != '{', minus = tag + 2 < p->end && tag[2] == '-',
               plus = tag + 2 < p->end && tag[2] == '+';
    if (tag < p->end && minus)
        while (to > from && strchr(" \t\n\r\f\v", to[-1])) to--;
    if (block && !minus && !plus) { /* lstrip_blocks: blanks alone before it on its line */
        const char *line = to;
        while (line > from && (line[-1] == ' ' || line[-1] == '\t')) line--;
        if (line == p->start || line[-1] == '\n') to = line;
    }
    if (to > from) {
        QKV_TRY(new_node(p, JINJA_TEXT, *end));
        (**end)->literal = qkv_jinja_text(from, (size_t)(to - from));
        *end = &(**end)->next;
    }
    for (const char *s = from; s < tag; s++) p->line += *s == '\n';
    p->at = tag;
    return QKV_OK;
}

static qkv_status comment(parser *p) {
    const char *s = p->at + 2;
    while (s + 1 < p->end && (s[0] != '#' || s[1] != '}')) p->line += *s++ == '\n';
    if (s + 1 >= p->end) return refuse(p, "a comment without its end");
    p->at = s + 2;
    p->next.kind = T_CLOSE; /* what it takes of the text behind is as of a tag */
    p->next.text = s[-1] == '-' ? (qkv_text){"-%}", 3} : (qkv_text){"%}", 2};
    return close_tag(p, '%');
}

static qkv_status statements(parser *p, const char *const *until, jinja_node **out,
                             qkv_text *ended);

/* Behind the name of a tag: its end, then statements up to one of `until`. */
static qkv_status body(parser *p, const char *const *until, jinja_node **out, qkv_text *ended) {
    QKV_TRY(close_tag(p, '%'));
    return statements(p, until, out, ended);
}

static qkv_status if_tag(parser *p, jinja_node *n) {
    static const char *const until[] = {"elif", "else", "endif", NULL}, *const last[] = {"endif",
                                                                                         NULL};
    qkv_text ended;
    QKV_TRY(expression(p, &n->a));
    QKV_TRY(body(p, until, &n->list, &ended));
    while (jinja_text_is(ended, "elif")) {
        QKV_TRY(new_node(p, JINJA_IF, &n->otherwise));
        n = n->otherwise;
        n->negated = true; /* an elif, which is run in a loop */
        QKV_TRY(expression(p, &n->a));
        QKV_TRY(body(p, until, &n->list, &ended));
    }
    return jinja_text_is(ended, "else") ? body(p, last, &n->otherwise, &ended) : QKV_OK;
}

/* "a", "a, b", "space.a" */
static qkv_status targets(parser *p, bool fields, jinja_node **out) {
    bool more = true;
    while (more) {
        QKV_TRY(new_node(p, JINJA_NAME, out));
        QKV_TRY(name(p, &(*out)->name));
        bool dot = false;
        if (fields) QKV_TRY(skip(p, ".", &dot));
        if (dot) {
            jinja_node *space = *out;
            QKV_TRY(new_node(p, JINJA_FIELD, out));
            (*out)->a = space;
            QKV_TRY(name(p, &(*out)->name));
        }
        out = &(*out)->next;
        QKV_TRY(skip(p, ",", &more));
    }
    return QKV_OK;
}

static qkv_status for_tag(parser *p, jinja_node *n) {
    static const char *const until[] = {"else", "endfor", NULL}, *const last[] = {"endfor", NULL};
    qkv_text ended;
    bool condition;
    QKV_TRY(targets(p, false, &n->targets));
    QKV_TRY(expect(p, "in"));
    QKV_TRY(deeper(p));
    QKV_TRY(chain(p, true, &n->a)); /* "if" behind it is the loop's */
    p->depth--;
    QKV_TRY(skip(p, "if", &condition));
    if (condition) QKV_TRY(expression(p, &n->b));
    if (sees(p, "recursive")) return refuse(p, "\"recursive\" is not implemented");
    p->loops++;
    QKV_TRY(body(p, until, &n->list, &ended));
    p->loops--;
    return jinja_text_is(ended, "else") ? body(p, last, &n->otherwise, &ended) : QKV_OK;
}

static qkv_status set_tag(parser *p, jinja_node *n) {
    static const char *const until[] = {"endset", NULL};
    qkv_text ended;
    bool value;
    QKV_TRY(targets(p, true, &n->targets));
    QKV_TRY(skip(p, "=", &value));
    if (!value) {
        if (n->targets->next) return refuse(p, "\"=\" expected");
        return body(p, until, &n->list, &ended);
    }
    QKV_TRY(expression(p, &n->a));
    if (!sees(p, ",")) return QKV_OK;
    jinja_node *list = NULL, **end = &n->a->next; /* a, b = 1, 2 */
    for (bool more = true; more;) {
        QKV_TRY(advance(p));
        QKV_TRY(expression(p, end));
        end = &(*end)->next;
        more = sees(p, ",");
    }
    QKV_TRY(new_node(p, JINJA_LIST_OF, &list));
    list->list = n->a;
    n->a = list;
    return QKV_OK;
}

static qkv_status generation_tag(parser *p, jinja_node *n) {
    static const char *const until[] = {"endgeneration", NULL};
    qkv_text ended;
    return body(p, until, &n->list, &ended);
}

static qkv_status loop_tag(parser *p, jinja_node *n) {
    (void)n;
    return p->loops ? QKV_OK : refuse(p, "outside of a loop");
}

static const struct {
    const char *name;
    jinja_kind kind;
    qkv_status (*parse)(parser *p, jinja_node *n);
} tags[] = {{"if", JINJA_IF, if_tag},
            {"for", JINJA_FOR, for_tag},
            {"set", JINJA_SET, set_tag},
            {"break", JINJA_BREAK, loop_tag},
            {"continue", JINJA_CONTINUE, loop_tag},
            {"generation", JINJA_BLOCK, generation_tag}};

static qkv_status tag(parser *p, qkv_text word, jinja_node **out) {
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (jinja_text_is(word, tags[i].name)) {
            QKV_TRY(new_node(p, tags[i].kind, out));
            QKV_TRY(deeper(p));
            QKV_TRY(tags[i].parse(p, *out));
            p->depth--;
            return close_tag(p, '%');
        }
    return refuse(p, "the tag \"%.*s\" is not implemented", (int)word.len, word.data);
}

/* Begins a tag: its mark and sign. */
static qkv_status open_tag(parser *p) {
    p->at += 2;
    if (p->at < p->end && (*p->at == '-' || *p->at == '+')) p->at++;
    return advance(p);
}

/* Statements up to the end of the template, or (until not NULL) to a tag of one of those names, of
 * which the name is read. */
static qkv_status statements(parser *p, const char *const *until, jinja_node **out,
                             qkv_text *ended) {
    *out = NULL;
    for (;;) {
        const char *at = find_tag(p);
        QKV_TRY(text_before(p, at, &out));
        if (at == p->end)
            return until ? refuse(p, "the template ends before \"%s\"",
                                  until[1] ? until[1] : until[0])
                         : QKV_OK;
        if (at[1] == '#') {
            QKV_TRY(comment(p));
            continue;
        }
        const bool value = at[1] == '{';
        QKV_TRY(open_tag(p));
        if (value) {
            QKV_TRY(new_node(p, JINJA_WRITE, out));
            QKV_TRY(expression(p, &(*out)->a));
            QKV_TRY(close_tag(p, '}'));
        } else {
            qkv_text word;
            QKV_TRY(name(p, &word));
            for (int i = 0; until && until[i]; i++)
                if (jinja_text_is(word, until[i])) {
                    *ended = word;
                    return QKV_OK;
                }
            QKV_TRY(tag(p, word, out));
        }
        out = &(*out)->next;
    }
}

/* ---- the whole ---- */

/* A copy with \n for \r\n, without the last line end, as Jinja reads a source. */
static qkv_status copy_text(qkv_jinja *t, const char *text, size_t len, size_t *n) {
    QKV_TRY_ALLOC(t->text = qkv_alloc(len + 1));
    *n = 0;
    for (size_t i = 0; i < len; i++)
        if (text[i] != '\r' || i + 1 == len || text[i + 1] != '\n') t->text[(*n)++] = text[i];
    if (*n && t->text[*n - 1] == '\n') --*n;
    t->text[*n] = 0;
    return QKV_OK;
}

qkv_status qkv_jinja_parse(const char *text, size_t len, qkv_jinja **out) {
    *out = NULL;
    if (len > JINJA_BYTES)
        return qkv_fail(QKV_BAD_FILE, "chat template: longer than %u bytes", JINJA_BYTES);
    qkv_jinja *t = qkv_zalloc(1, sizeof *t);
    if (!t) return QKV_FAILED;
    qkv_arena_init(&t->arena);
    size_t n = 0;
    qkv_status status = copy_text(t, text, len, &n);
    if (status == QKV_OK) {
        parser p = {.arena = &t->arena, .start = t->text, .at = t->text, .line = 1};
        p.end = t->text + n;
        status = statements(&p, NULL, &t->body, NULL);
    }
    if (status != QKV_OK) {
        qkv_jinja_free(t);
        return status;
    }
    *out = t;
    return QKV_OK;
}

void qkv_jinja_free(qkv_jinja *t) {
    if (!t) return;
    qkv_arena_free(&t->arena);
    qkv_free(t->text);
    qkv_free(t);
}
