/* A model folder in fewer bits, and what that costs:
 * its size, and its scores on given data before and after. */
#include "folder/folder.h"
#include "use/textmodel.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "model/weights.h"

#include <math.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

/* Scores worth comparing, where evaluation gives them. */
static const struct {
    const char *key;
    size_t field;    /* of qkv_evaluation */
    double factor;   /* shares are shown in per cent */
    int digits;      /* behind the point, in the table */
    int significant; /* in JSON: as many as `eval` gives */
} compared[] = {{"accuracy", offsetof(qkv_evaluation, accuracy), 100, 2, 9},
                {"macro_f1", offsetof(qkv_evaluation, macro_f1), 100, 2, 9},
                {"bleu", offsetof(qkv_evaluation, bleu), 1, 2, 7},
                {"chrf", offsetof(qkv_evaluation, chrf2), 1, 2, 7},
                {"perplexity", offsetof(qkv_evaluation, perplexity), 1, 3, 9},
                {"bits_per_byte", offsetof(qkv_evaluation, bits_per_byte), 1, 4, 9},
                {"loss", offsetof(qkv_evaluation, loss), 1, 4, 9}};
#define N_COMPARED (sizeof compared / sizeof *compared)

typedef struct side {
    double bytes;
    double score[N_COMPARED];
    bool has[N_COMPARED];
} side;

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

/* ---- the report ---- */

static qkv_status take_scores(qkv_text_model *m, const char *const *files, side *out) {
    if (!files || !files[0]) return QKV_OK;
    qkv_evaluation e;
    const qkv_status status = qkv_evaluate(m, files, NULL, &e);
    for (size_t i = 0; status == QKV_OK && i < N_COMPARED; i++) {
        const double score = *(const double *)((const char *)&e + compared[i].field);
        out->has[i] = !isnan(score);
        out->score[i] = compared[i].factor * score;
    }
    qkv_evaluation_free(&e);
    return status;
}

static double size_of(const char *folder) {
    qkv_buf path = {0};
    struct stat info = {0};
    if (qkv_folder_part(folder, QKV_PART_WEIGHTS, &path) == QKV_OK) stat(path.data, &info);
    qkv_buf_free(&path);
    return (double)info.st_size;
}

static void write_table(const side *a, const side *b, const char *to, qkv_buf *out) {
    qkv_buf_printf(out, "%-14s %12s %12s %12s\n", "", "before", to, "change");
    qkv_buf_printf(out, "%-14s %9.2f MB %9.2f MB %10.1f ×\n", "weights", a->bytes / 1e6,
                   b->bytes / 1e6, a->bytes / b->bytes);
    for (size_t i = 0; i < N_COMPARED; i++)
        if (a->has[i] && b->has[i])
            qkv_buf_printf(out, "%-14s %12.*f %12.*f %+12.*f\n", compared[i].key,
                           compared[i].digits, a->score[i], compared[i].digits, b->score[i],
                           compared[i].digits, b->score[i] - a->score[i]);
}

static void put_pair(qkv_json_out *j, const char *key, double before, double after, int digits) {
    qkv_json_put_key(j, key);
    qkv_json_open(j, '[');
    qkv_json_put_real(j, before, digits);
    qkv_json_put_real(j, after, digits);
    qkv_json_close(j, ']');
}

static void write_json(const side *a, const side *b, const char *to, qkv_buf *out) {
    qkv_json_out j = qkv_json_begin(out, 0);
    qkv_json_open(&j, '{');
    qkv_json_put_key(&j, "weights");
    qkv_json_put_text(&j, to);
    put_pair(&j, "bytes", a->bytes, b->bytes, 9);
    for (size_t i = 0; i < N_COMPARED; i++)
        if (a->has[i] && b->has[i])
            put_pair(&j, compared[i].key, a->score[i], b->score[i], compared[i].significant);
    qkv_json_close(&j, '}');
    qkv_buf_putc(out, '\n');
}

/* ---- all of it ---- */

static qkv_status format_of(const char *name, qkv_weight_format *out) {
    for (int i = QKV_WEIGHT_BF16; i < QKV_WEIGHT_FORMATS; i++)
        if (strcmp(qkv_weight_names[i], name) == 0) {
            *out = (qkv_weight_format)i;
            return QKV_OK;
        }
    return qkv_fail(QKV_USAGE, "weights cannot be made %s; int8, int4 and bf16 are known", name);
}

static qkv_status measure_new(const qkv_quantize_request *r, side *after) {
    qkv_text_model *m;
    QKV_TRY(qkv_text_model_open(r->out, &m));
    const qkv_status status = take_scores(m, r->data, after);
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

qkv_status qkv_quantize(const qkv_quantize_request *r, bool json, char **text) {
    qkv_weight_format to = QKV_WEIGHT_F32;
    qkv_text_model *m;
    *text = NULL;
    if (!r->model || !r->out || !r->to || strcmp(r->model, r->out) == 0)
        return qkv_fail(QKV_USAGE, "a model is quantised from one folder into another one");
    QKV_TRY(format_of(r->to, &to));
    QKV_TRY(check_place(r));
    QKV_TRY(qkv_text_model_open(r->model, &m));
    side before = {.bytes = size_of(r->model)}, after = {0};
    qkv_status status = take_scores(m, r->data, &before);
    if (status == QKV_OK) status = write_folder(m, r, to);
    qkv_text_model_close(m);
    if (status == QKV_OK) status = measure_new(r, &after);
    if (status != QKV_OK) return status;
    after.bytes = size_of(r->out);
    qkv_buf out = {0};
    (json ? write_json : write_table)(&before, &after, r->to, &out);
    if (out.status != QKV_OK) {
        qkv_buf_free(&out);
        return QKV_FAILED;
    }
    *text = out.data;
    return QKV_OK;
}
