#include "folder/folder.h"
#include "base/file.h"
#include "base/json.h"
#include "foreign/foreign_model.h"
#include "foreign/gguf_model.h"
#include "qkv.h"
#include "task/companion.h"

static const struct {
    const char *name;
    bool of_the_run;
} parts[] = {
#define PART(id, name, of_the_run) {name, of_the_run},
#include "folder/parts.def"
#undef PART
};

bool qkv_folder_part_is_the_runs(qkv_folder_item part) {
    return parts[part].of_the_run;
}

qkv_status qkv_folder_file(const char *folder, const char *name, qkv_buf *path) {
    qkv_buf_clear(path);
    return qkv_path_join(path, folder, name);
}

qkv_status qkv_folder_part(const char *folder, qkv_folder_item part, qkv_buf *path) {
    return qkv_folder_file(folder, parts[part].name, path);
}

qkv_status qkv_folder_find(const char *folder, qkv_folder_item part, qkv_buf *path) {
    QKV_TRY(qkv_folder_part(folder, part, path));
    if (qkv_file_exists(path->data)) return QKV_OK;
    if (!qkv_file_exists(folder))
        return qkv_fail(QKV_FAILED, "%s: there is no such folder", folder);
    return qkv_fail(QKV_BAD_FILE, "%s: not a model folder: there is no %s", folder,
                    parts[part].name);
}

qkv_status qkv_folder_blame(qkv_status status, const char *path) {
    return status == QKV_USAGE ? qkv_fail_in(QKV_BAD_FILE, "%s", path) : status;
}

/* ---- config.json ---- */

static void write_json(const qkv_config *config, const qkv_labels *labels, qkv_buf *out) {
    qkv_json_out j = qkv_json_begin(out, 2);
    qkv_json_open(&j, '{');
    qkv_json_put_key(&j, "qkv_version");
    qkv_json_put_text(&j, qkv_version());
    qkv_config_write(config, &j);
    if (labels && labels->n) {
        qkv_json_put_key(&j, "labels");
        qkv_json_open(&j, '[');
        for (int32_t i = 0; i < labels->n; i++) qkv_json_put_text(&j, labels->names[i]);
        qkv_json_close(&j, ']');
    }
    qkv_json_close(&j, '}');
    qkv_buf_putc(out, '\n');
}

qkv_status qkv_folder_write_config(const char *folder, const qkv_config *config,
                                   const qkv_labels *labels) {
    qkv_buf path = {0}, text = {0};
    write_json(config, labels, &text);
    qkv_status status = text.status;
    if (status == QKV_OK) status = qkv_folder_part(folder, QKV_PART_CONFIG, &path);
    if (status == QKV_OK) status = qkv_file_write(path.data, text.data, text.len);
    qkv_buf_free(&path);
    qkv_buf_free(&text);
    return status;
}

static qkv_status read_labels(qkv_json_at root, const char *path, qkv_labels *out) {
    qkv_json_at list, item;
    if (!out || !qkv_json_member(root, "labels", &list)) return QKV_OK;
    for (bool more = qkv_json_first(list, &item); more; more = qkv_json_next(list, &item)) {
        const char *text;
        size_t len;
        qkv_json_string(item, &text, &len);
        const int32_t before = out->n, number = qkv_labels_add(out, text, len);
        if (number < 0) return QKV_FAILED;
        if (number != before)
            return qkv_fail(QKV_BAD_FILE, "%s: the label \"%.*s\" occurs twice", path, (int)len,
                            text);
    }
    return QKV_OK;
}

static qkv_status read_config(const char *path, qkv_config *config, qkv_labels *labels) {
    enum { BYTES = 256 << 20 }; /* half a million labels and more */
    qkv_file file;
    qkv_json doc;
    QKV_TRY(qkv_file_open(path, BYTES, &file));
    const qkv_json_limits limits = {.bytes = BYTES, .nodes = 1 << 22, .depth = 16};
    qkv_status status = qkv_json_parse(&doc, path, file.data, file.size, limits);
    if (status == QKV_OK) {
        status = qkv_config_read(config, qkv_json_root(&doc));
        if (status == QKV_OK) status = read_labels(qkv_json_root(&doc), path, labels);
        qkv_json_free(&doc);
    }
    qkv_file_close(&file);
    return status;
}

static qkv_status read_foreign(const char *folder, qkv_config *config, qkv_labels *labels) {
    qkv_foreign f;
    QKV_TRY(qkv_foreign_read(folder, &f));
    *config = f.config;
    if (labels) {
        *labels = f.labels;
        f.labels = (qkv_labels){0};
    }
    qkv_foreign_free(&f);
    return QKV_OK;
}

qkv_status qkv_folder_read_config(const char *folder, qkv_config *config, qkv_labels *labels) {
    if (qkv_is_gguf_file(folder)) return qkv_gguf_configure(folder, config);
    if (qkv_is_foreign(folder)) return read_foreign(folder, config, labels);
    qkv_buf path = {0};
    qkv_status status = qkv_folder_find(folder, QKV_PART_CONFIG, &path);
    if (status == QKV_OK)
        status = qkv_folder_blame(read_config(path.data, config, labels), path.data);
    qkv_buf_free(&path);
    return status;
}

/* ---- weights and tokenizer ---- */

qkv_status qkv_folder_open_weights(const char *folder, qkv_model *m) {
    if (qkv_is_gguf_file(folder)) return qkv_gguf_bind(folder, m);
    if (qkv_is_foreign(folder)) {
        qkv_foreign f;
        QKV_TRY(qkv_foreign_read(folder, &f));
        const qkv_status status = qkv_foreign_bind(&f, m);
        qkv_foreign_free(&f);
        return status;
    }
    qkv_buf path = {0};
    qkv_status status = qkv_folder_find(folder, QKV_PART_WEIGHTS, &path);
    if (status == QKV_OK) status = qkv_folder_blame(qkv_model_open(m, path.data), path.data);
    qkv_buf_free(&path);
    return status;
}

qkv_status qkv_folder_take_weights(const char *folder, qkv_params *params, qkv_weights_taken *out) {
    *out = (qkv_weights_taken){0};
    if (qkv_is_foreign(folder)) {
        qkv_foreign f;
        QKV_TRY(qkv_foreign_read(folder, &f));
        const qkv_status status = qkv_foreign_take(&f, params, out);
        qkv_foreign_free(&f);
        return status;
    }
    qkv_buf path = {0};
    qkv_status status = qkv_folder_find(folder, QKV_PART_WEIGHTS, &path);
    if (status == QKV_OK) status = qkv_weights_take(params, path.data, out);
    qkv_buf_free(&path);
    return status;
}

qkv_status qkv_folder_open_tokenizer(const char *folder, qkv_tokenizer **out) {
    if (qkv_is_gguf_file(folder)) return qkv_tokenizer_open(folder, out);
    if (qkv_is_foreign(folder)) {
        qkv_foreign f;
        QKV_TRY(qkv_foreign_read(folder, &f));
        const qkv_status status = qkv_foreign_tokenizer(&f, out);
        qkv_foreign_free(&f);
        return qkv_folder_blame(status, folder);
    }
    qkv_buf path = {0};
    qkv_status status = qkv_folder_find(folder, QKV_PART_TOKENIZER, &path);
    if (status == QKV_OK) status = qkv_folder_blame(qkv_tokenizer_open(path.data, out), path.data);
    qkv_buf_free(&path);
    return status;
}

/* ---- copies ---- */

static qkv_status copy_file(const char *from, const char *to, const char *name, bool must) {
    qkv_buf source = {0}, target = {0};
    qkv_file file;
    qkv_status status = qkv_folder_file(from, name, &source);
    if (status == QKV_OK) status = qkv_folder_file(to, name, &target);
    if (status == QKV_OK && (must || qkv_file_exists(source.data))) {
        status = qkv_file_open(source.data, (size_t)1 << 30, &file);
        if (status == QKV_OK) {
            status = qkv_file_write(target.data, file.data, file.size);
            qkv_file_close(&file);
        }
    }
    qkv_buf_free(&source);
    qkv_buf_free(&target);
    return status;
}

qkv_status qkv_folder_copy_rest(const char *from, const char *to, const qkv_config *config) {
    const qkv_companion *companion;
    QKV_TRY(copy_file(from, to, parts[QKV_PART_TOKENIZER].name, true));
    for (int i = 0; (companion = qkv_companion_at(config, i)); i++)
        if (companion->file) QKV_TRY(copy_file(from, to, companion->file, false));
    return QKV_OK;
}
