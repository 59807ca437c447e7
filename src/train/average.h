/* Averages of the weights over the course of a training.
 *
 * The training goes on with its own weights; what is validated, kept as the best and handed out is
 * the average: the moving average that the optimiser keeps (`ema`), or the mean of the weights at
 * the last validations (`average`). Either is flatter ground than the last step,
 * and costs nothing in use. */
#ifndef QKV_TRAIN_AVERAGE_H
#define QKV_TRAIN_AVERAGE_H

#include "train/optim.h"

/* The weights as they were at one validation. */
typedef struct qkv_snapshot {
    int64_t step;
    real *values;
    bool stored; /* the checkpoint that `last` names has it */
} qkv_snapshot;

typedef struct qkv_average {
    qkv_optim *optim;
    qkv_snapshot *kept; /* oldest first; room for `most` */
    int64_t n, most;    /* most 0: no mean is kept */
    real *mean;         /* scratch: the mean, or, while that is in place, the training's weights */
    bool in_place;      /* the model's weights are the average now */
} qkv_average;

/* Keeps the last `most` snapshots (0 or 1: none); with none the moving average, if the optimiser
 * has one, is what is put in place. On failure nothing is left to free. */
qkv_status qkv_average_init(qkv_average *a, qkv_optim *optim, int64_t most);
void qkv_average_free(qkv_average *a);

/* Takes a snapshot of step `step`, dropping the oldest;
 * of a step that is the newest already, none. */
void qkv_average_take(qkv_average *a, int64_t step);
/* Room for a snapshot that is read from a checkpoint: to be called oldest first. */
qkv_snapshot *qkv_average_append(qkv_average *a, int64_t step);

/* Puts the average in the place of the weights, and back. Between the two nothing may train or be
 * saved. Without any average both do nothing. Tables must be settled. */
void qkv_average_enter(qkv_average *a);
void qkv_average_leave(qkv_average *a);

#endif
