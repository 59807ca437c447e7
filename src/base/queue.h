/* Items that workers take one by one, until there are none left or one has failed.
 *
 * Where there is an item for every thread, each thread is a worker of its own and uses no other
 * thread inside, so that none waits for another; else one worker has all threads for itself. */
#ifndef QKV_BASE_QUEUE_H
#define QKV_BASE_QUEUE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct qkv_queue {
    size_t n; /* items: set by the caller, the rest zero */
    size_t next;
    qkv_status status; /* of the first that failed, and what it said */
    char error[1024];
} qkv_queue;

/* How many workers qkv_queue_run will have. */
int qkv_queue_workers(const qkv_queue *q);
/* Runs `work` for workers 0, 1, …; returns when all have ended, with the first failure. */
qkv_status qkv_queue_run(qkv_queue *q, void (*work)(void *user, int worker), void *user);
/* For workers: the next item; false when there is none, or one failed. */
bool qkv_queue_take(qkv_queue *q, size_t *item);
/* For workers: ends the queue when status is not OK. */
void qkv_queue_note(qkv_queue *q, qkv_status status);

#endif
