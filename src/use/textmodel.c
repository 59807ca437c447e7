/* Opening and writing model folders. */
#include "use/textmodel.h"
#include "base/file.h"
#include "base/mem.h"
#include "chat/jinja.h"
#include "folder/folder.h"
#include "model/weights.h"
#include "task/companion.h"

#include <string.h>

qkv_status qkv_tokenise_spec_trees(qkv_tokenise_spec *spec, const qkv_trees *trees) {
    if (!(spec->columns & QKV_COLUMNS_TREE)) return QKV_OK;
    if (trees->list.n == 0)
        return qkv_fail(QKV_USAGE,
                        "structural positions need the trees of the texts: --trees FILE, or "
                        "data in CoNLL-U");
    spec->trees = trees;
    return QKV_OK;
}

qkv_status qkv_text_model_read_trees(qkv_text_model *m, const char *path) {
    return qkv_trees_read(&m->trees, path);
}

qkv_status qkv_other_use(const qkv_text_model *m, const char *wanted) {
    static const char program[] = "qkv ";
    const qkv_task *task = qkv_task_of(qkv_model_config(m->model));
    const char *use = task->use ? strstr(task->use, program) : NULL;
    const char *command = use ? use + sizeof program - 1 : "embed";
    if (strncmp(command, "train", 5) == 0) command = "embed"; /* what is there to be trained on */
    return qkv_fail(QKV_USAGE, "this model was trained to %s, not to %s; \"qkv %.*s\" uses it",
                    task->name, wanted, (int)strcspn(command, " "), command);
}

qkv_status qkv_text_model_read_pairs(qkv_text_model *m) {
    const qkv_config *config = qkv_model_config(m->model);
    const qkv_shape shape = qkv_task_of(config)->shape;
    if (!shape.encoder || shape.decoder || shape.head == QKV_HEAD_TAGS)
        return qkv_fail(QKV_USAGE, "this model was trained to %s, which has no pairs of texts",
                        qkv_text_model_task(m));
    QKV_TRY(qkv_task_check_pairs(m->tokenizer, config));
    m->pairs = true;
    return QKV_OK;
}

bool qkv_text_model_several(const qkv_text_model *m) {
    return qkv_model_config(m->model)->several;
}

double qkv_text_model_threshold(const qkv_text_model *m) {
    return qkv_model_config(m->model)->threshold;
}

bool qkv_text_model_pairs(const qkv_text_model *m) {
    return m->pairs;
}

int64_t qkv_text_model_max_len(const qkv_text_model *m) {
    return qkv_config_longest(qkv_model_config(m->model));
}

qkv_status qkv_text_model_set_max_len(qkv_text_model *m, int64_t tokens) {
    return qkv_model_read_up_to(m->model, tokens);
}

/* ---- opening ---- */

static qkv_status check_vocabulary(const qkv_text_model *m, const qkv_config *config,
                                   const char *folder) {
    if (qkv_has_labels(qkv_task_of(config)->shape) && m->labels.n != config->classes)
        return qkv_fail(QKV_BAD_FILE, "%s: %d labels for %lld classes", folder, m->labels.n,
                        (long long)config->classes);
    if (m->spec.vocab_size > config->vocab_size)
        return qkv_fail(QKV_BAD_FILE, "%s: vocab_size is %lld, but the tokenizer has %d tokens",
                        folder, (long long)config->vocab_size, m->spec.vocab_size);
    return QKV_OK;
}

/* A translator's shortlist, where the folder has one. */
static qkv_status open_shortlist(qkv_text_model *m, const qkv_config *config, const char *folder,
                                 qkv_buf *path) {
    const int64_t targets =
        config->target_vocab_size ? config->target_vocab_size : config->vocab_size;
    QKV_TRY(qkv_folder_file(folder, qkv_companion_shortlist.file, path));
    if (!qkv_companion_has(config, &qkv_companion_shortlist) || !qkv_file_exists(path->data))
        return QKV_OK;
    return qkv_shortlist_open(path->data, (int32_t)config->vocab_size, (int32_t)targets,
                              &m->shortlist);
}

/* What ends the texts of a language model, and how it converses. */
static qkv_status open_talk(qkv_text_model *m, const qkv_config *config, const char *folder) {
    const qkv_shape shape = qkv_task_of(config)->shape;
    if (shape.encoder || !shape.decoder) return QKV_OK;
    QKV_TRY(qkv_talk_read(folder, &m->talk));
    for (int i = 0; i < m->talk.n_ends; i++)
        if (m->talk.ends[i] < m->spec.vocab_size) m->ends[m->n_ends++] = (int32_t)m->talk.ends[i];
    if (m->n_ends == 0 && m->spec.eos >= 0) m->ends[m->n_ends++] = m->spec.eos;
    return QKV_OK;
}

static qkv_status open_parts(qkv_text_model *m, const char *folder, qkv_buf *path) {
    qkv_config config;
    QKV_TRY(qkv_folder_read_config(folder, &config, &m->labels));
    QKV_TRY(qkv_folder_blame(qkv_model_build(&config, &m->model), folder));
    QKV_TRY(qkv_folder_open_tokenizer(folder, &m->tokenizer));
    m->spec = qkv_task_spec_of(m->tokenizer, &config);
    QKV_TRY(check_vocabulary(m, &config, folder));
    if (config.pairs) QKV_TRY(qkv_folder_blame(qkv_text_model_read_pairs(m), folder));
    QKV_TRY(qkv_span_scheme_of(&m->labels, &m->spans));
    QKV_TRY(open_shortlist(m, &config, folder, path));
    QKV_TRY(open_talk(m, &config, folder));
    /* The file bears out every size before memory is taken for it. */
    return qkv_folder_open_weights(folder, m->model);
}

qkv_status qkv_text_model_open(const char *folder, qkv_text_model **out) {
    *out = NULL;
    qkv_text_model *m = qkv_zalloc(1, sizeof *m);
    if (!m) return QKV_FAILED;
    qkv_buf path = {0};
    m->idle = qkv_idle_new();
    qkv_status status = m->idle ? QKV_OK : QKV_FAILED;
    if (status == QKV_OK) status = open_parts(m, folder, &path);
    qkv_buf_free(&path);
    if (status != QKV_OK) {
        qkv_text_model_close(m);
        return status;
    }
    *out = m;
    return QKV_OK;
}

void qkv_text_model_close(qkv_text_model *m) {
    if (!m) return;
    qkv_idle_free(m->idle); /* its session reads the model */
    if (m->model) qkv_model_free(m->model);
    qkv_tokenizer_free(m->tokenizer);
    qkv_labels_free(&m->labels);
    qkv_span_scheme_free(&m->spans);
    qkv_trees_free(&m->trees);
    qkv_shortlist_close(&m->shortlist);
    qkv_talk_free(&m->talk);
    qkv_jinja_free(m->chat);
    qkv_free(m);
}

const char *qkv_text_model_task(const qkv_text_model *m) {
    return qkv_task_of(qkv_model_config(m->model))->name;
}

const char *qkv_text_model_label(const qkv_text_model *m, size_t i) {
    return i < (size_t)m->labels.n ? m->labels.names[i] : NULL;
}
