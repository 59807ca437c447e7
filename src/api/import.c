/* Other programs' weights into a model folder. */
#include "folder/folder.h"
#include "task/task.h"
#include "base/file.h"
#include "base/json.h"
#include "model/import_weights.h"
#include "model/weights.h"

#include <string.h>

bool qkv_import_row(size_t i, const char **name, const char **summary) {
    const qkv_importer *const *rows;
    if (i >= qkv_importer_table(&rows)) return false;
    *name = rows[i]->name;
    *summary = rows[i]->summary;
    return true;
}

/* ---- a tokenizer of whole words ---- */

static bool next_word(const char **at, const char *end, qkv_text *out) {
    if (*at >= end) return false;
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));
    *out = (qkv_text){*at, (size_t)(stop - *at)};
    *at = stop + 1;
    return true;
}

static bool is_special(qkv_text w) {
    static const char *const names[] = {"<blank>", "<unk>", "<s>", "</s>", "<pad>"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (w.len == strlen(names[i]) && !memcmp(w.data, names[i], w.len)) return true;
    return false;
}

static void put_special(qkv_json_out *j, qkv_text word, int64_t id) {
    static const char *const no[] = {"single_word", "lstrip", "rstrip", "normalized"};
    qkv_json_open(j, '{');
    qkv_json_put_key(j, "id");
    qkv_json_put_int(j, id);
    qkv_json_put_key(j, "content");
    qkv_json_put_string(j, word.data, word.len);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        qkv_json_put_key(j, no[i]);
        qkv_json_put_bool(j, false);
    }
    qkv_json_put_key(j, "special");
    qkv_json_put_bool(j, true);
    qkv_json_close(j, '}');
}

/* tokenizer.json of a vocabulary of whole words with blanks between them. */
static void put_words(const qkv_buf *words, qkv_buf *out) {
    const char *at = words->data, *const end = words->data + words->len;
    qkv_json_out j = qkv_json_begin(out, 0);
    qkv_text word;
    qkv_json_open(&j, '{');
    qkv_json_put_key(&j, "version");
    qkv_json_put_text(&j, "1.0");
    qkv_json_put_key(&j, "added_tokens");
    qkv_json_open(&j, '[');
    for (int64_t id = 0; next_word(&at, end, &word); id++)
        if (is_special(word)) put_special(&j, word, id);
    qkv_json_close(&j, ']');
    qkv_json_put_key(&j, "pre_tokenizer");
    qkv_json_put_raw(&j, "{\"type\":\"WhitespaceSplit\"}");
    qkv_json_put_key(&j, "model");
    qkv_json_open(&j, '{');
    qkv_json_put_key(&j, "type");
    qkv_json_put_text(&j, "WordLevel");
    qkv_json_put_key(&j, "unk_token");
    qkv_json_put_text(&j, "<unk>");
    qkv_json_put_key(&j, "vocab");
    qkv_json_open(&j, '{');
    at = words->data;
    for (int64_t id = 0; next_word(&at, end, &word); id++) {
        qkv_json_put_key_n(&j, word.data, word.len);
        qkv_json_put_int(&j, id);
    }
    qkv_json_close(&j, '}');
    qkv_json_close(&j, '}');
    qkv_json_close(&j, '}');
}

static qkv_status open_tokenizer(const qkv_imported *from, const char *given, qkv_tokenizer **out) {
    if (given) return qkv_tokenizer_open(given, out);
    if (!from->words.len) {
        if (qkv_file_exists(from->tokenizer.data))
            return qkv_tokenizer_open(from->tokenizer.data, out);
        return qkv_fail(QKV_FAILED,
                        "the weights come without a tokenizer, and there is no %s: name one",
                        from->tokenizer.data);
    }
    qkv_buf json = {0};
    put_words(&from->words, &json);
    qkv_status status = json.status;
    if (status == QKV_OK) status = qkv_tokenizer_parse("vocabulary", json.data, json.len, out);
    qkv_buf_free(&json);
    return status;
}

/* ---- the folder ---- */

static qkv_status write_folder(const qkv_imported *from, const qkv_tokenizer *tok,
                               const char *folder, qkv_buf *path) {
    QKV_TRY(qkv_folder_make(folder));
    QKV_TRY(qkv_folder_write_config(folder, qkv_model_config(from->model), NULL));
    QKV_TRY(qkv_folder_part(folder, QKV_PART_TOKENIZER, path));
    QKV_TRY(qkv_tokenizer_save(tok, path->data));
    QKV_TRY(qkv_folder_part(folder, QKV_PART_WEIGHTS, path));
    return qkv_weights_save(qkv_model_params(from->model), path->data);
}

static qkv_status bring_in(const qkv_import_request *r, qkv_imported *from, qkv_tokenizer **tok,
                           qkv_buf *path, char **text) {
    const char *kind;
    qkv_buf line = {0};
    QKV_TRY(qkv_folder_part(r->out, QKV_PART_CONFIG, path));
    if (!r->overwrite && qkv_file_exists(path->data))
        return qkv_fail(QKV_USAGE, "%s is there already: another folder, or --overwrite",
                        path->data);
    QKV_TRY(qkv_import_weights(r->source, from, &kind));
    QKV_TRY(open_tokenizer(from, r->tokenizer, tok));
    const qkv_config *config = qkv_model_config(from->model);
    if ((int64_t)qkv_tokenizer_size(*tok) > config->vocab_size)
        return qkv_fail(QKV_BAD_FILE, "%s: the tokenizer has %zu tokens, the weights have %lld",
                        r->source, qkv_tokenizer_size(*tok), (long long)config->vocab_size);
    QKV_TRY(write_folder(from, *tok, r->out, path));
    const qkv_task *task = qkv_task_of(config);
    qkv_buf_printf(&line, "%s: %s, %lld parameters, %lld tokens → %s\n", kind, task->name,
                   (long long)qkv_model_params(from->model)->count, (long long)config->vocab_size,
                   r->out);
    *text = line.data;
    return line.status;
}

qkv_status qkv_import(const qkv_import_request *request, char **text) {
    qkv_imported from = {0};
    qkv_tokenizer *tok = NULL;
    qkv_buf path = {0};
    *text = NULL;
    const qkv_status status = bring_in(request, &from, &tok, &path, text);
    qkv_tokenizer_free(tok);
    qkv_imported_free(&from);
    qkv_buf_free(&path);
    return status;
}
