/* Other programs' weights into a model folder. */
#include "folder/folder.h"
#include "task/task.h"
#include "base/file.h"
#include "model/import_weights.h"
#include "model/weights.h"

bool qkv_import_row(size_t i, const char **name, const char **summary) {
    const qkv_importer *const *rows;
    if (i >= qkv_importer_table(&rows)) return false;
    *name = rows[i]->name;
    *summary = rows[i]->summary;
    return true;
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
    return qkv_tokenizer_of_words(from->words.data, from->words.len, out);
}

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
                           qkv_buf *path, qkv_import_facts *out) {
    QKV_TRY(qkv_folder_part(r->out, QKV_PART_CONFIG, path));
    if (!r->overwrite && qkv_file_exists(path->data))
        return qkv_fail(QKV_USAGE, "%s is there already: another folder, or --overwrite",
                        path->data);
    QKV_TRY(qkv_import_weights(r->source, from, &out->format));
    QKV_TRY(open_tokenizer(from, r->tokenizer, tok));
    const qkv_config *config = qkv_model_config(from->model);
    if ((int64_t)qkv_tokenizer_size(*tok) > config->vocab_size)
        return qkv_fail(QKV_BAD_FILE, "%s: the tokenizer has %zu tokens, the weights have %lld",
                        r->source, qkv_tokenizer_size(*tok), (long long)config->vocab_size);
    out->task = qkv_task_of(config)->name;
    out->parameters = qkv_model_params(from->model)->count;
    out->tokens = config->vocab_size;
    return write_folder(from, *tok, r->out, path);
}

qkv_status qkv_import(const qkv_import_request *request, qkv_import_facts *out) {
    qkv_imported from = {0};
    qkv_tokenizer *tok = NULL;
    qkv_buf path = {0};
    qkv_import_facts found = {0};
    const qkv_status status = bring_in(request, &from, &tok, &path, &found);
    qkv_tokenizer_free(tok);
    qkv_imported_free(&from);
    qkv_buf_free(&path);
    if (out) *out = status == QKV_OK ? found : (qkv_import_facts){0};
    return status;
}
