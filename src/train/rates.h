/* The learning rate by depth, for fine-tuning: lower layers move less (layer_decay)
 * or later (unfreeze), a head that is new moves more (head_rate).
 *
 * A parameter's height is counted down from the top of its own stack: 0 for heads and last norms, 1
 * for the top layer, … and one more than there are layers for embeddings and positions. Its rate is
 * the schedule's times layer_decay^height, or 0 while the passes done so far, divided by
 * `unfreeze`, are fewer than its height. What the head alone has ("head.…", last norms are the
 * stack's) moves head_rate times as fast: it begins with nothing, the layers with what they know. */
#ifndef QKV_TRAIN_RATES_H
#define QKV_TRAIN_RATES_H

#include "train/optim.h"

typedef struct qkv_rates_spec {
    double decay, head; /* layer_decay, head_rate */
    int64_t unfreeze;   /* passes from one height to the next; 0: all are trained from the start */
} qkv_rates_spec;

typedef struct qkv_rates {
    qkv_optim *optim;
    qkv_rates_spec spec;
    int64_t *height; /* per parameter; NULL: every rate is the same */
    double *scale;   /* per parameter */
    int64_t open;    /* heights above this are frozen; −1: not set yet */
} qkv_rates;

/* On failure nothing is left to free. */
qkv_status qkv_rates_init(qkv_rates *r, qkv_optim *optim, const qkv_rates_spec *spec);
void qkv_rates_free(qkv_rates *r);

/* Sets the rates for a step of pass `epoch` (0 is the first). */
void qkv_rates_set(qkv_rates *r, int64_t epoch);

#endif
