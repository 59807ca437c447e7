#include "ops/timeline.h"
#include "base/thread.h"

#include <assert.h>
#include <string.h>

bool qkv_timeline_make(qkv_tape *t, const qkv_op *op, const qkv_layout *layout, int64_t rows,
                       bool reverse, qkv_timeline *out) {
    const int32_t n = layout->n;
    int32_t steps = 0;
    for (int32_t s = 0; s < n; s++)
        if (qkv_layout_len(layout, s) > steps) steps = qkv_layout_len(layout, s);
    int32_t *memory =
        qkv_tape_alloc(t, op, ((size_t)rows + (size_t)n + 2 * (size_t)steps + 3) * sizeof *memory);
    if (!memory) return false;
    qkv_timeline l = {.n = n, .steps = steps, .rows = rows, .row = memory, .order = memory + rows};
    l.first = l.order + n;

    /* place[τ]: sequences with more than τ rows: the size of block τ, and where the next sequence
     * of length τ goes. */
    int32_t *place = l.first + steps + 1;
    memset(place, 0, ((size_t)steps + 2) * sizeof *place);
    for (int32_t s = 0; s < n; s++) {
        assert(qkv_layout_len(layout, s) >= 1); /* the op has checked its layout */
        place[qkv_layout_len(layout, s) - 1]++;
    }
    for (int32_t len = steps - 1; len >= 0; len--) place[len] += place[len + 1];
    l.first[0] = 0;
    for (int32_t step = 0; step < steps; step++) l.first[step + 1] = l.first[step] + place[step];
    for (int32_t s = 0; s < n; s++) l.order[place[qkv_layout_len(layout, s)]++] = s;

    for (int32_t i = 0; i < n; i++) {
        const int32_t s = l.order[i], len = qkv_layout_len(layout, s);
        for (int32_t step = 0; step < len; step++)
            l.row[l.first[step] + i] = layout->start[s] + (reverse ? len - 1 - step : step);
    }
    *out = l;
    return true;
}

void qkv_timeline_gather(const qkv_timeline *l, const real *from, int64_t ld, int64_t d, real *to) {
    QKV_PARALLEL_FOR_IF(l->rows * d >= QKV_PARALLEL_FROM)
    for (int64_t i = 0; i < l->rows; i++)
        memcpy(to + i * d, from + l->row[i] * ld, (size_t)d * sizeof *to);
}

void qkv_timeline_scatter(const qkv_timeline *l, const real *from, int64_t d, real *to, int64_t ld,
                          bool add) {
    QKV_PARALLEL_FOR_IF(l->rows * d >= QKV_PARALLEL_FROM)
    for (int64_t i = 0; i < l->rows; i++) {
        real *row = to + l->row[i] * ld;
        if (add)
            for (int64_t j = 0; j < d; j++) row[j] += from[i * d + j];
        else
            memcpy(row, from + i * d, (size_t)d * sizeof *to);
    }
}

void qkv_timeline_gather_states(const qkv_timeline *l, const qkv_tensor *h0, int64_t d, real *to) {
    for (int32_t i = 0; i < l->n; i++)
        if (h0)
            memcpy(to + i * d, h0->data + l->order[i] * h0->ld, (size_t)d * sizeof *to);
        else
            memset(to + i * d, 0, (size_t)d * sizeof *to);
}

void qkv_timeline_scatter_states(qkv_tape *t, const qkv_timeline *l, const real *from, int64_t d,
                                 qkv_tensor *h0) {
    real *dh0 = qkv_grad_add(t, h0, NULL, 0);
    if (!dh0) return;
    for (int32_t i = 0; i < l->n; i++)
        for (int64_t j = 0; j < d; j++) dh0[l->order[i] * h0->ld + j] += from[i * d + j];
}

qkv_tensor *qkv_timeline_last(qkv_tape *t, const qkv_timeline *l, const real *from, int64_t d) {
    qkv_tensor *last = qkv_tensor_new(t, l->n, d);
    if (qkv_tape_stopped(t)) return last;
    /* The sequences of a block that are not in the next one end there. */
    for (int32_t step = 0; step < l->steps; step++) {
        const int32_t done = step + 1 < l->steps ? qkv_timeline_active(l, step + 1) : 0;
        for (int32_t i = done; i < qkv_timeline_active(l, step); i++)
            memcpy(last->data + l->order[i] * d, from + (l->first[step] + i) * d,
                   (size_t)d * sizeof *from);
    }
    return last;
}

void qkv_timeline_shift(const qkv_timeline *l, const real *h, const real *initial, int64_t d,
                        real *to) {
    memcpy(to, initial, (size_t)(l->n * d) * sizeof *to);
    for (int32_t step = 1; step < l->steps; step++)
        memcpy(to + l->first[step] * d, h + l->first[step - 1] * d,
               (size_t)(qkv_timeline_active(l, step) * d) * sizeof *to);
}
