/* Running templates. A loop has a frame for each round, in which its names live and what is set in
 * its body; what is not found there is looked for further out, and last in the context. */
#include "chat/jinja_tree.h"
#include "base/mem.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct jinja_frame {
    struct jinja_frame *outer;
    qkv_jinja_dict names;
} jinja_frame;

qkv_status jinja_fail(const jinja_node *at, const char *format, ...) {
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return qkv_fail(QKV_BAD_FILE, "chat template, line %d: %s", at->line, what);
}

qkv_status jinja_take(jinja_run *r, size_t bytes, void *out) {
    if (bytes > JINJA_RUN_BYTES - r->bytes)
        return qkv_fail(QKV_BAD_FILE, "chat template: it makes more than %u bytes",
                        JINJA_RUN_BYTES);
    r->bytes += bytes < QKV_ALIGN ? QKV_ALIGN : bytes;
    if (r->bytes > JINJA_RUN_BYTES) r->bytes = JINJA_RUN_BYTES;
    void *const p = qkv_arena_alloc(&r->arena, bytes);
    memcpy(out, &p, sizeof p);
    return p ? QKV_OK : QKV_FAILED;
}

static qkv_status step(jinja_run *r, const jinja_node *n) {
    return ++r->steps > JINJA_STEPS ? jinja_fail(n, "it runs for more than %u steps", JINJA_STEPS)
                                    : QKV_OK;
}

/* ---- names ---- */

static qkv_jinja_value look(const jinja_run *r, qkv_text name) {
    for (const jinja_frame *f = r->frame; f; f = f->outer) {
        const qkv_jinja_value *found = jinja_member(&f->names, name);
        if (found) return *found;
    }
    const qkv_jinja_value *found = jinja_member(r->context, name);
    return found ? *found : (qkv_jinja_value){0};
}

static qkv_status put(jinja_run *r, qkv_jinja_dict *d, qkv_text name, qkv_jinja_value value) {
    for (size_t i = 0; i < d->n; i++)
        if (d->at[i].key.len == name.len && !memcmp(d->at[i].key.data, name.data, name.len)) {
            d->at[i].value = value;
            return QKV_OK;
        }
    if (d->n == d->cap) {
        qkv_jinja_pair *more = NULL;
        const size_t cap = d->cap ? 2 * d->cap : 8;
        QKV_TRY(jinja_take(r, cap * sizeof *more, &more));
        if (d->n) memcpy(more, d->at, d->n * sizeof *more);
        d->at = more;
        d->cap = cap;
    }
    d->at[d->n++] = (qkv_jinja_pair){name, value};
    return QKV_OK;
}

/* ---- fields, indices, slices ---- */

static qkv_status field(const jinja_node *n, const qkv_jinja_value *of, qkv_text name,
                        qkv_jinja_value *out) {
    *out = (qkv_jinja_value){0};
    if (of->type == QKV_JINJA_UNDEFINED)
        return jinja_fail(n, "\"%.*s\" of something undefined",
                          (int)(name.len < 60 ? name.len : 60), name.data);
    if (of->type != QKV_JINJA_DICT && of->type != QKV_JINJA_SPACE) return QKV_OK;
    const qkv_jinja_value *found = jinja_member(of->dict, name);
    if (found) *out = *found;
    return QKV_OK;
}

static qkv_status index_of(jinja_run *r, const jinja_node *n, const qkv_jinja_value *of,
                           qkv_jinja_value *out) {
    qkv_jinja_value at;
    QKV_TRY(jinja_evaluate(r, n->b, &at));
    if (at.type == QKV_JINJA_TEXT) return field(n, of, at.text, out);
    *out = (qkv_jinja_value){0};
    if (of->type == QKV_JINJA_UNDEFINED) return jinja_fail(n, "an element of something undefined");
    if (at.type != QKV_JINJA_INT) return QKV_OK;
    if (of->type == QKV_JINJA_LIST) {
        const int64_t len = (int64_t)of->list->n, i = at.whole < 0 ? at.whole + len : at.whole;
        if (i >= 0 && i < len) *out = of->list->at[i];
    } else if (of->type == QKV_JINJA_TEXT) {
        return jinja_fail(n, "single characters of a text are not implemented");
    }
    return QKV_OK;
}

/* Python's: missing ends are those of the list, negative ones count from its end. */
static qkv_status bound(jinja_run *r, const jinja_node *part, int64_t len, int64_t low,
                        int64_t high, int64_t *out) {
    qkv_jinja_value v;
    if (!part) return QKV_OK;
    QKV_TRY(jinja_evaluate(r, part, &v));
    if (v.type == QKV_JINJA_NONE) return QKV_OK;
    if (v.type != QKV_JINJA_INT) return jinja_fail(part, "a slice from %s", jinja_type_name(&v));
    int64_t x = v.whole < 0 ? (v.whole < -len ? -1 : v.whole + len) : v.whole;
    *out = x < low ? low : x > high ? high : x;
    return QKV_OK;
}

static qkv_status slice(jinja_run *r, const jinja_node *n, const qkv_jinja_value *of,
                        qkv_jinja_value *out) {
    qkv_jinja_value by = {.type = QKV_JINJA_INT, .whole = 1};
    if (of->type != QKV_JINJA_LIST && of->type != QKV_JINJA_TEXT)
        return jinja_fail(n, "a slice of %s", jinja_type_name(of));
    const int64_t len = (int64_t)(of->type == QKV_JINJA_LIST ? of->list->n : of->text.len);
    if (n->d) QKV_TRY(jinja_evaluate(r, n->d, &by));
    if (by.type != QKV_JINJA_INT || (by.whole != 1 && by.whole != -1))
        return jinja_fail(n, "slices by other steps than 1 and -1 are not implemented");
    const bool back = by.whole < 0;
    int64_t from = back ? len - 1 : 0, to = back ? -1 : len;
    QKV_TRY(bound(r, n->b, len, back ? -1 : 0, back ? len - 1 : len, &from));
    QKV_TRY(bound(r, n->c, len, back ? -1 : 0, back ? len - 1 : len, &to));
    const int64_t count = back ? (from > to ? from - to : 0) : (to > from ? to - from : 0);
    if (of->type == QKV_JINJA_TEXT) { /* by bytes: right as long as they are ASCII */
        for (int64_t i = 0; i < len; i++)
            if (of->text.data[i] & 0x80 || back)
                return jinja_fail(n, "slices of such texts are not implemented");
        *out = qkv_jinja_text(of->text.data + from, (size_t)count);
        return QKV_OK;
    }
    QKV_TRY(jinja_new_list(r, (size_t)count, out));
    for (int64_t i = 0; i < count; i++) out->list->at[i] = of->list->at[back ? from - i : from + i];
    return QKV_OK;
}

/* ---- expressions ---- */

static qkv_status list_of(jinja_run *r, const jinja_node *n, qkv_jinja_value *out) {
    size_t count = 0;
    for (const jinja_node *i = n->list; i; i = i->next) count++;
    if (n->kind == JINJA_LIST_OF) {
        QKV_TRY(jinja_new_list(r, count, out));
        count = 0;
        for (const jinja_node *i = n->list; i; i = i->next)
            QKV_TRY(jinja_evaluate(r, i, &out->list->at[count++]));
        return QKV_OK;
    }
    QKV_TRY(jinja_new_dict(r, count / 2, out));
    for (const jinja_node *i = n->list; i; i = i->next->next) {
        qkv_jinja_value key, value;
        QKV_TRY(jinja_evaluate(r, i, &key));
        QKV_TRY(jinja_evaluate(r, i->next, &value));
        if (key.type != QKV_JINJA_TEXT) return jinja_fail(i, "keys that are no texts");
        QKV_TRY(put(r, out->dict, key.text, value));
    }
    return QKV_OK;
}

static qkv_status of_value(jinja_run *r, const jinja_node *n, qkv_jinja_value *out) {
    qkv_jinja_value v;
    bool truth;
    QKV_TRY(jinja_evaluate(r, n->a, &v));
    switch (n->kind) {
    case JINJA_FIELD:
        return field(n, &v, n->name, out);
    case JINJA_INDEX:
        return index_of(r, n, &v, out);
    case JINJA_SLICE:
        return slice(r, n, &v, out);
    case JINJA_CALL:
        return jinja_method(r, n, &v, out);
    case JINJA_FILTER:
        *out = v;
        return jinja_filter(r, n, out);
    case JINJA_TEST:
        QKV_TRY(jinja_test(r, n, &v, &truth));
        *out = qkv_jinja_truth(truth != n->negated);
        return QKV_OK;
    case JINJA_NOT:
        *out = qkv_jinja_truth(!jinja_is_true(&v));
        return QKV_OK;
    default: /* minus */
        if (v.type == QKV_JINJA_REAL)
            v.real = -v.real;
        else if (v.type != QKV_JINJA_INT || __builtin_sub_overflow((int64_t)0, v.whole, &v.whole))
            return jinja_fail(n, "minus %s", jinja_type_name(&v));
        *out = v;
        return QKV_OK;
    }
}

qkv_status jinja_evaluate(jinja_run *r, const jinja_node *n, qkv_jinja_value *out) {
    QKV_TRY(step(r, n));
    *out = (qkv_jinja_value){0};
    switch (n->kind) {
    case JINJA_LITERAL:
        *out = n->literal;
        return QKV_OK;
    case JINJA_NAME:
        *out = look(r, n->name);
        return QKV_OK;
    case JINJA_BLOCK: /* an argument with a name */
        return jinja_evaluate(r, n->a, out);
    case JINJA_AND:
    case JINJA_OR:
        QKV_TRY(jinja_evaluate(r, n->a, out));
        return jinja_is_true(out) == (n->kind == JINJA_OR) ? QKV_OK : jinja_evaluate(r, n->b, out);
    case JINJA_CHOOSE:
        QKV_TRY(jinja_evaluate(r, n->a, out));
        if (jinja_is_true(out)) return jinja_evaluate(r, n->b, out);
        *out = (qkv_jinja_value){0};
        return n->c ? jinja_evaluate(r, n->c, out) : QKV_OK;
    case JINJA_LIST_OF:
    case JINJA_DICT_OF:
        return list_of(r, n, out);
    case JINJA_CALL:
        return n->a ? of_value(r, n, out) : jinja_call(r, n, out);
    case JINJA_FIELD:
    case JINJA_INDEX:
    case JINJA_SLICE:
    case JINJA_FILTER:
    case JINJA_TEST:
    case JINJA_NOT:
    case JINJA_MINUS:
        return of_value(r, n, out);
    default:
        return jinja_binary(r, n, out);
    }
}

/* ---- statements ---- */

typedef enum flow { FLOW_ON, FLOW_BREAK, FLOW_CONTINUE } flow;

static qkv_status run_list(jinja_run *r, const jinja_node *n, flow *how);

static qkv_status write(jinja_run *r, const jinja_node *at, qkv_text text) {
    if (text.len > JINJA_RUN_BYTES - r->bytes)
        return jinja_fail(at, "it writes more than %u bytes", JINJA_RUN_BYTES);
    r->bytes += text.len;
    qkv_buf_add(r->out, text.data, text.len);
    return r->out->status;
}

/* Names of a list's elements: one name, or as many as each element has. */
static qkv_status bind_targets(jinja_run *r, const jinja_node *targets, qkv_jinja_value value) {
    if (!targets->next) {
        if (targets->kind == JINJA_NAME) return put(r, &r->frame->names, targets->name, value);
        qkv_jinja_value space = look(r, targets->a->name);
        if (space.type != QKV_JINJA_SPACE)
            return jinja_fail(targets, "fields of %s cannot be set: only of a namespace",
                              jinja_type_name(&space));
        return put(r, space.dict, targets->name, value);
    }
    size_t n = 0;
    for (const jinja_node *t = targets; t; t = t->next, n++)
        if (t->kind != JINJA_NAME || value.type != QKV_JINJA_LIST || n >= value.list->n)
            return jinja_fail(t, "%s is not as many values as there are names",
                              jinja_type_name(&value));
    if (n != value.list->n) return jinja_fail(targets, "more values than names");
    n = 0;
    for (const jinja_node *t = targets; t; t = t->next)
        QKV_TRY(put(r, &r->frame->names, t->name, value.list->at[n++]));
    return QKV_OK;
}

static qkv_status set(jinja_run *r, const jinja_node *n) {
    qkv_jinja_value value;
    if (n->a) {
        QKV_TRY(jinja_evaluate(r, n->a, &value));
        return bind_targets(r, n->targets, value);
    }
    qkv_buf inner = {0}, *const outer = r->out; /* a block: what it writes */
    flow how;
    r->out = &inner;
    qkv_status status = run_list(r, n->list, &how);
    r->out = outer;
    if (status == QKV_OK)
        status = jinja_copy(r, inner.data ? inner.data : "", inner.len, &value.text);
    value.type = QKV_JINJA_TEXT;
    qkv_buf_free(&inner);
    return status == QKV_OK ? bind_targets(r, n->targets, value) : status;
}

/* What a loop goes over: a list as it is, a dictionary's keys. */
static qkv_status items_of(jinja_run *r, const jinja_node *n, qkv_jinja_value *v) {
    if (v->type == QKV_JINJA_LIST) return QKV_OK;
    if (v->type == QKV_JINJA_UNDEFINED) return jinja_new_list(r, 0, v);
    if (v->type != QKV_JINJA_DICT) return jinja_fail(n, "a loop over %s", jinja_type_name(v));
    const qkv_jinja_dict *d = v->dict;
    QKV_TRY(jinja_new_list(r, d->n, v));
    for (size_t i = 0; i < d->n; i++)
        v->list->at[i] = qkv_jinja_text(d->at[i].key.data, d->at[i].key.len);
    return QKV_OK;
}

static qkv_status filter_items(jinja_run *r, const jinja_node *n, qkv_jinja_value *items) {
    qkv_jinja_value kept, truth;
    QKV_TRY(jinja_new_list(r, items->list->n, &kept));
    kept.list->n = 0;
    for (size_t i = 0; i < items->list->n; i++) {
        QKV_TRY(bind_targets(r, n->targets, items->list->at[i]));
        QKV_TRY(jinja_evaluate(r, n->b, &truth));
        if (jinja_is_true(&truth)) kept.list->at[kept.list->n++] = items->list->at[i];
    }
    *items = kept;
    return QKV_OK;
}

static qkv_status put_loop(jinja_run *r, const qkv_jinja_list *items, size_t i) {
    const int64_t at = (int64_t)i, n = (int64_t)items->n;
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{"index", at + 1},
                   {"index0", at},
                   {"revindex", n - at},
                   {"revindex0", n - at - 1},
                   {"length", n}};
    qkv_jinja_value loop;
    QKV_TRY(jinja_new_dict(r, 9, &loop));
    qkv_jinja_dict *const d = loop.dict;
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        qkv_jinja_put(&r->arena, d, numbers[k].name,
                      (qkv_jinja_value){.type = QKV_JINJA_INT, .whole = numbers[k].value});
    qkv_jinja_put(&r->arena, d, "first", qkv_jinja_truth(at == 0));
    qkv_jinja_put(&r->arena, d, "last", qkv_jinja_truth(at + 1 == n));
    if (i > 0) qkv_jinja_put(&r->arena, d, "previtem", items->at[i - 1]);
    if (i + 1 < items->n) qkv_jinja_put(&r->arena, d, "nextitem", items->at[i + 1]);
    return put(r, &r->frame->names, (qkv_text){"loop", 4}, loop);
}

static qkv_status run_for(jinja_run *r, const jinja_node *n) {
    qkv_jinja_value items;
    jinja_frame frame = {.outer = r->frame};
    QKV_TRY(jinja_evaluate(r, n->a, &items));
    QKV_TRY(items_of(r, n, &items));
    flow how = FLOW_ON;
    r->frame = &frame;
    qkv_status status = n->b ? filter_items(r, n, &items) : QKV_OK;
    for (size_t i = 0; status == QKV_OK && i < items.list->n && how != FLOW_BREAK; i++) {
        frame.names.n = 0;
        how = FLOW_ON;
        status = step(r, n);
        if (status == QKV_OK) status = bind_targets(r, n->targets, items.list->at[i]);
        if (status == QKV_OK) status = put_loop(r, items.list, i);
        if (status == QKV_OK) status = run_list(r, n->list, &how);
    }
    r->frame = frame.outer;
    if (status == QKV_OK && items.list->n == 0) status = run_list(r, n->otherwise, &how);
    return status;
}

static qkv_status run_one(jinja_run *r, const jinja_node *n, flow *how) {
    qkv_jinja_value v;
    qkv_text text = {"", 0};
    switch (n->kind) {
    case JINJA_TEXT:
        return write(r, n, n->literal.text);
    case JINJA_WRITE:
        QKV_TRY(jinja_evaluate(r, n->a, &v));
        QKV_TRY(jinja_to_text(r, n, &v, &text));
        return write(r, n, text);
    case JINJA_SET:
        return set(r, n);
    case JINJA_FOR:
        return run_for(r, n);
    case JINJA_IF:
        for (;; n = n->otherwise) {
            QKV_TRY(jinja_evaluate(r, n->a, &v));
            if (jinja_is_true(&v)) return run_list(r, n->list, how);
            if (!n->otherwise || !n->otherwise->negated) return run_list(r, n->otherwise, how);
        }
    case JINJA_BREAK:
    case JINJA_CONTINUE:
        *how = n->kind == JINJA_BREAK ? FLOW_BREAK : FLOW_CONTINUE;
        return QKV_OK;
    default:
        return run_list(r, n->list, how);
    }
}

static qkv_status run_list(jinja_run *r, const jinja_node *n, flow *how) {
    *how = FLOW_ON;
    for (; n && *how == FLOW_ON; n = n->next) {
        QKV_TRY(step(r, n));
        QKV_TRY(run_one(r, n, how));
    }
    return QKV_OK;
}

qkv_status qkv_jinja_run(const qkv_jinja *t, const qkv_jinja_dict *context, qkv_buf *out) {
    jinja_frame top = {0};
    jinja_run r = {.context = context, .frame = &top, .out = out};
    flow how;
    qkv_arena_init(&r.arena);
    const qkv_status status = run_list(&r, t->body, &how);
    qkv_arena_free(&r.arena);
    return status;
}
