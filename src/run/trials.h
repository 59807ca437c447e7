/* Runs to be compared, one after another in one folder: parts of a cross-validation, settings of a
 * search. Each is a training like any other in DIR/trial/N, with some of the rows set aside, by which
 * it is measured; when it is over its figures go into a ledger, a line of JSON each, and the folder
 * goes. The same command goes on where it was stopped, in the middle of a run too. */
#ifndef QKV_RUN_TRIALS_H
#define QKV_RUN_TRIALS_H

#include "run/train_run.h"

typedef struct qkv_trial_entry {
#include "base/settings_fields.h"
#include "run/trial.def"
#include "base/settings_end.h"
} qkv_trial_entry;

typedef struct qkv_series_of_runs {
    const qkv_train_request *request;
    const qkv_task *task;
    qkv_folder_item ledger;
    char mark[48]; /* of the command: its trials are no other's */
    QKV_VEC(qkv_trial_entry) done;
    double begun; /* by the clock */
    /* the run that goes on */
    char label[48];         /* "fold 2 of 5" */
    double deadline, until; /* when it is to be stopped; when all is over, as told; 0: unknown */
    double run_begun, run_takes; /* seconds, as far as is known */
    int to_come;                 /* runs after it, each about as long; for `until` 0 */
    bool quiet;                  /* its words are not for the person */
    bool stopped;                /* the person wants to stop */
    bool late;                   /* the deadline is over */
} qkv_series_of_runs;

/* What varies from run to run; NULL or 0: as requested. */
typedef struct qkv_variation {
    const char *what, *preset;
    const char *const *set; /* beside the request's */
    int part, parts;
} qkv_variation;

/* Reads the ledger; `kind` tells apart what one request may be part of. To be closed in any case. */
qkv_status qkv_trials_open(qkv_series_of_runs *t, const qkv_train_request *request,
                           qkv_folder_item ledger, int kind);
void qkv_trials_close(qkv_series_of_runs *t);
/* One more run, and its line. One that comes too late is over (its folder stays, unless `daring`);
 * with `daring` one whose settings are refused, too. */
qkv_status qkv_trials_run(qkv_series_of_runs *t, const qkv_variation *v, bool daring);
/* Is a better than b? */
bool qkv_trials_better(const qkv_series_of_runs *t, const qkv_trial_entry *a,
                       const qkv_trial_entry *b);
/* The caller's copy of what was done. */
qkv_status qkv_trials_give(const qkv_series_of_runs *t, qkv_trials *out);
/* A line for the person; QKV_INTERRUPTED when asked to stop. */
qkv_status qkv_trials_note(qkv_series_of_runs *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
