/* Expressions of templates by recursive descent, as Jinja's grammar has them: or, and, not,
 * comparisons, + −, ~, * / // %, unary, and closest the postfixes, filters and tests. */
#include "chat/jinja_parser.h"

#include <string.h>

static qkv_status unary(jinja_parser *p, bool filters, jinja_node **out);

/* Expressions up to a closing mark; in calls "name=" may stand before them. */
static qkv_status arguments(jinja_parser *p, const char *close, bool named, jinja_node **list) {
    bool done;
    jinja_node *last = NULL;
    QKV_TRY(jinja_skip(p, close, &done));
    while (!done) {
        jinja_node *arg = NULL;
        QKV_TRY(jinja_expression(p, &arg));
        if (named && arg->kind == JINJA_NAME && jinja_sees(p, "=")) {
            const qkv_text before = arg->name;
            QKV_TRY(jinja_advance(p));
            QKV_TRY(jinja_expression(p, &arg));
            jinja_node *wrapped = NULL; /* an operand may have a name of its own */
            QKV_TRY(jinja_new_node(p, JINJA_BLOCK, &wrapped));
            wrapped->a = arg;
            wrapped->name = before;
            QKV_TRY(jinja_complete(p, wrapped));
            arg = wrapped;
        }
        if (last)
            last->next = arg;
        else
            *list = arg;
        last = arg;
        bool comma;
        QKV_TRY(jinja_skip(p, ",", &comma));
        if (comma)
            QKV_TRY(jinja_skip(p, close, &done));
        else {
            QKV_TRY(jinja_expect(p, close));
            done = true;
        }
    }
    return QKV_OK;
}

static qkv_status dictionary(jinja_parser *p, jinja_node *n) {
    bool done;
    jinja_node **end = &n->list;
    QKV_TRY(jinja_skip(p, "}", &done));
    while (!done) {
        QKV_TRY(jinja_expression(p, end));
        QKV_TRY(jinja_expect(p, ":"));
        end = &(*end)->next;
        QKV_TRY(jinja_expression(p, end));
        end = &(*end)->next;
        bool comma;
        QKV_TRY(jinja_skip(p, ",", &comma));
        if (comma)
            QKV_TRY(jinja_skip(p, "}", &done));
        else {
            QKV_TRY(jinja_expect(p, "}"));
            done = true;
        }
    }
    return QKV_OK;
}

static qkv_status literal(jinja_parser *p, qkv_jinja_value v, jinja_node **out) {
    QKV_TRY(jinja_new_node(p, JINJA_LITERAL, out));
    (*out)->literal = v;
    return jinja_advance(p);
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
static qkv_status text_literal(jinja_parser *p, jinja_node **out) {
    QKV_TRY(literal(p, qkv_jinja_text(p->next.text.data, p->next.text.len), out));
    while (p->next.kind == T_TEXT) {
        qkv_text *const t = &(*out)->literal.text, more = p->next.text;
        char *both = qkv_arena_alloc(p->arena, t->len + more.len + 1);
        if (!both) return QKV_FAILED;
        memcpy(both, t->data, t->len);
        memcpy(both + t->len, more.data, more.len);
        *t = (qkv_text){both, t->len + more.len};
        QKV_TRY(jinja_advance(p));
    }
    return QKV_OK;
}

static qkv_status parenthesis(jinja_parser *p, jinja_node **out) {
    jinja_node *list = NULL;
    QKV_TRY(jinja_advance(p));
    QKV_TRY(jinja_expression(p, out));
    if (jinja_sees(p, ",")) { /* a tuple is a list here */
        QKV_TRY(jinja_advance(p));
        QKV_TRY(arguments(p, ")", false, &list));
        jinja_node *first = *out;
        first->next = list;
        QKV_TRY(jinja_new_node(p, JINJA_LIST_OF, out));
        (*out)->list = first;
        return jinja_complete(p, *out);
    }
    return jinja_expect(p, ")");
}

static qkv_status primary(jinja_parser *p, jinja_node **out) {
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
        QKV_TRY(jinja_new_node(p, JINJA_NAME, out));
        return jinja_read_name(p, &(*out)->name);
    default:
        break;
    }
    if (jinja_sees(p, "(")) return parenthesis(p, out);
    if (jinja_sees(p, "[")) {
        QKV_TRY(jinja_new_node(p, JINJA_LIST_OF, out));
        QKV_TRY(jinja_advance(p));
        QKV_TRY(arguments(p, "]", false, &(*out)->list));
        return jinja_complete(p, *out);
    }
    if (jinja_sees(p, "{")) {
        QKV_TRY(jinja_new_node(p, JINJA_DICT_OF, out));
        QKV_TRY(jinja_advance(p));
        QKV_TRY(dictionary(p, *out));
        return jinja_complete(p, *out);
    }
    return jinja_refuse(p, "a value expected before \"%.*s\"", (int)p->next.text.len,
                        p->next.text.data ? p->next.text.data : "");
}

/* a[…]: an index or a slice. */
static qkv_status subscript(jinja_parser *p, jinja_node *of, jinja_node **out) {
    QKV_TRY(jinja_new_node(p, JINJA_INDEX, out));
    jinja_node **const part[] = {&(*out)->b, &(*out)->c, &(*out)->d};
    (*out)->a = of;
    for (int i = 0; i < 3; i++) {
        bool colon;
        if (!jinja_sees(p, ":") && !jinja_sees(p, "]")) QKV_TRY(jinja_expression(p, part[i]));
        if (jinja_sees(p, "]")) break;
        QKV_TRY(jinja_skip(p, ":", &colon));
        if (!colon) break;
        (*out)->kind = JINJA_SLICE;
    }
    if ((*out)->kind == JINJA_INDEX && !(*out)->b) return jinja_refuse(p, "an index expected");
    return jinja_expect(p, "]");
}

static qkv_status call(jinja_parser *p, jinja_node *of, jinja_node **out) {
    QKV_TRY(jinja_new_node(p, JINJA_CALL, out));
    if (of->kind != JINJA_NAME && of->kind != JINJA_FIELD)
        return jinja_refuse(p, "only functions and methods can be called");
    (*out)->name = of->name;
    (*out)->a = of->a;
    if (of->a ? !jinja_knows_method(of->name) : !jinja_knows_function(of->name))
        return jinja_refuse(p, "the %s \"%.*s\" is not implemented", of->a ? "method" : "function",
                            (int)of->name.len, of->name.data);
    QKV_TRY(jinja_advance(p));
    return arguments(p, ")", true, &(*out)->list);
}

static qkv_status postfix(jinja_parser *p, jinja_node **out) {
    for (;;) {
        jinja_node *of = *out;
        if (jinja_sees(p, ".")) {
            QKV_TRY(jinja_advance(p));
            QKV_TRY(jinja_new_node(p, JINJA_FIELD, out));
            (*out)->a = of;
            QKV_TRY(jinja_read_name(p, &(*out)->name));
        } else if (jinja_sees(p, "[")) {
            QKV_TRY(jinja_advance(p));
            QKV_TRY(subscript(p, of, out));
        } else if (jinja_sees(p, "(")) {
            QKV_TRY(call(p, of, out));
        } else {
            return QKV_OK;
        }
        QKV_TRY(jinja_complete(p, *out));
    }
}

static qkv_status filter(jinja_parser *p, jinja_node **out) {
    jinja_node *of = *out;
    QKV_TRY(jinja_advance(p));
    QKV_TRY(jinja_new_node(p, JINJA_FILTER, out));
    (*out)->a = of;
    QKV_TRY(jinja_read_name(p, &(*out)->name));
    if (!jinja_knows_filter((*out)->name))
        return jinja_refuse(p, "the filter \"%.*s\" is not implemented", (int)(*out)->name.len,
                            (*out)->name.data);
    bool has;
    QKV_TRY(jinja_skip(p, "(", &has));
    return has ? arguments(p, ")", true, &(*out)->list) : QKV_OK;
}

/* Can the token begin the argument of a test that has no parenthesis? */
static bool begins_argument(const jinja_parser *p) {
    static const char *const not_these[] = {"else", "or", "and", "is", "if", "not", "in"};
    if (p->next.kind == T_INT || p->next.kind == T_REAL || p->next.kind == T_TEXT) return true;
    if (p->next.kind != T_NAME) return jinja_sees(p, "[") || jinja_sees(p, "{");
    for (size_t i = 0; i < sizeof not_these / sizeof *not_these; i++)
        if (jinja_sees(p, not_these[i])) return false;
    return true;
}

static qkv_status test(jinja_parser *p, jinja_node **out) {
    jinja_node *of = *out;
    QKV_TRY(jinja_advance(p));
    QKV_TRY(jinja_new_node(p, JINJA_TEST, out));
    (*out)->a = of;
    QKV_TRY(jinja_skip(p, "not", &(*out)->negated));
    QKV_TRY(jinja_read_name(p, &(*out)->name));
    if (!jinja_knows_test((*out)->name))
        return jinja_refuse(p, "the test \"%.*s\" is not implemented", (int)(*out)->name.len,
                            (*out)->name.data);
    if (jinja_sees(p, "(")) {
        QKV_TRY(jinja_advance(p));
        return arguments(p, ")", true, &(*out)->list);
    }
    if (!begins_argument(p)) return QKV_OK;
    QKV_TRY(primary(p, &(*out)->list));
    return postfix(p, &(*out)->list);
}

static qkv_status unary(jinja_parser *p, bool filters, jinja_node **out) {
    QKV_TRY(jinja_deeper(p));
    if (jinja_sees(p, "-") || jinja_sees(p, "+")) {
        const bool minus = jinja_sees(p, "-");
        jinja_node *of = NULL;
        QKV_TRY(jinja_advance(p));
        QKV_TRY(unary(p, false, &of));
        *out = of;
        if (minus) {
            QKV_TRY(jinja_new_node(p, JINJA_MINUS, out));
            (*out)->a = of;
            QKV_TRY(jinja_complete(p, *out));
        }
    } else {
        QKV_TRY(primary(p, out));
    }
    QKV_TRY(postfix(p, out));
    p->depth--;
    while (filters) {
        if (jinja_sees(p, "|"))
            QKV_TRY(filter(p, out));
        else if (jinja_sees(p, "is"))
            QKV_TRY(test(p, out));
        else
            break;
        QKV_TRY(jinja_complete(p, *out));
    }
    if (jinja_sees(p, "**")) return jinja_refuse(p, "the operator \"**\" is not implemented");
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

static bool operator_at(const jinja_parser *p, int level, jinja_kind *kind) {
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (operators[i].level == level && jinja_sees(p, operators[i].mark))
            return *kind = operators[i].kind, true;
    return false;
}

static qkv_status binary(jinja_parser *p, int level, jinja_node **out) {
    if (level == LEVELS) return unary(p, true, out);
    QKV_TRY(binary(p, level + 1, out));
    bool compared = false;
    for (jinja_kind kind;;) {
        jinja_node *left = *out;
        if (level == 0 && jinja_sees(p, "not")) { /* only "not in" may follow a value */
            QKV_TRY(jinja_advance(p));
            if (!jinja_sees(p, "in")) return jinja_refuse(p, "\"in\" expected after \"not\"");
            kind = JINJA_NOT_IN;
        } else if (!operator_at(p, level, &kind)) {
            return QKV_OK;
        }
        if (level == 0 && compared)
            return jinja_refuse(p, "comparisons in a row are not implemented");
        compared = true;
        QKV_TRY(jinja_advance(p));
        QKV_TRY(jinja_new_node(p, kind, out));
        (*out)->a = left;
        QKV_TRY(binary(p, level + 1, &(*out)->b));
        QKV_TRY(jinja_complete(p, *out));
    }
}

static qkv_status negation(jinja_parser *p, jinja_node **out) {
    if (!jinja_sees(p, "not")) return binary(p, 0, out);
    QKV_TRY(jinja_deeper(p));
    QKV_TRY(jinja_advance(p));
    QKV_TRY(jinja_new_node(p, JINJA_NOT, out));
    QKV_TRY(negation(p, &(*out)->a));
    p->depth--;
    return jinja_complete(p, *out);
}

static qkv_status chain(jinja_parser *p, bool any, jinja_node **out) {
    QKV_TRY(any ? chain(p, false, out) : negation(p, out));
    while (jinja_sees(p, any ? "or" : "and")) {
        jinja_node *left = *out;
        QKV_TRY(jinja_advance(p));
        QKV_TRY(jinja_new_node(p, any ? JINJA_OR : JINJA_AND, out));
        (*out)->a = left;
        QKV_TRY(any ? chain(p, false, &(*out)->b) : negation(p, &(*out)->b));
        QKV_TRY(jinja_complete(p, *out));
    }
    return QKV_OK;
}

qkv_status jinja_expression(jinja_parser *p, jinja_node **out) {
    QKV_TRY(jinja_deeper(p));
    QKV_TRY(chain(p, true, out));
    while (jinja_sees(p, "if")) {
        jinja_node *then = *out;
        bool otherwise;
        QKV_TRY(jinja_advance(p));
        QKV_TRY(jinja_new_node(p, JINJA_CHOOSE, out));
        (*out)->b = then;
        QKV_TRY(chain(p, true, &(*out)->a));
        QKV_TRY(jinja_skip(p, "else", &otherwise));
        if (otherwise) QKV_TRY(jinja_expression(p, &(*out)->c));
        QKV_TRY(jinja_complete(p, *out));
    }
    p->depth--;
    return QKV_OK;
}

qkv_status jinja_condition(jinja_parser *p, jinja_node **out) {
    return chain(p, true, out);
}
