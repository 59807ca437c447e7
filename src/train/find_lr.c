/* The running mean forgets with 0.9 a step and is corrected for its start.
 * A loss of three times the lowest has run away. */
#include "train/find_lr.h"

#include <math.h>

static const double MEMORY = 0.9, AWAY = 3;

static qkv_status try_rate(qkv_loop *l, double lr, int64_t step, double *loss) {
    qkv_step_result r = {0};
    qkv_update u = {.lr = lr, .clip = l->config.clip};
    l->state.step = step;
    QKV_TRY(qkv_loop_gradients(l, &r));
    QKV_TRY(qkv_stepper_update(&l->stepper, &u, &r));
    *loss = r.loss / (double)(r.n_targets > 0 ? r.n_targets : 1);
    return QKV_OK;
}

qkv_status qkv_loop_find_lr(qkv_loop *l, double low, double high, qkv_lr_trial *out, int64_t n,
                            int64_t *used, double *best) {
    double sum = 0, weight = 0, lowest = INFINITY;
    *used = 0;
    *best = low;
    qkv_loop_find_place(l);
    for (int64_t i = 0; i < n; i++) {
        qkv_lr_trial *t = &out[i];
        t->lr = low * pow(high / low, (double)i / (double)(n > 1 ? n - 1 : 1));
        const qkv_status status = try_rate(l, t->lr, i, &t->loss);
        if (status == QKV_NUMERIC) break;
        QKV_TRY(status);
        sum = MEMORY * sum + t->loss;
        weight = MEMORY * weight + 1;
        t->smooth = sum / weight;
        *used = i + 1;
        if (t->smooth < lowest) lowest = t->smooth, *best = t->lr / 10;
        if (t->smooth > AWAY * lowest) break;
        QKV_TRY(qkv_loop_phase(l, "trying rates", (double)(i + 1) / (double)n));
    }
    return QKV_OK;
}
