#include "base/queue.h"
#include "base/thread.h"

#include <string.h>

int qkv_queue_workers(const qkv_queue *q) {
    const int threads = qkv_threads();
    return q->n < (size_t)threads ? 1 : threads;
}

bool qkv_queue_take(qkv_queue *q, size_t *item) {
    if (__atomic_load_n(&q->status, __ATOMIC_RELAXED) != QKV_OK) return false;
    *item = __atomic_fetch_add(&q->next, 1, __ATOMIC_RELAXED);
    return *item < q->n;
}

void qkv_queue_note(qkv_queue *q, qkv_status status) {
    if (status == QKV_OK) return;
#pragma omp critical(qkv_queue_error)
    if (q->status == QKV_OK) {
        strncpy(q->error, qkv_error(), sizeof q->error - 1);
        __atomic_store_n(&q->status, status, __ATOMIC_RELAXED);
    }
}

qkv_status qkv_queue_run(qkv_queue *q, void (*work)(void *user, int worker), void *user) {
    const int threads = qkv_threads(), workers = qkv_queue_workers(q);
    if (workers == 1) {
        work(user, 0);
    } else {
        QKV_PARALLEL_FOR_UNEVEN
        for (int w = 0; w < workers; w++) {
            qkv_threads_set(1);
            work(user, w);
            qkv_threads_set(threads);
        }
    }
    return q->status == QKV_OK ? QKV_OK : qkv_fail(q->status, "%s", q->error);
}
