/* Companions: what stands beside a task's network and joins its answer, but is not learned by
 * gradient steps. A task's row lists those it may have; the training run asks each at the same
 * few moments and knows none of them:
 *
 *   size    once the texts are read: how large it should be
 *   say     what of that was our choice, in a few words for a person
 *   columns what it reads beside the ids of a text
 *   fit     before the first step; again at the end, when nothing is to be judged by the rows
 *           held out any more (`whole`)
 *   bytes   of memory, beside the model's, while it is fitted
 *   weigh   at each validation: how much it counts beside the network
 *   keep    what the training found goes into the configuration that is written
 *   learn   before the first step, from the ids alone: a file of its own in the model folder
 *
 * A row leaves out (NULL) what it has no use for. */
#ifndef QKV_TASK_COMPANION_H
#define QKV_TASK_COMPANION_H

#include "data/batcher.h"
#include "task/task.h"

/* The training that a companion is fitted in. */
typedef struct qkv_fit {
    qkv_model *model;
    qkv_tape *tape; /* free for use between steps */
    const qkv_task_spec *spec;
    const qkv_encoded *train;
    const qkv_encoded *held_out; /* rows of the training data set aside; NULL: none */
    const qkv_batcher *valid;    /* what validation runs over; NULL: there is none */
    uint64_t seed;
    bool whole;    /* the rows held out are to be learned from too */
    double *alone; /* weigh: the loss that the companion would have without the network */
    qkv_status (*tell)(void *user); /* reports progress; NULL: not wanted */
    void *user;
} qkv_fit;

typedef struct qkv_companion {
    const char *name;
    bool (*wanted)(const qkv_config *c);        /* does a model of this configuration have one? */
    void (*size)(qkv_config *c, int64_t bytes); /* bytes: of the training text */
    /* `s` is over the configuration and knows what was given; false: nothing was left to us. */
    bool (*say)(const qkv_settings *s, char *text, size_t room);
    unsigned (*columns)(const qkv_config *c); /* qkv_column_bit of each */
    qkv_status (*fit)(const qkv_fit *f);
    double (*bytes)(const qkv_config *c, int64_t texts);
    qkv_status (*weigh)(const qkv_fit *f);
    void (*keep)(qkv_config *kept, const qkv_config *trained);
    const char *file; /* its file in the model folder; NULL: it lies in the weights */
    qkv_status (*learn)(const qkv_encoded *train, const qkv_config *c, const char *path);
} qkv_companion;

extern const qkv_companion qkv_companion_ngrams, qkv_companion_shortlist, qkv_companion_threshold;

/* The i-th companion that a model of this configuration has; NULL past the last. */
const qkv_companion *qkv_companion_at(const qkv_config *c, int i);
/* Does a model of this configuration have this one? */
bool qkv_companion_has(const qkv_config *c, const qkv_companion *companion);

/* How much each voter of a classifier counts (votes.c): the n-grams' `weigh`. */
qkv_status qkv_votes_weigh(const qkv_fit *f);

#endif
