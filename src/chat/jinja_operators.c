/* Operators of templates, with Python's rules. */
#include "chat/jinja_tree.h"

#include <math.h>
#include <string.h>

static qkv_status bad_operands(const jinja_node *n, const char *mark, const qkv_jinja_value *a,
                               const qkv_jinja_value *b) {
    return jinja_fail(n, "%s %s %s", jinja_type_name(a), mark, jinja_type_name(b));
}

static qkv_status join_texts(jinja_run *r, qkv_text a, qkv_text b, qkv_jinja_value *out) {
    char *to = NULL;
    QKV_TRY(jinja_take(r, a.len + b.len + 1, &to));
    memcpy(to, a.data, a.len);
    memcpy(to + a.len, b.data, b.len);
    *out = qkv_jinja_text(to, a.len + b.len);
    return QKV_OK;
}

static bool is_number(const qkv_jinja_value *v) {
    return v->type == QKV_JINJA_INT || v->type == QKV_JINJA_REAL || v->type == QKV_JINJA_BOOL;
}
static double real_of(const qkv_jinja_value *v) {
    return v->type == QKV_JINJA_REAL  ? v->real
           : v->type == QKV_JINJA_INT ? (double)v->whole
                                      : (double)v->truth;
}
static int64_t whole_of(const qkv_jinja_value *v) {
    return v->type == QKV_JINJA_INT ? v->whole : v->truth;
}

/* Whole numbers: floors go down, and what does not fit in 64 bits is refused. */
static qkv_status whole_arithmetic(const jinja_node *n, int64_t a, int64_t b, int64_t *out) {
    bool over = false;
    if ((n->kind == JINJA_FLOOR || n->kind == JINJA_MOD) && (b == 0 || b == -1)) {
        if (b == 0) return jinja_fail(n, "division by zero");
        over = n->kind == JINJA_FLOOR && __builtin_sub_overflow((int64_t)0, a, out);
        if (n->kind == JINJA_MOD) *out = 0;
        return over ? jinja_fail(n, "a number is too large") : QKV_OK;
    }
    switch (n->kind) {
    case JINJA_ADD:
        over = __builtin_add_overflow(a, b, out);
        break;
    case JINJA_SUB:
        over = __builtin_sub_overflow(a, b, out);
        break;
    case JINJA_MUL:
        over = __builtin_mul_overflow(a, b, out);
        break;
    case JINJA_FLOOR:
        *out = a / b - (a % b != 0 && (a < 0) != (b < 0));
        break;
    default:
        *out = a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
    }
    return over ? jinja_fail(n, "a number is too large") : QKV_OK;
}

static qkv_status arithmetic(jinja_run *r, const jinja_node *n, const qkv_jinja_value *a,
                             const qkv_jinja_value *b, qkv_jinja_value *out) {
    static const char *const marks[] = {"+", "-", "*", "/", "//", "%"};
    if (n->kind == JINJA_ADD && a->type == QKV_JINJA_TEXT && b->type == QKV_JINJA_TEXT)
        return join_texts(r, a->text, b->text, out);
    if (n->kind == JINJA_ADD && a->type == QKV_JINJA_LIST && b->type == QKV_JINJA_LIST) {
        QKV_TRY(jinja_new_list(r, a->list->n + b->list->n, out));
        memcpy(out->list->at, a->list->at, a->list->n * sizeof *a->list->at);
        memcpy(out->list->at + a->list->n, b->list->at, b->list->n * sizeof *b->list->at);
        return QKV_OK;
    }
    if (!is_number(a) || !is_number(b)) return bad_operands(n, marks[n->kind - JINJA_ADD], a, b);
    if (n->kind != JINJA_DIV && a->type != QKV_JINJA_REAL && b->type != QKV_JINJA_REAL) {
        *out = (qkv_jinja_value){.type = QKV_JINJA_INT};
        return whole_arithmetic(n, whole_of(a), whole_of(b), &out->whole);
    }
    const double x = real_of(a), y = real_of(b);
    *out = (qkv_jinja_value){.type = QKV_JINJA_REAL};
    if (y == 0 && n->kind >= JINJA_DIV) return jinja_fail(n, "division by zero");
    out->real = n->kind == JINJA_ADD     ? x + y
                : n->kind == JINJA_SUB   ? x - y
                : n->kind == JINJA_MUL   ? x * y
                : n->kind == JINJA_DIV   ? x / y
                : n->kind == JINJA_FLOOR ? floor(x / y)
                                         : x - floor(x / y) * y;
    return QKV_OK;
}

static qkv_status contains(const jinja_node *n, const qkv_jinja_value *item,
                           const qkv_jinja_value *in, bool *out) {
    *out = false;
    if (in->type == QKV_JINJA_TEXT && item->type == QKV_JINJA_TEXT)
        *out = item->text.len == 0 ||
               memmem(in->text.data, in->text.len, item->text.data, item->text.len) != NULL;
    else if (in->type == QKV_JINJA_LIST)
        for (size_t i = 0; i < in->list->n && !*out; i++) *out = jinja_same(item, &in->list->at[i]);
    else if (in->type == QKV_JINJA_DICT)
        *out = item->type == QKV_JINJA_TEXT && jinja_member(in->dict, item->text);
    else if (in->type != QKV_JINJA_UNDEFINED)
        return bad_operands(n, "in", item, in);
    return QKV_OK;
}

static qkv_status compare(const jinja_node *n, const qkv_jinja_value *a, const qkv_jinja_value *b,
                          bool *out) {
    int order;
    if (is_number(a) && is_number(b)) {
        order = (real_of(a) > real_of(b)) - (real_of(a) < real_of(b));
    } else if (a->type == QKV_JINJA_TEXT && b->type == QKV_JINJA_TEXT) {
        const size_t shorter = a->text.len < b->text.len ? a->text.len : b->text.len;
        order = memcmp(a->text.data, b->text.data, shorter);
        if (!order) order = (a->text.len > b->text.len) - (a->text.len < b->text.len);
    } else {
        return bad_operands(n, "compared with", a, b);
    }
    *out = n->kind == JINJA_LT   ? order < 0
           : n->kind == JINJA_LE ? order <= 0
           : n->kind == JINJA_GT ? order > 0
                                 : order >= 0;
    return QKV_OK;
}

qkv_status jinja_binary(jinja_run *r, const jinja_node *n, qkv_jinja_value *out) {
    qkv_jinja_value a, b;
    qkv_text x = {"", 0}, y = {"", 0};
    bool truth = false;
    QKV_TRY(jinja_evaluate(r, n->a, &a));
    QKV_TRY(jinja_evaluate(r, n->b, &b));
    switch (n->kind) {
    case JINJA_JOIN:
        QKV_TRY(jinja_to_text(r, n, &a, &x));
        QKV_TRY(jinja_to_text(r, n, &b, &y));
        return join_texts(r, x, y, out);
    case JINJA_EQ:
    case JINJA_NE:
        truth = jinja_same(&a, &b) == (n->kind == JINJA_EQ);
        break;
    case JINJA_IN:
    case JINJA_NOT_IN:
        QKV_TRY(contains(n, &a, &b, &truth));
        truth = truth == (n->kind == JINJA_IN);
        break;
    case JINJA_LT:
    case JINJA_LE:
    case JINJA_GT:
    case JINJA_GE:
        QKV_TRY(compare(n, &a, &b, &truth));
        break;
    default:
        return arithmetic(r, n, &a, &b, out);
    }
    *out = qkv_jinja_truth(truth);
    return QKV_OK;
}
