/* The table of importers, and what they share. */
#include "model/import_weights.h"
#include "base/sys.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const qkv_importer *const importers[] = {&qkv_import_ct2, &qkv_import_llama2c};
#define N_IMPORTERS (sizeof importers / sizeof *importers)

size_t qkv_importer_table(const qkv_importer *const **rows) {
    *rows = importers;
    return N_IMPORTERS;
}

void qkv_imported_free(qkv_imported *i) {
    qkv_model_free(i->model);
    qkv_buf_free(&i->words);
    qkv_buf_free(&i->tokenizer);
    *i = (qkv_imported){0};
}

static qkv_status read_any(const qkv_file *file, const char *folder, qkv_imported *out,
                           const char **kind) {
    for (size_t i = 0; i < N_IMPORTERS; i++) {
        if (!importers[i]->is(file)) continue;
        *kind = importers[i]->name;
        return importers[i]->read(file, folder, out);
    }
    return qkv_fail(QKV_BAD_FILE, "not weights that can be imported; `qkv import --formats` lists "
                                  "what can, and a qkv model folder needs no import");
}

/* The folder part of a path, "." where it has none. */
static void put_folder(qkv_buf *out, const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash)
        qkv_buf_puts(out, ".");
    else
        qkv_buf_add(out, path, slash == path ? 1 : (size_t)(slash - path));
}

qkv_status qkv_import_weights(const char *path, qkv_imported *out, const char **kind) {
    struct stat info;
    qkv_buf name = {0}, folder = {0};
    qkv_file file;
    *out = (qkv_imported){0};
    *kind = "";
    const bool is_folder = qkv_sys.stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    if (is_folder)
        QKV_TRY(qkv_path_join(&name, path, "model.bin"));
    else
        qkv_buf_puts(&name, path);
    put_folder(&folder, name.data ? name.data : "");
    qkv_status status = name.status != QKV_OK ? name.status : folder.status;
    if (status == QKV_OK) status = qkv_file_open(name.data, SIZE_MAX, &file);
    if (status == QKV_OK) {
        status = read_any(&file, folder.data, out, kind);
        qkv_file_close(&file);
        if (status != QKV_OK) status = qkv_fail_in(status, "%s", name.data);
    }
    if (status != QKV_OK) qkv_imported_free(out);
    qkv_buf_free(&name);
    qkv_buf_free(&folder);
    return status;
}

qkv_status qkv_import_put(qkv_params *params, const qkv_import_rows *what, const char *format,
                          ...) {
    char name[QKV_NAME_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    const qkv_param *p = qkv_param_find(params, name);
    if (!p || p->spec.cols != what->cols || what->from + what->rows > p->spec.rows)
        return qkv_fail(QKV_BAD_FILE,
                        "%lld×%lld numbers for %s, which the sizes in the file make %lld×%lld",
                        (long long)what->rows, (long long)what->cols, name,
                        (long long)(p ? p->spec.rows : 0), (long long)(p ? p->spec.cols : 0));
    if (!params->values || !what->data) return QKV_OK;
    real *to = params->values + p->offset + what->from * p->spec.cols;
    for (int64_t i = 0; i < what->rows * what->cols; i++) {
        float value;
        memcpy(&value, (const char *)what->data + 4 * i, 4);
        if (!isfinite(value))
            return qkv_fail(QKV_BAD_FILE, "%s: number %lld is not finite", name, (long long)i);
        to[i] = (real)value;
    }
    return QKV_OK;
}
