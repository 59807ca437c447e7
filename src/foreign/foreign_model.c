/* Reading a folder of another program; see foreign_model.h. */
#include "foreign/foreign_model.h"
#include "base/file.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

bool qkv_is_foreign(const char *folder) {
    qkv_document d;
    qkv_json_at at;
    bool there;
    if (qkv_document_look(folder, "config.json", &d, &there) != QKV_OK || !there) return false;
    const bool foreign = (qkv_json_member(d.root, "model_type", &at) ||
                          qkv_json_member(d.root, "architectures", &at) ||
                          qkv_json_member(d.root, "hidden_size", &at)) &&
                         !qkv_json_member(d.root, "qkv_version", &at) &&
                         !qkv_json_member(d.root, "task", &at);
    qkv_document_close(&d);
    return foreign;
}

/* ---- labels ---- */

/* id2label: {"0": "negative", …}; the numbers may stand in any order, but all must be there. */
static qkv_status read_names(qkv_json_at map, int64_t n, qkv_text *names) {
    qkv_json_at at;
    for (bool more = qkv_json_first(map, &at); more; more = qkv_json_next(map, &at)) {
        const char *key;
        size_t len;
        int64_t id = 0;
        qkv_json_key(at, &key, &len);
        for (size_t i = 0; i < len && id < n; i++)
            id = key[i] >= '0' && key[i] <= '9' ? 10 * id + key[i] - '0' : n;
        if (!len || id >= n || names[id].data || qkv_json_kind_of(at) != QKV_JSON_STRING)
            return qkv_fail(QKV_BAD_FILE,
                            "line %zu: \"id2label\" must name the classes 0 to %lld, each once",
                            qkv_json_line(at), (long long)n - 1);
        qkv_json_string(at, &names[id].data, &names[id].len);
    }
    return QKV_OK;
}

static qkv_status add_labels(const qkv_text *names, int64_t n, qkv_labels *out) {
    for (int64_t i = 0; i < n; i++) {
        const int32_t number = qkv_labels_add(out, names[i].data, names[i].len);
        if (number < 0) return QKV_FAILED;
        if (number != i)
            return qkv_fail(QKV_BAD_FILE, "\"id2label\": the name \"%.*s\" occurs twice",
                            (int)(names[i].len < 60 ? names[i].len : 60), names[i].data);
    }
    return QKV_OK;
}

/* Classes without names are called as transformers calls them. */
static qkv_status default_labels(int64_t n, qkv_labels *out) {
    for (int64_t i = 0; i < n; i++) {
        char name[32];
        const int len = snprintf(name, sizeof name, "LABEL_%lld", (long long)i);
        if (qkv_labels_add(out, name, (size_t)len) < 0) return QKV_FAILED;
    }
    return QKV_OK;
}

static qkv_status read_labels(qkv_json_at keys, const qkv_config *c, qkv_labels *out) {
    qkv_json_at map;
    if (!qkv_has_labels(qkv_shape_of(c->task))) return QKV_OK;
    if (!qkv_json_member(keys, "id2label", &map) || (int64_t)qkv_json_count(map) != c->classes)
        return default_labels(c->classes, out);
    qkv_text *names = qkv_zalloc((size_t)c->classes, sizeof *names);
    if (!names) return QKV_FAILED;
    qkv_status status = read_names(map, c->classes, names);
    if (status == QKV_OK) status = add_labels(names, c->classes, out);
    qkv_free(names);
    return status;
}

/* ---- the folder ---- */

static qkv_status read_keys(qkv_foreign *f, qkv_json_at keys, bool sentence) {
    const char *type = "";
    size_t len = 0;
    QKV_TRY(qkv_json_get_string(keys, "model_type", true, &type, &len));
    QKV_TRY_ALLOC((f->family = qkv_family_of(type, len)) != NULL);
    QKV_TRY(qkv_family_configure(f->family, keys, sentence, &f->config, &f->facts));
    return read_labels(keys, &f->config, &f->labels);
}

static qkv_status read_generation(const char *folder, qkv_config *config) {
    qkv_document d;
    bool there;
    QKV_TRY(qkv_document_look(folder, "generation_config.json", &d, &there));
    if (there) qkv_family_ids(d.root, config);
    qkv_document_close(&d);
    return QKV_OK;
}

qkv_status qkv_foreign_read(const char *folder, qkv_foreign *out) {
    qkv_document keys;
    bool sentence;
    *out = (qkv_foreign){.folder = folder};
    QKV_TRY(qkv_sentence_look(folder, &sentence));
    QKV_TRY(qkv_document_open(folder, "config.json", &keys));
    qkv_status status = read_keys(out, keys.root, sentence);
    qkv_document_close(&keys);
    if (status != QKV_OK)
        status = qkv_fail_in(QKV_BAD_FILE, "%s/config.json", folder);
    else
        status = read_generation(folder, &out->config);
    if (status == QKV_OK && sentence) status = qkv_sentence_configure(folder, &out->config);
    if (status != QKV_OK) qkv_foreign_free(out);
    return status;
}

void qkv_foreign_free(qkv_foreign *f) {
    qkv_labels_free(&f->labels);
    *f = (qkv_foreign){0};
}

qkv_status qkv_foreign_tokenizer(const qkv_foreign *f, qkv_tokenizer **out) {
    if (f->family->no_texts)
        return qkv_fail(QKV_BAD_FILE, "%s: %s: %s", f->folder, f->family->name,
                        f->family->no_texts);
    return qkv_tokenizer_open(f->folder, out);
}
