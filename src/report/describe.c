/* qkv_describe: a configuration from a file, a preset and assignments; its description as a table,
 * JSON or a picture. */
#include "report/describe_print.h"
#include "report/describe_svg.h"
#include "report/show.h"
#include "base/file.h"
#include "folder/folder.h"
#include "foreign/foreign_model.h"
#include "foreign/gguf_model.h"
#include "model/description.h"
#include "train/loop.h"

/* A model folder stands for the config.json in it. */
static qkv_status load(const char *path, qkv_config *config) {
    qkv_buf inside = {0};
    if (qkv_is_gguf_file(path) || qkv_is_foreign(path))
        return qkv_folder_read_config(path, config, NULL);
    qkv_status status = qkv_folder_part(path, QKV_PART_CONFIG, &inside);
    if (status == QKV_OK)
        status = qkv_config_load(config, qkv_file_exists(inside.data) ? inside.data : path);
    qkv_buf_free(&inside);
    return status;
}

static qkv_status configure(const qkv_describe_request *r, qkv_config *config) {
    qkv_config_default(config);
    if (r->preset && r->model)
        return qkv_fail(QKV_USAGE,
                        "describe: give a model or a preset, not both; --set changes either");
    if (r->preset) QKV_TRY(qkv_config_preset(config, r->preset));
    if (r->model) QKV_TRY(load(r->model, config));
    qkv_settings settings = qkv_config_settings(config);
    for (const char *const *pair = r->set; pair && *pair; pair++)
        QKV_TRY(qkv_settings_assign(&settings, 1, *pair));
    return QKV_OK;
}

qkv_status qkv_describe(const qkv_describe_request *request, qkv_description *out) {
    qkv_config config;
    qkv_model *m;
    *out = (qkv_description){0};
    QKV_TRY(configure(request, &config));
    QKV_TRY(qkv_model_build(&config, &m));
    const int64_t longest = qkv_model_config(m)->max_len;
    const qkv_status status = qkv_describe_make(m, request->batch ? request->batch : 32,
                                                request->length ? request->length : longest, out);
    qkv_model_free(m);
    return status;
}

qkv_status qkv_description_show(const qkv_description *d, qkv_show how, char **text) {
    qkv_buf out = {0};
    qkv_status status = QKV_OK;
    *text = NULL;
    if (how == QKV_SHOW_HTML)
        return qkv_fail(QKV_USAGE, "a description is shown as a table, as JSON or as SVG");
    if (how == QKV_SHOW_JSON)
        qkv_describe_json(d, &out);
    else
        status = how == QKV_SHOW_SVG ? qkv_describe_svg(d, &out) : qkv_describe_text(d, &out);
    return qkv_show_end(status, &out, text);
}

/* ---- the tables behind it, for help and documentation ---- */

bool qkv_key_row(qkv_key_table table, size_t i, qkv_key *out) {
    static const qkv_key_kind kinds[] = {[QKV_SETTING_INT] = QKV_KEY_INT,
                                         [QKV_SETTING_REAL] = QKV_KEY_REAL,
                                         [QKV_SETTING_BOOL] = QKV_KEY_BOOL,
                                         [QKV_SETTING_CHOICE] = QKV_KEY_CHOICE,
                                         [QKV_SETTING_TEXT] = QKV_KEY_TEXT};
    const qkv_settings s =
        table == QKV_KEYS_TRAINING ? qkv_train_settings(NULL) : qkv_config_settings(NULL);
    if (i >= s.n) return false;
    const qkv_setting *row = &s.rows[i];
    *out = (qkv_key){.name = row->name,
                     .help = row->help,
                     .kind = kinds[row->type],
                     .standard = row->standard,
                     .min = row->min,
                     .max = row->max,
                     .choices = row->choices,
                     .text = row->text};
    return true;
}

bool qkv_preset_row(size_t i, const char **name, const char **summary, const char **assignments) {
    const qkv_preset *presets;
    if (i >= qkv_preset_table(&presets)) return false;
    *name = presets[i].name;
    *summary = presets[i].help;
    *assignments = presets[i].assignments;
    return true;
}
