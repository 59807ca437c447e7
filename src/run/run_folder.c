/* The folder of a run: made and locked, checked against the run that is there, and left as it was
 * found when nothing came of it. */
#include "run/train_run.h"
#include "base/sys.h"
#include "base/file.h"
#include "base/json.h"
#include "base/parallel.h"
#include "store/checkpoint.h"
#include "task/companion.h"

#include <errno.h>
#include <ftw.h>
#include <string.h>
#include <unistd.h>

/* ---- parts ---- */

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place) {
    (void)info, (void)kind, (void)place;
    return remove(path);
}

qkv_status qkv_run_remove(const char *path) {
    if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0 || errno == ENOENT) return QKV_OK;
    return qkv_fail(QKV_FAILED, "%s: cannot be removed: %s", path, strerror(errno));
}

static qkv_status remove_part(const qkv_run *r, qkv_folder_item part) {
    qkv_buf path = {0};
    qkv_status status = qkv_folder_part(r->request->out, part, &path);
    if (status == QKV_OK) status = qkv_run_remove(path.data);
    qkv_buf_free(&path);
    return status;
}

/* ---- opening ---- */

/* How much of a path is there: its length up to the last folder that exists. */
static size_t existing_part(const char *path) {
    qkv_buf part = {0};
    qkv_buf_puts(&part, path);
    size_t n = part.len;
    while (part.status == QKV_OK && n > 0 && !qkv_file_exists(part.data)) {
        while (n > 0 && part.data[n - 1] == '/') n--;
        while (n > 0 && part.data[n - 1] != '/') n--;
        part.data[n] = 0;
    }
    qkv_buf_free(&part);
    return n;
}

/* What was there before, so that a start that is refused takes away no more than it brought. */
static qkv_status look_around(qkv_run *r) {
    qkv_buf path = {0};
    qkv_status status = QKV_OK;
    r->had_path = existing_part(r->request->out);
    for (int i = 0; i < QKV_PART_COUNT && status == QKV_OK; i++) {
        status = qkv_folder_part(r->request->out, (qkv_folder_item)i, &path);
        r->had[i] = status == QKV_OK && qkv_file_exists(path.data);
    }
    qkv_buf_free(&path);
    return status;
}

qkv_status qkv_run_open_folder(qkv_run *r) {
    if (qkv_parallel_rank() > 0) return QKV_OK; /* rank 0 has it, and has locked it */
    QKV_TRY(look_around(r));
    r->begun = r->had[QKV_PART_RUN] && !r->request->overwrite;
    QKV_TRY(qkv_folder_make(r->request->out));
    QKV_TRY(qkv_run_lock(r->request->out, &r->lock));
    for (int i = 0; i < QKV_PART_COUNT && r->request->overwrite; i++)
        if (qkv_folder_part_is_the_runs((qkv_folder_item)i)) {
            QKV_TRY(remove_part(r, (qkv_folder_item)i));
            r->had[i] = false;
        }
    return QKV_OK;
}

/* ---- closing ---- */

/* The folder and those above it that were made for it, as far as they are empty. */
static void remove_folders(const qkv_run *r) {
    qkv_buf path = {0};
    qkv_buf_puts(&path, r->request->out);
    size_t n = path.len;
    while (path.status == QKV_OK && n > r->had_path && qkv_sys.rmdir(path.data) == 0) {
        while (n > 0 && path.data[n - 1] == '/') n--;
        while (n > 0 && path.data[n - 1] != '/') n--;
        while (n > 1 && path.data[n - 1] == '/') n--;
        path.data[n] = 0;
    }
    qkv_buf_free(&path);
}

void qkv_run_leave_nothing(qkv_run *r) {
    char why[1024];
    if (!r->folder || r->begun || r->lock < 0 || qkv_parallel_rank() > 0) return;
    snprintf(why, sizeof why, "%s", qkv_error()); /* which is to be told, whatever happens here */
    qkv_buf path = {0};
    for (int i = 0; i < QKV_PART_COUNT; i++)
        if (!r->had[i]) (void)remove_part(r, (qkv_folder_item)i);
    if (qkv_folder_file(r->request->out, ".lock", &path) == QKV_OK) (void)qkv_sys.unlink(path.data);
    const qkv_companion *companion;
    for (int i = 0; r->task && (companion = qkv_companion_at(&r->config, i)); i++)
        if (companion->file && qkv_folder_file(r->request->out, companion->file, &path) == QKV_OK)
            (void)qkv_sys.unlink(path.data);
    qkv_buf_free(&path);
    remove_folders(r);
    (void)qkv_fail(QKV_FAILED, "%s", why);
}

/* ---- run.json ---- */

static void write_settings(const qkv_config *config, const qkv_train_config *train, int64_t tokens,
                           qkv_buf *text) {
    qkv_json_out j = qkv_json_begin(text, 2);
    qkv_train_config copy = *train;
    const qkv_settings settings = qkv_train_settings(&copy);
    qkv_json_open(&j, '{');
    qkv_config_write(config, &j);
    qkv_settings_write(&settings, &j);
    qkv_json_put_key(&j, "train_tokens");
    qkv_json_put_int(&j, tokens);
    qkv_json_close(&j, '}');
    qkv_buf_putc(text, '\n');
}

/* The settings of the run that is there; what an earlier version did not know yet has its
 * default. */
typedef struct old_run {
    qkv_config config;
    qkv_train_config train;
    int64_t tokens;
} old_run;

static qkv_status read_old(const char *path, old_run *old) {
    static const char *const foreign[] = {"train_tokens", NULL};
    const qkv_settings groups[2] = {qkv_config_settings(&old->config),
                                    qkv_train_settings(&old->train)};
    const qkv_json_limits limits = {.bytes = 1 << 20, .nodes = 10000, .depth = 8};
    qkv_file file;
    qkv_json doc;
    old->tokens = 0;
    qkv_config_default(&old->config);
    qkv_settings_default(&groups[1]);
    QKV_TRY(qkv_file_open(path, 1 << 20, &file));
    qkv_status status = qkv_json_parse(&doc, path, file.data, file.size, limits);
    if (status == QKV_OK) {
        const qkv_json_at root = qkv_json_root(&doc);
        status = qkv_settings_read(groups, 2, root, foreign);
        if (status == QKV_OK)
            status = qkv_json_get_int(root, "train_tokens", false, 0, INT64_MAX, &old->tokens);
        qkv_json_free(&doc);
    }
    qkv_file_close(&file);
    return status;
}

static qkv_text next_line(const char **at) {
    const size_t n = strcspn(*at, "\n");
    const qkv_text line = {*at, n};
    *at += n + ((*at)[n] == '\n');
    return line;
}

/* A line of run.json without its blanks and comma: "epochs": 6 */
static qkv_text bare(qkv_text line) {
    while (line.len && line.data[0] == ' ') line.data++, line.len--;
    while (line.len && line.data[line.len - 1] == ',') line.len--;
    return line;
}

/* Both have the same keys in the same order, one a line. */
static qkv_status name_differences(const char *path, const char *old, const char *new) {
    enum { NAMED = 3 };
    qkv_buf list = {0};
    bool other_task = false;
    int n = 0;
    while (*old && *new) {
        const qkv_text a = bare(next_line(&old)), b = bare(next_line(&new));
        if (a.len == b.len && memcmp(a.data, b.data, a.len) == 0) continue;
        const char *colon = memchr(b.data, ':', b.len);
        if (other_task || !colon || n++ >= NAMED) continue;
        const size_t key = (size_t)(colon - b.data) + 1;
        other_task = b.len > 7 && memcmp(b.data, "\"task\":", 7) == 0; /* says it all */
        const bool data = b.len > 14 && memcmp(b.data, "\"train_tokens\"", 14) == 0;
        qkv_buf_printf(&list, "%s%.*s%.*s there,%.*s here", n > 1 ? "; " : "", data ? 0 : (int)key,
                       b.data, (int)(a.len - key), a.data + key, (int)(b.len - key), b.data + key);
        if (data) qkv_buf_puts(&list, " (tokens of the data)");
    }
    if (n > NAMED) qkv_buf_printf(&list, "; and %d more", n - NAMED);
    qkv_status status = list.status;
    if (status == QKV_OK)
        status = qkv_fail(QKV_USAGE,
                          "%s: this folder holds a run with other settings or data (%s); give the "
                          "same command to go on, another --out, or --overwrite",
                          path, list.data ? list.data : "");
    qkv_buf_free(&list);
    return status;
}

static bool is_same(const qkv_buf *a, const qkv_buf *b) {
    return a->status == QKV_OK && a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

/* Is what was asked for back then all that the finished run was to do? */
static bool is_finished(const qkv_run *r, const qkv_train_config *old) {
    const qkv_outcome *o = &r->before;
    return r->was_finished && o->epochs == old->epochs && o->steps == old->steps &&
           o->minutes == old->minutes;
}

/* A finished run whose settings differ in the budget alone goes on; `text` are the new ones. */
static qkv_status compare_budget(qkv_run *r, old_run old, const qkv_buf *text) {
    qkv_buf budget = {0};
    if (!is_finished(r, &old.train)) return QKV_OK;
    old.train.epochs = r->train.epochs;
    old.train.steps = r->train.steps;
    old.train.minutes = r->train.minutes;
    write_settings(&old.config, &old.train, old.tokens, &budget);
    r->further = is_same(&budget, text);
    qkv_buf_free(&budget);
    if (!r->further || r->train.minutes == 0 || 60 * r->train.minutes > r->before.seconds)
        return QKV_OK;
    return qkv_fail(QKV_USAGE,
                    "%s: the run there is finished, after %.1f minutes; --minutes must be more to "
                    "go on from it, or --overwrite given to start over",
                    r->request->out, r->before.seconds / 60);
}

static qkv_status compare_settings(qkv_run *r, const char *path, const qkv_buf *text) {
    old_run old;
    qkv_buf written = {0};
    if (!qkv_file_exists(path)) return qkv_file_write(path, text->data, text->len);
    QKV_TRY(read_old(path, &old));
    write_settings(&old.config, &old.train, old.tokens, &written);
    qkv_status status = written.status;
    r->repeats = is_same(&written, text) && is_finished(r, &old.train);
    if (status == QKV_OK && !is_same(&written, text)) {
        status = compare_budget(r, old, text);
        if (status == QKV_OK && !r->further)
            status = name_differences(path, written.data, text->data);
    }
    qkv_buf_free(&written);
    return status;
}

qkv_status qkv_run_check_settings(qkv_run *r) {
    qkv_buf text = {0}, path = {0};
    write_settings(&r->config, &r->train, qkv_encoded_tokens(&r->train_ids), &text);
    qkv_status status = text.status;
    if (status == QKV_OK) status = qkv_folder_part(r->request->out, QKV_PART_RUN, &path);
    if (status == QKV_OK) status = compare_settings(r, path.data, &text);
    qkv_buf_free(&text);
    qkv_buf_free(&path);
    return status;
}

qkv_status qkv_run_write_settings(qkv_run *r) {
    qkv_buf text = {0}, path = {0};
    if (qkv_parallel_rank() > 0) return QKV_OK;
    write_settings(&r->config, &r->train, qkv_encoded_tokens(&r->train_ids), &text);
    qkv_status status = text.status;
    if (status == QKV_OK) status = qkv_folder_part(r->request->out, QKV_PART_RUN, &path);
    if (status == QKV_OK) status = qkv_file_write(path.data, text.data, text.len);
    if (status == QKV_OK) status = remove_part(r, QKV_PART_RESULT);
    qkv_buf_free(&text);
    qkv_buf_free(&path);
    return status;
}

/* ---- a finished run ---- */

qkv_status qkv_run_look_back(qkv_run *r) {
    char mark[33];
    QKV_TRY(qkv_outcome_read(r->request->out, &r->before, &r->was_finished));
    if (!r->was_finished) return QKV_OK;
    QKV_TRY(qkv_request_mark(r->request, mark));
    r->repeats = mark[0] && strcmp(mark, r->before.request) == 0;
    return QKV_OK;
}

qkv_status qkv_run_tidy(qkv_run *r) {
    QKV_TRY(remove_part(r, QKV_PART_CACHE));
    return r->request->keep_checkpoints ? QKV_OK : remove_part(r, QKV_PART_CHECKPOINTS);
}
