/* Classes of texts: encode, group into batches of some thousand tokens, softmax. */
#include "api/textmodel.h"
#include "base/mem.h"

#include <string.h>

enum { BATCH_TOKENS = 4096 };

/* Structural positions: each text's tree, among those that were read before. */
static qkv_status find_trees(qkv_text_model *m, const qkv_text *texts, const qkv_encoding *e,
                             qkv_tokens *src) {
    qkv_tape *t = &m->tape;
    qkv_task_tree *trees = qkv_tape_alloc(t, NULL, (size_t)src->layout.n * sizeof *trees);
    int32_t *nodes = qkv_tape_alloc(t, NULL, (size_t)src->rows * sizeof *nodes);
    if (!trees || !nodes) return qkv_tape_status(t);
    for (int32_t i = 0; i < src->layout.n; i++) {
        const qkv_tree *tree = qkv_trees_find(&m->trees, texts[i]);
        int32_t *own = nodes + src->layout.start[i];
        if (!tree)
            return qkv_fail(QKV_BAD_FILE,
                            "structural positions: there is no tree for the text \"%.*s\"",
                            (int)(texts[i].len < 60 ? texts[i].len : 60), texts[i].data);
        own[0] = 0; /* of the token that stands for none */
        qkv_tokenise_nodes(tree, texts[i], &e[i], own);
        trees[i] = (qkv_task_tree){.node = own, .head = tree->head, .n_heads = tree->n + 1};
    }
    qkv_task_measure(t, trees, src);
    return qkv_tape_status(t);
}

/* Probabilities of n texts, whose ids are e[0 … n − 1]. */
static qkv_status run_batch(qkv_text_model *m, const qkv_text *texts, const qkv_encoding *e,
                            size_t n, float *out) {
    qkv_tape *t = &m->tape;
    const size_t classes = (size_t)m->labels.n;
    qkv_tape_begin(t, QKV_EVAL, 0, 0);
    size_t rows = 0;
    for (size_t i = 0; i < n; i++) rows += e[i].n ? e[i].n : 1;
    int32_t *start = qkv_tape_alloc(t, NULL, (n + 1) * sizeof *start);
    int32_t *ids = qkv_tape_alloc(t, NULL, rows * sizeof *ids);
    if (!start || !ids) return qkv_tape_status(t);
    start[0] = 0;
    for (size_t i = 0; i < n; i++) {
        /* A text without tokens is one unknown token: it too has an answer. */
        const size_t len = e[i].n ? e[i].n : 1;
        if (e[i].n)
            memcpy(ids + start[i], e[i].ids, len * sizeof *ids);
        else
            ids[start[i]] = 0;
        start[i + 1] = start[i] + (int32_t)len;
    }
    qkv_tokens src = {
        .layout = {.n = (int32_t)n, .start = start}, .ids = ids, .rows = (int64_t)rows};
    if (qkv_model_config(m->model)->position == QKV_POSITION_STRUCTURAL)
        QKV_TRY(find_trees(m, texts, e, &src));
    qkv_tensor *logits = qkv_model_classify(t, m->model, &src);
    QKV_TRY(qkv_tape_status(t));
    qkv_kern_get()->softmax(logits->data, logits->data, logits->rows, logits->cols);
    for (size_t i = 0; i < n * classes; i++) out[i] = (float)logits->data[i];
    return QKV_OK;
}

static qkv_status run_all(qkv_text_model *m, const qkv_text *texts, const qkv_encoding *e, size_t n,
                          float *out) {
    for (size_t from = 0; from < n;) {
        size_t to = from, filled = 0;
        while (to < n && (to == from || filled + e[to].n <= BATCH_TOKENS)) filled += e[to++].n;
        QKV_TRY(run_batch(m, texts + from, e + from, to - from, out + from * (size_t)m->labels.n));
        from = to;
    }
    return QKV_OK;
}

qkv_status qkv_classify(qkv_text_model *m, const qkv_text *texts, size_t n, float *probabilities) {
    const qkv_config *config = qkv_model_config(m->model);
    if (config->task != QKV_TASK_CLASSIFY)
        return qkv_fail(QKV_USAGE, "this model was trained to %s, not to classify",
                        qkv_text_model_task(m));
    if (n == 0) return QKV_OK;
    qkv_encoding *e = qkv_zalloc(n, sizeof *e);
    if (!e) return QKV_FAILED;
    const qkv_encode_options options = {.max_tokens = (size_t)config->max_len,
                                        .offsets = config->position == QKV_POSITION_STRUCTURAL};
    qkv_status status = qkv_tokenizer_encode_batch(m->tokenizer, texts, n, &options, e);
    if (status == QKV_OK) status = run_all(m, texts, e, n, probabilities);
    for (size_t i = 0; i < n; i++) qkv_encoding_free(&e[i]);
    qkv_free(e);
    return status;
}
