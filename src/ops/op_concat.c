/* Columns side by side: z = [x₁ x₂ …]. Each part gets its columns of dz. Parts may be views; of one
 * part it makes a copy. */
#include "ops/ops.h"
#include "base/thread.h"

#include <string.h>

static void copy_columns(const real *from, int64_t ld_from, real *to, int64_t ld_to, int64_t rows,
                         int64_t cols) {
    QKV_PARALLEL_FOR_IF(rows * cols >= QKV_PARALLEL_FROM)
    for (int64_t i = 0; i < rows; i++)
        memcpy(to + i * ld_to, from + i * ld_from, (size_t)cols * sizeof(real));
}

static void backward(qkv_tape *t, qkv_node *node) {
    const real *dz = qkv_grad_of(t, node->out[0]);
    int64_t col = 0;
    for (int i = 0; i < QKV_NODE_INPUTS && node->in[i]; i++) {
        qkv_tensor *x = node->in[i];
        real *dx = qkv_grad_write(t, x, NULL);
        if (dx) copy_columns(dz + col, node->out[0]->ld, dx, x->ld, x->rows, x->cols);
        col += x->cols;
    }
}

const qkv_op qkv_op_concat = {.name = "concat", .backward = backward};

qkv_tensor *qkv_concat(qkv_tape *t, qkv_tensor *const *parts, size_t n) {
    if (qkv_tape_stopped(t)) return &t->nothing;
    if (n < 1 || n > QKV_NODE_INPUTS)
        return qkv_tape_fail(t, &qkv_op_concat, QKV_USAGE, "%zu parts; from 1 to %d will do", n,
                             QKV_NODE_INPUTS);
    int64_t cols = 0;
    for (size_t i = 0; i < n; i++) {
        if (parts[i]->rows != parts[0]->rows)
            return qkv_tape_fail(t, &qkv_op_concat, QKV_USAGE,
                                 "part %zu has %lld rows, part 0 has %lld", i,
                                 (long long)parts[i]->rows, (long long)parts[0]->rows);
        cols += parts[i]->cols;
    }
    qkv_tensor *z = qkv_tensor_new(t, parts[0]->rows, cols);
    if (qkv_tape_stopped(t)) return z;
    int64_t col = 0;
    for (size_t i = 0; i < n; col += parts[i++]->cols)
        copy_columns(parts[i]->data, parts[i]->ld, z->data + col, z->ld, z->rows, parts[i]->cols);
    return qkv_tape_record(t, &qkv_op_concat, parts, n, QKV_TENSORS(z), NULL);
}

/* ---- cases ---- */

static qkv_tensor *build(qkv_tape *t, qkv_check *c) {
    qkv_tensor *x = qkv_check_input(t, c, 4, 3, 0, 1), *y = qkv_check_input(t, c, 4, 5, 0, 1);
    return qkv_concat(t, QKV_TENSORS(x, qkv_tensor_columns(t, y, 1, 2), x, y));
}

static qkv_tensor *build_copy(qkv_tape *t, qkv_check *c) {
    qkv_tensor *x = qkv_check_input(t, c, 4, 6, 0, 1);
    return qkv_concat(t, QKV_TENSORS(qkv_tensor_columns(t, x, 2, 3)));
}

const qkv_case qkv_cases_concat[] = {
    {"concat", build, 0}, {"concat: copy of a view", build_copy, 0}, {0}};
