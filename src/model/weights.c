/* Parameters to and from safetensors, converted from whatever float type the file has. */
#include "model/weights.h"
#include "base/mem.h"
#include "store/safetensors.h"

#include <string.h>

#define REAL_DTYPE (sizeof(real) == 8 ? QKV_DTYPE_F64 : QKV_DTYPE_F32)

qkv_status qkv_weights_save(const qkv_params *params, const char *path) {
    qkv_to_store *list = qkv_zalloc(params->n, sizeof *list);
    if (!list) return QKV_FAILED;
    for (size_t i = 0; i < params->n; i++) {
        const qkv_param *p = params->list[i];
        list[i] = (qkv_to_store){.name = p->name,
                                 .dtype = REAL_DTYPE,
                                 .rank = p->spec.vector ? 1 : 2,
                                 .data = p->tensor.data};
        list[i].shape[0] = p->spec.vector ? p->spec.rows * p->spec.cols : p->spec.rows;
        list[i].shape[1] = p->spec.vector ? 0 : p->spec.cols;
    }
    const char *const meta[] = {"format", "pt", NULL}; /* what other programs look for */
    qkv_status status = qkv_safetensors_write(path, list, params->n, meta);
    qkv_free(list);
    return status;
}

static bool fits(const qkv_param *p, const qkv_stored *from) {
    const int64_t n = p->spec.rows * p->spec.cols;
    return from->elements == n && from->shape[0] == (p->spec.vector ? n : p->spec.rows);
}

/* Copies one stored tensor into a parameter's values. */
static qkv_status take(const qkv_param *p, const qkv_stored *from, real *to) {
    const int64_t n = p->spec.rows * p->spec.cols;
    if (!fits(p, from))
        return qkv_fail(QKV_BAD_FILE, "%s has another shape than the model, which wants %lld×%lld",
                        p->name, (long long)p->spec.rows, (long long)p->spec.cols);
    if (from->dtype == REAL_DTYPE) {
        memcpy(to, from->data, (size_t)n * sizeof *to);
        return QKV_OK;
    }
    float *values = qkv_alloc((size_t)n * sizeof *values);
    if (!values) return QKV_FAILED;
    qkv_status status = qkv_stored_to_float(from, values);
    for (int64_t i = 0; status == QKV_OK && i < n; i++) to[i] = (real)values[i];
    qkv_free(values);
    return status;
}

qkv_status qkv_weights_load(qkv_params *params, const char *path) {
    qkv_safetensors file;
    QKV_TRY(qkv_safetensors_open(path, &file));
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < params->n && status == QKV_OK; i++) {
        const qkv_param *p = params->list[i];
        const qkv_stored *found = qkv_safetensors_find(&file, p->name);
        status = found ? take(p, found, p->tensor.data)
                       : qkv_fail(QKV_BAD_FILE, "there is no tensor %s", p->name);
        if (status != QKV_OK) status = qkv_fail_in(status, "%s", path);
    }
    qkv_safetensors_close(&file);
    return status;
}

/* Appends a name, of the first few. */
static void put_name(qkv_buf *out, size_t before, const char *name, const char *why) {
    enum { SHOWN = 8 };
    if (before < SHOWN)
        qkv_buf_printf(out, "%s%s%s", before ? ", " : "", name, why);
    else if (before == SHOWN)
        qkv_buf_puts(out, ", …");
}

qkv_status qkv_weights_take(qkv_params *params, const char *path, qkv_weights_taken *out) {
    qkv_safetensors file;
    *out = (qkv_weights_taken){0};
    QKV_TRY(qkv_safetensors_open(path, &file));
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < params->n && status == QKV_OK; i++) {
        const qkv_param *p = params->list[i];
        const qkv_stored *found = qkv_safetensors_find(&file, p->name);
        if (found && fits(p, found)) {
            status = take(p, found, p->tensor.data);
            out->taken++;
        } else {
            put_name(&out->fresh_names, out->fresh++, p->name, found ? " (another shape)" : "");
        }
    }
    for (size_t i = 0; i < file.n && status == QKV_OK; i++)
        if (!qkv_param_find(params, file.tensors[i].name))
            put_name(&out->unused_names, out->unused++, file.tensors[i].name, "");
    if (status == QKV_OK)
        status =
            out->fresh_names.status != QKV_OK ? out->fresh_names.status : out->unused_names.status;
    qkv_safetensors_close(&file);
    return status;
}

void qkv_weights_note(qkv_weights_taken *t, const char *name, bool found) {
    if (found)
        t->taken++;
    else
        put_name(&t->fresh_names, t->fresh++, name, "");
}

void qkv_weights_taken_free(qkv_weights_taken *t) {
    qkv_buf_free(&t->fresh_names);
    qkv_buf_free(&t->unused_names);
}
