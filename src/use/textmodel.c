/* Opening and writing model folders. */
#include "use/textmodel.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "model/weights.h"

#include <pthread.h>

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

qkv_status qkv_text_model_write_config(const qkv_config *config, const qkv_labels *labels,
                                       const char *folder) {
    qkv_buf path = {0}, text = {0};
    write_json(config, labels, &text);
    qkv_status status = text.status;
    if (status == QKV_OK) status = qkv_path_join(&path, folder, "config.json");
    if (status == QKV_OK) status = qkv_file_write(path.data, text.data, text.len);
    qkv_buf_free(&path);
    qkv_buf_free(&text);
    return status;
}

static qkv_status read_labels(qkv_json_at root, const char *path, qkv_labels *out) {
    qkv_json_at list, item;
    if (!qkv_json_member(root, "labels", &list)) return QKV_OK;
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
    qkv_file file;
    qkv_json doc;
    QKV_TRY(qkv_file_open(path, (size_t)256 << 20, &file));
    const qkv_json_limits limits = {.bytes = (size_t)256 << 20, .nodes = 1 << 22, .depth = 16};
    qkv_status status = qkv_json_parse(&doc, path, file.data, file.size, limits);
    if (status == QKV_OK) {
        status = qkv_config_read(config, qkv_json_root(&doc));
        if (status == QKV_OK) status = read_labels(qkv_json_root(&doc), path, labels);
        qkv_json_free(&doc);
    }
    qkv_file_close(&file);
    return status;
}

/* ---- tapes ---- */

/* What calls leave for the next ones. Tapes keep their memory;
 * there are never more of them than calls ran at once. */
struct qkv_tape_pool {
    pthread_mutex_t lock;
    QKV_VEC(qkv_tape *) idle;
    size_t n_cut; /* texts that were too long */
};

static struct qkv_tape_pool *new_pool(void) {
    struct qkv_tape_pool *p = qkv_zalloc(1, sizeof *p);
    if (p) pthread_mutex_init(&p->lock, NULL);
    return p;
}

static void drop_tape(qkv_tape *t) {
    qkv_tape_free(t);
    qkv_free(t);
}

static void free_pool(struct qkv_tape_pool *p) {
    if (!p) return;
    for (size_t i = 0; i < p->idle.n; i++) drop_tape(p->idle.at[i]);
    qkv_free(p->idle.at);
    pthread_mutex_destroy(&p->lock);
    qkv_free(p);
}

qkv_status qkv_text_model_lend(const qkv_text_model *m, qkv_tape **out) {
    *out = NULL;
    /* Sessions of decoders pack the weights when the first of them begins:
     * not under the eyes of another call. */
    if (qkv_task_of(qkv_model_config(m->model))->shape.decoder) QKV_TRY(qkv_model_pack(m->model));
    pthread_mutex_lock(&m->tapes->lock);
    *out = m->tapes->idle.n ? m->tapes->idle.at[--m->tapes->idle.n] : NULL;
    pthread_mutex_unlock(&m->tapes->lock);
    if (*out) return QKV_OK;
    QKV_TRY_ALLOC(*out = qkv_zalloc(1, sizeof **out));
    return qkv_tape_init(*out); /* takes no memory, so it cannot fail */
}

void qkv_text_model_return(const qkv_text_model *m, qkv_tape *t) {
    pthread_mutex_lock(&m->tapes->lock);
    const bool kept = QKV_PUSH(m->tapes->idle, t);
    pthread_mutex_unlock(&m->tapes->lock);
    if (!kept) drop_tape(t);
}

void qkv_text_model_count_cut(const qkv_text_model *m, size_t n) {
    pthread_mutex_lock(&m->tapes->lock);
    m->tapes->n_cut += n;
    pthread_mutex_unlock(&m->tapes->lock);
}

size_t qkv_text_model_cut(const qkv_text_model *m) {
    pthread_mutex_lock(&m->tapes->lock);
    const size_t n = m->tapes->n_cut;
    pthread_mutex_unlock(&m->tapes->lock);
    return n;
}

/* ---- opening ---- */

/* The path of a file that a model folder must have. Without the folder there is no such model; a
 * folder without the file is a damaged one. */
static qkv_status part_path(const char *folder, const char *name, qkv_buf *path) {
    qkv_buf_clear(path);
    QKV_TRY(qkv_path_join(path, folder, name));
    if (qkv_file_exists(path->data)) return QKV_OK;
    if (!qkv_file_exists(folder))
        return qkv_fail(QKV_FAILED, "%s: there is no such folder", folder);
    return qkv_fail(QKV_BAD_FILE, "%s: not a model folder: there is no %s", folder, name);
}

/* What would be a senseless request from a person is a damaged file here. */
static qkv_status in_file(qkv_status status, const char *path) {
    return status == QKV_USAGE ? qkv_fail_in(QKV_BAD_FILE, "%s", path) : status;
}

static qkv_status check_vocabulary(const qkv_text_model *m, const qkv_config *config,
                                   const char *folder) {
    if (qkv_task_of(config)->shape.head == QKV_HEAD_CLASSES && m->labels.n != config->classes)
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
    qkv_buf_clear(path);
    QKV_TRY(qkv_path_join(path, folder, QKV_SHORTLIST_FILE));
    if (!qkv_task_of(config)->shortlist || !qkv_file_exists(path->data)) return QKV_OK;
    return qkv_shortlist_open(path->data, (int32_t)config->vocab_size, (int32_t)targets,
                              &m->shortlist);
}

static qkv_status open_parts(qkv_text_model *m, const char *folder, qkv_buf *path) {
    qkv_config config;
    QKV_TRY(part_path(folder, "config.json", path));
    QKV_TRY(in_file(read_config(path->data, &config, &m->labels), path->data));
    QKV_TRY(in_file(qkv_model_build(&config, &m->model), path->data));
    QKV_TRY(part_path(folder, "tokenizer.json", path));
    QKV_TRY(in_file(qkv_tokenizer_open(path->data, &m->tokenizer), path->data));
    m->spec = qkv_task_spec_of(m->tokenizer, &config);
    QKV_TRY(check_vocabulary(m, &config, folder));
    QKV_TRY(open_shortlist(m, &config, folder, path));
    /* The file bears out every size before memory is taken for it. */
    QKV_TRY(part_path(folder, "model.safetensors", path));
    return in_file(qkv_model_open(m->model, path->data), path->data);
}

qkv_status qkv_text_model_open(const char *folder, qkv_text_model **out) {
    *out = NULL;
    qkv_text_model *m = qkv_zalloc(1, sizeof *m);
    if (!m) return QKV_FAILED;
    qkv_buf path = {0};
    m->tapes = new_pool();
    qkv_status status = m->tapes ? QKV_OK : QKV_FAILED;
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
    qkv_session_free(m->idle);
    if (m->model) qkv_model_free(m->model);
    qkv_tokenizer_free(m->tokenizer);
    qkv_labels_free(&m->labels);
    qkv_trees_free(&m->trees);
    qkv_shortlist_close(&m->shortlist);
    free_pool(m->tapes);
    qkv_free(m);
}

const char *qkv_text_model_task(const qkv_text_model *m) {
    return qkv_task_of(qkv_model_config(m->model))->name;
}

const char *qkv_text_model_label(const qkv_text_model *m, size_t i) {
    return i < (size_t)m->labels.n ? m->labels.names[i] : NULL;
}
