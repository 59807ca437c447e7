/* Time: what a run still takes, and a budget in minutes.
 *
 * What is left is counted in what was measured: steps by those of this process (the first makes the
 * memory and does not count), validations by the last one (before it: by some batches), checkpoints
 * by the last one saved, the last fit by the first. A budget in minutes counts all of it, reading
 * and fitting before the steps and the last fit after them included, and becomes one in steps
 * before the first is made: some are rehearsed (at a rate of 0, after which the moments are wiped).
 * From then on the run is the one that --steps with the same number gives, bit for bit, and the
 * number is in the checkpoints, so that a resumed run keeps it; unless the machine turns out to be
 * slower or faster than it was: where the run would end far from its minutes, the number is
 * corrected, and said. */
#include "train/loop.h"
#include "base/clock.h"
#include "base/parallel.h"
#include "task/companion.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    STEPS_MOST = 20, /* rehearsed at the most; one more comes first and is not timed */
    STEPS_LEAST = 2,
    VALID_MOST = 4, /* batches */
    CHECKS = 32,    /* of a budget in minutes, over its steps */
    SAID_AFTER = 10 /* steps, the time is said; or earlier, where they are slow */
};
static const double SHARE = 0.03, /* of the budget, after which the rehearsal ends early */
    WINDOW = 0.1,                 /* of it, over which steps are averaged, about */
    OFF = 0.04, OFF_SECONDS = 2,  /* a run that would end farther off than both is corrected */
    MUCH = 1.25,                  /* a correction that is said */
    SAID_SECONDS = 1;

/* Seconds since `begin`, as rank 0 sees them. */
static double since(double begin) {
    double seconds = qkv_now() - begin;
    qkv_parallel_share(&seconds, sizeof seconds);
    return seconds;
}

/* ---- what is left ---- */

/* Steps between two validations. */
static int64_t stretch_of(const qkv_loop *l) {
    const qkv_train_config *c = &l->config;
    if (c->save_every) return c->save_every;
    if (c->overfit) return l->state.steps;
    const int64_t pass = (l->train_batches.n_batches + c->accumulate - 1) / c->accumulate;
    return pass > 0 ? pass : 1;
}

/* The last fit has the rows held out, too. */
static double last_fit(const qkv_loop *l) {
    const double held = l->valid_held_out && l->valid ? (double)l->valid->n : 0;
    return l->state.fit_seconds * (1 + held / (double)l->train->n);
}

double qkv_loop_left(const qkv_loop *l, int64_t steps) {
    const qkv_pace *p = &l->pace;
    const int64_t stretch = stretch_of(l), now = l->state.step,
                  marks = (steps + stretch - 1) / stretch - now / stretch;
    return p->step * (double)(steps - now) +
           (double)(marks > 0 ? marks : 0) * (p->validation + p->save) + p->save +
           0.5 * p->validation + last_fit(l);
}

void qkv_loop_count_step(qkv_loop *l, double seconds) {
    qkv_pace *p = &l->pace;
    if (p->warm) {
        p->sum += seconds;
        p->n++;
        p->step = p->sum / (double)p->n;
    }
    p->warm = true;
}

/* ---- measuring ---- */

/* One step over batches at a place of its own in the pass; what it changes is undone by forget. */
static qkv_status rehearse_step(qkv_loop *l, int64_t i) {
    qkv_step_result r = {0};
    qkv_update u = {.lr = 0, .clip = l->config.clip};
    l->epoch = 0;
    qkv_batcher_plan(&l->train_batches, 0);
    l->batch = i * l->train_batches.n_batches / (STEPS_MOST + 1);
    QKV_TRY(qkv_loop_gradients(l, &r));
    return qkv_stepper_update(&l->stepper, &u, &r);
}

static void forget(qkv_loop *l) {
    qkv_optim *o = &l->stepper.optim;
    const size_t bytes = (size_t)o->params->length * sizeof(real);
    qkv_optim_settle(o);
    qkv_params_zero_grads(o->params);
    memset(o->m, 0, bytes);
    if (o->v) memset(o->v, 0, bytes);
    qkv_optim_restored(o, 0);
    qkv_optim_release(o);
}

/* Seconds of one step. A step that is not finite is the training's to deal with,
 * not the rehearsal's. */
static qkv_status time_steps(qkv_loop *l, double budget) {
    double begin = 0;
    int64_t n = 0;
    qkv_status status = QKV_OK;
    qkv_rates_set(&l->rates, INT64_MAX); /* all layers: the dearest case */
    for (int64_t i = 0; i <= STEPS_MOST && status == QKV_OK; i++) {
        if (i == 1) begin = qkv_now();
        status = rehearse_step(l, i);
        if (status == QKV_NUMERIC) status = QKV_OK;
        if (status == QKV_OK) status = qkv_loop_phase(l, "timing steps", 0);
        n = i;
        if (n >= STEPS_LEAST && since(begin) > SHARE * budget) break;
    }
    l->pace =
        (qkv_pace){.sum = since(begin), .n = n > 0 ? n : 1, .warm = true, .save = l->pace.save};
    l->pace.step = l->pace.sum / (double)l->pace.n;
    forget(l);
    return status;
}

/* Seconds of a validation, by a few of its batches; companions are weighed over one of them. */
static qkv_status try_validation(qkv_loop *l) {
    const int64_t n = l->valid ? l->valid_batches.n_batches : 0, known = qkv_loop_known(l);
    const int64_t timed = n < VALID_MOST ? n : VALID_MOST;
    qkv_step_result r = {0};
    if (timed == 0) return QKV_OK;
    const double begin = qkv_now();
    for (int64_t i = 0; i < timed; i++)
        QKV_TRY(qkv_stepper_evaluate(&l->stepper, &l->valid_batches, i * n / timed, &r));
    const double batch = since(begin) / (double)timed, middle = qkv_now();
    const qkv_batcher all = l->valid_batches;
    l->valid_batches.n_batches = 1;
    const qkv_status status = qkv_loop_weigh(l);
    l->valid_batches = all;
    l->pace.validation =
        (batch * (double)(n + known) + since(middle) * (double)n) / qkv_parallel_size();
    return status;
}

/* A loss that is not finite is the validation's to deal with. */
static qkv_status time_validation(qkv_loop *l) {
    const qkv_status status = try_validation(l);
    return status == QKV_NUMERIC ? QKV_OK : status;
}

/* ---- a budget in minutes ---- */

/* The steps after which the run ends `seconds` from now: the most of those that fit. */
static int64_t steps_in(const qkv_loop *l, double seconds) {
    int64_t fits = l->state.step + 1, most = (int64_t)1e15;
    if (l->pace.step > 0 && seconds / l->pace.step < 1e15)
        most = fits + (int64_t)fmax(0, seconds / l->pace.step);
    while (fits < most) {
        const int64_t middle = fits + (most - fits + 1) / 2;
        if (qkv_loop_left(l, middle) <= seconds)
            fits = middle;
        else
            most = middle - 1;
    }
    return l->config.steps && l->config.steps < fits ? l->config.steps : fits;
}

/* Seconds of the budget that are left, as rank 0 sees them. */
static double budget_left(const qkv_loop *l) {
    double seconds = 60 * l->config.minutes - qkv_loop_seconds(l);
    qkv_parallel_share(&seconds, sizeof seconds);
    return seconds;
}

qkv_status qkv_loop_find_steps(qkv_loop *l) {
    QKV_TRY(time_steps(l, 60 * l->config.minutes));
    QKV_TRY(time_validation(l));
    if (l->run)
        QKV_TRY(qkv_loop_save(l, false)); /* still `timed`: killed here, it rehearses again */
    const double left = budget_left(l);
    l->state.steps = steps_in(l, left);
    l->state.timed = false;
    if (l->run) QKV_TRY(qkv_loop_save(l, false));
    if (qkv_loop_left(l, l->state.step + 1) < left) return QKV_OK;
    return qkv_loop_note(l, "warning   %.1f minutes are too few: without a step the run takes %.1f",
                         l->config.minutes,
                         l->config.minutes + (qkv_loop_left(l, l->state.step) - left) / 60);
}

/* All ranks look at the same steps. Newer steps count more. */
qkv_status qkv_loop_correct(qkv_loop *l) {
    qkv_loop_state *s = &l->state;
    const int64_t every = (s->steps - s->from) / CHECKS;
    if (l->config.minutes == 0 || s->step >= s->steps ||
        (s->step - s->from) % (every > 0 ? every : 1) != 0)
        return QKV_OK;
    qkv_parallel_share(&l->pace, sizeof l->pace);
    const double budget = 60 * l->config.minutes, left = budget_left(l),
                 off = qkv_loop_left(l, s->steps) - left;
    if (l->pace.sum > WINDOW * budget && l->pace.n > 2 * STEPS_LEAST) {
        l->pace.n /= 2;
        l->pace.sum = l->pace.step * (double)l->pace.n;
    }
    if (fabs(off) < OFF_SECONDS || fabs(off) < OFF * budget) return QKV_OK;
    if (l->pace.told_steps == 0) l->pace.told_steps = s->steps;
    const int64_t told = l->pace.told_steps;
    s->steps = steps_in(l, left);
    qkv_loop_set_schedule(l);
    if ((double)s->steps < MUCH * (double)told && (double)told < MUCH * (double)s->steps)
        return QKV_OK;
    l->pace.told_steps = s->steps;
    return qkv_loop_note(l, "time      steps are %s than they were: %lld of them now, not %lld",
                         s->steps < told ? "slower" : "faster", (long long)s->steps,
                         (long long)told);
}

/* ---- telling ---- */

/* "40 seconds", "3.4 minutes", "2.1 hours" */
static void put_time(double seconds, char text[32]) {
    if (seconds < 99)
        snprintf(text, 32, "%.*f seconds", seconds < 9.5 ? 1 : 0, seconds);
    else if (seconds < 99 * 60)
        snprintf(text, 32, "%.1f minutes", seconds / 60);
    else
        snprintf(text, 32, "%.1f hours", seconds / 3600);
}

/* Once, as soon as some steps say how long they take. */
qkv_status qkv_loop_say_time(qkv_loop *l) {
    qkv_pace *p = &l->pace;
    const int64_t done = l->state.step - l->started_at;
    const bool slow = qkv_parallel_size() == 1 && qkv_now() - l->started > SAID_SECONDS;
    if (p->said || p->n < STEPS_LEAST || (done < SAID_AFTER && !slow)) return QKV_OK;
    p->said = true;
    if (p->validation == 0) QKV_TRY(time_validation(l));
    char left[32], all[32];
    const double seconds = qkv_loop_left(l, l->state.steps);
    put_time(seconds, left);
    put_time(seconds + qkv_now() - l->clock_start, all);
    return qkv_loop_note(l, "time      about %s in all, %s of them to come", all, left);
}
