/* One training run, from the request to the folder: what the files of qkv_train share. */
#ifndef QKV_RUN_TRAIN_RUN_H
#define QKV_RUN_TRAIN_RUN_H

#include "folder/folder.h"
#include "run/outcome.h"
#include "run/train_log.h"
#include "use/textmodel.h"
#include "train/loop.h"

/* What is wanted of a run, beside its request. */
typedef struct qkv_run_wish {
    const qkv_train_request *request;
    bool folder;     /* the request's `out` is made and used */
    int part, parts; /* part `part` (from 0) of `parts` of the rows is set aside; parts 0: none */
} qkv_run_wish;

/* Rows that the training does not see at all, by which its result is measured. */
typedef struct qkv_aside {
    int part, parts;
    qkv_corpus corpus; /* all but the list of rows is the run's */
    qkv_encoded ids;
} qkv_aside;

typedef struct qkv_run {
    const qkv_train_request *request;
    bool folder; /* the request's `out` is made and used */
    bool begun;  /* the folder holds something to go on from, and stays whatever happens */
    bool had[QKV_PART_COUNT]; /* what lay in the folder when the run came to it */
    size_t had_path;          /* so much of the folder's path was there */
    const qkv_task *task;
    bool given[QKV_SETTINGS_MAX]; /* by row of the model's settings: a wish of the request */
    const qkv_choice *chosen;     /* the preset that was chosen for the request; or NULL */
    bool goes_on;                 /* from a model of the same task, with all that it has */
    const qkv_tuning *tuning;     /* from a model of another program, for another task; or NULL */
    qkv_config config;
    qkv_train_config train;
    qkv_corpus corpus, valid_corpus;
    bool has_valid_corpus;
    size_t first_held; /* of running text: the row at which the part begins that is held out */
    bool pairs;        /* rows have two texts, which become one sequence */
    qkv_tokenizer *tokenizer;
    qkv_encoded train_ids, valid_ids;
    qkv_aside aside;
    qkv_tokenise_counts counts;
    int64_t *train_rows; /* the line of each training example; NULL: they are not one to one */
    int64_t n_shared,
        first_shared; /* validation rows that are trained on too; the line of the first */
    bool *continues;  /* mlm by whole words: per token, whether it goes on with a word; or NULL */
    qkv_model *model;
    int lock;
    qkv_run_log log;
    bool stop; /* progress asked to, while nobody could be told */
    /* when the run began: in processor seconds of this process, and by the clock */
    double cpu_start, clock_start;
    qkv_outcome
        before; /* what the folder says of a run that is finished there; at the end: of this */
    bool was_finished; /* … which it says */
    bool repeats;      /* the request is that run's: there is nothing to do */
    bool further;      /* that run with a larger budget: it goes on from the weights it left */
} qkv_run;

/* ---- train_run.c ---- */

/* Settings, texts, tokenizer, ids; with `folder` the run's folder too: locked, checked against what
 * is there, or begun. To be freed in any case. */
qkv_status qkv_run_prepare(qkv_run *r, const qkv_run_wish *wish);
/* The model: built, initialised, or begun from another's weights. */
qkv_status qkv_run_model(qkv_run *r);
void qkv_run_free(qkv_run *r);

/* ---- run_once.c ---- */

/* All of it; *out (may be NULL): what it came to, or had come to before. */
qkv_status qkv_run_once(const qkv_run_wish *wish, qkv_outcome *out);

/* ---- set_aside.c ---- */

/* Takes the rows that are to be set aside out of the corpus. */
qkv_status qkv_run_set_aside(qkv_run *r);
/* How good the weights in place are on them; goes into *o. */
qkv_status qkv_run_measure_aside(qkv_run *r, qkv_loop *l, qkv_outcome *o);

/* ---- run_folder.c ---- */

/* Makes and locks the request's folder; with `overwrite` what an old run would go on from goes. */
qkv_status qkv_run_open_folder(qkv_run *r);
/* Is there a finished run, and does the request but repeat it? Before anything is read. */
qkv_status qkv_run_look_back(qkv_run *r);
/* run.json: the effective settings, which must be those of the run that is there, if one is; the
 * message of a refusal names what differs. A finished run may be given a larger budget. */
qkv_status qkv_run_check_settings(qkv_run *r);
/* The same file, once a finished run goes on. */
qkv_status qkv_run_write_settings(qkv_run *r);
/* Removes a file, or a folder with all that is in it; fine if it is not there. */
qkv_status qkv_run_remove(const char *path);
/* Takes away what only the training needed: checkpoints, unless they are to be kept, and ids. */
qkv_status qkv_run_tidy(qkv_run *r);
/* After a start that was refused: takes away what it made. */
void qkv_run_leave_nothing(qkv_run *r);

/* ---- finish.c ---- */

/* Before the first step: the files that companions make of the ids alone. A run that goes on has
 * them. */
qkv_status qkv_run_learn_files(qkv_run *r);
/* Puts the weights that are to be used and what belongs to them into the folder. */
qkv_status qkv_run_finish(qkv_run *r, qkv_loop *l);
/* The same after a stop, of the best so far; the message of the stop stays. */
void qkv_run_leave_usable(qkv_run *r, qkv_loop *l);

/* ---- understood.c ---- */

/* Says how the data was read and what it holds; refuses what no classifier can learn from. */
qkv_status qkv_run_understood(qkv_run *r);
/* The same of the files to validate on. */
qkv_status qkv_run_understood_valid(qkv_run *r);

/* ---- estimate.c ---- */

/* Refuses, before anything large is allocated, what cannot fit into the machine. */
qkv_status qkv_run_check_memory(const qkv_run *r);
/* Says what the training will have taken at its end, once the model is there; `c`: its settings, with
 * what was chosen. */
qkv_status qkv_run_say_memory(qkv_run *r, const qkv_train_config *c);

/* ---- train_report.c: what a person sees and finds ---- */

/* A qkv_loop.progress: writes to the log and passes on; `user` is the run. */
bool qkv_run_tell(void *user, const qkv_progress *p);
/* A line for the person; QKV_INTERRUPTED when asked to stop. */
qkv_status qkv_run_note(qkv_run *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Says what begins now; QKV_INTERRUPTED when asked to stop. */
qkv_status qkv_run_phase(qkv_run *r, const char *name);
/* Data, model, memory and time, before the first step. */
qkv_status qkv_run_header(qkv_run *r, qkv_loop *l);
/* The course of the training (see below), and README.md. */
qkv_status qkv_run_summary(qkv_run *r, const qkv_loop *l);
/* Of a run that was stopped: what is in place, and how to go on. */
void qkv_run_say_stopped(qkv_run *r, const qkv_loop *l);
/* Of one that is finished already: what it came to, and how to go on or start over. */
qkv_status qkv_run_say_finished(qkv_run *r);

/* ---- course.c ---- */

/* Loss and, where it was counted, the share of right answers over the steps: in the terminal and as
 * loss.svg. */
qkv_status qkv_run_show_course(qkv_run *r, const qkv_loop *l);

#endif
