/* qkv_find_lr: a range test of learning rates on the data and model of a training request,
 * as table and chart. */
#include "run/train_run.h"
#include "base/mem.h"
#include "draw/chart.h"
#include "draw/text_table.h"
#include "train/find_lr.h"

#include <math.h>

enum { TRIALS = 100, SHOWN = 15 };

static qkv_status print(const qkv_lr_trial *trials, int64_t n, double best, qkv_buf *out) {
    qkv_table table = qkv_table_begin("rrr");
    double x[TRIALS], y[TRIALS];
    qkv_table_cell(&table, "rate");
    qkv_table_cell(&table, "loss");
    qkv_table_cell(&table, "running mean");
    for (int64_t i = 0; i < n; i++) {
        x[i] = log10(trials[i].lr);
        y[i] = trials[i].smooth;
        if (i % ((n + SHOWN - 1) / SHOWN) != 0 && i != n - 1) continue;
        qkv_table_cell(&table, "%.2e", trials[i].lr);
        qkv_table_cell(&table, "%.4f", trials[i].loss);
        qkv_table_cell(&table, "%.4f", trials[i].smooth);
    }
    const qkv_series series = {"running mean of the loss", x, y, (size_t)n};
    const qkv_chart chart = {.title = "Loss by learning rate",
                             .x_label = "log10 of the rate",
                             .y_label = "loss",
                             .series = &series,
                             .n = 1};
    const qkv_ink ink = {.columns = 80};
    qkv_status status = qkv_table_print(&table, ink, out);
    qkv_buf_putc(out, '\n');
    if (status == QKV_OK) status = qkv_chart_terminal(&chart, ink, 12, out);
    qkv_table_free(&table);
    qkv_buf_printf(
        out, "\nuse --lr %.1e: a tenth of the rate at which the running mean is lowest\n", best);
    return status == QKV_OK ? out->status : status;
}

static qkv_status search(qkv_run *r, qkv_buf *out) {
    qkv_loop l = {.config = r->train,
                  .goes_on = r->request->init != NULL,
                  .model = r->model,
                  .task = qkv_task_spec_of(r->tokenizer, &r->config),
                  .train = &r->train_ids,
                  .progress = qkv_run_tell,
                  .user = r};
    l.config.minutes = 0; /* no budget to be timed */
    QKV_TRY(qkv_loop_init(&l));
    qkv_lr_trial trials[TRIALS];
    int64_t used;
    double best;
    qkv_status status = qkv_loop_find_lr(&l, 1e-6, 1, trials, TRIALS, &used, &best);
    qkv_loop_free(&l);
    if (status == QKV_OK && used < 10)
        status = qkv_fail(QKV_NUMERIC, "the loss is not finite even at a rate of %g",
                          trials[used > 0 ? used - 1 : 0].lr);
    return status == QKV_OK ? print(trials, used, best, out) : status;
}

qkv_status qkv_find_lr(const qkv_train_request *request, char **text) {
    qkv_buf out = {0};
    qkv_run r;
    *text = NULL;
    qkv_status status = qkv_run_prepare(&r, request, false);
    if (status == QKV_OK) status = qkv_run_model(&r);
    if (status == QKV_OK) status = search(&r, &out);
    qkv_run_free(&r);
    if (status != QKV_OK)
        qkv_buf_free(&out);
    else
        *text = out.data;
    return status;
}
