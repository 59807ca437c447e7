/* The gradient of a lookup: many rows are added to few, without two threads ever meeting at one. */
#ifndef QKV_OPS_SCATTER_H
#define QKV_OPS_SCATTER_H

#include "tape/tape.h"

typedef struct qkv_scatter {
    const int32_t *ids;    /* n: which row of `to` gets something */
    int64_t n, limit;      /* ids are in [0, limit) */
    const real *from;      /* (…, d) packed */
    const int32_t *source; /* n: which row of `from` it gets; NULL: row i */
    const real *weights;   /* n: times this; NULL: 1 */
    real scale;            /* times this */
    real *to;              /* (limit, d), row stride ld */
    int64_t d, ld;
} qkv_scatter;

/* to[ids[i]] += scale·weights[i]·from[source[i]], i in order for each row of `to`; false (recorded)
 * without memory. */
bool qkv_scatter_add(qkv_tape *t, const qkv_op *op, const qkv_scatter *s);

#endif
