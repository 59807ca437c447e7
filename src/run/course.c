/* The course of a training as a picture, loss.svg, and in the terminal: the loss, below it the share
 * of right answers where the log has it, a mark at the best validation. Drawn from the log, so it is
 * whole after any number of resumes. */
#include "run/train_run.h"
#include "base/file.h"
#include "base/mem.h"
#include "draw/chart.h"
#include "model/description.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TEXT = 200, PANELS = 2 };

typedef struct curve {
    QKV_VEC(double) x, y;
} curve;

/* What the log holds: of the steps, of the validations. */
typedef struct curves {
    curve steps, known, valid, right;
} curves;

static bool add_to(curve *c, int64_t step, double value) {
    return isnan(value) || (QKV_PUSH(c->x, (double)step) && QKV_PUSH(c->y, value));
}

static bool add_point(void *user, const qkv_log_entry *e) {
    curves *all = user;
    if (!e->valid) return add_to(&all->steps, e->step, e->loss);
    return add_to(&all->valid, e->step, e->loss) && add_to(&all->known, e->step, e->train_loss) &&
           add_to(&all->right, e->step, 100 * e->accuracy);
}

static bool any_positive(const curve *c) {
    for (size_t i = 0; i < c->y.n; i++)
        if (c->y.at[i] > 0) return true;
    return false;
}

static qkv_series series_of(const char *name, const curve *c) {
    return (qkv_series){name, c->x.at, c->y.at, c->x.n};
}

/* The words of the picture. */
typedef struct words {
    char title[TEXT], subtitle[TEXT], mark[TEXT], loss[TEXT], right[TEXT];
} words;

/* The last part of the folder's path. */
static void name_of(const char *path, char out[TEXT]) {
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/') end--;
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/') begin--;
    snprintf(out, TEXT, "%.*s", (int)(end - begin < 120 ? end - begin : 120), path + begin);
}

static void write_words(const qkv_run *r, const qkv_loop *l, bool right, words *w) {
    static const char *const archs[] = {
        [QKV_ARCH_TRANSFORMER] = "Transformer", [QKV_ARCH_LSTM] = "LSTM", [QKV_ARCH_GRU] = "GRU"};
    const bool nats = r->task->shape.head == QKV_HEAD_VOCAB || qkv_has_labels(r->task->shape);
    char parameters[40], rows[40], step[40];
    qkv_print_grouped((double)qkv_model_params(r->model)->count, parameters);
    qkv_print_grouped((double)r->train_ids.n, rows);
    qkv_print_grouped((double)l->state.best_step, step);
    name_of(r->request->out, w->title);
    snprintf(w->subtitle, TEXT, "%s · %s, %s parameters · %s examples", r->task->name,
             archs[r->config.arch], parameters, rows);
    snprintf(w->loss, TEXT, "loss%s", nats ? ", nats" : "");
    snprintf(w->right, TEXT, "right, %% of %s", r->task->unit ? r->task->unit : "");
    *w->mark = 0;
    if (l->state.best_step > 0 && right && r->task->counts_right)
        snprintf(w->mark, TEXT, "best: step %s, %.1f %% right", step, 100 * l->state.best_right);
    else if (l->state.best_step > 0)
        snprintf(w->mark, TEXT, "best: step %s", step);
}

static qkv_status write_picture(const qkv_run *r, const qkv_chart *charts, size_t n) {
    qkv_buf svg = {0}, path = {0};
    qkv_status status = qkv_charts_svg(charts, n, 760, n > 1 ? 540 : 380, &svg);
    if (status == QKV_OK) status = qkv_path_join(&path, r->request->out, "loss.svg");
    if (status == QKV_OK) status = qkv_file_write(path.data, svg.data, svg.len);
    qkv_buf_free(&svg);
    qkv_buf_free(&path);
    return status;
}

/* One chart below the other, the title and the mark's name with the first. */
static qkv_status tell(qkv_run *r, const qkv_chart *charts, size_t n) {
    const int columns = r->request->columns;
    const qkv_ink ink = {.columns = columns > 0 && columns < 80 ? columns : 80};
    qkv_buf plot = {0};
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        qkv_chart c = charts[i];
        c.title = c.y_label;
        if (i + 1 < n) c.x_label = NULL;
        status = qkv_chart_terminal(&c, ink, i ? 5 : 10, &plot);
    }
    if (status == QKV_OK) { /* the training is done: a wish to stop comes too late */
        const qkv_progress p = {.kind = QKV_PROGRESS_NOTE, .text = plot.data};
        (void)qkv_run_tell(r, &p);
    }
    qkv_buf_free(&plot);
    return status;
}

/* Two curves in one chart are the same figure, of other rows (train/judge.c). Where there are not
 * validations enough, what the steps learned from is drawn, and said to be that. */
static qkv_status draw_curves(qkv_run *r, const qkv_loop *l, const curves *all) {
    const bool judged = all->valid.x.n > 1, right = all->right.x.n > 1 && any_positive(&all->right);
    const char *rows = r->has_valid_corpus ? "validation data" : "rows held out";
    const qkv_series both[] = {series_of("rows trained on", &all->known),
                               series_of(rows, &all->valid)},
                     steps = series_of("steps, with dropout and smoothing", &all->steps),
                     answers[] = {{.name = ""}, series_of(rows, &all->right)};
    words w;
    write_words(r, l, right, &w);
    const double last = all->steps.x.at[all->steps.x.n - 1];
    const qkv_chart first = {.title = w.title,
                             .subtitle = w.subtitle,
                             .x_label = "step",
                             .y_label = w.loss,
                             .series = judged ? both : &steps,
                             .n = judged ? 2 : 1,
                             .x_from = 0,
                             .x_to = last,
                             .mark = (double)l->state.best_step,
                             .mark_name = *w.mark ? w.mark : NULL};
    qkv_chart charts[PANELS] = {first, first};
    charts[1].y_label = w.right;
    charts[1].series = answers;
    charts[1].n = 2;
    const size_t n = right ? 2 : 1;
    const qkv_status status = write_picture(r, charts, n);
    return status == QKV_OK ? tell(r, charts, n) : status;
}

qkv_status qkv_run_show_course(qkv_run *r, const qkv_loop *l) {
    curves all = {0};
    qkv_status status = qkv_run_log_read(&r->log, r->request->out, add_point, &all);
    if (status == QKV_OK && all.steps.x.n > 1) status = draw_curves(r, l, &all);
    curve *const each[] = {&all.steps, &all.known, &all.valid, &all.right};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        qkv_free(each[i]->x.at);
        qkv_free(each[i]->y.at);
    }
    return status;
}
