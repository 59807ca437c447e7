/* Steps that are passed over: not finite, or far out of the ordinary. What is known of one goes
 * into the run's folder as incidents/step-N.json, so that the batch can be found and looked at. */
#include "train/loop.h"
#include "base/file.h"
#include "base/json.h"
#include "base/parallel.h"

#include <math.h>
#include <stdio.h>

enum {
    SKIPS_IN_A_ROW = 3, /* before the run gives up */
    SETTLED = 50        /* updates before anything counts as out of the ordinary */
};
static const double MEMORY = 0.99; /* of the usual norm, per update */
static const double HARMLESS = 10; /* × clip: what clipping tames by itself */

double qkv_loop_norm_limit(const qkv_loop *l) {
    if (l->config.outlier == 0 || l->stepper.optim.step < SETTLED) return 0;
    const double usual = l->config.outlier * sqrt(l->state.usual),
                 least = HARMLESS * l->config.clip;
    return usual > least ? usual : least;
}

void qkv_loop_norm_seen(qkv_loop *l, double norm) {
    const double limit = qkv_loop_norm_limit(l);
    if (!isfinite(norm)) return;
    if (limit > 0 && norm > limit) norm = limit; /* a new level is learned, one wild step is not */
    const double share = l->state.usual == 0 ? 1 : 1 - MEMORY;
    l->state.usual += share * (norm * norm - l->state.usual);
}

/* JSON has no word for what is not finite. */
static void put_number(qkv_json_out *j, const char *key, double x) {
    char text[32];
    qkv_json_put_key(j, key);
    if (isfinite(x)) {
        qkv_json_put_real(j, x, 9);
    } else {
        snprintf(text, sizeof text, "%g", x);
        qkv_json_put_text(j, text);
    }
}

/* The rows of the data (from 1) that the step's batches were made of; of joined text:
 * the first token of each window. */
static void put_batches(qkv_loop *l, qkv_json_out *j) {
    qkv_batcher *b = &l->train_batches;
    qkv_json_put_key(j, b->window ? "tokens_from" : "rows");
    qkv_json_open(j, '[');
    qkv_loop_find_place(l);
    for (int64_t k = 0; k < l->config.accumulate; k++) {
        int64_t n;
        const int64_t *examples = qkv_batcher_get(b, qkv_loop_next_batch(l), &n);
        for (int64_t i = 0; i < n; i++)
            qkv_json_put_int(j, b->window       ? b->shift + examples[i] * b->window
                                : l->train_rows ? l->train_rows[examples[i]]
                                                : examples[i] + 1);
    }
    qkv_json_close(j, ']');
    qkv_loop_find_place(l);
}

static qkv_status write_incident(qkv_loop *l, const qkv_update *u, const qkv_step_result *r,
                                 const char *why) {
    qkv_buf text = {0}, path = {0};
    qkv_json_out j = qkv_json_begin(&text, 1);
    qkv_json_open(&j, '{');
    qkv_json_put_key(&j, "step");
    qkv_json_put_int(&j, l->state.step + 1);
    qkv_json_put_key(&j, "why");
    qkv_json_put_text(&j, why);
    put_number(&j, "lr", u->lr);
    put_number(&j, "norm", u->norm);
    put_number(&j, "usual_norm", sqrt(l->state.usual));
    put_number(&j, "loss", r->loss / (double)(r->n_targets > 0 ? r->n_targets : 1));
    put_batches(l, &j);
    qkv_json_close(&j, '}');
    qkv_buf_putc(&text, '\n');
    qkv_buf_printf(&path, "%s/incidents", l->run);
    qkv_status status = text.status != QKV_OK ? text.status : path.status;
    if (status == QKV_OK) status = qkv_folder_make(path.data);
    qkv_buf_printf(&path, "/step-%08lld.json", (long long)l->state.step + 1);
    if (status == QKV_OK) status = path.status;
    if (status == QKV_OK) status = qkv_file_write(path.data, text.data, text.len);
    qkv_buf_free(&text);
    qkv_buf_free(&path);
    return status;
}

qkv_status qkv_loop_skip(qkv_loop *l, const qkv_update *u, const qkv_step_result *r, bool stop) {
    char why[512];
    snprintf(why, sizeof why, "%s", qkv_error());
    qkv_params_zero_grads(qkv_model_params(l->model));
    l->state.skipped++;
    l->state.skipped_in_a_row++;
    qkv_loop_norm_seen(l, u->norm);
    if (l->run)
        QKV_TRY(
            qkv_parallel_agree(qkv_parallel_rank() == 0 ? write_incident(l, u, r, why) : QKV_OK));
    if (stop || l->state.skipped_in_a_row >= SKIPS_IN_A_ROW)
        return qkv_fail(
            QKV_NUMERIC,
            "training stopped at step %lld: %s; the last good checkpoint is untouched, "
            "and %s/incidents names the rows. Try --lr %.2g, a longer --warmup, or look "
            "at those rows",
            (long long)l->state.step + 1, why, l->run ? l->run : "(no folder)", l->config.lr / 3);
    char said[600];
    snprintf(said, sizeof said, "step %lld is passed over: %s", (long long)l->state.step + 1, why);
    return qkv_loop_tell(l, &(qkv_progress){.kind = QKV_PROGRESS_NOTE, .text = said});
}
