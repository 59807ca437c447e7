/* One step of training: forward and backward over one or more batches, then one update. */
#ifndef QKV_TRAIN_STEP_H
#define QKV_TRAIN_STEP_H

#include "task/task.h"
#include "train/optim.h"

/* What a step works with; owned by the caller. */
typedef struct qkv_stepper {
    qkv_model *model;
    qkv_tape tape;
    qkv_optim optim;
    qkv_task_spec task;
    uint64_t seed; /* of dropout and masks */
    bool last;     /* the next batch is this rank's last of the step: gradients travel once made */
} qkv_stepper;

/* Tape and optimiser for a model that is allocated for training. On failure nothing is left to
 * free. */
qkv_status qkv_stepper_init(qkv_stepper *s, qkv_model *model, const qkv_optim_spec *optim,
                            const qkv_task_spec *task, int precision, uint64_t seed);
void qkv_stepper_free(qkv_stepper *s);

typedef struct qkv_step_result {
    double loss; /* Σ over targets */
    int64_t n_targets, n_right, tokens, sequences;
    double macs; /* multiply-adds of the forward pass: the useful work */
} qkv_step_result;

/* Adds the gradients of one batch (batch `i` of the planned epoch) to the store; `key` makes its
 * random numbers. The part of it that is rank `part` of `parts`' share: its examples are dealt out
 * in order, by their tokens. */
qkv_status qkv_stepper_accumulate_part(qkv_stepper *s, const qkv_batcher *b, int64_t i, int part,
                                       int parts, uint64_t key, qkv_step_result *sum);
/* All of it. */
qkv_status qkv_stepper_accumulate(qkv_stepper *s, const qkv_batcher *b, int64_t i, uint64_t key,
                                  qkv_step_result *sum);

/* Updates from what was accumulated: the mean over all its targets. */
qkv_status qkv_stepper_update(qkv_stepper *s, qkv_update *u, const qkv_step_result *sum);

/* Runs one batch without gradients, adding to *sum. */
qkv_status qkv_stepper_evaluate(qkv_stepper *s, const qkv_batcher *b, int64_t i,
                                qkv_step_result *sum);

#endif
