/* The ledger, and one run of many: see trials.h. */
#include "run/trials.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/sys.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const qkv_setting rows[] = {
#define SETTINGS_OWNER qkv_trial_entry
#include "base/settings_rows.h"
#include "run/trial.def"
#include "base/settings_end.h"
};

static qkv_settings settings_of(qkv_trial_entry *e) {
    return (qkv_settings){.rows = rows, .n = sizeof rows / sizeof *rows, .values = e};
}

/* ---- the ledger ---- */

/* A line that was not written to its end is left out: that run is made again. */
static qkv_status read_line(qkv_series_of_runs *t, const char *line, size_t n) {
    static const qkv_json_limits limits = {.bytes = 4096, .nodes = 64, .depth = 2};
    qkv_trial_entry e;
    const qkv_settings s = settings_of(&e);
    qkv_json doc;
    qkv_settings_default(&s);
    if (qkv_json_parse(&doc, "the ledger", line, n, limits) != QKV_OK) return QKV_OK;
    const bool whole = qkv_settings_read(&s, 1, qkv_json_root(&doc), NULL) == QKV_OK;
    qkv_json_free(&doc);
    if (!whole) return QKV_OK;
    if (strcmp(e.mark, t->mark) != 0)
        return qkv_fail(QKV_USAGE,
                        "%s holds trials of another command or of other data; give that one to go "
                        "on, another --out, or --overwrite",
                        t->request->out);
    return QKV_PUSH(t->done, e) ? QKV_OK : QKV_FAILED;
}

static qkv_status read_ledger(qkv_series_of_runs *t, const char *path) {
    qkv_file file;
    qkv_status status = QKV_OK;
    if (!qkv_file_exists(path)) return QKV_OK;
    QKV_TRY(qkv_file_open(path, (size_t)16 << 20, &file));
    for (const char *at = file.data, *end = at + file.size; at < end && status == QKV_OK;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) break;
        status = read_line(t, at, (size_t)(stop - at));
        at = stop + 1;
    }
    qkv_file_close(&file);
    return status;
}

static qkv_status append_line(const char *path, const qkv_buf *line) {
    FILE *file = qkv_sys_append(path);
    bool written = file && fwrite(line->data, 1, line->len, file) == line->len;
    if (file && fclose(file) != 0) written = false;
    return written ? QKV_OK
                   : qkv_fail(QKV_FAILED, "%s: cannot be written: %s", path, strerror(errno));
}

static qkv_status keep(qkv_series_of_runs *t, qkv_trial_entry e) {
    const qkv_settings s = settings_of(&e);
    qkv_buf line = {0}, path = {0};
    qkv_json_out j = qkv_json_begin(&line, 0);
    snprintf(e.mark, sizeof e.mark, "%s", t->mark);
    qkv_json_open(&j, '{');
    qkv_settings_write(&s, &j);
    qkv_json_close(&j, '}');
    qkv_buf_putc(&line, '\n');
    qkv_status status = line.status;
    if (status == QKV_OK) status = qkv_folder_part(t->request->out, t->ledger, &path);
    if (status == QKV_OK) status = qkv_folder_make(t->request->out);
    if (status == QKV_OK) status = append_line(path.data, &line);
    qkv_buf_free(&line);
    qkv_buf_free(&path);
    if (status == QKV_OK && !QKV_PUSH(t->done, e)) status = QKV_FAILED;
    return status;
}

static qkv_status remove_trial(const qkv_series_of_runs *t, qkv_folder_item part) {
    qkv_buf path = {0};
    qkv_status status = qkv_folder_part(t->request->out, part, &path);
    if (status == QKV_OK) status = qkv_run_remove(path.data);
    qkv_buf_free(&path);
    return status;
}

qkv_status qkv_trials_open(qkv_series_of_runs *t, const qkv_train_request *request,
                           qkv_folder_item ledger, int kind) {
    const qkv_task *row;
    qkv_buf path = {0};
    *t = (qkv_series_of_runs){.request = request, .ledger = ledger, .begun = qkv_now()};
    for (int i = 0; (row = qkv_task_at(i)); i++)
        if (strcmp(row->name, request->task) == 0) t->task = row;
    if (!request->out)
        return qkv_fail(QKV_USAGE, "train needs a folder for what it finds: --out DIR");
    for (const char *const *p = request->train; p && *p; p++)
        if (strcmp(*p, "-") == 0)
            return qkv_fail(QKV_USAGE, "standard input (-) can be read only once; trainings that "
                                       "are compared need a file");
    if (qkv_parallel_size() > 1)
        return qkv_fail(QKV_USAGE, "trainings are compared by one process, not by %d",
                        qkv_parallel_size());
    char mark[33];
    QKV_TRY(qkv_request_mark(request, mark));
    snprintf(t->mark, sizeof t->mark, "%s/%d", mark, kind);
    if (request->overwrite || !mark[0]) {
        QKV_TRY(remove_trial(t, ledger));
        QKV_TRY(remove_trial(t, QKV_PART_TRIAL));
    }
    qkv_status status = qkv_folder_part(request->out, ledger, &path);
    if (status == QKV_OK) status = read_ledger(t, path.data);
    qkv_buf_free(&path);
    return status;
}

void qkv_trials_close(qkv_series_of_runs *t) {
    qkv_free(t->done.at);
}

/* ---- telling ---- */

/* A qkv_train_request.progress: steps and phases go on with a label and the time of all runs. */
static bool pass_on(void *user, const qkv_progress *p) {
    qkv_series_of_runs *t = user;
    const qkv_train_request *q = t->request;
    const double now = qkv_now();
    qkv_progress said = *p;
    said.part = t->label;
    if (p->kind == QKV_PROGRESS_STEP) {
        t->run_takes = now - t->run_begun + p->seconds_left;
        t->quiet = true;
        said.seconds_left =
            t->until > 0 ? t->until - now
                         : p->seconds_left + t->to_come * (now - t->run_begun + p->seconds_left);
    }
    if (p->kind == QKV_PROGRESS_VALID || (p->kind == QKV_PROGRESS_NOTE && t->quiet))
        said = (qkv_progress){.kind = QKV_PROGRESS_ALIVE};
    if (q->progress && !q->progress(q->user, &said)) t->stopped = true;
    if (t->deadline > 0 && now > t->deadline) t->late = true;
    return !t->stopped && !t->late;
}

qkv_status qkv_trials_note(qkv_series_of_runs *t, const char *format, ...) {
    char line[600];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    const qkv_progress p = {.kind = QKV_PROGRESS_NOTE, .text = line};
    const qkv_train_request *q = t->request;
    if (q->progress && !q->progress(q->user, &p)) t->stopped = true;
    return t->stopped ? qkv_fail(QKV_INTERRUPTED, "stopped; the same command goes on") : QKV_OK;
}

/* ---- a run ---- */

static size_t count(const char *const *list) {
    size_t n = 0;
    while (list && list[n]) n++;
    return n;
}

static qkv_status run_it(qkv_series_of_runs *t, const qkv_variation *v, const char *folder,
                         qkv_outcome *out) {
    const qkv_train_request *base = t->request;
    const size_t n = count(base->set), more = count(v->set);
    const char **set = qkv_zalloc(n + more + 1, sizeof *set);
    if (!set) return QKV_FAILED;
    for (size_t i = 0; i < n + more; i++) set[i] = i < n ? base->set[i] : v->set[i - n];
    qkv_train_request q = *base;
    q.out = folder;
    q.set = set;
    q.overwrite = q.keep_checkpoints = false;
    q.progress = pass_on;
    q.user = t;
    if (v->preset) q.preset = v->preset;
    const qkv_run_wish wish = {.request = &q, .folder = true, .part = v->part, .parts = v->parts};
    const qkv_status status = qkv_run_once(&wish, out);
    qkv_free(set);
    return status;
}

qkv_status qkv_trials_run(qkv_series_of_runs *t, const qkv_variation *v, bool daring) {
    qkv_outcome o = {0};
    qkv_buf folder = {0};
    t->run_begun = qkv_now();
    t->late = false;
    QKV_TRY(qkv_folder_part(t->request->out, QKV_PART_TRIAL, &folder));
    qkv_buf_printf(&folder, "/%zu", t->done.n + 1); /* what a kill leaves of one is no other's */
    qkv_status status = folder.status;
    if (status == QKV_OK) status = run_it(t, v, folder.data, &o);
    qkv_buf_free(&folder);
    const bool late = status == QKV_INTERRUPTED && t->late && !t->stopped,
               refused = (status == QKV_USAGE || status == QKV_NUMERIC) && daring;
    if (status != QKV_OK && !late && !refused) return status;
    if (late && !daring) { /* the first of a search: not kept, and gone on with by the next */
        const qkv_trial_entry none = {.over = false};
        return QKV_PUSH(t->done, none) ? QKV_OK : QKV_FAILED;
    }
    qkv_trial_entry e = {.over = status == QKV_OK,
                         .targets = o.aside,
                         .loss = o.aside_loss,
                         .right = o.aside_right,
                         .seconds = status == QKV_OK ? o.seconds : qkv_now() - t->run_begun,
                         .lr = o.lr,
                         .passes = o.passes};
    snprintf(e.what, sizeof e.what, "%s", v->what);
    QKV_TRY(keep(t, e));
    return remove_trial(t, QKV_PART_TRIAL);
}

bool qkv_trials_better(const qkv_series_of_runs *t, const qkv_trial_entry *a,
                       const qkv_trial_entry *b) {
    if (a->over != b->over) return a->over;
    if (t->task->counts_right && a->right != b->right) return a->right > b->right;
    return a->loss < b->loss;
}

/* ---- the caller's copy ---- */

/* One block: the trials, then their words. */
qkv_status qkv_trials_give(const qkv_series_of_runs *t, qkv_trials *out) {
    const size_t n = t->done.n;
    qkv_trial *list = qkv_zalloc(n + 1, sizeof *list + sizeof t->done.at->what);
    *out = (qkv_trials){.trials = list, .n = n, .memory = list};
    if (!list) return QKV_FAILED;
    char *words = (char *)(list + n + 1);
    for (size_t i = 0; i < n; i++) {
        const qkv_trial_entry *e = &t->done.at[i];
        char *what = words + i * sizeof e->what;
        memcpy(what, e->what, sizeof e->what);
        list[i] = (qkv_trial){.what = what,
                              .over = e->over,
                              .targets = e->targets,
                              .loss = e->loss,
                              .right = e->right,
                              .seconds = e->seconds};
        if (qkv_trials_better(t, e, &t->done.at[out->best])) out->best = i;
    }
    out->by_right = t->task->counts_right;
    return QKV_OK;
}

void qkv_trials_free(qkv_trials *t) {
    qkv_free(t->memory);
    *t = (qkv_trials){0};
}
