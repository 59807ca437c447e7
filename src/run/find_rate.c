/* qkv_find_lr: a range test of learning rates on the data and model of a training request. */
#include "run/train_run.h"
#include "base/mem.h"
#include "train/find_lr.h"

enum { TRIALS = 100, FEWEST = 10 };

static qkv_status search(qkv_run *r, qkv_lr_trial *trials, qkv_lr_search *out) {
    qkv_loop l = {.config = r->train,
                  .goes_on = r->request->init != NULL,
                  .tuning = r->tuning,
                  .model = r->model,
                  .task = qkv_task_spec_of(r->tokenizer, &r->config),
                  .train = &r->train_ids,
                  .progress = qkv_run_tell,
                  .user = r};
    l.config.minutes = 0; /* no budget to be timed */
    QKV_TRY(qkv_loop_init(&l));
    int64_t used;
    qkv_status status = qkv_loop_find_lr(&l, 1e-6, 1, trials, TRIALS, &used, &out->best);
    qkv_loop_free(&l);
    if (status == QKV_OK && used < FEWEST)
        status = qkv_fail(QKV_NUMERIC, "the loss is not finite even at a rate of %g",
                          trials[used > 0 ? used - 1 : 0].lr);
    out->n = (size_t)used;
    return status;
}

qkv_status qkv_find_lr(const qkv_train_request *request, qkv_lr_search *out) {
    qkv_run r;
    qkv_lr_trial *trials = qkv_zalloc(TRIALS, sizeof *trials);
    *out = (qkv_lr_search){.trials = trials, .memory = trials};
    if (!trials) return QKV_FAILED;
    qkv_status status = qkv_run_prepare(&r, &(qkv_run_wish){.request = request});
    if (status == QKV_OK) status = qkv_run_model(&r);
    if (status == QKV_OK) status = search(&r, trials, out);
    qkv_run_free(&r);
    if (status != QKV_OK) qkv_lr_search_free(out);
    return status;
}

void qkv_lr_search_free(qkv_lr_search *s) {
    qkv_free(s->memory);
    *s = (qkv_lr_search){0};
}
