/* One row y for each sequence of n rows x_r:
 *   mean           y = (1/n) Σ x_r       dx_r = dy/n
 *   max            y_j = max_r x_rj      dx_rj = dy_j in the first row that has the largest, else 0
 *   first, last    y = that row          dx_r = dy in that row, else 0 */
#include "ops/ops.h"
#include "ops/expect.h"
#include "base/thread.h"

#include <string.h>

typedef struct saved {
    qkv_pool_kind kind;
    qkv_layout layout;
    int32_t *at; /* max: (n, D) row of the largest, within its sequence */
} saved;

/* ---- one sequence: n rows of x with stride ld, d columns ---- */

static void pool_one(qkv_pool_kind kind, const real *x, int64_t ld, int64_t n, int64_t d, real *y,
                     int32_t *at) {
    memcpy(y, kind == QKV_POOL_LAST ? x + (n - 1) * ld : x, (size_t)d * sizeof *y);
    if (kind == QKV_POOL_MEAN) {
        for (int64_t r = 1; r < n; r++)
            for (int64_t j = 0; j < d; j++) y[j] += x[r * ld + j];
        for (int64_t j = 0; j < d; j++) y[j] /= (real)n;
    } else if (kind == QKV_POOL_MAX) {
        memset(at, 0, (size_t)d * sizeof *at);
        for (int64_t r = 1; r < n; r++)
            for (int64_t j = 0; j < d; j++)
                if (x[r * ld + j] > y[j]) y[j] = x[r * ld + j], at[j] = (int32_t)r;
    }
}

static void spread_one(qkv_pool_kind kind, const real *dy, int64_t n, int64_t d, const int32_t *at,
                       real *dx, int64_t ld) {
    for (int64_t r = 0; r < n; r++) {
        real *row = dx + r * ld;
        const bool chosen = r == (kind == QKV_POOL_LAST ? n - 1 : 0);
        for (int64_t j = 0; j < d; j++)
            row[j] = kind == QKV_POOL_MEAN  ? dy[j] / (real)n
                     : kind == QKV_POOL_MAX ? (at[j] == r ? dy[j] : 0)
                                            : (chosen ? dy[j] : 0);
    }
}

/* ---- the op ---- */

static void backward(qkv_tape *t, qkv_node *node) {
    const saved *s = node->saved;
    qkv_tensor *x = node->in[0], *y = node->out[0];
    const real *dy = qkv_grad_of(t, y);
    real *dx = qkv_grad_write(t, x, NULL);
    if (!dx) return;
    QKV_PARALLEL_FOR_UNEVEN
    for (int32_t q = 0; q < s->layout.n; q++)
        spread_one(s->kind, dy + q * y->cols, qkv_layout_len(&s->layout, q), x->cols,
                   s->at ? s->at + q * y->cols : NULL, dx + s->layout.start[q] * x->ld, x->ld);
}

const qkv_op qkv_op_pool = {.name = "pool", .backward = backward};

qkv_tensor *qkv_pool(qkv_tape *t, qkv_tensor *x, qkv_layout layout, qkv_pool_kind kind) {
    if (qkv_tape_stopped(t) ||
        !qkv_expect_layout(t, &qkv_op_pool, "layout", &layout, x->rows, true))
        return &t->nothing;
    qkv_tensor *y = qkv_tensor_new(t, layout.n, x->cols);
    saved *s = qkv_tape_alloc(t, &qkv_op_pool, sizeof *s);
    if (!s) return &t->nothing;
    *s = (saved){.kind = kind, .layout = layout};
    if (kind == QKV_POOL_MAX)
        s->at = qkv_tape_alloc(t, &qkv_op_pool, (size_t)(y->rows * y->cols) * sizeof *s->at);
    if (qkv_tape_stopped(t)) return &t->nothing;
    QKV_PARALLEL_FOR_UNEVEN
    for (int32_t q = 0; q < layout.n; q++)
        pool_one(kind, x->data + layout.start[q] * x->ld, x->ld, qkv_layout_len(&layout, q),
                 x->cols, y->data + q * y->cols, s->at ? s->at + q * y->cols : NULL);
    return qkv_tape_record(t, &qkv_op_pool, QKV_TENSORS(x), QKV_TENSORS(y), s);
}

/* ---- cases ---- */

static const int32_t starts[] = {0, 3, 4, 9};

static qkv_tensor *build(qkv_tape *t, qkv_check *c) {
    qkv_tensor *x = qkv_check_input(t, c, 9, 5, 0, 1);
    return qkv_pool(t, x, (qkv_layout){.n = 3, .start = starts},
                    (qkv_pool_kind)qkv_check_variant(c));
}

/* A view, used twice. */
static qkv_tensor *build_view(qkv_tape *t, qkv_check *c) {
    qkv_tensor *x = qkv_tensor_columns(t, qkv_check_input(t, c, 9, 5, 0, 1), 1, 3);
    const qkv_layout layout = {.n = 3, .start = starts};
    return qkv_mul(t, qkv_pool(t, x, layout, QKV_POOL_MAX), qkv_pool(t, x, layout, QKV_POOL_MEAN));
}

const qkv_case qkv_cases_pool[] = {
    {"pool: mean", build, QKV_POOL_MEAN},   {"pool: max", build, QKV_POOL_MAX},
    {"pool: first", build, QKV_POOL_FIRST}, {"pool: last", build, QKV_POOL_LAST},
    {"pool: a view twice", build_view, 0},  {0}};
