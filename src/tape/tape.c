/* The tape and its tensors: recording. gradient.c walks it backward. */
#include "tape/tape.h"
#include "base/mem.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

qkv_status qkv_tape_init(qkv_tape *t) {
    *t = (qkv_tape){.nothing = {.name = "nothing"}};
    qkv_arena_init(&t->arena);
    return QKV_OK;
}

void qkv_tape_free(qkv_tape *t) {
    qkv_arena_free(&t->arena);
    qkv_heap_free(&t->heap);
    qkv_heap_free(&t->kept);
    qkv_free(t->nodes);
    *t = (qkv_tape){0};
}

void qkv_tape_begin(qkv_tape *t, qkv_mode mode, uint64_t seed, uint64_t step) {
    qkv_arena_reset(&t->arena);
    qkv_heap_reset(&t->heap);
    qkv_heap_reset(&t->kept);
    t->mode = mode;
    t->rng = qkv_rng_derive((qkv_rng){.seed = seed}, step, 0);
    t->status = QKV_OK;
    t->n_nodes = 0;
    t->n_ops = 0;
}

qkv_status qkv_tape_status(const qkv_tape *t) {
    return t->status == QKV_OK ? QKV_OK : qkv_fail(t->status, "%s", t->error);
}

/* ---- errors ---- */

qkv_tensor *qkv_tape_fail(qkv_tape *t, const qkv_op *op, qkv_status code, const char *format, ...) {
    if (t->status != QKV_OK) return &t->nothing; /* the first error is the one to tell */
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(t->error, sizeof t->error, "%s: %s", op ? op->name : "tape", text);
    t->status = qkv_fail(code, "%s", t->error);
    return &t->nothing;
}

qkv_tensor *qkv_tape_fail_below(qkv_tape *t, const qkv_op *op) {
    return qkv_tape_fail(t, op, QKV_FAILED, "%s", qkv_error());
}

void *qkv_tape_alloc(qkv_tape *t, const qkv_op *op, size_t bytes) {
    if (qkv_tape_stopped(t)) return NULL;
    void *p = qkv_arena_alloc(&t->arena, bytes);
    if (!p) qkv_tape_fail_below(t, op);
    return p;
}

void *qkv_tape_take(qkv_tape *t, const qkv_op *op, qkv_life life, size_t bytes) {
    assert(life == QKV_LIFE_BRIEF || life == QKV_LIFE_KEPT);
    if (qkv_tape_stopped(t)) return NULL;
    void *p = qkv_heap_take(life == QKV_LIFE_KEPT ? &t->kept : &t->heap, bytes);
    if (!p) qkv_tape_fail_below(t, op);
    return p;
}

/* ---- tensors ---- */

static qkv_tensor *header(qkv_tape *t, qkv_tensor x) {
    qkv_tensor *made = qkv_tape_alloc(t, NULL, sizeof *made);
    if (!made) return &t->nothing;
    *made = x;
    return made;
}

static bool size_fits(qkv_tape *t, int64_t rows, int64_t cols) {
    size_t n, bytes;
    if (qkv_tape_stopped(t)) return false;
    if (rows >= 1 && cols >= 1 && !qkv_mul_over((size_t)rows, (size_t)cols, &n) &&
        !qkv_mul_over(n, sizeof(real), &bytes) && bytes <= INT64_MAX)
        return true;
    qkv_tape_fail(t, NULL, QKV_USAGE, "a tensor cannot be %lld×%lld", (long long)rows,
                  (long long)cols);
    return false;
}

qkv_tensor *qkv_tensor_make(qkv_tape *t, qkv_life life, int64_t rows, int64_t cols) {
    assert(life <= QKV_LIFE_KEPT);
    if (!size_fits(t, rows, cols)) return &t->nothing;
    qkv_tensor x = {.rows = rows, .cols = cols, .ld = cols, .life = life};
    const size_t bytes = (size_t)(rows * cols) * sizeof *x.data;
    x.data = qkv_has_one_reader(&x) ? qkv_tape_take(t, NULL, life, bytes)
                                    : qkv_tape_alloc(t, NULL, bytes);
    return x.data ? header(t, x) : &t->nothing;
}

void qkv_tensor_done(qkv_tensor *x) {
    if (!qkv_has_one_reader(x)) return;
    qkv_heap_give(x->data);
    x->data = NULL;
}

const real *qkv_tensor_again(qkv_tape *t, qkv_tensor *x) {
    if (qkv_tape_stopped(t) || x->data) return x->data;
    assert(x->maker && x->maker->op->remake);
    x->data = qkv_tape_take(t, x->maker->op, QKV_LIFE_BRIEF,
                            (size_t)(x->rows * x->cols) * sizeof *x->data);
    if (x->data) x->maker->op->remake(x->maker, 0, x->rows, x->data);
    return x->data;
}

const real *qkv_tensor_rows_again(const qkv_tensor *x, int64_t row0, int64_t rows, real *room) {
    assert(row0 >= 0 && rows >= 1 && row0 + rows <= x->rows);
    if (x->data) return x->data + row0 * x->ld;
    assert(x->maker && x->maker->op->remake);
    x->maker->op->remake(x->maker, row0, rows, room);
    return room;
}

qkv_tensor *qkv_tensor_wrap(qkv_tape *t, real *data, int64_t rows, int64_t cols) {
    assert(data && rows >= 1 && cols >= 1);
    return header(t, (qkv_tensor){.rows = rows,
                                  .cols = cols,
                                  .ld = cols,
                                  .data = data,
                                  .life = QKV_LIFE_BORROWED,
                                  .name = "input"});
}

/* A view of x: the tensor `view` with what it shares with x filled in; [from, to) are its columns
 * of x. */
static qkv_tensor *view_of(qkv_tape *t, qkv_tensor *x, qkv_tensor view, int64_t from, int64_t to) {
    assert(x->data); /* neither quantized nor given back */
    view.base = x->base ? x->base : x;
    view.offset = x->offset + (view.data - x->data);
    view.base_from = from;
    view.base_to = to;
    view.wants_grad = x->wants_grad;
    view.life = QKV_LIFE_BORROWED;
    view.name = x->name;
    return header(t, view);
}

qkv_tensor *qkv_tensor_columns(qkv_tape *t, qkv_tensor *x, int64_t col, int64_t cols) {
    if (qkv_tape_stopped(t)) return &t->nothing;
    if (col < 0 || cols < 1 || cols > x->cols || col > x->cols - cols)
        return qkv_tape_fail(
            t, NULL, QKV_USAGE, "columns %lld to %lld of a %lld×%lld tensor do not exist",
            (long long)col, (long long)(col + cols), (long long)x->rows, (long long)x->cols);
    qkv_tensor view = {.rows = x->rows, .cols = cols, .ld = x->ld, .data = x->data + col};
    bool whole =
        !x->base || x->base_to - x->base_from == x->cols; /* columns of columns are columns */
    int64_t from = col + (x->base ? x->base_from : 0);
    return view_of(t, x, view, whole ? from : 0, whole ? from + cols : 0);
}

qkv_tensor *qkv_tensor_rows(qkv_tape *t, qkv_tensor *x, int64_t row, int64_t rows) {
    if (qkv_tape_stopped(t)) return &t->nothing;
    if (row < 0 || rows < 1 || rows > x->rows || row > x->rows - rows)
        return qkv_tape_fail(t, NULL, QKV_USAGE,
                             "rows %lld to %lld of a %lld×%lld tensor do not exist", (long long)row,
                             (long long)(row + rows), (long long)x->rows, (long long)x->cols);
    qkv_tensor view = {.rows = rows, .cols = x->cols, .ld = x->ld, .data = x->data + row * x->ld};
    return view_of(t, x, view, 0, 0);
}

qkv_tensor *qkv_tensor_reshape(qkv_tape *t, qkv_tensor *x, int64_t rows, int64_t cols) {
    if (qkv_tape_stopped(t)) return &t->nothing;
    if (!qkv_is_packed(x) || rows < 1 || cols < 1 || x->rows * x->cols % rows ||
        x->rows * x->cols / rows != cols)
        return qkv_tape_fail(t, NULL, QKV_USAGE,
                             "a %lld×%lld tensor (row stride %lld) cannot be read as %lld×%lld",
                             (long long)x->rows, (long long)x->cols, (long long)x->ld,
                             (long long)rows, (long long)cols);
    qkv_tensor view = {.rows = rows, .cols = cols, .ld = cols, .data = x->data};
    return view_of(t, x, view, 0, x->base ? 0 : x->cols);
}

/* ---- recording ---- */

bool qkv_tape_records(const qkv_tape *t, qkv_tensor *const *in, size_t n) {
    if (t->mode == QKV_EVAL) return false;
    for (size_t i = 0; i < n; i++)
        if (in[i] && in[i]->wants_grad) return true;
    return false;
}

static bool all_finite(qkv_tape *t, const qkv_op *op, const qkv_tensor *x) {
    for (int64_t i = 0; i < x->rows; i++)
        for (int64_t j = 0; j < x->cols; j++) {
            double value = (double)x->data[i * x->ld + j];
            if (isfinite(value)) continue;
            qkv_tape_fail(
                t, op, QKV_NUMERIC,
                "output (%lld×%lld) of op %llu of the step is %f at row %lld, column %lld",
                (long long)x->rows, (long long)x->cols, (unsigned long long)t->n_ops, value,
                (long long)i, (long long)j);
            return false;
        }
    return true;
}

static bool room_for_node(qkv_tape *t) {
    if (t->n_nodes < t->cap_nodes) return true;
    size_t cap = t->cap_nodes ? 2 * t->cap_nodes : 256;
    qkv_node **grown = qkv_realloc(t->nodes, cap * sizeof *grown);
    if (!grown) return false;
    t->nodes = grown;
    t->cap_nodes = cap;
    return true;
}

qkv_tensor *qkv_tape_record(qkv_tape *t, const qkv_op *op, qkv_tensor *const *in, size_t n_in,
                            qkv_tensor *const *out, size_t n_out, void *saved) {
    if (qkv_tape_stopped(t)) return &t->nothing;
    assert(n_in >= 1 && n_out >= 1 && out[0]);
    for (size_t i = 0; i < n_out; i++) {
        assert(!out[i] || !out[i]->maker); /* the output of one op only */
        if (out[i] && !out[i]->name) out[i]->name = op->name;
        if (t->check_finite && out[i] && !all_finite(t, op, out[i])) return &t->nothing;
    }
    qkv_node made = {.op = op, .saved = saved, .index = t->n_ops++};
    if (n_in > QKV_NODE_INPUTS || n_out > QKV_NODE_OUTPUTS)
        return qkv_tape_fail(t, op, QKV_USAGE,
                             "%zu inputs and %zu outputs; a node has room for %d and %d", n_in,
                             n_out, QKV_NODE_INPUTS, QKV_NODE_OUTPUTS);
    for (size_t i = 0; i < n_in; i++) {
        assert(!in[i] || !qkv_is_void(in[i])); /* after an error nothing is recorded */
        made.in[i] = in[i];
    }
    for (size_t i = 0; i < n_out; i++) made.out[i] = out[i];
    if (t->observer) t->observer->after(t->observer->user, &made);
    if (!qkv_tape_records(t, in, n_in)) {
        assert(!qkv_has_one_reader(out[0])); /* nobody would make it again */
        return out[0];
    }
    assert(op->backward);
    qkv_node *node = qkv_tape_alloc(t, op, sizeof *node);
    if (!node) return &t->nothing;
    if (!room_for_node(t)) return qkv_tape_fail_below(t, op);
    *node = made;
    for (size_t i = 0; i < n_out; i++)
        if (out[i]) out[i]->wants_grad = true, out[i]->maker = node;
    t->nodes[t->n_nodes++] = node;
    return out[0];
}

qkv_rng qkv_tape_rng(const qkv_tape *t, uint64_t index) {
    return qkv_rng_derive(t->rng, index, 1);
}
