/* A model folder quantized, and what that costs:
 * its size, and its scores on given data before and after. */
#include "folder/folder.h"
#include "base/sys.h"
#include "use/textmodel.h"
#include "model/weights.h"

#include <string.h>

static qkv_status write_folder(qkv_text_model *m, const qkv_quantize_request *r,
                               qkv_weight_format to) {
    qkv_config config = *qkv_model_config(m->model);
    config.weights = to;
    qkv_buf path = {0};
    QKV_TRY(qkv_folder_make(r->out));
    qkv_status status = qkv_folder_part(r->out, QKV_PART_WEIGHTS, &path);
    if (status == QKV_OK) status = qkv_weights_quantize(qkv_model_params(m->model), to, path.data);
    if (status == QKV_OK) status = qkv_folder_copy_rest(r->model, r->out, &config);
    if (status == QKV_OK) status = qkv_folder_write_config(r->out, &config, &m->labels);
    qkv_buf_free(&path);
    return status;
}

static int64_t size_of(const char *folder) {
    qkv_buf path = {0};
    struct stat info = {0};
    if (qkv_folder_part(folder, QKV_PART_WEIGHTS, &path) == QKV_OK) qkv_sys.stat(path.data, &info);
    qkv_buf_free(&path);
    return (int64_t)info.st_size;
}

static qkv_status format_of(const char *name, qkv_weight_format *out) {
    for (int i = QKV_WEIGHT_BF16; i < QKV_WEIGHT_OURS; i++)
        if (strcmp(qkv_weight_names[i], name) == 0) {
            *out = (qkv_weight_format)i;
            return QKV_OK;
        }
    return qkv_fail(QKV_USAGE, "weights cannot be made %s; int8, int4 and bf16 are known", name);
}

/* No data: no scores. */
static qkv_status score(const qkv_text_model *m, const char *const *files, qkv_evaluation *out) {
    return files && files[0] ? qkv_evaluate(m, files, NULL, out) : QKV_OK;
}

static qkv_status score_new(const qkv_quantize_request *r, qkv_evaluation *out) {
    qkv_text_model *m;
    QKV_TRY(qkv_text_model_open(r->out, &m));
    const qkv_status status = score(m, r->data, out);
    qkv_text_model_close(m);
    return status;
}

/* A model that is there already is not replaced unless that is asked for. */
static qkv_status check_place(const qkv_quantize_request *r) {
    qkv_buf path = {0};
    qkv_status status = QKV_OK;
    static const qkv_folder_item parts[] = {QKV_PART_CONFIG, QKV_PART_WEIGHTS};
    for (size_t i = 0; i < 2 && status == QKV_OK && !r->overwrite; i++) {
        status = qkv_folder_part(r->out, parts[i], &path);
        if (status == QKV_OK && qkv_file_exists(path.data))
            status = qkv_fail(QKV_USAGE, "%s is there already: another folder, or --overwrite",
                              path.data);
    }
    qkv_buf_free(&path);
    return status;
}

static qkv_status quantize(const qkv_quantize_request *r, qkv_weight_format to,
                           qkv_quantization *out) {
    qkv_text_model *m;
    QKV_TRY(qkv_text_model_open(r->model, &m));
    out->weights = qkv_weight_names[to];
    out->bytes_before = size_of(r->model);
    qkv_status status = score(m, r->data, &out->before);
    if (status == QKV_OK) status = write_folder(m, r, to);
    qkv_text_model_close(m);
    if (status == QKV_OK) status = score_new(r, &out->after);
    out->bytes_after = size_of(r->out);
    return status;
}

qkv_status qkv_quantize(const qkv_quantize_request *r, qkv_quantization *out) {
    qkv_weight_format to = QKV_WEIGHT_F32;
    *out = (qkv_quantization){0};
    if (!r->model || !r->out || !r->to || strcmp(r->model, r->out) == 0)
        return qkv_fail(QKV_USAGE, "a model is quantized from one folder into another one");
    QKV_TRY(format_of(r->to, &to));
    QKV_TRY(check_place(r));
    const qkv_status status = quantize(r, to, out);
    if (status != QKV_OK) qkv_quantization_free(out);
    return status;
}

void qkv_quantization_free(qkv_quantization *q) {
    qkv_evaluation_free(&q->before);
    qkv_evaluation_free(&q->after);
    *q = (qkv_quantization){0};
}
