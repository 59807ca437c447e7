/* A search for a learning rate: some of its steps, the curve, and the rate to use. */
#include "report/show.h"
#include "base/mem.h"
#include "draw/chart.h"
#include "draw/text_table.h"

#include <math.h>

enum { SHOWN = 15, CHART_ROWS = 12 };

static const qkv_ink ink = {.columns = 80};

static qkv_status put_steps(const qkv_lr_search *s, qkv_buf *out) {
    qkv_table t = qkv_table_begin("rrr");
    qkv_table_cell(&t, "rate");
    qkv_table_cell(&t, "loss");
    qkv_table_cell(&t, "running mean");
    for (size_t i = 0; i < s->n; i++) {
        const qkv_lr_trial *one = &s->trials[i];
        if (i % ((s->n + SHOWN - 1) / SHOWN) != 0 && i != s->n - 1) continue;
        qkv_table_cell(&t, "%.2e", one->lr);
        qkv_table_cell(&t, "%.4f", one->loss);
        qkv_table_cell(&t, "%.4f", one->smooth);
    }
    const qkv_status status = qkv_table_print(&t, ink, out);
    qkv_table_free(&t);
    return status;
}

static qkv_status put_curve(const qkv_lr_search *s, qkv_buf *out) {
    double *x = qkv_zalloc(s->n + 1, 2 * sizeof *x);
    if (!x) return QKV_FAILED;
    double *y = x + s->n;
    for (size_t i = 0; i < s->n; i++) {
        x[i] = log10(s->trials[i].lr);
        y[i] = s->trials[i].smooth;
    }
    const qkv_series series = {"running mean of the loss", x, y, s->n};
    const qkv_chart chart = {.title = "Loss by learning rate",
                             .x_label = "log10 of the rate",
                             .y_label = "loss",
                             .series = &series,
                             .n = 1};
    const qkv_status status = qkv_chart_terminal(&chart, ink, CHART_ROWS, out);
    qkv_free(x);
    return status;
}

static void table(const void *result, qkv_buf *out) {
    const qkv_lr_search *s = result;
    qkv_status status = put_steps(s, out);
    qkv_buf_putc(out, '\n');
    if (status == QKV_OK) status = put_curve(s, out);
    qkv_buf_printf(
        out, "\nuse --lr %.1e: a tenth of the rate at which the running mean is lowest\n", s->best);
    if (status != QKV_OK) out->status = status;
}

static void members(const void *result, qkv_json_out *j) {
    const qkv_lr_search *s = result;
    qkv_put_real(j, "best", s->best, 6);
    qkv_json_put_key(j, "trials");
    qkv_json_open(j, '[');
    for (size_t i = 0; i < s->n; i++) {
        qkv_json_open(j, '{');
        qkv_put_real(j, "lr", s->trials[i].lr, 6);
        qkv_put_real(j, "loss", s->trials[i].loss, 6);
        qkv_put_real(j, "smooth", s->trials[i].smooth, 6);
        qkv_json_close(j, '}');
    }
    qkv_json_close(j, ']');
}

qkv_status qkv_lr_search_show(const qkv_lr_search *s, qkv_show how, char **text) {
    return qkv_show_result(s, &(qkv_wording){table, members}, how, text);
}
