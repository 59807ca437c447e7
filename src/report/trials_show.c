/* Trainings that were compared: a row each, and what they say together. */
#include "draw/text_table.h"
#include "report/show.h"

static const qkv_ink ink = {.columns = 80};

static void put_row(qkv_table *t, const qkv_trial *one, const char *mark) {
    qkv_table_cell(t, "%s", *one->what ? one->what : "as chosen");
    if (one->over) {
        qkv_table_cell(t, "%.2f %%", 100 * one->right);
        qkv_table_cell(t, "%.4f", one->loss);
    } else {
        qkv_table_cell(t, "-");
        qkv_table_cell(t, "given up");
    }
    qkv_table_cell(t, "%.0f s", one->seconds);
    qkv_table_cell(t, "%s", mark);
}

static void table(const void *result, qkv_buf *out) {
    const qkv_trials *s = result;
    const bool folds = s->folds;
    qkv_table t = qkv_table_begin("lrrrl");
    qkv_table_cell(&t, folds ? "left out" : "settings");
    qkv_table_cell(&t, "right");
    qkv_table_cell(&t, "loss");
    qkv_table_cell(&t, "time");
    qkv_table_cell(&t, "%s", "");
    for (size_t i = 0; i < s->n; i++)
        put_row(&t, &s->trials[i], !folds && i == s->best ? "best" : "");
    qkv_status status = qkv_table_print(&t, ink, out);
    qkv_table_free(&t);
    if (folds && s->by_right)
        qkv_buf_printf(out, "\nmean %.2f %% right, 95 %% interval %.2f to %.2f\n", 100 * s->mean,
                       100 * (s->mean - s->half_width), 100 * (s->mean + s->half_width));
    else if (folds)
        qkv_buf_printf(out, "\nmean loss %.4f, 95 %% interval %.4f to %.4f\n", s->mean,
                       s->mean - s->half_width, s->mean + s->half_width);
    if (status != QKV_OK) out->status = status;
}

static void members(const void *result, qkv_json_out *j) {
    const qkv_trials *s = result;
    if (s->folds) {
        qkv_put_text(j, "figure", s->by_right ? "right" : "loss");
        qkv_put_real(j, "mean", s->mean, 6);
        qkv_put_real(j, "low", s->mean - s->half_width, 6);
        qkv_put_real(j, "high", s->mean + s->half_width, 6);
    } else {
        qkv_put_count(j, "best", (int64_t)s->best);
    }
    qkv_json_put_key(j, "trials");
    qkv_json_open(j, '[');
    for (size_t i = 0; i < s->n; i++) {
        const qkv_trial *one = &s->trials[i];
        qkv_json_open(j, '{');
        qkv_put_text(j, "what", one->what);
        if (one->over) {
            qkv_put_count(j, "targets", one->targets);
            qkv_put_real(j, "right", one->right, 6);
            qkv_put_real(j, "loss", one->loss, 6);
        }
        qkv_put_real(j, "seconds", one->seconds, 4);
        qkv_json_close(j, '}');
    }
    qkv_json_close(j, ']');
}

qkv_status qkv_trials_show(const qkv_trials *t, qkv_show how, char **text) {
    return qkv_show_result(t, &(qkv_wording){table, members}, how, text);
}
