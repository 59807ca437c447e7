/* Learning-rate schedules: a pure function of the integer step, so that a resumed run continues
 * exactly. */
#ifndef QKV_TRAIN_SCHEDULE_H
#define QKV_TRAIN_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum qkv_schedule_kind {
    QKV_SCHEDULE_CONSTANT,
    QKV_SCHEDULE_LINEAR,
    QKV_SCHEDULE_COSINE,
    QKV_SCHEDULE_INVERSE_SQRT,
    QKV_SCHEDULE_COUNT
} qkv_schedule_kind;

typedef struct qkv_schedule {
    qkv_schedule_kind kind;
    double lr;      /* the peak, reached at the end of the warm-up */
    double floor;   /* share of the peak at the end of LINEAR and COSINE */
    int64_t warmup; /* steps of linear rise from lr/warmup */
    int64_t steps;  /* the budget: where LINEAR and COSINE end */
} qkv_schedule;

/* The rate of update `step` (1 is the first). Beyond `steps` it stays what it was there. */
double qkv_schedule_lr(const qkv_schedule *s, int64_t step);

extern const char *const qkv_schedule_names[]; /* by kind, NULL at the end */

#endif
