/* y_r = dropout(scale·table[id_r] + position[pos_r]).
 *
 * With g = dropout(dy), the same mask, in place of dy:
 *   dtable[v] = scale·Σ_{r: id_r = v} g_r,   dposition[p] = Σ_{r: pos_r = p} g_r
 * Rows are grouped by id, so that each row of the table has one owner and a fixed order of its sum.
 * The table may be any tensor: of activations it picks rows, those that were masked for example. */
#include "ops/ops.h"
#include "ops/expect.h"
#include "ops/scatter.h"
#include "base/thread.h"

static void backward(qkv_tape *t, qkv_node *node) {
    const qkv_embedding_spec *s = node->saved;
    qkv_tensor *table = node->in[0], *position = node->in[1], *y = node->out[0];
    real *g = qkv_grad_of(t, y);
    if (s->dropout > 0)
        qkv_kern_get()->dropout(g, g, y->rows * y->cols, s->dropout, qkv_tape_rng(t, node->index),
                                0);
    qkv_scatter sum = {.from = g, .n = s->rows, .d = y->cols, .scale = s->scale};
    sum.to = qkv_grad_add(t, table, s->ids, s->rows);
    sum.ids = s->ids, sum.limit = table->rows, sum.ld = table->ld;
    if (sum.to) qkv_scatter_add(t, &qkv_op_embedding, &sum);
    sum.to = qkv_grad_add(t, position, s->pos, s->rows);
    if (!sum.to) return;
    sum.ids = s->pos, sum.limit = position->rows, sum.ld = position->ld, sum.scale = 1;
    qkv_scatter_add(t, &qkv_op_embedding, &sum);
}

const qkv_op qkv_op_embedding = {.name = "embedding", .backward = backward};

static bool arguments_fit(qkv_tape *t, const qkv_tensor *table, const qkv_embedding_spec *s) {
    const qkv_op *op = &qkv_op_embedding;
    const qkv_tensor *p = s->position;
    return qkv_expect_packed(t, op, "table", table) &&
           qkv_expect_ids(t, op, "ids", s->ids, s->rows, 0, table->rows) &&
           (!p || (qkv_expect_shape(t, op, "position", p, p->rows, table->cols) &&
                   qkv_expect_ids(t, op, "pos", s->pos, s->rows, 0, p->rows))) &&
           qkv_expect_rate(t, op, s->dropout);
}

static void add_position(qkv_tensor *y, const qkv_tensor *position, const int32_t *pos) {
    QKV_PARALLEL_FOR_IF(y->rows * y->cols >= QKV_PARALLEL_FROM)
    for (int64_t r = 0; r < y->rows; r++) {
        const real *restrict p = position->data + pos[r] * position->ld;
        real *restrict out = y->data + r * y->ld;
        for (int64_t j = 0; j < y->cols; j++) out[j] += p[j];
    }
}

qkv_tensor *qkv_embedding(qkv_tape *t, qkv_tensor *table, const qkv_embedding_spec *spec) {
    if (qkv_tape_stopped(t) || !arguments_fit(t, table, spec)) return &t->nothing;
    qkv_tensor *y = qkv_tensor_new(t, spec->rows, table->cols), *position = spec->position;
    qkv_embedding_spec *s = qkv_tape_alloc(t, &qkv_op_embedding, sizeof *s);
    if (!s) return &t->nothing;
    *s = *spec;
    if (s->scale == 0) s->scale = 1;
    if (t->mode != QKV_TRAIN) s->dropout = 0;
    const qkv_kern *kern = qkv_kern_get();
    qkv_rows_read(table, s->ids, s->rows);
    if (table->weight)
        for (int64_t r = 0; r < s->rows; r++)
            qkv_weight_row_value(table->weight, s->ids[r], s->scale, y->data + r * y->ld);
    else
        kern->gather(table->data, s->ids, s->rows, table->cols, s->scale, y->data);
    if (position) {
        qkv_rows_read(position, s->pos, s->rows);
        add_position(y, position, s->pos);
    }
    if (s->dropout > 0)
        kern->dropout(y->data, y->data, y->rows * y->cols, s->dropout,
                      qkv_tape_rng(t, qkv_tape_next_index(t)), 0);
    return qkv_tape_record(t, &qkv_op_embedding, QKV_TENSORS(table, position), QKV_TENSORS(y), s);
}

/* ---- cases ---- */

static const int32_t ids[] = {3, 0, 3, 6, 1, 3, 0}, pos[] = {0, 1, 2, 3, 0, 1, 2};

static qkv_tensor *build(qkv_tape *t, qkv_check *c) {
    qkv_embedding_spec spec = {.ids = ids, .rows = 7};
    qkv_tensor *table = qkv_check_input(t, c, 7, 5, 0, 1);
    if (qkv_check_variant(c)) {
        spec.position = qkv_check_input(t, c, 4, 5, 0, 1);
        spec.pos = pos;
        spec.scale = (real)2.5;
        spec.dropout = (real)0.3;
    }
    return qkv_embedding(t, table, &spec);
}

/* A table that is also the output projection: both gradients end in one place. */
static qkv_tensor *build_tied(qkv_tape *t, qkv_check *c) {
    qkv_tensor *table = qkv_check_input(t, c, 7, 5, 0, 1);
    qkv_tensor *x = qkv_embedding(t, table, &(qkv_embedding_spec){.ids = ids, .rows = 7});
    return qkv_linear(t, x, table, NULL, QKV_ACT_NONE);
}

const qkv_case qkv_cases_embedding[] = {{"embedding", build, 0},
                                        {"embedding: position, scale, dropout", build, 1},
                                        {"embedding: tied to a projection", build_tied, 0},
                                        {0}};
