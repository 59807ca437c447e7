/* A budget in minutes becomes one in steps before the first step is made: some steps are rehearsed
 * (at a rate of 0, after which the moments are wiped), a part of a validation and a checkpoint are
 * timed, and from then on the run is the one that --steps with the same number gives, bit for bit.
 * The number is in the checkpoint of step 0, so a resumed run keeps it. */
#include "train/loop.h"
#include "base/clock.h"
#include "base/parallel.h"

#include <math.h>
#include <string.h>

enum {
    STEPS_MOST = 20, /* rehearsed at the most; one more comes first and is not timed */
    STEPS_LEAST = 2,
    VALID_MOST = 4 /* batches */
};
static const double SHARE = 0.03; /* of the budget, after which the rehearsal ends early */

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

/* Seconds since `begin`, as rank 0 sees them. */
static double since(double begin) {
    double seconds = qkv_now() - begin;
    qkv_parallel_share(&seconds, sizeof seconds);
    return seconds;
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
static qkv_status time_steps(qkv_loop *l, double budget, double *pace) {
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
    *pace = since(begin) / (double)(n > 0 ? n : 1);
    forget(l);
    return status;
}

static qkv_status time_validation(qkv_loop *l, double *seconds) {
    const int64_t n = l->valid ? l->valid_batches.n_batches : 0;
    const int64_t timed = n < VALID_MOST ? n : VALID_MOST;
    qkv_step_result r = {0};
    const double begin = qkv_now();
    for (int64_t i = 0; i < timed; i++)
        QKV_TRY(qkv_stepper_evaluate(&l->stepper, &l->valid_batches, i * n / timed, &r));
    *seconds = since(begin) * (timed ? (double)n / (double)timed : 0) / qkv_parallel_size();
    return QKV_OK;
}

qkv_status qkv_loop_find_steps(qkv_loop *l) {
    const qkv_train_config *c = &l->config;
    const double begin = qkv_now();
    double pace, validation, save = 0;
    QKV_TRY(time_steps(l, 60 * c->minutes, &pace));
    QKV_TRY(time_validation(l, &validation));
    if (l->run) {
        const double before = qkv_now();
        QKV_TRY(qkv_loop_save(l, false)); /* still `timed`: a run killed here rehearses again */
        save = since(before);
    }
    const int64_t a_pass = (l->train_batches.n_batches + c->accumulate - 1) / c->accumulate;
    const double stretch = (double)(c->save_every ? c->save_every : a_pass);
    const double left = 60 * c->minutes - since(begin);
    const double steps = floor(left / (pace + (validation + save) / stretch));
    l->state.steps = l->state.step + (steps < 1      ? 1
                                      : steps > 1e15 ? (int64_t)1e15
                                                     : (int64_t)steps);
    if (c->steps && c->steps < l->state.steps) l->state.steps = c->steps;
    l->state.timed = false;
    return l->run ? qkv_loop_save(l, false) : QKV_OK;
}
