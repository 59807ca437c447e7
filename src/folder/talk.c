#include "folder/talk.h"
#include "folder/folder.h"
#include "foreign/gguf_model.h"
#include "base/file.h"
#include "base/json.h"
#include "store/gguf.h"

#include <string.h>

enum { TEMPLATE_BYTES = 1 << 20, JSON_BYTES = 64 << 20 };

static void add_end(qkv_talk *t, int64_t id) {
    for (int i = 0; i < t->n_ends; i++)
        if (t->ends[i] == id) return;
    if (id >= 0 && t->n_ends < QKV_TALK_ENDS) t->ends[t->n_ends++] = id;
}

/* ---- GGUF ---- */

static qkv_status read_entries(const qkv_gguf *g, qkv_talk *out) {
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    qkv_text template = {"", 0};
    QKV_TRY(qkv_gguf_string(g, "tokenizer.chat_template", false, &template));
    qkv_buf_add(&out->template, template.data, template.len);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        int64_t id = -1;
        QKV_TRY(qkv_gguf_int(g, keys[i], false, &id));
        add_end(out, id);
    }
    return out->template.status;
}

static qkv_status read_gguf(const char *path, qkv_talk *out) {
    qkv_file file;
    qkv_gguf g;
    QKV_TRY(qkv_file_open(path, SIZE_MAX, &file));
    qkv_status status = qkv_gguf_read(file.data, file.size, false, &g);
    if (status == QKV_OK) {
        status = read_entries(&g, out);
        qkv_gguf_free(&g);
    }
    qkv_file_close(&file);
    return status;
}

/* ---- folders ---- */

/* chat_template: a text, or a list of {name, template} of which one is called "default". */
static void take_template(qkv_json_at root, qkv_talk *out) {
    qkv_json_at at, item, name;
    const char *text = "";
    size_t len = 0;
    if (out->template.len || !qkv_json_member(root, "chat_template", &at)) return;
    qkv_json_string(at, &text, &len);
    if (qkv_json_kind_of(at) == QKV_JSON_ARRAY)
        for (bool more = qkv_json_first(at, &item); more; more = qkv_json_next(at, &item)) {
            const char *word;
            size_t n;
            if (!qkv_json_member(item, "name", &name)) continue;
            qkv_json_string(name, &word, &n);
            if (n == 7 && !memcmp(word, "default", 7) && qkv_json_member(item, "template", &name))
                qkv_json_string(name, &text, &len);
        }
    qkv_buf_add(&out->template, text, len);
}

static void take_ends(qkv_json_at root, qkv_talk *out) {
    qkv_json_at at, item;
    int64_t id;
    if (!qkv_json_member(root, "eos_token_id", &at)) return;
    if (qkv_json_integer(at, 0, INT32_MAX, &id)) add_end(out, id);
    for (bool more = qkv_json_first(at, &item); more; more = qkv_json_next(at, &item))
        if (qkv_json_integer(item, 0, INT32_MAX, &id)) add_end(out, id);
}

/* One of the files of JSON, where it is there. */
static qkv_status read_json(const char *folder, const char *name,
                            void (*take)(qkv_json_at root, qkv_talk *out), qkv_talk *out) {
    qkv_buf path = {0};
    qkv_file file;
    qkv_json doc;
    qkv_status status = qkv_folder_file(folder, name, &path);
    if (status == QKV_OK && qkv_file_exists(path.data)) {
        const qkv_json_limits limits = {.bytes = JSON_BYTES, .nodes = 1 << 22, .depth = 32};
        status = qkv_file_open(path.data, JSON_BYTES, &file);
        if (status == QKV_OK) {
            status = qkv_json_parse(&doc, path.data, file.data, file.size, limits);
            if (status == QKV_OK) {
                take(qkv_json_root(&doc), out);
                qkv_json_free(&doc);
            }
            qkv_file_close(&file);
        }
    }
    qkv_buf_free(&path);
    return status == QKV_OK ? out->template.status : status;
}

static qkv_status read_jinja(const char *folder, qkv_talk *out) {
    qkv_buf path = {0};
    qkv_file file;
    qkv_status status = qkv_folder_file(folder, "chat_template.jinja", &path);
    if (status == QKV_OK && qkv_file_exists(path.data)) {
        status = qkv_file_open(path.data, TEMPLATE_BYTES, &file);
        if (status == QKV_OK) {
            qkv_buf_add(&out->template, file.data, file.size);
            qkv_file_close(&file);
        }
    }
    qkv_buf_free(&path);
    return status == QKV_OK ? out->template.status : status;
}

static qkv_status read_folder(const char *folder, qkv_talk *out) {
    QKV_TRY(read_jinja(folder, out));
    QKV_TRY(read_json(folder, "tokenizer_config.json", take_template, out));
    QKV_TRY(read_json(folder, "generation_config.json", take_ends, out));
    /* the more particular file decides */
    return out->n_ends ? QKV_OK : read_json(folder, "config.json", take_ends, out);
}

qkv_status qkv_talk_read(const char *folder, qkv_talk *out) {
    *out = (qkv_talk){0};
    const qkv_status status =
        qkv_is_gguf_file(folder) ? read_gguf(folder, out) : read_folder(folder, out);
    if (status == QKV_OK) return QKV_OK;
    qkv_talk_free(out);
    return qkv_fail_in(status, "%s", folder);
}

void qkv_talk_free(qkv_talk *t) {
    qkv_buf_free(&t->template);
    *t = (qkv_talk){0};
}
