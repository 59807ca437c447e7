/* Synthetic text with a meaning: small tasks that need no data files, from a seed. */
#ifndef QKV_DATA_SYNTHETIC_H
#define QKV_DATA_SYNTHETIC_H

#include "base/buf.h"
#include "base/rng.h"

typedef struct qkv_synthetic {
    const char *name, *summary;
    const char *task; /* of qkv_train */
    /* Appends row `i` of the seed's rows, with its line end. */
    void (*row)(uint64_t seed, uint64_t i, qkv_buf *out);
} qkv_synthetic;

/* The row of the table named `name`; NULL: there is none. */
const qkv_synthetic *qkv_synthetic_find(const char *name);

/* Appends `rows` of the seed's rows: those to train on, or those held out.
 * No row is ever both, for any seeds. */
void qkv_synthetic_rows(const qkv_synthetic *m, uint64_t seed, size_t rows, bool held_out,
                        qkv_buf *out);

/* ---- for the generators, a file each ---- */

typedef struct qkv_dice {
    qkv_rng rng;
    uint64_t n;
} qkv_dice;

static inline uint64_t qkv_draw(qkv_dice *d, uint64_t below) {
    return qkv_rng_below(d->rng, d->n++, below);
}

#define QKV_PICK(d, list) ((list)[qkv_draw(d, sizeof(list) / sizeof *(list))])

void qkv_synthetic_review(uint64_t seed, uint64_t i, qkv_buf *out);
void qkv_synthetic_number(uint64_t seed, uint64_t i, qkv_buf *out);

#endif
