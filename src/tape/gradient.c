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

#include <math.h>
#include <string.h>

static qkv_tensor *owner(qkv_tensor *x) {
    return x->base ? x->base : x;
}

static real *place_in(qkv_tensor *base, const qkv_tensor *x) {
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

real *qkv_grad(qkv_tape *t, qkv_tensor *x, bool *add) {
    if (qkv_tape_stopped(t) || !x || !x->wants_grad) return NULL;
    qkv_tensor *base = owner(x);
    *add = true;
    if (base->is_param)
        touch_all(base);
    else if (!ensure_grad(t, base))
        return NULL;
    else
        *add = claim(base, x->base ? x->base_from : 0, x->base ? x->base_to : x->cols);
    return place_in(base, x);
}

static real *zeroed(qkv_tape *t, qkv_tensor *x) {
    qkv_tensor *base = owner(x);
    if (base->is_param) return place_in(base, x);
    if (!ensure_grad(t, base)) return NULL;
    complete(base);
    return place_in(base, x);
}

real *qkv_grad_add(qkv_tape *t, qkv_tensor *x) {
    if (qkv_tape_stopped(t) || !x || !x->wants_grad) return NULL;
    if (owner(x)->is_param) touch_all(owner(x));
    return zeroed(t, x);
}

real *qkv_grad_add_rows(qkv_tape *t, qkv_tensor *x, const int32_t *ids, int64_t n) {
    if (!x || !x->touched) return qkv_grad_add(t, x);
    if (qkv_tape_stopped(t) || !x->wants_grad) return NULL;
    qkv_rows_touch(x->touched, ids, n);
    return zeroed(t, x);
}

/* True when some of x's gradient has been written. */
static bool arrived(qkv_tensor *x) {
    return x && owner(x)->grad && owner(x)->grad_from < owner(x)->grad_to;
}

real *qkv_grad_of(qkv_tape *t, qkv_tensor *out) {
    if (qkv_tape_stopped(t) || !arrived(out)) return NULL;
    qkv_tensor *base = owner(out);
    int64_t from = out->base ? out->base_from : 0, to = out->base ? out->base_to : out->cols;
    if (from == to || from < base->grad_from || to > base->grad_to) complete(base);
    return place_in(base, out);
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

real *qkv_grad_write(qkv_tape *t, qkv_tensor *x) {
    bool add;
    real *g = qkv_grad(t, x, &add);
    return g && add ? qkv_tape_alloc(t, NULL, (size_t)(x->rows * x->ld) * sizeof(real)) : g;
}

void qkv_grad_written(qkv_tape *t, qkv_tensor *x, const real *written) {
    if (!written || qkv_tape_stopped(t)) return;
    real *g = place_in(owner(x), x);
    if (written != g) put(written, x->ld, g, x, true);
}

void qkv_grad_copy(qkv_tape *t, qkv_tensor *out, qkv_tensor *x) {
    bool add;
    const real *from = qkv_grad_of(t, out);
    real *to = from ? qkv_grad(t, x, &add) : NULL;
    if (to) put(from, out->ld, to, x, add);
}

void qkv_grad_over_data(qkv_tensor *x) {
    if (!x->brief || !x->wants_grad || x->grad || !x->data) return;
    x->grad = x->data;
    x->grad_from = x->grad_to = 0;
    x->data = NULL;
}

bool qkv_grad_may_pass(const qkv_tensor *out, const qkv_tensor *x) {
    return x && x->wants_grad && !out->base && !x->base && !x->is_param && !x->grad &&
           x->ld == out->ld;
}

void qkv_grad_pass(qkv_tape *t, qkv_tensor *out, qkv_tensor *x) {
    if (!x || !x->wants_grad || !qkv_grad_of(t, out)) return;
    if (!qkv_grad_may_pass(out, x)) {
        qkv_grad_copy(t, out, x);
        return;
    }
    x->grad = out->grad;
    x->grad_from = 0, x->grad_to = x->cols;
    out->grad = NULL;
}

void qkv_rows_touch(qkv_rows *rows, const int32_t *ids, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (!rows->seen[ids[i]]) {
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
    node->op->backward(t, node);
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
            if (x && owner(x)->grad && !owner(x)->is_param) complete(owner(x));
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
        real *g = qkv_grad_add(t, loss);
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
