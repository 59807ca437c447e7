/* Packed sequences in the order in which a recurrent layer walks them.
 *
 * Sequences are ordered by length, longest first; then all rows of time 0 stand first, those of
 * time 1 next, and so on. So the sequences still running at time τ are a block of rows, its i-th
 * row belongs to the same sequence as the i-th row of the block before, and each time step is one
 * product over a block. */
#ifndef QKV_OPS_TIMELINE_H
#define QKV_OPS_TIMELINE_H

#include "tape/tape.h"

typedef struct qkv_timeline {
    int32_t n, steps;
    int64_t rows;
    int32_t *order; /* n: the sequence at each place */
    int32_t
        *first; /* steps + 1: first row of the block; block τ has first[τ+1] − first[τ] sequences */
    int32_t *row; /* rows: where each row of the timeline is in the packed matrix */
} qkv_timeline;

/* Makes the timeline of a checked layout, backwards in time when `reverse`; false (recorded)
 * without memory. */
bool qkv_timeline_make(qkv_tape *t, const qkv_op *op, const qkv_layout *layout, int64_t rows,
                       bool reverse, qkv_timeline *out);

static inline int32_t qkv_timeline_active(const qkv_timeline *l, int32_t step) {
    return l->first[step + 1] - l->first[step];
}

/* to[i] = from[row i], for rows of width d: from packed order to the timeline's (to is packed). */
void qkv_timeline_gather(const qkv_timeline *l, const real *from, int64_t ld, int64_t d, real *to);
/* And back; adds when `add`. */
void qkv_timeline_scatter(const qkv_timeline *l, const real *from, int64_t d, real *to, int64_t ld,
                          bool add);

/* The states (n, d) before the first step, in the timeline's order: from h0, or zeros when NULL. */
void qkv_timeline_gather_states(const qkv_timeline *l, const qkv_tensor *h0, int64_t d, real *to);
/* Adds the gradient of those states to h0's, where it wants one. */
void qkv_timeline_scatter_states(qkv_tape *t, const qkv_timeline *l, const real *from, int64_t d,
                                 qkv_tensor *h0);
/* The last row of each sequence, in the sequences' own order (n, d). */
qkv_tensor *qkv_timeline_last(qkv_tape *t, const qkv_timeline *l, const real *from, int64_t d);
/* h of the step before, for every row: `initial` (n, d) before the first. */
void qkv_timeline_shift(const qkv_timeline *l, const real *h, const real *initial, int64_t d,
                        real *to);

#endif
