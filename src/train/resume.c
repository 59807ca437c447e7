/* Checkpoints of the loop: weights, moments and the few numbers that change. */
#include "train/loop.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/sys.h"
#include "model/weights.h"
#include "store/checkpoint.h"
#include "store/safetensors.h"
#include "base/parallel.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define REAL_DTYPE (sizeof(real) == 8 ? QKV_DTYPE_F64 : QKV_DTYPE_F32)
enum { KEEP = 2 }; /* checkpoints beside `best` */

/* ---- the state ---- */

/* What state.json says: the state, and by what else a run is known. */
typedef struct written {
    qkv_loop_state now;
    int64_t updates, parameters, seed;
} written;

/* Its keys, in the order in which they are written. A number that is not finite is left out, which
 * OPTIONAL ones may be, as those may that earlier versions did not write (LATER: whole numbers):
 * what is not in the file stays as it is. */
static const struct row {
    const char *key;
    enum kind { INTEGER, LATER, FLAG, NUMBER, OPTIONAL } kind;
    size_t offset;
    int digits; /* of a number */
    double least, most;
} rows[] = {
#define COUNT(key, field)                                                                          \
    { key, INTEGER, offsetof(written, field), 0, 0, 0x1p53 }
    COUNT("step", now.step),
    COUNT("steps", now.steps),
    COUNT("updates", updates),
    COUNT("skipped", now.skipped),
    COUNT("skipped_in_a_row", now.skipped_in_a_row),
    COUNT("best_step", now.best_step),
    COUNT("stale", now.stale),
    COUNT("parameters", parameters),
    COUNT("seed", seed),
#undef COUNT
    {"timed", FLAG, offsetof(written, now.timed), 0, 0, 1},
    {"pending", FLAG, offsetof(written, now.pending), 0, 0, 1},
    {"cpu_seconds", NUMBER, offsetof(written, now.cpu_before), 9, 0, 1e300},
    {"usual", NUMBER, offsetof(written, now.usual), 17, 0, 1e300},
    {"best", OPTIONAL, offsetof(written, now.best), 17, -1e300, 1e300},
    {"best_right", OPTIONAL, offsetof(written, now.best_right), 17, 0, 1},
    {"mark", OPTIONAL, offsetof(written, now.mark), 17, -1e300, 1e300},
    {"from", LATER, offsetof(written, now.from), 0, 0, 0x1p53},
    {"seconds", OPTIONAL, offsetof(written, now.seconds_before), 9, 0, 1e300},
    {"fit_seconds", OPTIONAL, offsetof(written, now.fit_seconds), 9, 0, 1e300},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static void write_row(const struct row *row, const void *field, qkv_json_out *j) {
    const bool number = row->kind >= NUMBER;
    if (number && !isfinite(*(const double *)field)) return;
    qkv_json_put_key(j, row->key);
    if (number)
        qkv_json_put_real(j, *(const double *)field, row->digits);
    else if (row->kind == FLAG)
        qkv_json_put_bool(j, *(const bool *)field);
    else
        qkv_json_put_int(j, *(const int64_t *)field);
}

static qkv_status read_row(const struct row *row, qkv_json_at root, void *field) {
    if (row->kind == INTEGER || row->kind == LATER)
        return qkv_json_get_int(root, row->key, row->kind == INTEGER, 0, (int64_t)row->most, field);
    if (row->kind == FLAG) return qkv_json_get_bool(root, row->key, true, field);
    return qkv_json_get_real(root, row->key, row->kind == NUMBER, row->least, row->most, field);
}

static void write_state(const qkv_loop *l, qkv_buf *out) {
    written s = {.now = l->state,
                 .updates = l->stepper.optim.step,
                 .parameters = qkv_model_params(l->model)->count,
                 .seed = l->config.seed};
    s.now.cpu_before = qkv_loop_cpu(l);
    s.now.seconds_before = qkv_loop_seconds(l);
    qkv_json_out j = qkv_json_begin(out, 2);
    qkv_json_open(&j, '{');
    for (size_t i = 0; i < N_ROWS; i++) write_row(&rows[i], (const char *)&s + rows[i].offset, &j);
    qkv_json_put_key(&j, "earlier"); /* steps of the snapshots, one file each */
    qkv_json_open(&j, '[');
    for (int64_t i = 0; i < l->average.n; i++) qkv_json_put_int(&j, l->average.kept[i].step);
    qkv_json_close(&j, ']');
    qkv_json_put_key(&j, "isa");
    qkv_json_put_text(&j, qkv_kern_get()->name);
    qkv_json_put_key(&j, "version");
    qkv_json_put_text(&j, qkv_version());
    qkv_json_close(&j, '}');
    qkv_buf_putc(out, '\n');
}

/* Makes room for the snapshots that the state names; their files are read later. */
static qkv_status read_earlier(qkv_loop *l, qkv_json_at root) {
    qkv_json_at list, item;
    l->average.n = 0;
    if (!qkv_json_member(root, "earlier", &list)) return QKV_OK;
    for (bool more = qkv_json_first(list, &item); more; more = qkv_json_next(list, &item)) {
        int64_t step;
        if (l->average.n == l->average.most || !qkv_json_integer(item, 0, INT64_MAX, &step))
            return qkv_fail(QKV_BAD_FILE,
                            "%s: the state names snapshots that this run does not keep", l->run);
        qkv_average_append(&l->average, step);
    }
    return QKV_OK;
}

static qkv_status read_state(qkv_loop *l, qkv_json_at root) {
    written s = {.now = l->state};
    for (size_t i = 0; i < N_ROWS; i++)
        QKV_TRY(read_row(&rows[i], root, (char *)&s + rows[i].offset));
    if (s.parameters != qkv_model_params(l->model)->count || s.seed != l->config.seed)
        return qkv_fail(
            QKV_USAGE,
            "the run in %s was begun with another model or seed; give the same command, "
            "another folder, or --overwrite",
            l->run);
    l->state = s.now;
    qkv_optim_restored(&l->stepper.optim, s.updates);
    return read_earlier(l, root);
}

/* ---- the files ---- */

typedef qkv_status (*file_fn)(qkv_loop *l, const char *path);

static qkv_status save_weights(qkv_loop *l, const char *path) {
    return qkv_weights_save(qkv_model_params(l->model), path);
}

static qkv_status load_weights(qkv_loop *l, const char *path) {
    return qkv_weights_load(qkv_model_params(l->model), path);
}

/* The flat arrays of the optimiser, by name; a NULL array is not kept. */
typedef struct flat {
    const char *name;
    real *data;
} flat;
enum { FLATS = 3 };

static void list_flats(const qkv_optim *o, flat out[FLATS]) {
    out[0] = (flat){"m", o->m};
    out[1] = (flat){"v", o->v};
    out[2] = (flat){"ema", o->ema};
}

static qkv_status save_flats(const char *path, const flat *flats, size_t n, int64_t length) {
    qkv_to_store list[FLATS];
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (flats[i].data)
            list[kept++] = (qkv_to_store){.name = flats[i].name,
                                          .dtype = REAL_DTYPE,
                                          .rank = 1,
                                          .shape = {length},
                                          .data = flats[i].data};
    return qkv_safetensors_write(path, list, kept, NULL);
}

static qkv_status load_flats(const char *path, const flat *flats, size_t n, int64_t length) {
    const size_t bytes = (size_t)length * sizeof(real);
    qkv_safetensors file;
    QKV_TRY(qkv_safetensors_open(path, &file));
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < n && status == QKV_OK; i++) {
        if (!flats[i].data) continue;
        const qkv_stored *stored = qkv_safetensors_find(&file, flats[i].name);
        if (!stored || stored->bytes != bytes)
            status = qkv_fail(QKV_BAD_FILE, "%s: %s is not that of this model and optimiser", path,
                              flats[i].name);
        else
            memcpy(flats[i].data, stored->data, bytes);
    }
    qkv_safetensors_close(&file);
    return status;
}

static qkv_status save_moments(qkv_loop *l, const char *path) {
    flat flats[FLATS];
    list_flats(&l->stepper.optim, flats);
    return save_flats(path, flats, FLATS, qkv_model_params(l->model)->length);
}

static qkv_status load_moments(qkv_loop *l, const char *path) {
    flat flats[FLATS];
    list_flats(&l->stepper.optim, flats);
    return load_flats(path, flats, FLATS, qkv_model_params(l->model)->length);
}

static qkv_status save_state(qkv_loop *l, const char *path) {
    qkv_buf text = {0};
    write_state(l, &text);
    qkv_status status = text.status;
    if (status == QKV_OK) status = qkv_file_write(path, text.data, text.len);
    qkv_buf_free(&text);
    return status;
}

static qkv_status load_state(qkv_loop *l, const char *path) {
    qkv_file file;
    qkv_json doc;
    QKV_TRY(qkv_file_open(path, 1 << 20, &file));
    const qkv_json_limits limits = {.bytes = 1 << 20, .nodes = 1000, .depth = 4};
    qkv_status status = qkv_json_parse(&doc, path, file.data, file.size, limits);
    if (status == QKV_OK) {
        status = read_state(l, qkv_json_root(&doc));
        qkv_json_free(&doc);
    }
    qkv_file_close(&file);
    return status;
}

/* The state comes first when loading: it refuses a run that is not this one. */
static const struct {
    const char *name;
    file_fn save, load;
} files[] = {{"state.json", save_state, load_state},
             {"model.safetensors", save_weights, load_weights},
             {"optimizer.safetensors", save_moments, load_moments}};
enum { N_FILES = sizeof files / sizeof *files };

/* A snapshot is written once; the checkpoints after it have the same file by another name,
 * where the file system can. */
static qkv_status save_snapshot(const qkv_loop *l, const qkv_snapshot *s, const char *name,
                                const char *path) {
    if (s->stored) {
        qkv_buf old = {0};
        qkv_buf_printf(&old, "%s/checkpoints/last/%s", l->run, name);
        const bool linked = old.status == QKV_OK && qkv_sys.link(old.data, path) == 0;
        qkv_buf_free(&old);
        if (linked) return QKV_OK;
    }
    return save_flats(path, &(flat){"weights", s->values}, 1, qkv_model_params(l->model)->length);
}

static qkv_status each_snapshot(qkv_loop *l, const char *folder, bool save) {
    const int64_t length = qkv_model_params(l->model)->length;
    qkv_buf path = {0};
    qkv_status status = QKV_OK;
    for (int64_t i = 0; i < l->average.n && status == QKV_OK; i++) {
        const qkv_snapshot *s = &l->average.kept[i];
        char name[64];
        snprintf(name, sizeof name, "earlier-%08lld.safetensors", (long long)s->step);
        qkv_buf_clear(&path);
        status = qkv_path_join(&path, folder, name);
        if (status == QKV_OK)
            status = save ? save_snapshot(l, s, name, path.data)
                          : load_flats(path.data, &(flat){"weights", s->values}, 1, length);
    }
    qkv_buf_free(&path);
    return status;
}

/* Saves or loads every file of a checkpoint's folder. */
static qkv_status each_file(qkv_loop *l, const char *folder, bool save) {
    qkv_buf path = {0};
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < N_FILES && status == QKV_OK; i++) {
        qkv_buf_clear(&path);
        status = qkv_path_join(&path, folder, files[i].name);
        if (status == QKV_OK) status = (save ? files[i].save : files[i].load)(l, path.data);
    }
    qkv_buf_free(&path);
    return status == QKV_OK ? each_snapshot(l, folder, save) : status;
}

static size_t bytes_to_save(const qkv_loop *l) {
    const qkv_optim *o = &l->stepper.optim;
    int64_t copies = 2 + (o->v != NULL) + (o->ema != NULL);
    for (int64_t i = 0; i < l->average.n; i++) copies += !l->average.kept[i].stored;
    const qkv_params *p = qkv_model_params(l->model);
    /* all fixed parameters once, beside the copies of the others */
    return (size_t)(copies * p->length + p->count) * sizeof(real) + (1 << 20);
}

/* Rank 0's part: all that is written. */
static qkv_status write_checkpoint(qkv_loop *l, bool best) {
    const qkv_params *p = qkv_model_params(l->model);
    if (qkv_kern_get()->first_not_finite(p->values, p->length) >= 0)
        return qkv_fail(QKV_NUMERIC,
                        "step %lld: a weight is not finite; the checkpoint before it is kept",
                        (long long)l->state.step);
    qkv_checkpoint *c;
    QKV_TRY(qkv_checkpoint_begin(l->run, (uint64_t)l->state.step, bytes_to_save(l), &c));
    qkv_status status = each_file(l, qkv_checkpoint_folder(c), true);
    if (status != QKV_OK) {
        qkv_checkpoint_abandon(c);
        return status;
    }
    return qkv_checkpoint_commit(c, best, KEEP);
}

qkv_status qkv_loop_save(qkv_loop *l, bool best) {
    const double begin = qkv_now();
    qkv_optim_settle(&l->stepper.optim);
    qkv_optim_collect(&l->stepper.optim);
    const qkv_status status = qkv_parallel_rank() == 0 ? write_checkpoint(l, best) : QKV_OK;
    qkv_optim_release(&l->stepper.optim);
    QKV_TRY(qkv_parallel_agree(status));
    for (int64_t i = 0; i < l->average.n; i++) l->average.kept[i].stored = true;
    l->saved = l->state.step;
    l->pace.save = qkv_now() - begin;
    return QKV_OK;
}

qkv_status qkv_loop_restore(qkv_loop *l, const char *which, bool *found) {
    qkv_buf path = {0}, note = {0};
    /* Rank 0 may tidy up while it looks; the others look when it has. */
    qkv_status status = QKV_OK;
    if (qkv_parallel_rank() == 0) status = qkv_checkpoint_find(l->run, which, &path, &note);
    status = qkv_parallel_agree(status);
    if (status == QKV_OK && qkv_parallel_rank() > 0)
        status = qkv_checkpoint_find(l->run, which, &path, &note);
    *found = status == QKV_OK && path.len > 0;
    if (*found) status = each_file(l, path.data, false);
    qkv_optim_release(&l->stepper.optim);
    if (*found && status == QKV_OK) {
        const bool is_last = strcmp(which, "last") == 0 && note.len == 0;
        for (int64_t i = 0; i < l->average.n; i++) l->average.kept[i].stored = is_last;
        l->saved = l->state.step;
    }
    if (status == QKV_OK && note.len > 0) {
        qkv_progress p = {.kind = QKV_PROGRESS_NOTE, .text = note.data};
        status = qkv_loop_tell(l, &p);
    }
    qkv_buf_free(&path);
    qkv_buf_free(&note);
    return status;
}
