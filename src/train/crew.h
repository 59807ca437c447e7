/* How many threads a step gets, where nobody said: all, or one.
 *
 * A step is many short parallel stretches, at the end of each of which all threads wait for the
 * last. Beside other busy programs the last is one that has lost its core, and a step on all
 * threads may take longer than on one; how much longer depends on the size of the step and on the
 * others, and changes. So both are measured on steps that are made anyway, which have the same bits
 * on any number of threads: a few at the start, and a few of the way not taken now and then, the
 * more seldom the longer it has been the slower one. */
#ifndef QKV_TRAIN_CREW_H
#define QKV_TRAIN_CREW_H

#include <stdbool.h>
#include <stdint.h>

typedef struct qkv_crew {
    bool open;                  /* nobody said how many threads; set by qkv_crew_begin */
    bool one;                   /* the way taken: one thread instead of all */
    bool look;                  /* the other way is being tried */
    int64_t steps, rest, until; /* made this way; between two looks; left before the next change */
    double work[2], seconds[2]; /* of all threads, of one, since the last decision */
} qkv_crew;

/* Before the first step. */
void qkv_crew_begin(qkv_crew *c);
/* Before each step: whether it is to be made on one thread. */
bool qkv_crew_alone(const qkv_crew *c);
/* After it: how much there was to do, in any unit, and what it took. */
void qkv_crew_made(qkv_crew *c, double work, double seconds);

#endif
