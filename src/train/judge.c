/* Validation: how good the weights are that would be handed out, and whether they are the best.
 *
 * The loss of a step is no figure to hold against it: it counts label smoothing, dropout and both
 * views of r_drop, of weights that are not averaged yet, and of a classifier the encoder alone. So
 * some of the rows that are trained on are judged in the same way as those that are not: the two
 * losses of a validation differ in the rows alone. */
#include "base/clock.h"
#include "base/parallel.h"
#include "train/loop.h"

#include <math.h>

enum { KNOWN_MOST = 16 }; /* batches of training data, and no more than there are to validate on */

/* Sums over k batches of b, evenly spread. */
static qkv_status add_batches(qkv_loop *l, const qkv_batcher *b, int64_t k, qkv_step_result *sum) {
    qkv_status status = QKV_OK;
    *sum = (qkv_step_result){0};
    for (int64_t i = qkv_parallel_rank(); i < k && status == QKV_OK; i += qkv_parallel_size()) {
        status = qkv_stepper_evaluate(&l->stepper, b, i * b->n_batches / k, sum);
        if (status == QKV_OK) status = qkv_loop_phase(l, "validation", (double)i / (double)k);
    }
    return qkv_loop_add_ranks(status, sum);
}

qkv_status qkv_loop_measure(qkv_loop *l, const qkv_batcher *b, qkv_step_result *sum) {
    return add_batches(l, b, b->n_batches, sum);
}

int64_t qkv_loop_known(const qkv_loop *l) {
    const int64_t n = l->valid_batches.n_batches, all = l->known_batches.n_batches,
                  most = n < KNOWN_MOST ? n : KNOWN_MOST;
    return all < most ? all : most;
}

static double mean_loss(const qkv_step_result *sum) {
    return sum->loss / (double)(sum->n_targets > 0 ? sum->n_targets : 1);
}

/* Counts the validations since one was better by more than the margin; what companions can do alone
 * is the first to be better than. */
static void count_stale(qkv_loop *l, double score) {
    double mark = l->state.mark;
    if (!isfinite(mark)) mark = l->margin > 0 && l->alone > 0 ? -l->alone : l->state.best;
    const bool better = !isfinite(mark) || score > mark + l->margin * fabs(mark);
    l->state.mark = better ? score : mark;
    l->state.stale = better ? 0 : l->state.stale + 1;
}

/* Validates the weights that would be handed out, and remembers the best. */
static qkv_status judge(qkv_loop *l, qkv_progress *p) {
    qkv_step_result sum, known;
    const double begin = qkv_now();
    QKV_TRY(qkv_loop_phase(l, "validation", 0));
    qkv_average_enter(&l->average);
    qkv_status status = qkv_loop_weigh(l);
    if (status == QKV_OK) status = qkv_loop_measure(l, &l->valid_batches, &sum);
    if (status == QKV_OK) status = add_batches(l, &l->known_batches, qkv_loop_known(l), &known);
    qkv_average_leave(&l->average);
    QKV_TRY(status);
    const qkv_config *model = qkv_model_config(l->model);
    p->loss = mean_loss(&sum);
    p->train_loss = mean_loss(&known);
    p->accuracy = qkv_loop_right(l, &sum);
    const qkv_task *task = qkv_task_of(model);
    const double score = task->score ? task->score(model, p->loss, p->accuracy) : -p->loss;
    p->best = score > l->state.best;
    count_stale(l, score);
    if (p->best)
        l->state.best = score, l->state.best_step = l->state.step,
        l->state.best_right = isnan(p->accuracy) ? 0 : p->accuracy;
    l->valid_loss = p->loss;
    l->valid_right = p->accuracy;
    const double before = l->pace.validation, now = qkv_now() - begin;
    l->pace.validation = before > 0 ? (before + now) / 2 : now;
    return QKV_OK;
}

qkv_status qkv_loop_mark(qkv_loop *l) {
    qkv_progress p = {.kind = QKV_PROGRESS_VALID, .seconds = qkv_now() - l->started};
    l->recent = (qkv_step_result){0};
    l->recent_seconds = 0;
    l->state.pending = true;
    qkv_optim_settle(&l->stepper.optim);
    qkv_average_take(&l->average, l->state.step);
    if (l->valid) QKV_TRY(judge(l, &p));
    l->state.pending = false;
    const qkv_status told = l->valid ? qkv_loop_tell(l, &p) : QKV_OK;
    if (l->run) QKV_TRY(qkv_loop_save(l, p.best || !l->valid));
    return told;
}
