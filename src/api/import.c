/* Other programs' weights into a model folder. */
#include "folder/folder.h"
#include "foreign/foreign_model.h"
#include "task/task.h"
#include "base/file.h"
#include "model/import_weights.h"
#include "model/weights.h"

bool qkv_import_row(size_t i, const char **name, const char **summary) {
    const qkv_importer *const *rows;
    const size_t n = qkv_importer_table(&rows);
    if (i >= n) return qkv_container_row(i - n, name, summary);
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

/* What came in, from either door. */
typedef struct brought {
    qkv_imported from;
    qkv_tokenizer *tokenizer;
    qkv_labels labels;
    qkv_weight_format weights; /* in which nothing is lost */
} brought;

static qkv_status write_folder(const brought *b, const char *folder, qkv_buf *path) {
    const qkv_params *params = qkv_model_params(b->from.model);
    qkv_config config = *qkv_model_config(b->from.model);
    config.weights = b->weights;
    QKV_TRY(qkv_folder_make(folder));
    QKV_TRY(qkv_folder_write_config(folder, &config, &b->labels));
    QKV_TRY(qkv_folder_part(folder, QKV_PART_TOKENIZER, path));
    QKV_TRY(qkv_tokenizer_save(b->tokenizer, path->data));
    QKV_TRY(qkv_folder_part(folder, QKV_PART_WEIGHTS, path));
    return b->weights == QKV_WEIGHT_F32 ? qkv_weights_save(params, path->data)
                                        : qkv_weights_quantize(params, b->weights, path->data);
}

static qkv_status fill(const qkv_foreign *f, brought *b) {
    bool bf16 = false;
    QKV_TRY(qkv_model_build(&f->config, &b->from.model));
    QKV_TRY(qkv_model_allocate(b->from.model, false));
    QKV_TRY(qkv_foreign_fill(f, qkv_model_params(b->from.model), &bf16));
    if (bf16) b->weights = QKV_WEIGHT_BF16;
    return QKV_OK;
}

static qkv_status bring_folder(const qkv_import_request *r, brought *b, qkv_import_facts *out) {
    qkv_foreign f;
    QKV_TRY(qkv_foreign_read(r->source, &f));
    out->format = f.family->name;
    qkv_status status = fill(&f, b);
    if (status == QKV_OK)
        status = r->tokenizer ? qkv_tokenizer_open(r->tokenizer, &b->tokenizer)
                              : qkv_foreign_tokenizer(&f, &b->tokenizer);
    b->labels = f.labels;
    f.labels = (qkv_labels){0};
    qkv_foreign_free(&f);
    return status;
}

static qkv_status bring_in(const qkv_import_request *r, brought *b, qkv_buf *path,
                           qkv_import_facts *out) {
    QKV_TRY(qkv_folder_part(r->out, QKV_PART_CONFIG, path));
    if (!r->overwrite && qkv_file_exists(path->data))
        return qkv_fail(QKV_USAGE, "%s is there already: another folder, or --overwrite",
                        path->data);
    if (qkv_is_foreign(r->source)) {
        QKV_TRY(bring_folder(r, b, out));
    } else {
        QKV_TRY(qkv_import_weights(r->source, &b->from, &out->format));
        QKV_TRY(open_tokenizer(&b->from, r->tokenizer, &b->tokenizer));
    }
    const qkv_config *config = qkv_model_config(b->from.model);
    if ((int64_t)qkv_tokenizer_size(b->tokenizer) > config->vocab_size)
        return qkv_fail(QKV_BAD_FILE, "%s: the tokenizer has %zu tokens, the weights have %lld",
                        r->source, qkv_tokenizer_size(b->tokenizer), (long long)config->vocab_size);
    out->task = qkv_task_of(config)->name;
    out->parameters = qkv_model_params(b->from.model)->count;
    out->tokens = config->vocab_size;
    return write_folder(b, r->out, path);
}

qkv_status qkv_import(const qkv_import_request *request, qkv_import_facts *out) {
    brought b = {0};
    qkv_buf path = {0};
    qkv_import_facts found = {0};
    const qkv_status status = bring_in(request, &b, &path, &found);
    qkv_tokenizer_free(b.tokenizer);
    qkv_labels_free(&b.labels);
    qkv_imported_free(&b.from);
    qkv_buf_free(&path);
    if (out) *out = status == QKV_OK ? found : (qkv_import_facts){0};
    return status;
}
