/* One run, from the request to its end. */
#include "base/parallel.h"
#include "run/train_run.h"

#include <math.h>

/* Rank 0 makes what is missing in the folder (tokenizer, ids, settings);
 * the others then find it there. */
static qkv_status prepare_ranks(qkv_run *r, const qkv_run_wish *wish) {
    const int rank = qkv_parallel_rank();
    *r = (qkv_run){.lock = -1};
    QKV_TRY(qkv_parallel_agree(rank == 0 ? qkv_run_prepare(r, wish) : QKV_OK));
    return qkv_parallel_agree(rank > 0 ? qkv_run_prepare(r, wish) : QKV_OK);
}

static qkv_status train(qkv_run *r) {
    const qkv_outcome *o = &r->before;
    const qkv_loop_state ended = {.step = o->step,
                                  .best_step = o->best_step,
                                  .best = o->best_step ? o->best : -INFINITY,
                                  .best_right = o->best_step ? o->best_right : -INFINITY,
                                  .cpu_before = o->cpu_seconds,
                                  .seconds_before = o->seconds};
    qkv_loop l = {.config = r->train,
                  .goes_on = r->request->init != NULL,
                  .tuning = r->tuning,
                  .model = r->model,
                  .task = qkv_task_spec_of(r->tokenizer, &r->config),
                  .train = &r->train_ids,
                  .train_rows = r->train_rows,
                  .valid = r->valid_ids.n && !r->train.overfit ? &r->valid_ids : NULL,
                  .valid_held_out = r->valid_ids.n && !r->train.overfit && !r->has_valid_corpus,
                  .run = r->request->out,
                  .progress = qkv_run_tell,
                  .user = r,
                  .after = r->further ? &ended : NULL,
                  .cpu_start = r->cpu_start,
                  .clock_start = r->clock_start};
    l.task.continues = r->continues;
    QKV_TRY(qkv_run_learn_files(r));
    QKV_TRY(qkv_loop_init(&l));
    r->begun = true;
    qkv_status status = r->further ? qkv_run_write_settings(r) : QKV_OK;
    if (status == QKV_OK && qkv_parallel_rank() == 0)
        status = qkv_run_log_open(&r->log, r->request->out, l.state.step);
    if (status == QKV_OK) status = qkv_run_header(r, &l);
    status = qkv_parallel_agree(status);
    if (status == QKV_OK) status = qkv_loop_run(&l);
    if (status == QKV_OK) status = qkv_run_finish(r, &l);
    if (status == QKV_INTERRUPTED) qkv_run_leave_usable(r, &l);
    qkv_loop_free(&l);
    return status;
}

qkv_status qkv_run_once(const qkv_run_wish *wish, qkv_outcome *out) {
    qkv_run r;
    qkv_status status = prepare_ranks(&r, wish);
    if (status == QKV_OK && r.repeats) {
        status = qkv_run_say_finished(&r);
    } else if (status == QKV_OK) {
        status = qkv_run_model(&r);
        if (status == QKV_OK) status = train(&r);
    }
    if (status == QKV_OK && out) *out = r.before;
    if (status != QKV_OK && status != QKV_INTERRUPTED) qkv_run_leave_nothing(&r);
    qkv_run_free(&r);
    return status;
}

qkv_status qkv_train(const qkv_train_request *request) {
    const qkv_run_wish wish = {.request = request, .folder = true};
    QKV_TRY(qkv_parallel_begin());
    const qkv_status status = qkv_run_once(&wish, NULL);
    /* These all ranks have alike. After others a rank just goes,
     * and the launcher ends those that wait for it. */
    if (status == QKV_OK || status == QKV_INTERRUPTED || status == QKV_NUMERIC) qkv_parallel_end();
    return status;
}

int qkv_train_rank(void) {
    return qkv_parallel_rank();
}
