/* Checkpoints of the loop: weights, moments and the few numbers that change. */
#include "train/loop.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "model/weights.h"
#include "store/checkpoint.h"
#include "store/safetensors.h"

#include <math.h>
#include <string.h>

#define REAL_DTYPE (sizeof(real) == 8 ? QKV_DTYPE_F64 : QKV_DTYPE_F32)
enum { KEEP = 2 }; /* checkpoints beside `best` */

/* ---- the state ---- */

static void write_state(const qkv_loop *l, qkv_buf *out) {
    const struct {
        const char *key;
        int64_t value;
    } rows[] = {
        {"step", l->step},
        {"steps", l->steps},
        {"updates", l->stepper.optim.step},
        {"skipped", l->skipped},
        {"skipped_in_a_row", l->skipped_in_a_row},
        {"best_step", l->best_step},
        {"stale", l->stale},
        {"parameters", qkv_model_params(l->model)->count},
        {"seed", l->config.seed},
    };
    qkv_json_out j = qkv_json_begin(out, 2);
    qkv_json_open(&j, '{');
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        qkv_json_put_key(&j, rows[i].key);
        qkv_json_put_int(&j, rows[i].value);
    }
    qkv_json_put_key(&j, "timed");
    qkv_json_put_bool(&j, l->timed);
    if (isfinite(l->best)) {
        qkv_json_put_key(&j, "best");
        qkv_json_put_real(&j, l->best, 17);
    }
    qkv_json_put_key(&j, "isa");
    qkv_json_put_text(&j, qkv_kern_get()->name);
    qkv_json_put_key(&j, "version");
    qkv_json_put_text(&j, qkv_version());
    qkv_json_close(&j, '}');
    qkv_buf_putc(out, '\n');
}

static qkv_status read_state(qkv_loop *l, qkv_json_at root) {
    const int64_t most = (int64_t)1 << 53;
    int64_t updates, parameters, seed;
    QKV_TRY(qkv_json_get_int(root, "step", true, 0, most, &l->step));
    QKV_TRY(qkv_json_get_int(root, "steps", true, 0, most, &l->steps));
    QKV_TRY(qkv_json_get_int(root, "updates", true, 0, most, &updates));
    QKV_TRY(qkv_json_get_int(root, "skipped", true, 0, most, &l->skipped));
    QKV_TRY(qkv_json_get_int(root, "skipped_in_a_row", true, 0, most, &l->skipped_in_a_row));
    QKV_TRY(qkv_json_get_int(root, "best_step", true, 0, most, &l->best_step));
    QKV_TRY(qkv_json_get_int(root, "stale", true, 0, most, &l->stale));
    QKV_TRY(qkv_json_get_int(root, "parameters", true, 0, INT64_MAX, &parameters));
    QKV_TRY(qkv_json_get_int(root, "seed", true, 0, most, &seed));
    QKV_TRY(qkv_json_get_bool(root, "timed", true, &l->timed));
    QKV_TRY(qkv_json_get_real(root, "best", false, -1e300, 1e300, &l->best));
    if (parameters != qkv_model_params(l->model)->count || seed != l->config.seed)
        return qkv_fail(
            QKV_USAGE,
            "the run in %s was begun with another model or seed; give the same command, "
            "another folder, or --overwrite",
            l->run);
    qkv_optim_restored(&l->stepper.optim, updates);
    return QKV_OK;
}

/* ---- the files ---- */

typedef qkv_status (*file_fn)(qkv_loop *l, const char *path);

static qkv_status save_weights(qkv_loop *l, const char *path) {
    return qkv_weights_save(qkv_model_params(l->model), path);
}

static qkv_status load_weights(qkv_loop *l, const char *path) {
    return qkv_weights_load(qkv_model_params(l->model), path);
}

static qkv_status save_moments(qkv_loop *l, const char *path) {
    const qkv_optim *o = &l->stepper.optim;
    const int64_t n = o->params->length;
    const qkv_to_store list[] = {
        {.name = "m", .dtype = REAL_DTYPE, .rank = 1, .shape = {n}, .data = o->m},
        {.name = "v", .dtype = REAL_DTYPE, .rank = 1, .shape = {n}, .data = o->v},
    };
    return qkv_safetensors_write(path, list, o->v ? 2 : 1, NULL);
}

static qkv_status load_moments(qkv_loop *l, const char *path) {
    const qkv_optim *o = &l->stepper.optim;
    const size_t bytes = (size_t)o->params->length * sizeof(real);
    qkv_safetensors file;
    QKV_TRY(qkv_safetensors_open(path, &file));
    const qkv_stored *m = qkv_safetensors_find(&file, "m"), *v = qkv_safetensors_find(&file, "v");
    qkv_status status = QKV_OK;
    if (!m || m->bytes != bytes || (o->v && (!v || v->bytes != bytes))) {
        status = qkv_fail(QKV_BAD_FILE, "%s: not the moments of this model and optimiser", path);
    } else {
        memcpy(o->m, m->data, bytes);
        if (o->v) memcpy(o->v, v->data, bytes);
    }
    qkv_safetensors_close(&file);
    return status;
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
    return status;
}

qkv_status qkv_loop_save(qkv_loop *l, bool best) {
    const qkv_params *p = qkv_model_params(l->model);
    qkv_optim_settle(&l->stepper.optim);
    if (qkv_kern_get()->first_not_finite(p->values, p->length) >= 0)
        return qkv_fail(QKV_NUMERIC,
                        "step %lld: a weight is not finite; the checkpoint before it is kept",
                        (long long)l->step);
    qkv_checkpoint *c;
    const size_t copies = l->stepper.optim.v ? 3 : 2;
    QKV_TRY(qkv_checkpoint_begin(l->run, (uint64_t)l->step,
                                 copies * (size_t)p->length * sizeof(real) + (1 << 20), &c));
    qkv_status status = each_file(l, qkv_checkpoint_folder(c), true);
    if (status != QKV_OK) {
        qkv_checkpoint_abandon(c);
        return status;
    }
    return qkv_checkpoint_commit(c, best, KEEP);
}

qkv_status qkv_loop_restore(qkv_loop *l, const char *which, bool *found) {
    qkv_buf path = {0}, note = {0};
    qkv_status status = qkv_checkpoint_find(l->run, which, &path, &note);
    *found = status == QKV_OK && path.len > 0;
    if (*found) status = each_file(l, path.data, false);
    if (status == QKV_OK && note.len > 0) {
        qkv_progress p = {.kind = QKV_PROGRESS_NOTE, .text = note.data};
        status = qkv_loop_tell(l, &p);
    }
    qkv_buf_free(&path);
    qkv_buf_free(&note);
    return status;
}
