/* The schedules. After the warm-up, with t = share of the remaining budget that is spent (0 … 1):
 *   constant 1;  linear 1 − t;  cosine (1 + cos πt)/2;  inverse_sqrt √(warmup/step).
 * linear and cosine end at `floor` instead of 0. */
#include "train/schedule.h"

#include <math.h>
#include <string.h>

static double constant(const qkv_schedule *s, int64_t step, double spent) {
    (void)s, (void)step, (void)spent;
    return 1;
}

static double linear(const qkv_schedule *s, int64_t step, double spent) {
    (void)step;
    return 1 - (1 - s->floor) * spent;
}

static double cosine(const qkv_schedule *s, int64_t step, double spent) {
    (void)step;
    return s->floor + (1 - s->floor) * 0.5 * (1 + cos(3.14159265358979323846 * spent));
}

static double inverse_sqrt(const qkv_schedule *s, int64_t step, double spent) {
    (void)spent;
    const double start = s->warmup > 1 ? (double)s->warmup : 1;
    return sqrt(start / (double)step);
}

const char *const qkv_schedule_names[] = {"constant", "linear", "cosine", "inverse_sqrt", NULL};

static double (*const factors[QKV_SCHEDULE_COUNT])(const qkv_schedule *, int64_t, double) = {
    [QKV_SCHEDULE_CONSTANT] = constant,
    [QKV_SCHEDULE_LINEAR] = linear,
    [QKV_SCHEDULE_COSINE] = cosine,
    [QKV_SCHEDULE_INVERSE_SQRT] = inverse_sqrt,
};

double qkv_schedule_lr(const qkv_schedule *s, int64_t step) {
    if (step < 1) step = 1;
    if (step <= s->warmup) return s->lr * (double)step / (double)s->warmup;
    const int64_t span = s->steps - s->warmup;
    double spent = span > 0 ? (double)(step - s->warmup) / (double)span : 1;
    if (spent > 1) spent = 1;
    return s->lr * factors[s->kind](s, step, spent);
}
