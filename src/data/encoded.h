/* Examples as ids: what is left of a corpus once it was tokenised.
 *
 * All sequences lie one after another in one array. An example has one side (a text) or two (source
 * and target); side k of example i is sequence i·sides + k. A stream (language models over joined
 * text) is one example whose windows are cut per epoch by the batcher. */
#ifndef QKV_DATA_ENCODED_H
#define QKV_DATA_ENCODED_H

#include "base/file.h"
#include "base/column.h"

/* Where ids go that are not to be kept in memory: a file, in blocks, with a hash over them. */
enum { QKV_SPILL = 1 << 20 };
typedef struct qkv_spill {
    qkv_writer file;
    qkv_buf held; /* what is not written yet */
    uint64_t hash;
} qkv_spill;

void qkv_spill_add(qkv_spill *s, const void *data, size_t n);
void qkv_spill_flush(qkv_spill *s);

typedef struct qkv_encoded {
    int64_t n; /* examples */
    int sides; /* 1 or 2 */
    int32_t *ids;
    int64_t *start; /* n·sides + 1 */
    int32_t *label; /* n, or NULL */
    size_t ids_cap, seq_cap;
    int64_t n_seq; /* sequences added so far: n·sides when whole */
    /* Columns beside the ids, those that are kept (start.n > 0): numbers start[i] … start[i + 1] −
     * 1 of cells are those of example i, of its first side. */
    struct qkv_encoded_column {
        QKV_VEC(int32_t) cells;
        QKV_VEC(int64_t) start;
    } column[QKV_COLUMNS];
    qkv_spill *spill; /* ids are written there, and `ids` stays NULL; or NULL */
    qkv_file map; /* ids, start and label lie in this file, and nothing can be added; or zeros */
} qkv_encoded;

/* Makes it ready for sequences. */
void qkv_encoded_init(qkv_encoded *e, int sides);
void qkv_encoded_free(qkv_encoded *e);

/* Appends the next sequence; after each `sides` of them the example is whole. */
qkv_status qkv_encoded_add(qkv_encoded *e, const int32_t *ids, int64_t n);
/* Appends to the last sequence instead (or begins the first): a stream that comes in pieces. */
qkv_status qkv_encoded_extend(qkv_encoded *e, const int32_t *ids, int64_t n);
/* Gives the last whole example its label; use for all examples or for none. */
qkv_status qkv_encoded_label(qkv_encoded *e, int32_t label);

/* Gives the last whole example its n numbers of a column. Use for all examples or for none. */
qkv_status qkv_encoded_put(qkv_encoded *e, qkv_column column, const int32_t *cells, int64_t n);
/* Those of an example; none where they are not kept. They stay where they are until more are
 * added. */
static inline qkv_cells qkv_encoded_cells(const qkv_encoded *e, qkv_column column,
                                          int64_t example) {
    const struct qkv_encoded_column *c = &e->column[column];
    if (c->start.n == 0) return (qkv_cells){0};
    const int64_t *start = &c->start.at[example];
    return (qkv_cells){c->cells.at + start[0], start[1] - start[0]};
}

static inline const int32_t *qkv_encoded_ids(const qkv_encoded *e, int64_t example, int side,
                                             int64_t *n) {
    const int64_t s = example * e->sides + side;
    *n = e->start[s + 1] - e->start[s];
    return e->ids + e->start[s];
}

static inline int64_t qkv_encoded_tokens(const qkv_encoded *e) {
    return e->n_seq ? e->start[e->n_seq] : 0;
}

#endif
