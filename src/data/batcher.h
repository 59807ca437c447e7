/* Batches: which examples are trained on together, in which order.
 *
 * A pure function of (seed, epoch): resuming means knowing epoch and batch number. Each epoch is a
 * keyed permutation of the examples, cut so that no batch exceeds the token budget (but for a
 * single example that is larger by itself). Nothing is padded, so examples of any lengths may stand
 * together; with `pool` > 1 examples of like length are grouped, within pools of that many batches,
 * whose order is then shuffled again: steadier work per batch, at the price of less mixing. */
#ifndef QKV_DATA_BATCHER_H
#define QKV_DATA_BATCHER_H

#include "data/encoded.h"

typedef struct qkv_batcher {
    const qkv_encoded *data;
    int64_t budget; /* tokens, all sides */
    int64_t
        window;   /* > 0: the data is a stream, cut into windows of this many tokens and one more */
    int64_t pool; /* batches whose examples are sorted by length together; 0 or 1: no grouping */
    uint64_t seed;
    bool shuffle; /* false: in order (evaluation) */

    int64_t epoch;      /* of the plan below; −1: none yet */
    int64_t n_examples; /* of this epoch (windows, when the data is a stream) */
    int64_t shift;      /* of this epoch's first window */
    int64_t *order;     /* the examples, batch after batch */
    int64_t *cut;       /* batch b is order[cut[b]] … order[cut[b + 1] − 1] */
    int64_t n_batches;
    int64_t *swap; /* scratch for sorting and shuffling */
} qkv_batcher;

/* What varies is set by the caller in `b` (the first group of fields); takes all memory it will
 * need. */
qkv_status qkv_batcher_init(qkv_batcher *b);
void qkv_batcher_free(qkv_batcher *b);

/* Plans an epoch (does nothing if it is planned already). */
void qkv_batcher_plan(qkv_batcher *b, int64_t epoch);

/* The examples of batch `i` of the planned epoch. */
const int64_t *qkv_batcher_get(const qkv_batcher *b, int64_t i, int64_t *n);

/* Tokens of an example, all sides (a window's length where the data is a stream). */
int64_t qkv_batcher_tokens(const qkv_batcher *b, int64_t example);

/* Side `side` of an example (or window) of the planned epoch; a window has window + 1 ids, and
 * the last one of an evaluation what is left. */
const int32_t *qkv_batcher_ids(const qkv_batcher *b, int64_t example, int side, int64_t *n);

#endif
