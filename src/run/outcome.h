/* What a run that is finished came to: result.json, written last of all, so that a folder which has
 * it holds a whole model. A command that repeats the run finds itself in it and has nothing to do;
 * one with a larger budget goes on from there. */
#ifndef QKV_RUN_OUTCOME_H
#define QKV_RUN_OUTCOME_H

#include "base/settings.h"

typedef struct qkv_outcome {
#include "base/settings_fields.h"
#include "run/outcome.def"
#include "base/settings_end.h"
} qkv_outcome;

/* *found false: the folder has none (or it has been damaged, which is the same). */
qkv_status qkv_outcome_read(const char *folder, qkv_outcome *out, bool *found);
qkv_status qkv_outcome_write(const char *folder, qkv_outcome *o);

/* What a request and its files are known by (33 bytes, NUL included); "": it cannot be told, since
 * the data comes from memory or standard input. */
qkv_status qkv_request_mark(const qkv_train_request *q, char mark[33]);

#endif
