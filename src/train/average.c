/* The mean is computed from all snapshots, oldest first and in double, whenever it is wanted:
 * sliding a sum along would gather rounding errors, and a resumed run would have
 * others than one never stopped. */
#include "train/average.h"
#include "base/mem.h"
#include "base/thread.h"

#include <assert.h>
#include <string.h>

qkv_status qkv_average_init(qkv_average *a, qkv_optim *optim, int64_t most) {
    *a = (qkv_average){.optim = optim, .most = most > 1 ? most : 0};
    if (a->most == 0) return QKV_OK;
    const size_t bytes = (size_t)optim->params->length * sizeof(real);
    bool whole = (a->kept = qkv_zalloc((size_t)a->most, sizeof *a->kept)) != NULL &&
                 (a->mean = qkv_alloc_aligned(bytes)) != NULL;
    for (int64_t i = 0; i < a->most && whole; i++)
        whole = (a->kept[i].values = qkv_alloc_aligned(bytes)) != NULL;
    if (!whole) qkv_average_free(a);
    return whole ? QKV_OK : QKV_FAILED;
}

void qkv_average_free(qkv_average *a) {
    for (int64_t i = 0; i < a->most && a->kept; i++) qkv_free(a->kept[i].values);
    qkv_free(a->kept);
    qkv_free(a->mean);
    *a = (qkv_average){0};
}

qkv_snapshot *qkv_average_append(qkv_average *a, int64_t step) {
    assert(a->most > 0);
    if (a->n == a->most) { /* the oldest one's memory goes to the end */
        const qkv_snapshot oldest = a->kept[0];
        memmove(a->kept, a->kept + 1, (size_t)(a->n - 1) * sizeof *a->kept);
        a->kept[--a->n] = oldest;
    }
    qkv_snapshot *s = &a->kept[a->n++];
    s->step = step;
    s->stored = false;
    return s;
}

void qkv_average_take(qkv_average *a, int64_t step) {
    if (a->most == 0 || (a->n > 0 && a->kept[a->n - 1].step == step)) return;
    const qkv_params *p = a->optim->params;
    memcpy(qkv_average_append(a, step)->values, p->values, (size_t)p->length * sizeof(real));
}

static void make_mean(const qkv_average *a) {
    const double share = 1 / (double)a->n;
    QKV_PARALLEL_FOR
    for (int64_t i = 0; i < a->optim->params->length; i++) {
        double sum = 0;
        for (int64_t k = 0; k < a->n; k++) sum += (double)a->kept[k].values[i];
        a->mean[i] = (real)(share * sum);
    }
}

static void swap(real *restrict x, real *restrict y, int64_t n) {
    QKV_PARALLEL_FOR
    for (int64_t i = 0; i < n; i++) {
        const real z = x[i];
        x[i] = y[i];
        y[i] = z;
    }
}

/* What stands for the weights, or NULL: they do themselves. */
static real *other(const qkv_average *a) {
    return a->n > 0 ? a->mean : a->optim->ema;
}

void qkv_average_enter(qkv_average *a) {
    const qkv_params *p = a->optim->params;
    if (a->in_place || !other(a)) return;
    if (a->n > 0) make_mean(a);
    swap(p->values, other(a), p->length);
    a->in_place = true;
}

void qkv_average_leave(qkv_average *a) {
    if (!a->in_place) return;
    swap(a->optim->params->values, other(a), a->optim->params->length);
    a->in_place = false;
}
