/* Keys and values of what was decoded so far, so that a step computes its new rows only.
 *
 * A layer's array has a row for each token, keys | values, and every sequence a list of its rows.
 * Sequences that began alike (beam search) share the rows of their beginning, so that reordering
 * them copies lists, not keys, and a step reads what they share once; unreferenced rows are
 * recycled first. Keys and values of cross-attention are computed once; sequences that translate
 * the same source point to the same rows. */
#ifndef QKV_NN_KV_H
#define QKV_NN_KV_H

#include "tape/tape.h"

typedef struct qkv_kv {
    int32_t layers, max_n, capacity;
    int32_t most_n; /* what was allocated: sequences, and rows of a layer */
    int64_t room;
    int64_t width;         /* of keys, and of values */
    int32_t n;             /* sequences now */
    int32_t *start, *len;  /* by sequence: where its list is, and how long */
    int32_t *first;        /* by sequence, during a pass: tokens before it */
    int32_t *list;         /* (max_n, capacity): the row of each token */
    int32_t *new_list;     /* as large: while selecting */
    int32_t *users;        /* by row: sequences that reference it */
    int32_t *spare;        /* unreferenced rows, n_spare of them */
    int32_t n_spare, used; /* rows from `used` on have never been used */
    real **rows;           /* by layer: (max_n·capacity, 2·width) */
    /* Cross-attention: the encoder's output, projected. */
    real **cross;                     /* by layer: (cross_rows, 2·width) */
    int64_t cross_rows;               /* 0 before the first pass */
    int64_t *cross_room;              /* by layer: rows that were allocated */
    int32_t *cross_start, *cross_len; /* by sequence */
    /* Its weights in one layer (−1: none), by sequence; see nn/watch.h. */
    int32_t watched_layer;
    const real *watched; /* (n, watched_width) after a pass */
    int32_t watched_width;
} qkv_kv;

qkv_status qkv_kv_init(qkv_kv *kv, int32_t layers, int64_t width, int32_t max_n, int32_t capacity);
void qkv_kv_free(qkv_kv *kv);
/* Other numbers of sequences and tokens in the same allocation: pages that were used before cost
 * less than new ones. False: it is too small. */
bool qkv_kv_fit(qkv_kv *kv, int32_t max_n, int32_t capacity);
/* Forgets everything, the source too, and starts n empty sequences. */
qkv_status qkv_kv_reset(qkv_kv *kv, int32_t n);

/* Opens a pass that adds the rows of `layout` to each sequence: sets first, start and len. */
qkv_status qkv_kv_begin(qkv_kv *kv, const qkv_layout *layout);
/* Closes it without its rows: an error stopped the pass. */
void qkv_kv_undo(qkv_kv *kv);

/* Where a sequence's rows are in what qkv_kv_append returns. */
static inline qkv_layout qkv_kv_layout(const qkv_kv *kv) {
    return (qkv_layout){.n = kv->n, .start = kv->start, .len = kv->len, .rows = kv->list};
}
/* Puts the new rows of k and v in place and returns views of all that there are. */
void qkv_kv_append(qkv_tape *t, const qkv_kv *kv, int32_t layer, const qkv_layout *layout,
                   qkv_tensor **k, qkv_tensor **v);
/* Keeps one layer's keys and values of the encoder's output (rows, 2·width). */
qkv_status qkv_kv_keep_cross(qkv_kv *kv, int32_t layer, const qkv_tensor *projected);

/* Sequence s becomes a copy of what sequence from[s] was, for s < n ≤ max_n. */
void qkv_kv_select(qkv_kv *kv, const int32_t *from, int32_t n);
/* Shortens sequence s to `len` rows. */
void qkv_kv_truncate(qkv_kv *kv, int32_t s, int32_t len);

#endif
