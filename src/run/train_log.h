/* What a run leaves of its course: log.jsonl, a line every tenth step (and for each of the first
 * ten) and every validation, and the same for TensorBoard. */
#ifndef QKV_RUN_TRAIN_LOG_H
#define QKV_RUN_TRAIN_LOG_H

#include "store/tensorboard.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct qkv_run_log {
    FILE *file; /* NULL: nothing is kept */
    qkv_tensorboard board;
    double unlogged; /* losses of the steps since the last line, and how many they are */
    int64_t n_unlogged;
} qkv_run_log;

/* What the log says of steps after `step` (they will be made again) is cut off first. To be closed
 * in any case. */
qkv_status qkv_run_log_open(qkv_run_log *log, const char *folder, int64_t step);
void qkv_run_log_close(qkv_run_log *log);
void qkv_run_log_keep(qkv_run_log *log, const qkv_progress *p);

/* A line of the log. */
typedef struct qkv_log_entry {
    bool valid; /* a validation; else steps */
    bool best;  /* of those so far */
    int64_t step;
    double loss, accuracy;
    double train_loss; /* of a validation: of rows that are trained on; NaN: an older log */
} qkv_log_entry;

/* Shows every whole line of the folder's log; `see` says false when it wants no more (and fails
 * with a message set). */
qkv_status qkv_run_log_read(qkv_run_log *log, const char *folder,
                            bool (*see)(void *user, const qkv_log_entry *e), void *user);

#endif
