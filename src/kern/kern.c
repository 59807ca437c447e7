/* Choosing an instruction set, and the scratch memory that kernels share. */
#include "kern/kern.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define ISA(name, machines, options, runs) extern const qkv_kern qkv_kern_##name;
#include "isas_built.def" /* the rows of kern/isas.def that this build has */
#undef ISA

/* ---- the tables ---- */

#define ISA(name, machines, options, runs) +1
enum {
    N_BUILT = 0
#include "isas_built.def"
};
#undef ISA

static const qkv_kern *runnable[N_BUILT];
static size_t n_runnable;
static const qkv_kern *_Atomic chosen;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool choose_listed(const char *name) {
    for (size_t i = 0; i < n_runnable; i++)
        if (strcmp(runnable[i]->name, name) == 0) {
            atomic_store(&chosen, runnable[i]);
            return true;
        }
    return false;
}

static void look_at_cpu(void) {
#define HAS(feature) __builtin_cpu_supports(feature)
#define ISA(name, machines, options, runs)                                                         \
    if (runs) runnable[n_runnable++] = &qkv_kern_##name;
#include "isas_built.def"
#undef ISA
#undef HAS
    const char *asked = getenv("QKV_ISA");
    atomic_store(&chosen, runnable[0]);
    if (asked)
        choose_listed(asked); /* qkv doctor says which one runs; an unknown name changes nothing */
}

size_t qkv_kern_list(const qkv_kern *const **out) {
    pthread_once(&once, look_at_cpu);
    *out = runnable;
    return n_runnable;
}

bool qkv_kern_choose(const char *name) {
    pthread_once(&once, look_at_cpu);
    return choose_listed(name);
}

const qkv_kern *qkv_kern_get(void) {
    const qkv_kern *k = atomic_load_explicit(&chosen, memory_order_acquire);
    if (k) return k;
    pthread_once(&once, look_at_cpu);
    return atomic_load(&chosen);
}

/* ---- scratch: one growing block per thread and slot, listed so that all can be freed ---- */

typedef struct scratch {
    struct scratch *next;
    void *block[QKV_SCRATCH_SLOTS];
    size_t bytes[QKV_SCRATCH_SLOTS];
    bool orphan; /* its thread has ended; the next new thread takes it over */
} scratch;

static scratch *all;
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t end_of_thread;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static _Thread_local scratch *mine;

static void give(void *p) {
    pthread_mutex_lock(&all_lock);
    ((scratch *)p)->orphan = true;
    pthread_mutex_unlock(&all_lock);
}

static void make_key(void) {
    pthread_key_create(&end_of_thread, give);
}

static scratch *adopt_or_new(void) {
    pthread_once(&key_once, make_key);
    pthread_mutex_lock(&all_lock);
    scratch *s = all;
    while (s && !s->orphan) s = s->next;
    if (!s && (s = qkv_zalloc(1, sizeof *s))) {
        s->next = all;
        all = s;
    }
    if (s) s->orphan = false;
    pthread_mutex_unlock(&all_lock);
    if (s) pthread_setspecific(end_of_thread, s);
    return s;
}

void *qkv_kern_scratch(int slot, size_t bytes) {
    if (!mine && !(mine = adopt_or_new())) return NULL;
    if (mine->bytes[slot] < bytes) {
        bytes += bytes / 4; /* the next batch may be a little larger */
        void *grown = qkv_alloc_aligned(bytes);
        if (!grown) return NULL;
        qkv_free(mine->block[slot]);
        mine->block[slot] = grown;
        mine->bytes[slot] = bytes;
    }
    return mine->block[slot];
}

void qkv_kern_scratch_free(void) {
    pthread_mutex_lock(&all_lock);
    for (scratch *s = all; s; s = s->next)
        for (int i = 0; i < QKV_SCRATCH_SLOTS; i++) {
            qkv_free(s->block[i]);
            s->block[i] = NULL;
            s->bytes[i] = 0;
        }
    pthread_mutex_unlock(&all_lock);
}
