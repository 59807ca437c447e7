/* Hugging Face's tokenizer.json: reading and writing. */
#include "text/limits.h"
#include "text/models.h"
#include "text/reader.h"
#include "text/template.h"
#include "base/file.h"

#include <string.h>

static const qkv_tokenizer_model *const models[] = {&qkv_model_bpe, &qkv_model_unigram,
                                                    &qkv_model_wordpiece, &qkv_model_wordlevel};

/* ---- reading ---- */

/* Writes the value back as JSON text. */
static void copy_json(qkv_json_at at, qkv_json_out *out) {
    qkv_json_at child;
    const char *text;
    size_t len;
    int64_t integer;
    switch (qkv_json_kind_of(at)) {
    case QKV_JSON_NULL:
        qkv_json_put_null(out);
        break;
    case QKV_JSON_FALSE:
        qkv_json_put_bool(out, false);
        break;
    case QKV_JSON_TRUE:
        qkv_json_put_bool(out, true);
        break;
    case QKV_JSON_NUMBER:
        if (qkv_json_integer(at, -(INT64_C(1) << 52), INT64_C(1) << 52, &integer))
            qkv_json_put_int(out, integer);
        else
            qkv_json_put_real(out, qkv_json_number(at), 17);
        break;
    case QKV_JSON_STRING:
        qkv_json_string(at, &text, &len);
        qkv_json_put_string(out, text, len);
        break;
    case QKV_JSON_ARRAY:
        qkv_json_open(out, '[');
        for (bool more = qkv_json_first(at, &child); more; more = qkv_json_next(at, &child))
            copy_json(child, out);
        qkv_json_close(out, ']');
        break;
    case QKV_JSON_OBJECT:
        qkv_json_open(out, '{');
        for (bool more = qkv_json_first(at, &child); more; more = qkv_json_next(at, &child)) {
            qkv_json_key(child, &text, &len);
            qkv_json_put_key_n(out, text, len);
            copy_json(child, out);
        }
        qkv_json_close(out, '}');
        break;
    }
}

static qkv_status json_text(qkv_json_at at, qkv_buf *out) {
    qkv_buf_clear(out);
    qkv_json_out writer = qkv_json_begin(out, 0);
    copy_json(at, &writer);
    return out->status;
}

static qkv_status read_added(qkv_tokenizer *tok, qkv_json_at root) {
    qkv_json_at list, at;
    if (!qkv_json_member(root, "added_tokens", &list)) return QKV_OK;
    if (qkv_json_count(list) > QKV_ADDED_MAX)
        return qkv_fail(QKV_BAD_FILE, "%zu added tokens: at most %u are read", qkv_json_count(list),
                        QKV_ADDED_MAX);
    for (bool more = qkv_json_first(list, &at); more; more = qkv_json_next(list, &at)) {
        qkv_added a = {0};
        int64_t id;
        QKV_TRY(qkv_json_get_string(at, "content", true, &a.text, &a.len));
        QKV_TRY(qkv_json_get_int(at, "id", true, 0, QKV_VOCAB_MAX - 1, &id));
        a.id = (int32_t)id;
        QKV_TRY(qkv_json_get_bool(at, "special", false, &a.special));
        a.normalized = !a.special;
        QKV_TRY(qkv_json_get_bool(at, "normalized", false, &a.normalized));
        QKV_TRY(qkv_json_get_bool(at, "single_word", false, &a.single_word));
        QKV_TRY(qkv_json_get_bool(at, "lstrip", false, &a.lstrip));
        QKV_TRY(qkv_json_get_bool(at, "rstrip", false, &a.rstrip));
        QKV_TRY(qkv_tokenizer_add_token(tok, &a));
    }
    return QKV_OK;
}

/* Old files do not name the model's type: it follows from what the model has. */
static const char *guess_model(qkv_json_at model) {
    qkv_json_at at;
    if (qkv_json_member(model, "merges", &at)) return "BPE";
    if (qkv_json_member(model, "continuing_subword_prefix", &at)) return "WordPiece";
    if (qkv_json_member(model, "vocab", &at) && qkv_json_kind_of(at) == QKV_JSON_ARRAY)
        return "Unigram";
    return "WordLevel";
}

static qkv_status read_model(qkv_tokenizer *tok, qkv_json_at root) {
    qkv_json_at model;
    if (!qkv_json_member(root, "model", &model) || qkv_json_kind_of(model) != QKV_JSON_OBJECT)
        return qkv_fail(QKV_BAD_FILE, "no \"model\": this is not a tokenizer.json");
    const char *type = guess_model(model);
    size_t len = strlen(type);
    QKV_TRY(qkv_json_get_string(model, "type", false, &type, &len));
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        if (strlen(models[i]->name) == len && !memcmp(models[i]->name, type, len))
            return models[i]->parse(tok, model);
    return qkv_fail(QKV_BAD_FILE, "model: type \"%.*s\" is not known to this version",
                    (int)(len > 60 ? 60 : len), type);
}

static qkv_status read_limits(qkv_tokenizer *tok, qkv_json_at root, qkv_buf *text) {
    qkv_json_at at;
    if (qkv_json_member(root, "truncation", &at) && qkv_json_kind_of(at) == QKV_JSON_OBJECT) {
        QKV_TRY(qkv_truncation_parse(&tok->limits, at));
        QKV_TRY(json_text(at, text));
        QKV_TRY_ALLOC(tok->limits.truncation =
                          qkv_arena_strndup(&tok->arena, text->data, text->len));
    }
    if (qkv_json_member(root, "padding", &at) && qkv_json_kind_of(at) == QKV_JSON_OBJECT) {
        QKV_TRY(qkv_padding_parse(&tok->limits, at));
        QKV_TRY(json_text(at, text));
        QKV_TRY_ALLOC(tok->limits.padding = qkv_arena_strndup(&tok->arena, text->data, text->len));
    }
    return QKV_OK;
}

static qkv_status read_all(qkv_tokenizer *tok, qkv_json_at root, qkv_buf *text) {
    qkv_json_at at;
    if (qkv_json_kind_of(root) != QKV_JSON_OBJECT)
        return qkv_fail(QKV_BAD_FILE, "not a JSON object");
    const char *version = "1.0";
    size_t len = 3;
    QKV_TRY(qkv_json_get_string(root, "version", false, &version, &len));
    if (len != 3 || memcmp(version, "1.0", 3))
        return qkv_fail(QKV_BAD_FILE, "version \"%.*s\": only 1.0 is known",
                        (int)(len > 20 ? 20 : len), version);
    QKV_TRY(read_model(tok, root));
    for (int stage = 0; stage < QKV_STAGES; stage++) {
        if (!qkv_json_member(root, qkv_stage_name((qkv_stage)stage), &at) ||
            qkv_json_kind_of(at) == QKV_JSON_NULL)
            continue;
        QKV_TRY(json_text(at, text));
        QKV_TRY(qkv_tokenizer_set_stage(tok, (qkv_stage)stage, text->data));
    }
    QKV_TRY(read_limits(tok, root, text));
    QKV_TRY(read_added(tok, root));
    return qkv_tokenizer_finish(tok);
}

qkv_status qkv_read_tokenizer_json(qkv_tokenizer *tok, const char *name, const char *data,
                                   size_t n) {
    qkv_json doc;
    qkv_buf text = {0};
    const qkv_json_limits limits = {.bytes = 256u << 20, .nodes = 64u << 20, .depth = 64};
    qkv_status status = qkv_json_parse(&doc, name, data, n, limits);
    if (status != QKV_OK) return status;
    status = read_all(tok, qkv_json_root(&doc), &text);
    qkv_buf_free(&text);
    qkv_json_free(&doc);
    return status == QKV_OK ? QKV_OK : qkv_fail_in(status, "%s", name);
}

/* ---- writing ---- */

static void put_raw(qkv_json_out *json, const char *key, const char *text) {
    qkv_json_put_key(json, key);
    if (text)
        qkv_json_put_raw(json, text);
    else
        qkv_json_put_null(json);
}

static void write_added(const qkv_tokenizer *tok, qkv_json_out *json) {
    qkv_json_put_key(json, "added_tokens");
    qkv_json_open(json, '[');
    for (size_t i = 0; i < tok->added.n; i++) {
        const qkv_added *a = &tok->added.at[i];
        const struct {
            const char *key;
            bool value;
        } flags[] = {{"single_word", a->single_word},
                     {"lstrip", a->lstrip},
                     {"rstrip", a->rstrip},
                     {"normalized", a->normalized},
                     {"special", a->special}};
        qkv_json_open(json, '{');
        qkv_json_put_key(json, "id");
        qkv_json_put_int(json, a->id);
        qkv_json_put_key(json, "content");
        qkv_json_put_string(json, a->text, a->len);
        for (size_t f = 0; f < sizeof flags / sizeof *flags; f++) {
            qkv_json_put_key(json, flags[f].key);
            qkv_json_put_bool(json, flags[f].value);
        }
        qkv_json_close(json, '}');
    }
    qkv_json_close(json, ']');
}

static qkv_status write_stage(const qkv_text_steps *stage, const char *name, qkv_json_out *json) {
    qkv_buf translated = {0};
    const qkv_text_step_kind *first = stage->n ? stage->step[0].kind : NULL;
    const bool own = first && first->translate;
    const qkv_status status = own ? first->translate(stage, &translated) : QKV_OK;
    if (status == QKV_OK) put_raw(json, name, own ? translated.data : stage->json);
    qkv_buf_free(&translated);
    return status;
}

qkv_status qkv_tokenizer_json(const qkv_tokenizer *tok, qkv_buf *out) {
    qkv_json_out json = qkv_json_begin(out, 0);
    qkv_json_open(&json, '{');
    qkv_json_put_key(&json, "version");
    qkv_json_put_text(&json, "1.0");
    put_raw(&json, "truncation", tok->limits.truncation);
    put_raw(&json, "padding", tok->limits.padding);
    write_added(tok, &json);
    qkv_status status = QKV_OK;
    for (int stage = 0; stage < QKV_STAGES && status == QKV_OK; stage++)
        status = write_stage(&tok->stage[stage], qkv_stage_name((qkv_stage)stage), &json);
    QKV_TRY(status);
    qkv_json_put_key(&json, "model");
    qkv_json_open(&json, '{');
    qkv_json_put_key(&json, "type");
    qkv_json_put_text(&json, tok->model_kind->name);
    tok->model_kind->write(tok, &json);
    qkv_json_close(&json, '}');
    qkv_json_close(&json, '}');
    return out->status;
}

qkv_status qkv_tokenizer_save(const qkv_tokenizer *tok, const char *path) {
    qkv_buf text = {0};
    qkv_status status = qkv_tokenizer_json(tok, &text);
    if (status == QKV_OK) status = qkv_file_write(path, text.data, text.len);
    qkv_buf_free(&text);
    return status;
}
