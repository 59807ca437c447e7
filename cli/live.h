/* What a person sees of a training: notes, one live line on a terminal (plain lines elsewhere),
 * validations. The live line is drawn by a thread of its own, so that it moves while the library is
 * busy with something long, and it fits the terminal, however that is resized. Also the signals:
 * the first Ctrl-C or SIGTERM asks the run to save and stop, the second ends it at once. */
#ifndef QKV_CLI_LIVE_H
#define QKV_CLI_LIVE_H

#include "qkv.h"

#include <pthread.h>

typedef struct cli_live {
    bool quiet;    /* nothing but the signals */
    bool terminal; /* stderr is one */
    bool table;    /* the table of validations has its head */
    int drawn;     /* columns that the live line takes; 0: there is none */
    double last;   /* when something was last shown */
    /* what goes on: a phase since some moment, or the steps */
    char phase[64]; /* "": nothing yet */
    char part[64];  /* of several trainings which; "": there is one */
    double since, share;
    bool stepping;
    qkv_progress step; /* the last one, and when it came */
    double step_at;
    /* the thread that draws */
    bool drawing;
    pthread_t thread;
    pthread_mutex_t lock; /* of all above */
    pthread_cond_t end;
} cli_live;

void cli_live_begin(cli_live *l, bool quiet);
/* From now on a signal makes cli_live_show ask the run to stop. */
void cli_live_catch(void);
/* A qkv_train_request.progress; user is the cli_live. */
bool cli_live_show(void *user, const qkv_progress *p);
void cli_live_end(cli_live *l);
/* The exit code of a run that ended with `status`: 130 or 143 when a signal ended it. */
int cli_live_code(qkv_status status);

#endif
