/* What a person sees of a training: notes, one live line on a terminal (plain lines elsewhere),
 * validations. Also the signals: the first Ctrl-C or SIGTERM asks the run to save and stop,
 * the second ends it at once. */
#ifndef QKV_CLI_LIVE_H
#define QKV_CLI_LIVE_H

#include "qkv.h"

typedef struct cli_live {
    bool quiet;    /* nothing but the signals */
    bool terminal; /* stderr is one */
    bool line;     /* a live line stands there */
    bool table;    /* the table of validations has its head */
    double last;   /* when something was last shown */
} cli_live;

void cli_live_begin(cli_live *l, bool quiet);
/* A qkv_train_request.progress; user is the cli_live. */
bool cli_live_show(void *user, const qkv_progress *p);
void cli_live_end(cli_live *l);
/* The exit code of a run that ended with `status`: 130 or 143 when a signal ended it. */
int cli_live_code(qkv_status status);

#endif
