#include "ops/expect.h"

#define LL(x) ((long long)(x))

bool qkv_expect_packed(qkv_tape *t, const qkv_op *op, const char *what, const qkv_tensor *x) {
    if (qkv_is_packed(x)) return true;
    qkv_tape_fail(t, op, QKV_USAGE,
                  "%s (%lld×%lld) is a view with a row stride of %lld; copy it first (qkv_concat "
                  "of one part does)",
                  what, LL(x->rows), LL(x->cols), LL(x->ld));
    return false;
}

bool qkv_expect_shape(qkv_tape *t, const qkv_op *op, const char *what, const qkv_tensor *x,
                      int64_t rows, int64_t cols) {
    if (x->rows == rows && x->cols == cols) return true;
    qkv_tape_fail(t, op, QKV_USAGE, "%s is %lld×%lld; the other arguments ask for %lld×%lld", what,
                  LL(x->rows), LL(x->cols), LL(rows), LL(cols));
    return false;
}

bool qkv_expect_same_shape(qkv_tape *t, const qkv_op *op, const qkv_tensor *x,
                           const qkv_tensor *y) {
    if (x->rows == y->rows && x->cols == y->cols) return true;
    qkv_tape_fail(t, op, QKV_USAGE, "shapes differ: %lld×%lld and %lld×%lld", LL(x->rows),
                  LL(x->cols), LL(y->rows), LL(y->cols));
    return false;
}

bool qkv_expect_ids(qkv_tape *t, const qkv_op *op, const char *what, const int32_t *ids, int64_t n,
                    int64_t low, int64_t limit) {
    for (int64_t i = 0; i < n; i++)
        if (ids[i] < low || ids[i] >= limit) {
            qkv_tape_fail(t, op, QKV_USAGE,
                          "%s[%lld] is %d; it must be at least %lld and below %lld", what, LL(i),
                          ids[i], LL(low), LL(limit));
            return false;
        }
    return true;
}

bool qkv_expect_layout(qkv_tape *t, const qkv_op *op, const char *what, const qkv_layout *l,
                       int64_t rows, bool packed) {
    if (l->n < 1) {
        qkv_tape_fail(t, op, QKV_USAGE, "%s has no sequences", what);
        return false;
    }
    if (packed && l->len) {
        qkv_tape_fail(t, op, QKV_USAGE,
                      "%s has gaps between its sequences; this op needs them packed", what);
        return false;
    }
    int64_t expected = 0; /* where a packed sequence must start */
    for (int32_t s = 0; s < l->n; s++) {
        const int64_t start = l->start[s], len = qkv_layout_len(l, s);
        if (len < 1 || start < 0 || (!l->rows && start > rows - len) ||
            (!l->len && start != expected)) {
            qkv_tape_fail(t, op, QKV_USAGE,
                          "%s: sequence %d of %d starts at row %lld and has %lld rows; sequences "
                          "must not be empty%s, and "
                          "there are %lld rows",
                          what, s, l->n, LL(start), LL(len),
                          l->len ? "" : ", must follow each other", LL(rows));
            return false;
        }
        for (int64_t j = 0; l->rows && j < len; j++)
            if (l->rows[start + j] < 0 || l->rows[start + j] >= rows) {
                qkv_tape_fail(t, op, QKV_USAGE, "%s: row %lld of sequence %d is row %d of %lld",
                              what, LL(j), s, l->rows[start + j], LL(rows));
                return false;
            }
        expected = start + len;
    }
    if (!l->len && expected != rows) {
        qkv_tape_fail(t, op, QKV_USAGE, "%s covers %lld rows of %lld", what, LL(expected),
                      LL(rows));
        return false;
    }
    return true;
}

bool qkv_expect_rate(qkv_tape *t, const qkv_op *op, real p) {
    if (p >= 0 && p < 1) return true;
    qkv_tape_fail(t, op, QKV_USAGE, "a dropout rate of %g; it must be at least 0 and below 1",
                  (double)p);
    return false;
}
