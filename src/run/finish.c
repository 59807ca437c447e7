/* The end of a run: the weights that are to be used and what belongs to them go into the folder,
 * then what only the training needed goes. A run that was stopped leaves its best so far, and all
 * that it takes to go on. */
#include "base/file.h"
#include "base/parallel.h"
#include "folder/folder.h"
#include "model/weights.h"
#include "run/train_run.h"
#include "task/companion.h"

#include <stdio.h>
#include <string.h>

/* What companions found out goes into the configuration. */
static void keep_found(qkv_run *r) {
    const qkv_companion *companion;
    for (int i = 0; (companion = qkv_companion_at(&r->config, i)); i++)
        if (companion->keep) companion->keep(&r->config, qkv_model_config(r->model));
}

qkv_status qkv_run_learn_files(qkv_run *r) {
    qkv_buf path = {0};
    const qkv_companion *companion;
    qkv_status status = QKV_OK;
    if (qkv_parallel_rank() > 0) return QKV_OK;
    for (int i = 0; status == QKV_OK && (companion = qkv_companion_at(&r->config, i)); i++) {
        if (!companion->learn) continue;
        status = qkv_folder_file(r->request->out, companion->file, &path);
        if (status == QKV_OK && r->begun && qkv_file_exists(path.data)) continue;
        if (status == QKV_OK) status = qkv_run_phase(r, companion->name);
        if (status == QKV_OK) status = companion->learn(&r->train_ids, &r->config, path.data);
    }
    qkv_buf_free(&path);
    return status;
}

/* The model as it is now: a folder that can be used. */
static qkv_status write_model(qkv_run *r) {
    qkv_buf path = {0};
    QKV_TRY(qkv_folder_write_config(r->request->out, &r->config, &r->corpus.labels));
    qkv_status status = qkv_folder_part(r->request->out, QKV_PART_WEIGHTS, &path);
    if (status == QKV_OK) status = qkv_weights_save(qkv_model_params(r->model), path.data);
    qkv_buf_free(&path);
    return status;
}

static qkv_status write_outcome(qkv_run *r, qkv_loop *l) {
    qkv_outcome o = {.epochs = r->train.epochs,
                     .steps = r->train.steps,
                     .minutes = r->train.minutes,
                     .passes = l->epoch + (l->batch > 0),
                     .lr = l->config.lr,
                     .step = l->state.step,
                     .seconds = qkv_loop_seconds(l),
                     .cpu_seconds = qkv_loop_cpu(l)};
    if (l->state.best_step > 0) {
        o.best_step = l->state.best_step;
        o.best = l->state.best;
        o.best_right = l->state.best_right;
    }
    QKV_TRY(qkv_request_mark(r->request, o.request));
    QKV_TRY(qkv_run_measure_aside(r, l, &o));
    r->before = o;
    return qkv_outcome_write(r->request->out, &o);
}

qkv_status qkv_run_finish(qkv_run *r, qkv_loop *l) {
    QKV_TRY(qkv_loop_conclude(l, true));
    if (qkv_parallel_rank() > 0) return QKV_OK;
    keep_found(r);
    QKV_TRY(write_model(r));
    QKV_TRY(qkv_run_summary(r, l));
    QKV_TRY(write_outcome(r, l));
    return qkv_run_tidy(r);
}

/* ---- stopped ---- */

static qkv_status leave_best(qkv_run *r, qkv_loop *l) {
    l->closing = true;
    QKV_TRY(qkv_loop_conclude(l, false));
    if (qkv_parallel_rank() > 0) return QKV_OK;
    keep_found(r);
    return write_model(r);
}

void qkv_run_leave_usable(qkv_run *r, qkv_loop *l) {
    char why[1024];
    if (l->state.step == 0) return;
    snprintf(why, sizeof why, "%s", qkv_error()); /* which is to be told, whatever happens here */
    const qkv_status status = leave_best(r, l);
    if (status == QKV_OK)
        qkv_run_say_stopped(r, l);
    else
        (void)qkv_run_note(r, "warning   the model so far is not in place: %s", qkv_error());
    (void)qkv_fail(QKV_INTERRUPTED, "%s", why);
}
