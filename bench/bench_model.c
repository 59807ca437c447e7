/* Models with random weights: made, written in the format asked for, and opened as any model is. */
#include "bench/bench_model.h"
#include "base/json.h"
#include "base/mem.h"
#include "model/weights.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_own(const char *pair, const char *const *own_keys) {
    for (size_t i = 0; own_keys[i]; i++) {
        const size_t n = strlen(own_keys[i]);
        if (strncmp(pair, own_keys[i], n) == 0 && pair[n] == '=') return true;
    }
    return false;
}

static qkv_status read_config(const qkv_bench_args *args, const char *const *own_keys,
                              qkv_task_kind task, const char *text, qkv_config *config) {
    qkv_config_default(config);
    const qkv_settings settings = qkv_config_settings(config);
    config->task = task;
    QKV_TRY(qkv_settings_assign(&settings, 1, text));
    for (size_t i = 0; i < args->n; i++)
        if (!is_own(args->pairs[i], own_keys))
            QKV_TRY(qkv_settings_assign(&settings, 1, args->pairs[i]));
    return QKV_OK;
}

static qkv_status write_random(const qkv_config *config, qkv_weight_format format,
                               const char *path) {
    qkv_config whole = *config;
    whole.weights = QKV_WEIGHT_F32;
    qkv_model *m;
    QKV_TRY(qkv_model_build(&whole, &m));
    qkv_status status = qkv_model_allocate(m, false);
    if (status == QKV_OK) {
        qkv_model_initialise(m, 1);
        status = qkv_weights_quantize(qkv_model_params(m), format, path);
    }
    qkv_model_free(m);
    return status;
}

qkv_status qkv_bench_model_make(const qkv_bench_args *args, const char *const *own_keys,
                                qkv_task_kind task, const char *settings, qkv_bench_model *out) {
    char temporary[] = "/tmp/qkv-bench-XXXXXX";
    const char *path = qkv_bench_text(args, "save", NULL);
    qkv_config config;
    *out = (qkv_bench_model){0};
    QKV_TRY(read_config(args, own_keys, task, settings, &config));
    out->format = (qkv_weight_format)config.weights;
    if (!path) {
        const int fd = mkstemp(temporary);
        if (fd < 0) return qkv_fail(QKV_FAILED, "bench: no temporary file %s", temporary);
        close(fd);
        path = temporary;
    }
    qkv_status status = write_random(&config, out->format, path);
    if (status == QKV_OK) status = qkv_model_build(&config, &out->model);
    if (status == QKV_OK) status = qkv_model_open(out->model, path);
    struct stat info = {0};
    stat(path, &info);
    out->bytes = (double)info.st_size;
    if (path == temporary) unlink(path);
    if (status != QKV_OK) qkv_bench_model_free(out);
    return status;
}

void qkv_bench_model_free(qkv_bench_model *m) {
    qkv_model_free(m->model);
    *m = (qkv_bench_model){0};
}

void qkv_bench_report(const qkv_bench_figure *rows, size_t n, bool json, qkv_buf *out) {
    qkv_json_out j = {0};
    if (json) j = qkv_json_begin(out, 0), qkv_json_open(&j, '{');
    for (size_t i = 0; i < n; i++)
        if (json) {
            qkv_json_put_key(&j, rows[i].key);
            qkv_json_put_real(&j, rows[i].value, 9);
        } else {
            qkv_buf_printf(out, "%-20s %14.6g\n", rows[i].key, rows[i].value);
        }
    if (json) qkv_json_close(&j, '}'), qkv_buf_putc(out, '\n');
}
