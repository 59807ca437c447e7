/* qkv describe: a configuration from a file, a preset and assignments; its description as a table,
 * JSON or a picture. */
#include <string.h>

#include "report/describe_print.h"
#include "report/describe_svg.h"
#include "base/file.h"
#include "base/mem.h"
#include "folder/folder.h"
#include "model/description.h"
#include "train/loop.h"
#include "qkv.h"

/* A model folder stands for the config.json in it. */
static qkv_status load(const char *path, qkv_config *config) {
    qkv_buf inside = {0};
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

static qkv_status print(const qkv_model *m, const qkv_describe_request *r, qkv_show how,
                        qkv_buf *out) {
    const qkv_config *config = qkv_model_config(m);
    qkv_description d;
    int64_t batch = r->batch ? r->batch : 32, length = r->length ? r->length : config->max_len;
    qkv_status status = qkv_describe_make(m, batch, length, &d);
    if (status == QKV_OK && how == QKV_SHOW_JSON)
        qkv_describe_json(&d, config, out);
    else if (status == QKV_OK && how == QKV_SHOW_SVG)
        status = qkv_describe_svg(&d, config, out);
    else if (status == QKV_OK)
        status = qkv_describe_text(&d, out);
    qkv_describe_free(&d);
    return status != QKV_OK ? status : out->status;
}

qkv_status qkv_describe(const qkv_describe_request *request, qkv_show how, char **text) {
    qkv_config config;
    qkv_model *m;
    *text = NULL;
    QKV_TRY(configure(request, &config));
    QKV_TRY(qkv_model_build(&config, &m));
    qkv_buf out = {0};
    qkv_status status = print(m, request, how, &out);
    qkv_model_free(m);
    if (status != QKV_OK)
        qkv_buf_free(&out);
    else
        *text = out.data;
    return status;
}

/* ---- the tables behind it, for help and documentation ---- */

/* What may be written for a key: "1 … 4096", "pre|post", "true|false". */
static void allowed(const qkv_setting *row, qkv_buf *out) {
    if (row->type == QKV_SETTING_BOOL) qkv_buf_puts(out, "true|false");
    if (row->type == QKV_SETTING_INT || row->type == QKV_SETTING_REAL)
        qkv_buf_printf(out, "%.10g … %.10g", row->min, row->max);
    for (size_t i = 0; row->choices && row->choices[i]; i++)
        qkv_buf_printf(out, "%s%s", i ? "|" : "", row->choices[i]);
}

qkv_status qkv_config_keys(bool json, char **text) {
    qkv_config config;
    qkv_config_default(&config);
    qkv_settings s = qkv_config_settings(&config);
    qkv_buf out = {0}, value = {0}, range = {0};
    qkv_json_out j = qkv_json_begin(&out, 2);
    if (json) qkv_json_open(&j, '[');
    for (size_t i = 0; i < s.n; i++) {
        const qkv_setting *row = &s.rows[i];
        qkv_buf_clear(&value);
        qkv_buf_clear(&range);
        qkv_setting_print(&s, row, &value);
        allowed(row, &range);
        if (value.status != QKV_OK || range.status != QKV_OK) break;
        const char *const member[] = {"key",     row->name,  "default", value.data,
                                      "allowed", range.data, "help",    row->help};
        if (!json) {
            qkv_buf_printf(&out, "%-20s %-12s %s\n%-33s %s\n", row->name, value.data, row->help, "",
                           range.data);
            continue;
        }
        qkv_json_open(&j, '{');
        for (int k = 0; k < 8; k += 2) {
            qkv_json_put_key(&j, member[k]);
            qkv_json_put_text(&j, member[k + 1]);
        }
        qkv_json_close(&j, '}');
    }
    if (json) qkv_json_close(&j, ']');
    if (json) qkv_buf_putc(&out, '\n');
    qkv_status status = value.status != QKV_OK   ? value.status
                        : range.status != QKV_OK ? range.status
                                                 : out.status;
    qkv_buf_free(&value);
    qkv_buf_free(&range);
    if (status != QKV_OK) qkv_buf_free(&out);
    *text = status == QKV_OK ? out.data : NULL;
    return status;
}

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
