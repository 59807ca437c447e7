/* The training loop: steps, validation, checkpoints, resuming;
 * no files but those of the run folder.
 *
 * Everything a step does is a function of (settings, data, step number), and a checkpoint holds all
 * that changes: stopped and resumed at any step, a run ends with the same bits as one
 * never stopped. */
#ifndef QKV_TRAIN_LOOP_H
#define QKV_TRAIN_LOOP_H

#include "base/settings.h"
#include "data/tokenise.h"
#include "policy/recipe.h"
#include "train/average.h"
#include "train/crew.h"
#include "train/rates.h"
#include "train/schedule.h"
#include "train/step.h"

typedef enum qkv_documents { QKV_DOCUMENTS_JOINED, QKV_DOCUMENTS_APART } qkv_documents;

typedef struct qkv_train_config {
#include "base/settings_fields.h"
#include "train/train.def"
#include "base/settings_end.h"
} qkv_train_config;

/* The table over `config`. */
qkv_settings qkv_train_settings(qkv_train_config *config);

/* The numbers that change from step to step. A field is one row of the table in resume.c, which
 * writes and reads it. */
typedef struct qkv_loop_state {
    int64_t step;  /* steps done, skipped ones included */
    int64_t from;  /* the step at which the schedule began: a run that was finished went on there */
    int64_t steps; /* the budget in steps, once known */
    int64_t skipped, skipped_in_a_row;
    int64_t best_step, stale; /* best validation so far; validations since the last that counted */
    double best, best_right;  /* its score, the higher the better; its share of right answers;
                                 −∞ before the first */
    double mark;  /* the score that a validation must be above, by `margin`, to count as better */
    double usual; /* running mean of the gradient's squared norm */
    double cpu_before;     /* processor seconds of earlier processes */
    double seconds_before; /* wall clock, likewise */
    double fit_seconds;    /* that fitting the companions took at the beginning */
    bool timed;            /* `steps` is still to be found from `minutes`: see pace.c */
    bool pending;          /* the step ended a stretch, but was not validated yet */
} qkv_loop_state;

/* Seconds that things take, in this process; 0: not known yet. See pace.c. */
typedef struct qkv_pace {
    double step, validation, save;
    double sum; /* of the last n steps */
    int64_t n;
    bool warm;          /* the first step, which makes the memory, is over */
    bool said;          /* how long it all takes */
    int64_t told_steps; /* the number that a person knows of, once it was corrected */
} qkv_pace;

typedef struct qkv_loop {
    /* set by the caller */
    qkv_train_config config;
    qkv_model *model; /* allocated for training and initialised */
    qkv_task_spec task;
    const qkv_encoded *train;
    const int64_t
        *train_rows; /* the row of the data (from 1) that each example was made of; NULL: unknown */
    const qkv_encoded *valid; /* NULL: no validation */
    bool goes_on;             /* the weights are those of another training */
    const qkv_tuning *tuning; /* … of another program: how such are fine-tuned; or NULL */
    /* where a run ended whose weights are in place, and from where it goes on with a new schedule;
     * NULL: it does not, and is resumed from its last checkpoint if there is one */
    const qkv_loop_state *after;
    bool valid_held_out; /* it is a part of the training data that was set aside */
    const char *run;     /* folder of the run; NULL: nothing is written */
    bool (*progress)(void *user, const qkv_progress *p); /* NULL: silent; false asks to stop */
    void *user;
    double peak; /* GFLOP/s that this machine could do; 0: unknown */
    /* when the run began in this process, in processor seconds and by the clock; 0: when the loop
     * was made */
    double cpu_start, clock_start;
    bool closing; /* a wish to stop comes too late */

    qkv_loop_state state; /* what a checkpoint holds, beside weights and moments */

    /* the loop's own */
    qkv_stepper stepper;
    qkv_average average;
    qkv_rates rates;
    qkv_crew crew;
    real *class_weights;
    double margin; /* share of the score that counts as better */
    double alone;  /* held-out loss of companions without the network; 0: unknown */
    qkv_batcher train_batches, valid_batches;
    qkv_batcher
        known_batches; /* the training data in its own order, of which validations see some */
    qkv_schedule schedule;
    qkv_step_result recent; /* since the last validation */
    double step_loss;       /* of the last step */
    double recent_seconds, started, valid_loss, valid_right;
    qkv_pace pace;
    int64_t started_at;   /* the step at which this process began */
    int64_t epoch, batch; /* where the next step begins */
    int64_t saved;        /* the step of the last checkpoint */
} qkv_loop;

/* Makes ready; resumes from the run folder's last checkpoint if there is one. Settings that were
 * left to us are chosen here and can be read in loop->config afterwards.
 * On failure nothing is left to free. */
qkv_status qkv_loop_init(qkv_loop *l);
void qkv_loop_free(qkv_loop *l);

/* Trains to the end of the budget, to the end of patience, or until progress says stop: then
 * QKV_INTERRUPTED, after saving. */
qkv_status qkv_loop_run(qkv_loop *l);

/* Loss and right answers over planned batches, of the weights that are in place. */
qkv_status qkv_loop_measure(qkv_loop *l, const qkv_batcher *b, qkv_step_result *sum);

/* Puts the weights that are to be handed out in place: those of the best validation so far,
 * averaged if so set, and the companions weighed for them; `whole`: fitted to all rows, too, those
 * held out included. After that there are no more steps. */
qkv_status qkv_loop_conclude(qkv_loop *l, bool whole);

/* Processor seconds, and seconds by the clock, of the run so far, those before resuming included. */
double qkv_loop_cpu(const qkv_loop *l);
double qkv_loop_seconds(const qkv_loop *l);

/* ---- between the files of the loop ---- */

/* Finds `steps` from `minutes` before the first step; leaves weights and moments as they were. */
qkv_status qkv_loop_find_steps(qkv_loop *l);
/* Once more after a step, where the run would end far from its minutes. */
qkv_status qkv_loop_correct(qkv_loop *l);
/* Seconds from now to the end of the run, if that comes after `steps`. */
double qkv_loop_left(const qkv_loop *l, int64_t steps);
/* A step took so long. */
void qkv_loop_count_step(qkv_loop *l, double seconds);
/* Says how long the run takes, once that is known. */
qkv_status qkv_loop_say_time(qkv_loop *l);
void qkv_loop_set_schedule(qkv_loop *l);

/* Moves `epoch` and `batch` to where step `step` begins. */
void qkv_loop_find_place(qkv_loop *l);
/* The number of the next batch, of the planned pass; plans the next pass where one has ended. */
int64_t qkv_loop_next_batch(qkv_loop *l);
/* The end of a stretch: takes a snapshot, validates, tells and saves. A stop during the validation
 * leaves it pending: the resumed run begins with it. */
qkv_status qkv_loop_mark(qkv_loop *l);
/* Batches of training data that a validation sees. */
int64_t qkv_loop_known(const qkv_loop *l);
/* The share of right answers; NaN: the task has none (unit NULL). */
double qkv_loop_right(const qkv_loop *l, const qkv_step_result *r);
/* Finds how much each companion counts, beside the weights that are in place. */
qkv_status qkv_loop_weigh(qkv_loop *l);
/* What all ranks counted; the first failure among them, for all. */
qkv_status qkv_loop_add_ranks(qkv_status status, qkv_step_result *r);
/* Adds up the gradients and counts of a step's batches, of all ranks. */
qkv_status qkv_loop_gradients(qkv_loop *l, qkv_step_result *r);
/* The norm over which a step counts as an outlier (0: none does yet),
 * and what keeps the measure of that. */
double qkv_loop_norm_limit(const qkv_loop *l);
void qkv_loop_norm_seen(qkv_loop *l, double norm);
/* After a step failed with QKV_NUMERIC (message set), nothing having been changed:
 * notes it, and goes on or gives up. */
qkv_status qkv_loop_skip(qkv_loop *l, const qkv_update *u, const qkv_step_result *r, bool stop);
/* Writes a checkpoint of this moment. */
qkv_status qkv_loop_save(qkv_loop *l, bool best);
/* Puts the checkpoint `which` ("last", "best") in place; *found false when there is none. */
qkv_status qkv_loop_restore(qkv_loop *l, const char *which, bool *found);
/* Tells the caller; QKV_INTERRUPTED when it wants to stop. */
qkv_status qkv_loop_tell(qkv_loop *l, qkv_progress *p);
/* The same: a line for a person, of at most 200 bytes. */
qkv_status qkv_loop_note(qkv_loop *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same: what goes on now, and how much of it is done (0: unknown). */
qkv_status qkv_loop_phase(qkv_loop *l, const char *name, double share);

#endif
