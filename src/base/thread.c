#include "base/thread.h"
#include "qkv.h"

#include <sched.h>

static _Thread_local int asked;

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
    if (asked) return asked;
    if (!all) all = available();
    return all;
}

int qkv_threads_open(void) {
    return !asked && qkv_threads() > 1;
}
