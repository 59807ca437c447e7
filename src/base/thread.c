#include "base/thread.h"
#include "qkv.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

static _Thread_local int asked;

/* A forked child has none of its parent's threads, but OpenMP believes that it has: it would wait for
 * them for ever. It works with the one thread that it has. */
static _Atomic bool had_threads, alone;

static void in_child(void) {
    alone = true;
}

static int threads_used(int n) {
    if (alone) return 1;
    if (n > 1 && !had_threads && !atomic_exchange(&had_threads, true))
        pthread_atfork(NULL, NULL, in_child);
    return n;
}

static int available(void) {
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : omp_get_num_procs();
    return n < 1 ? 1 : n > QKV_THREADS_MAX ? QKV_THREADS_MAX : n;
}

void qkv_threads_set(int n) {
    asked = n < 0 ? 0 : n > QKV_THREADS_MAX ? QKV_THREADS_MAX : n;
}

int qkv_threads(void) {
    static _Atomic int all; /* every thread finds the same number */
    if (asked) return threads_used(asked);
    if (!all) all = available();
    return threads_used(all);
}

int qkv_threads_open(void) {
    return !asked && qkv_threads() > 1;
}
