/* Sentence encoders of sentence-transformers: modules.json lists what follows the Transformer, each
 * module with a config.json in a folder of its own. */
#include "foreign/foreign_model.h"

#include <stdio.h>
#include <string.h>

static bool says(qkv_json_at object, const char *key) {
    qkv_json_at at;
    return qkv_json_member(object, key, &at) && qkv_json_kind_of(at) == QKV_JSON_TRUE;
}

static bool text_is(qkv_text t, const char *word) {
    return t.len == strlen(word) && !memcmp(t.data, word, t.len);
}

qkv_status qkv_sentence_look(const char *folder, bool *is) {
    qkv_document d;
    QKV_TRY(qkv_document_look(folder, "modules.json", &d, is));
    qkv_document_close(&d);
    return QKV_OK;
}

/* ---- Pooling ---- */

static const struct {
    const char *key, *mode, *ours; /* until version 5 a key that is true; since then a name */
} modes[] = {
    {"pooling_mode_mean_tokens", "mean", "mean"},
    {"pooling_mode_cls_token", "cls", "first"},
    {"pooling_mode_max_tokens", "max", "max"},
    {"pooling_mode_lasttoken", "lasttoken", "last"},
    {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", NULL},
    {"pooling_mode_weightedmean_tokens", "weightedmean", NULL},
};
enum { N_MODES = sizeof modes / sizeof *modes };

static qkv_status find_mode(qkv_json_at root, int *mode, int *count) {
    qkv_json_at at;
    qkv_text name = {0};
    *count = 0;
    if (qkv_json_member(root, "pooling_mode", &at)) {
        qkv_json_string(at, &name.data, &name.len);
        for (int i = 0; i < N_MODES; i++)
            if (text_is(name, modes[i].mode)) *mode = i, *count = 1;
        if (*count) return QKV_OK;
        return qkv_fail(QKV_BAD_FILE, "the pooling \"%.*s\" is not implemented",
                        (int)(name.len < 40 ? name.len : 40), name.data ? name.data : "");
    }
    for (int i = 0; i < N_MODES; i++)
        if (says(root, modes[i].key)) *mode = i, ++*count;
    return QKV_OK;
}

static qkv_status read_pooling(qkv_json_at root, qkv_config *config) {
    int mode = 0, count;
    QKV_TRY(find_mode(root, &mode, &count));
    if (count != 1 || !modes[mode].ours)
        return qkv_fail(QKV_BAD_FILE, "pooling by %s is not implemented",
                        count == 1 ? modes[mode].mode
                        : count    ? "several modes at once"
                                   : "no mode");
    return qkv_config_set(config, "pool", modes[mode].ours);
}

/* ---- the list of modules ---- */

/* The last word of "sentence_transformers.models.Pooling". */
static qkv_text last_word(qkv_text type) {
    for (size_t i = type.len; i > 0; i--)
        if (type.data[i - 1] == '.') return (qkv_text){type.data + i, type.len - i};
    return type;
}

static qkv_status read_module(const char *folder, qkv_json_at module, int64_t index,
                              qkv_config *config) {
    qkv_text type = {0}, path = {0};
    QKV_TRY(qkv_json_get_string(module, "type", true, &type.data, &type.len));
    QKV_TRY(qkv_json_get_string(module, "path", true, &path.data, &path.len));
    type = last_word(type);
    if (text_is(type, "Transformer") && index == 0 && path.len == 0) return QKV_OK;
    if (text_is(type, "Normalize")) return qkv_config_set(config, "unit", "true");
    if (!text_is(type, "Pooling"))
        return qkv_fail(QKV_BAD_FILE, "the module \"%.*s\" is not implemented",
                        (int)(type.len < 60 ? type.len : 60), type.data);
    char name[256];
    if (path.len > 200 || memchr(path.data, '/', path.len) || path.len == 0 || path.data[0] == '.')
        return qkv_fail(QKV_BAD_FILE, "\"%.*s\" is no folder beside the file",
                        (int)(path.len < 60 ? path.len : 60), path.data);
    snprintf(name, sizeof name, "%.*s/config.json", (int)path.len, path.data);
    qkv_document d;
    QKV_TRY(qkv_document_open(folder, name, &d));
    const qkv_status status = read_pooling(d.root, config);
    qkv_document_close(&d);
    return status == QKV_OK ? status : qkv_fail_in(status, "%s", name);
}

/* How long a text may be, which is less than there are positions. */
static qkv_status read_length(const char *folder, qkv_config *config) {
    qkv_document d;
    qkv_json_at at;
    bool there;
    int64_t longest = 0;
    QKV_TRY(qkv_document_look(folder, "sentence_bert_config.json", &d, &there));
    if (!there) return QKV_OK;
    qkv_status status = QKV_OK;
    if (qkv_json_member(d.root, "max_seq_length", &at) && qkv_json_kind_of(at) != QKV_JSON_NULL)
        status = qkv_json_get_int(d.root, "max_seq_length", true, 1, 1 << 20, &longest);
    if (status == QKV_OK && says(d.root, "do_lower_case"))
        status = qkv_fail(QKV_BAD_FILE, "sentence_bert_config.json: do_lower_case=true is not "
                                        "implemented");
    qkv_document_close(&d);
    if (longest && longest < config->max_len) config->cut = longest;
    return status;
}

/* A text that is to stand before every text would have to be read with it. */
static qkv_status read_prompt(const char *folder) {
    qkv_document d;
    qkv_json_at at;
    bool there;
    QKV_TRY(qkv_document_look(folder, "config_sentence_transformers.json", &d, &there));
    if (!there) return QKV_OK;
    const bool asked = qkv_json_member(d.root, "default_prompt_name", &at) &&
                       qkv_json_kind_of(at) != QKV_JSON_NULL;
    qkv_document_close(&d);
    return asked
               ? qkv_fail(QKV_BAD_FILE, "config_sentence_transformers.json: default_prompt_name is "
                                        "not implemented; put the prompt before the texts and set "
                                        "it to null")
               : QKV_OK;
}

qkv_status qkv_sentence_configure(const char *folder, qkv_config *config) {
    qkv_document d;
    qkv_json_at at;
    QKV_TRY(qkv_document_open(folder, "modules.json", &d));
    qkv_status status = QKV_OK;
    int64_t i = 0;
    for (bool more = qkv_json_first(d.root, &at); more && status == QKV_OK;
         more = qkv_json_next(d.root, &at))
        status = read_module(folder, at, i++, config);
    qkv_document_close(&d);
    if (status != QKV_OK) return qkv_fail_in(status, "%s/modules.json", folder);
    QKV_TRY(read_prompt(folder));
    return read_length(folder, config);
}
