/* One row y_s for each bag s of ids: the sum or the mean of their rows of the table, each times its
 * weight. A bag may be empty (a text without a known n-gram): its row is zero.
 *   y_s = c_s·Σ_{i in s} w_i·table[id_i],   c_s = 1 (sum) or 1/n_s (mean)
 *
 *   dtable[v] = Σ_{i: id_i = v} c_s·w_i·dy_s,   grouped by id as for the embedding */
#include "ops/ops.h"
#include "ops/expect.h"
#include "ops/scatter.h"
#include "base/thread.h"

#include <string.h>

static real factor(const qkv_bag_spec *s, int32_t bag) {
    const int32_t n = s->start[bag + 1] - s->start[bag];
    return s->mean && n ? 1 / (real)n : 1;
}

static void backward(qkv_tape *t, qkv_node *node) {
    const qkv_bag_spec *s = node->saved;
    qkv_tensor *table = node->in[0], *y = node->out[0];
    const int64_t n = s->start[s->bags];
    real *to = qkv_grad_add(t, table, s->ids, n);
    real *weights = qkv_tape_alloc(t, &qkv_op_embedding_bag, (size_t)n * sizeof *weights);
    int32_t *source = qkv_tape_alloc(t, &qkv_op_embedding_bag, (size_t)n * sizeof *source);
    if (!to || !source) return;
    for (int32_t bag = 0; bag < s->bags; bag++)
        for (int32_t i = s->start[bag]; i < s->start[bag + 1]; i++) {
            source[i] = bag;
            weights[i] = factor(s, bag) * (s->weights ? s->weights[i] : 1);
        }
    qkv_scatter sum = {
        .ids = s->ids, .n = n, .limit = table->rows, .from = qkv_grad_of(t, y), .source = source};
    sum.weights = weights, sum.scale = 1;
    sum.to = to, sum.d = y->cols, sum.ld = table->ld;
    qkv_scatter_add(t, &qkv_op_embedding_bag, &sum);
}

const qkv_op qkv_op_embedding_bag = {.name = "embedding_bag", .backward = backward};

static bool arguments_fit(qkv_tape *t, const qkv_tensor *table, const qkv_bag_spec *s) {
    const qkv_op *op = &qkv_op_embedding_bag;
    for (int32_t bag = 0; bag < s->bags; bag++)
        if (s->start[0] != 0 || s->start[bag + 1] < s->start[bag]) {
            qkv_tape_fail(
                t, op, QKV_USAGE,
                "bag %d of %d goes from id %d to %d; bags must follow each other from 0 on", bag,
                s->bags, s->start[bag], s->start[bag + 1]);
            return false;
        }
    return qkv_expect_ids(t, op, "ids", s->ids, s->bags > 0 ? s->start[s->bags] : 0, 0,
                          table->rows);
}

qkv_tensor *qkv_embedding_bag(qkv_tape *t, qkv_tensor *table, const qkv_bag_spec *spec) {
    if (qkv_tape_stopped(t) || !arguments_fit(t, table, spec)) return &t->nothing;
    qkv_tensor *y = qkv_tensor_new(t, spec->bags, table->cols);
    qkv_bag_spec *s = qkv_tape_alloc(t, &qkv_op_embedding_bag, sizeof *s);
    if (!s) return &t->nothing;
    *s = *spec;
    qkv_rows_read(table, s->ids, s->start[s->bags]);
    QKV_PARALLEL_FOR_UNEVEN
    for (int32_t bag = 0; bag < s->bags; bag++) {
        real *restrict out = y->data + bag * y->ld;
        memset(out, 0, (size_t)y->cols * sizeof *out);
        for (int32_t i = s->start[bag]; i < s->start[bag + 1]; i++) {
            const real *restrict row = table->data + s->ids[i] * table->ld;
            const real w = factor(s, bag) * (s->weights ? s->weights[i] : 1);
            for (int64_t j = 0; j < y->cols; j++) out[j] += w * row[j];
        }
    }
    return qkv_tape_record(t, &qkv_op_embedding_bag, QKV_TENSORS(table), QKV_TENSORS(y), s);
}

/* ---- cases ---- */

static qkv_tensor *build(qkv_tape *t, qkv_check *c) {
    static const int32_t ids[] = {4, 1, 4, 0, 2, 2, 4}, starts[] = {0, 3, 3, 4, 7};
    static const real weights[] = {1, (real)0.5, -1, 2, 1, 1, (real)0.25};
    const bool plain = qkv_check_variant(c);
    const qkv_bag_spec spec = {
        .ids = ids, .bags = 4, .start = starts, .mean = plain, .weights = plain ? NULL : weights};
    return qkv_embedding_bag(t, qkv_check_input(t, c, 6, 5, 0, 1), &spec);
}

const qkv_case qkv_cases_embedding_bag[] = {
    {"embedding_bag: mean", build, 1}, {"embedding_bag: weighted sum", build, 0}, {0}};
