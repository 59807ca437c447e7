/* The course of a training, step by step, in its folder; see train_log.h. */
#include "run/train_log.h"
#include "base/sys.h"
#include "base/file.h"
#include "base/json.h"
#include "folder/folder.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static const qkv_json_limits line_limits = {.bytes = 4096, .nodes = 64, .depth = 2};

/* False for a line that is not whole (cut off by a kill). */
static bool read_entry(const char *line, size_t len, qkv_log_entry *e) {
    qkv_json doc;
    if (qkv_json_parse(&doc, "log.jsonl", line, len, line_limits) != QKV_OK) return false;
    const qkv_json_at root = qkv_json_root(&doc);
    const char *kind = "";
    size_t n = 0;
    const bool whole =
        qkv_json_get_string(root, "kind", true, &kind, &n) == QKV_OK &&
        qkv_json_get_int(root, "step", true, 0, INT64_MAX, &e->step) == QKV_OK &&
        qkv_json_get_real(root, "loss", true, -INFINITY, INFINITY, &e->loss) == QKV_OK;
    e->valid = n == 5 && memcmp(kind, "valid", 5) == 0;
    e->best = false;
    e->accuracy = e->train_loss = NAN;
    (void)qkv_json_get_bool(root, "best", false, &e->best);
    (void)qkv_json_get_real(root, "accuracy", false, 0, 1, &e->accuracy);
    (void)qkv_json_get_real(root, "train_loss", false, -INFINITY, INFINITY, &e->train_loss);
    qkv_json_free(&doc);
    return whole;
}

/* Sees an entry and the line that it was read from; false: no more. */
typedef bool (*line_fn)(void *user, const qkv_log_entry *e, const char *line, size_t len);

/* Calls `use` for every whole line of the log; no log: none. */
static qkv_status each_line(const char *path, line_fn use, void *user) {
    qkv_file file;
    if (!qkv_file_exists(path)) return QKV_OK;
    QKV_TRY(qkv_file_open(path, SIZE_MAX, &file));
    bool go_on = true;
    for (const char *at = file.data, *end = at + file.size; at < end && go_on;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop) break;
        qkv_log_entry e;
        if (read_entry(at, (size_t)(stop - at), &e))
            go_on = use(user, &e, at, (size_t)(stop + 1 - at));
        at = stop + 1;
    }
    qkv_file_close(&file);
    return go_on ? QKV_OK : QKV_FAILED;
}

typedef struct kept {
    qkv_buf text;
    int64_t step;
} kept;

static bool keep(void *user, const qkv_log_entry *e, const char *line, size_t len) {
    kept *k = user;
    if (e->step <= k->step) qkv_buf_add(&k->text, line, len);
    return k->text.status == QKV_OK;
}

qkv_status qkv_run_log_open(qkv_run_log *log, const char *folder, int64_t step) {
    qkv_buf path = {0};
    kept k = {.step = step};
    QKV_TRY(qkv_folder_part(folder, QKV_PART_LOG, &path));
    qkv_status status = each_line(path.data, keep, &k);
    if (status == QKV_OK && qkv_file_exists(path.data))
        status = qkv_file_write(path.data, k.text.len ? k.text.data : "", k.text.len);
    if (status == QKV_OK && !(log->file = qkv_sys_append(path.data)))
        status = qkv_fail(QKV_FAILED, "%s: cannot be written: %s", path.data, strerror(errno));
    if (log->file) setvbuf(log->file, NULL, _IOLBF, BUFSIZ); /* who follows it sees whole lines */
    if (status == QKV_OK) status = qkv_tensorboard_open(&log->board, folder);
    qkv_buf_free(&k.text);
    qkv_buf_free(&path);
    return status;
}

void qkv_run_log_close(qkv_run_log *log) {
    if (log->file) fclose(log->file);
    qkv_tensorboard_close(&log->board);
}

/* A full disk must not end a training for want of a log line: failures here are passed over. `loss`
 * is that of the steps since the last line, or of the validation. */
static void write_line(qkv_run_log *log, const qkv_progress *p, double loss) {
    const bool step = p->kind == QKV_PROGRESS_STEP;
    fprintf(log->file, "{\"kind\":\"%s\",\"step\":%lld,\"epoch\":%lld,\"loss\":%.6g,",
            step ? "step" : "valid", (long long)p->step, (long long)p->epoch,
            isfinite(loss) ? loss : 0);
    if (isfinite(p->accuracy)) fprintf(log->file, "\"accuracy\":%.6g,", p->accuracy);
    fprintf(log->file, "\"lr\":%.6g,\"norm\":%.6g,\"tokens_per_s\":%.6g", p->lr,
            isfinite(p->norm) ? p->norm : 0, p->tokens_per_s);
    if (!step && isfinite(p->train_loss)) fprintf(log->file, ",\"train_loss\":%.6g", p->train_loss);
    if (!step) fprintf(log->file, ",\"best\":%s", p->best ? "true" : "false");
    fprintf(log->file, "}\n");
    const struct {
        const char *tag;
        double value;
        bool of_step;
    } curves[] = {
        {"loss/train", loss, true},
        {"lr", p->lr, true},
        {"tokens_per_s", p->tokens_per_s, true},
        {"loss/valid", loss, false},
        {"loss/known", p->train_loss, false},
        {"accuracy/valid", p->accuracy, false},
    };
    for (size_t i = 0; i < sizeof curves / sizeof *curves; i++)
        if (log->board.file && step == curves[i].of_step && !isnan(curves[i].value))
            (void)!qkv_tensorboard_scalar(&log->board, curves[i].tag, p->step, curves[i].value);
    if (!step) fflush(log->file);
}

void qkv_run_log_keep(qkv_run_log *log, const qkv_progress *p) {
    if (!log->file) return;
    if (p->kind == QKV_PROGRESS_VALID) write_line(log, p, p->loss);
    if (p->kind != QKV_PROGRESS_STEP) return;
    log->unlogged += p->step_loss;
    log->n_unlogged++;
    if (p->step % 10 != 0 && p->step > 10) return;
    write_line(log, p, log->unlogged / (double)log->n_unlogged);
    log->unlogged = 0;
    log->n_unlogged = 0;
}

/* ---- reading ---- */

typedef struct reader {
    bool (*see)(void *user, const qkv_log_entry *e);
    void *user;
} reader;

static bool show(void *user, const qkv_log_entry *e, const char *line, size_t len) {
    (void)line, (void)len;
    const reader *r = user;
    return r->see(r->user, e);
}

qkv_status qkv_run_log_read(qkv_run_log *log, const char *folder,
                            bool (*see)(void *user, const qkv_log_entry *e), void *user) {
    qkv_buf path = {0};
    reader r = {see, user};
    if (log->file) fflush(log->file);
    qkv_status status = qkv_folder_part(folder, QKV_PART_LOG, &path);
    if (status == QKV_OK) status = each_line(path.data, show, &r);
    qkv_buf_free(&path);
    return status;
}
