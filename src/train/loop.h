/* The training loop: steps, validation, checkpoints, resuming; no files but those of the run folder.
 *
 * Everything a step does is a function of (settings, data, step number), and a checkpoint holds all that
 * changes: stopped and resumed at any step, a run ends with the same bits as one never stopped. */
#ifndef QKV_TRAIN_LOOP_H
#define QKV_TRAIN_LOOP_H

#include "base/settings.h"
#include "train/average.h"
#include "train/schedule.h"
#include "train/step.h"

typedef struct qkv_train_config {
#include "base/settings_fields.h"
#include "train/train.def"
#include "base/settings_end.h"
} qkv_train_config;

/* The table over `config`. */
qkv_settings qkv_train_settings(qkv_train_config *config);

typedef struct qkv_loop {
    /* set by the caller */
    qkv_train_config config;
    qkv_model *model; /* allocated for training and initialised */
    qkv_task_spec task;
    const qkv_encoded *train;
    const qkv_encoded *valid; /* NULL: no validation */
    const char *run;          /* folder of the run; NULL: nothing is written */
    bool (*progress)(void *user, const qkv_progress *p); /* NULL: silent; false asks to stop */
    void *user;

    /* what a checkpoint holds, beside weights and moments */
    int64_t step;  /* steps done, skipped ones included */
    int64_t steps; /* the budget in steps, once known */
    int64_t skipped, skipped_in_a_row;
    int64_t best_step, stale; /* best validation so far; validations since */
    double best;
    bool pending; /* the step ended a stretch, but was not validated yet */

    /* the loop's own */
    qkv_stepper stepper;
    qkv_average average;
    qkv_batcher train_batches, valid_batches;
    qkv_schedule schedule;
    qkv_step_result recent; /* since the last report */
    double recent_seconds, started, valid_loss, valid_right;
    int64_t epoch, batch; /* where the next step begins */
    int64_t saved;        /* the step of the last checkpoint */
    bool timed;           /* `steps` is still to be found from `minutes` */
} qkv_loop;

/* Makes ready; resumes from the run folder's last checkpoint if there is one. Settings that were left to us are chosen
 * here and can be read in loop->config afterwards. On failure nothing is left to free. */
qkv_status qkv_loop_init(qkv_loop *l);
void qkv_loop_free(qkv_loop *l);

/* Trains to the end of the budget, to the end of patience, or until progress says stop: then QKV_INTERRUPTED, after saving. */
qkv_status qkv_loop_run(qkv_loop *l);

/* Loss, share of right answers over `valid_batches`' data, of the weights that are in place. */
qkv_status qkv_loop_validate(qkv_loop *l, qkv_step_result *sum);

/* ---- between the files of the loop ---- */

/* Writes a checkpoint of this moment. */
qkv_status qkv_loop_save(qkv_loop *l, bool best);
/* Puts the checkpoint `which` ("last", "best") in place; *found false when there is none. */
qkv_status qkv_loop_restore(qkv_loop *l, const char *which, bool *found);
/* Puts the weights that are to be handed out in place: those of the best validation, averaged if so set. Ends the training. */
qkv_status qkv_loop_conclude(qkv_loop *l);
/* Tells the caller; QKV_INTERRUPTED when it wants to stop. */
qkv_status qkv_loop_tell(qkv_loop *l, qkv_progress *p);

#endif
