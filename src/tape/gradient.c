/* Backward: a reverse scan of the tape, and where gradients live.
 *
 * A gradient is taken from the heap by the first consumer that writes to it and given back once its
 * producer's backward has run, so that backward needs little more memory than the activations.
 *
 * Views share their base's gradient. The q, k and v of attention are usually three ranges of
 * columns of one product; to let each be written without zeroing the whole first, a tensor knows
 * which one range of columns [grad_from, grad_to) holds sums already. A write beside that range
 * extends it; a write inside adds; anything else zeroes the rest first. */
#include "tape/tape.h"
#include "base/thread.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static qkv_tensor *owner(qkv_tensor *x) {
    return x->base ? x->base : x;
}

static real *place_in(qkv_tensor *base, const qkv_tensor *x) {
    assert(base->grad && x->ld > 0); /* of a parameter: the store was allocated with gradients */
    assert(x->offset >= 0 && x->offset + (x->rows - 1) * x->ld + x->cols <= base->rows * base->ld);
    return base->grad + x->offset;
}

static void zero_columns(qkv_tensor *x, int64_t from, int64_t to) {
    if (from >= to) return;
    QKV_PARALLEL_FOR_IF(x->rows * (to - from) >= QKV_PARALLEL_FROM)
    for (int64_t i = 0; i < x->rows; i++)
        memset(x->grad + i * x->ld + from, 0, (size_t)(to - from) * sizeof(real));
}

/* Zeroes the columns that hold nothing yet. */
static void complete(qkv_tensor *x) {
    if (x->grad_from == x->grad_to) x->grad_from = x->grad_to = 0;
    zero_columns(x, 0, x->grad_from);
    zero_columns(x, x->grad_to, x->cols);
    x->grad_from = 0;
    x->grad_to = x->cols;
}

/* Notes that columns [from, to) are about to be written; true when they hold a sum that must be
 * added to. */
static bool claim(qkv_tensor *x, int64_t from, int64_t to) {
    assert(0 <= from && from <= to && to <= x->cols);
    if (from < to && x->grad_from == x->grad_to) {
        x->grad_from = from, x->grad_to = to;
        return false;
    }
    if (from < to && to == x->grad_from) {
        x->grad_from = from;
        return false;
    }
    if (from < to && from == x->grad_to) {
        x->grad_to = to;
        return false;
    }
    if (from == to || from < x->grad_from || to > x->grad_to) complete(x);
    return true;
}

static bool ensure_grad(qkv_tape *t, qkv_tensor *x) {
    if (x->grad) return true;
    x->grad = qkv_heap_take(&t->heap, (size_t)(x->rows * x->ld) * sizeof(real));
    x->grad_from = x->grad_to = 0;
    if (!x->grad) qkv_tape_fail_below(t, NULL);
    return x->grad != NULL;
}

static void touch_all(qkv_tensor *param) {
    qkv_rows *rows = param->touched;
    if (!rows || rows->n == param->rows) return;
    for (int32_t i = 0; i < param->rows; i++) qkv_rows_touch(rows, &i, 1);
}

static bool wanted(const qkv_tape *t, const qkv_tensor *x) {
    return !qkv_tape_stopped(t) && x && x->wants_grad;
}

/* True when some of x's gradient has been written. */
static bool arrived(qkv_tensor *x) {
    return x && owner(x)->grad && owner(x)->grad_from < owner(x)->grad_to;
}

real *qkv_grad_of(qkv_tape *t, qkv_tensor *out) {
    if (qkv_tape_stopped(t) || !arrived(out)) return NULL;
    assert(owner(out)->life != QKV_LIFE_PARAM); /* parameters are inputs */
    qkv_tensor *base = owner(out);
    int64_t from = out->base ? out->base_from : 0, to = out->base ? out->base_to : out->cols;
    if (from == to || from < base->grad_from || to > base->grad_to) complete(base);
    return place_in(base, out);
}

real *qkv_grad_add(qkv_tape *t, qkv_tensor *x, const int32_t *ids, int64_t n) {
    if (!wanted(t, x)) return NULL;
    qkv_tensor *base = owner(x);
    for (int64_t i = 0; ids && i < n; i++) assert(ids[i] < x->rows);
    if (ids && x->touched)
        qkv_rows_touch(x->touched, ids, n);
    else if (base->life == QKV_LIFE_PARAM)
        touch_all(base);
    if (base->life == QKV_LIFE_PARAM) return place_in(base, x);
    if (!ensure_grad(t, base)) return NULL;
    complete(base);
    return place_in(base, x);
}

/* May x's gradient, which does not exist yet, take the memory of out's? */
static bool can_take(const qkv_tensor *x, const qkv_tensor *out) {
    return !out->base && !x->base && x->life != QKV_LIFE_PARAM && !x->grad && x->ld == out->ld &&
           x->rows == out->rows;
}

static void take_over(qkv_tensor *x, qkv_tensor *out) {
    x->grad = out->grad;
    out->grad = NULL;
}

/* The same as qkv_grad_write, for an op that adds by itself when *add says so. */
static real *write_or_add(qkv_tape *t, qkv_tensor *x, bool *add) {
    qkv_tensor *base = owner(x);
    const qkv_node *node = t->running;
    *add = true;
    if (base->life == QKV_LIFE_PARAM) {
        touch_all(base);
        return place_in(base, x);
    }
    if (node && node->op->over_output && x == node->in[0] && can_take(x, node->out[0])) {
        take_over(x, node->out[0]);
        x->grad_from = x->grad_to = 0;
    }
    if (!ensure_grad(t, base)) return NULL;
    *add = claim(base, x->base ? x->base_from : 0, x->base ? x->base_to : x->cols);
    return place_in(base, x);
}

real *qkv_grad_write(qkv_tape *t, qkv_tensor *x, bool *add) {
    bool there;
    if (!wanted(t, x)) return NULL;
    real *g = write_or_add(t, x, add ? add : &there);
    if (add || !g || !there) return g;
    assert(t->running && t->n_beside < QKV_NODE_INPUTS);
    real *beside = qkv_tape_alloc(t, t->running->op, (size_t)(x->rows * x->ld) * sizeof(real));
    if (beside) t->beside[t->n_beside++] = (qkv_beside){x, beside};
    return beside;
}

/* to (+)= from, both rows×cols of their tensors. */
static void put(const real *from, int64_t ld_from, real *to, const qkv_tensor *x, bool add) {
    QKV_PARALLEL_FOR_IF(x->rows * x->cols >= QKV_PARALLEL_FROM)
    for (int64_t i = 0; i < x->rows; i++) {
        const real *g = from + i * ld_from;
        real *sum = to + i * x->ld;
        if (add)
            for (int64_t j = 0; j < x->cols; j++) sum[j] += g[j];
        else
            memcpy(sum, g, (size_t)x->cols * sizeof(real));
    }
}

/* Adds what the running op has written beside gradients that were there before. */
static void add_beside(qkv_tape *t) {
    for (int i = 0; i < t->n_beside && !qkv_tape_stopped(t); i++) {
        qkv_tensor *x = t->beside[i].x;
        put(t->beside[i].written, x->ld, place_in(owner(x), x), x, true);
    }
    t->n_beside = 0;
}

static void copy_gradient(qkv_tape *t, qkv_tensor *out, qkv_tensor *x) {
    bool add;
    const real *from = qkv_grad_of(t, out);
    real *to = write_or_add(t, x, &add);
    if (from && to) put(from, out->ld, to, x, add);
}

void qkv_grad_pass(qkv_tape *t, qkv_tensor *out, qkv_tensor *const *in, size_t n) {
    add_beside(t);
    if (!qkv_grad_of(t, out)) return;
    for (size_t i = 0; i < n; i++) {
        qkv_tensor *x = in[i];
        if (!wanted(t, x)) continue;
        assert(x->rows == out->rows && x->cols == out->cols);
        if (i + 1 == n && can_take(x, out)) {
            take_over(x, out);
            x->grad_from = 0, x->grad_to = x->cols;
        } else {
            copy_gradient(t, out, x);
        }
    }
}

void qkv_tensor_spend(qkv_tensor *x) {
    if (!qkv_has_one_reader(x) || !x->wants_grad || x->grad || !x->data) return;
    x->grad = x->data;
    x->grad_from = x->grad_to = 0;
    x->data = NULL;
}

void qkv_rows_touch(qkv_rows *rows, const int32_t *ids, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        assert(ids[i] >= 0);
        if (rows->seen[ids[i]]) continue;
        rows->seen[ids[i]] = 1;
        rows->list[rows->n++] = ids[i];
    }
}

void qkv_rows_read(const qkv_tensor *x, const int32_t *ids, int64_t n) {
    const qkv_tensor *table = x->base ? x->base : x;
    if (!table->touched || !table->touched->before_read) return;
    if (ids) {
        table->touched->before_read(table->touched->keeper, ids, n);
        return;
    }
    int32_t run[256], filled = 0;
    for (int32_t i = 0; i < table->rows; i++) {
        run[filled++] = i;
        if (filled < 256 && i + 1 < table->rows) continue;
        table->touched->before_read(table->touched->keeper, run, filled);
        filled = 0;
    }
}

/* ---- the walk ---- */

static void check_gradients(qkv_tape *t, const qkv_node *node) {
    for (int k = 0; k < QKV_NODE_INPUTS; k++) {
        qkv_tensor *x = node->in[k];
        if (!x || !x->wants_grad || !owner(x)->grad) continue;
        const real *g = place_in(owner(x), x);
        for (int64_t i = 0; i < x->rows; i++)
            for (int64_t j = 0; j < x->cols; j++)
                if (!isfinite((double)g[i * x->ld + j])) {
                    qkv_tape_fail(
                        t, node->op, QKV_NUMERIC,
                        "the gradient of input %d, %s (%lld×%lld), is %f at row %lld, column %lld",
                        k, x->name ? x->name : "?", (long long)x->rows, (long long)x->cols,
                        (double)g[i * x->ld + j], (long long)i, (long long)j);
                    return;
                }
    }
}

static void run_node(qkv_tape *t, qkv_node *node) {
    if (!arrived(node->out[0]) && !arrived(node->out[1])) return;
    qkv_arena_mark mark = qkv_arena_here(&t->arena);
    t->running = node;
    node->op->backward(t, node);
    add_beside(t);
    t->running = NULL;
    if (t->check_finite && !qkv_tape_stopped(t)) check_gradients(t, node);
    qkv_arena_rewind(&t->arena, mark);
    for (int i = 0; i < QKV_NODE_OUTPUTS; i++) {
        qkv_tensor *y = node->out[i];
        if (!y || y->base) continue;
        qkv_heap_give(y->grad);
        y->grad = NULL;
    }
}

/* An op whose gradients are made already cannot take another upstream gradient than 1, nor be left
 * out. */
static bool check_roots(qkv_tape *t) {
    for (size_t i = 0; i < t->n_nodes; i++) {
        const qkv_node *node = t->nodes[i];
        if (node->op->root && (!node->out[0]->grad || node->out[0]->grad[0] != 1)) {
            qkv_tape_fail(t, node->op, QKV_USAGE,
                          "must be one of the losses of backward, once; weigh it by its scale");
            return false;
        }
    }
    return true;
}

/* What still has a gradient now is a leaf; the columns that nothing reached are zero. */
static void complete_leaves(qkv_tape *t) {
    for (size_t i = 0; i < t->n_nodes; i++)
        for (int k = 0; k < QKV_NODE_INPUTS; k++) {
            qkv_tensor *x = t->nodes[i]->in[k];
            if (x && owner(x)->grad && owner(x)->life != QKV_LIFE_PARAM) complete(owner(x));
        }
}

qkv_status qkv_tape_backward(qkv_tape *t, qkv_tensor *const *losses, size_t n) {
    for (size_t i = 0; i < n && !qkv_tape_stopped(t); i++) {
        qkv_tensor *loss = losses[i];
        if (loss->rows != 1 || loss->cols != 1)
            qkv_tape_fail(t, NULL, QKV_USAGE, "a loss must be 1×1; loss %zu is %lld×%lld", i,
                          (long long)loss->rows, (long long)loss->cols);
        else if (!loss->wants_grad)
            qkv_tape_fail(t, NULL, QKV_USAGE, "loss %zu depends on nothing that wants a gradient",
                          i);
        real *g = qkv_grad_add(t, loss, NULL, 0);
        if (g) g[0] += 1;
    }
    if (!qkv_tape_stopped(t) && check_roots(t))
        for (size_t i = t->n_nodes; i-- > 0 && !qkv_tape_stopped(t);) {
            run_node(t, t->nodes[i]);
            if (t->after_node) t->after_node(t->after_user, i);
        }
    complete_leaves(t);
    return qkv_tape_status(t);
}
