/* Scores on files: loss for every task; a table of answers for classifiers; BLEU and chrF of what a
 * translator writes. */
#include "report/evaluate.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

enum { BATCH_TOKENS = 4096 };

/* ---- counting ---- */

/* The answers of a batch of examples: softmax, the largest, the loss of the true class. */
static qkv_status count_answers(const qkv_text_model *m, qkv_tape *t, const qkv_batch *batch,
                                qkv_scores *s) {
    qkv_tensor *logits = qkv_model_classify(t, m->model, &batch->src);
    QKV_TRY(qkv_tape_status(t));
    qkv_kern_get()->softmax(logits->data, logits->data, logits->rows, logits->cols);
    for (int64_t i = 0; i < batch->n_targets; i++) {
        const real *p = logits->data + i * logits->ld;
        const int32_t truth = batch->targets[i];
        int32_t answer = 0;
        for (int32_t k = 1; k < s->classes; k++)
            if (p[k] > p[answer]) answer = k;
        s->confusion[truth * s->classes + answer]++;
        s->n_right += truth == answer;
        s->loss -= log(fmax((double)p[truth], 1e-30));
    }
    s->n_targets += batch->n_targets;
    return QKV_OK;
}

static qkv_status count_batch(const qkv_text_model *m, qkv_tape *t, const qkv_task *task,
                              const qkv_batcher *b, int64_t i, qkv_scores *s) {
    int64_t n;
    const int64_t *examples = qkv_batcher_get(b, i, &n);
    qkv_batch batch = {.n_sequences = n};
    qkv_loss_out out;
    qkv_tape_begin(t, QKV_EVAL, 0, (uint64_t)i);
    if (s->confusion) {
        task->assemble(t, &m->spec, b, examples, n, &batch);
        QKV_TRY(qkv_tape_status(t));
        return count_answers(m, t, &batch, s);
    }
    QKV_TRY(qkv_task_forward(t, m->model, &m->spec, b, examples, n, &batch, NULL, &out));
    s->loss += out.loss;
    s->n_right += out.n_right;
    s->n_targets += batch.n_targets;
    return QKV_OK;
}

static qkv_status count_batches(const qkv_text_model *m, const qkv_encoded *data, qkv_scores *s) {
    const qkv_config *config = qkv_model_config(m->model);
    const qkv_task *task = qkv_task_of(config);
    qkv_batcher b = {
        .data = data, .budget = BATCH_TOKENS, .window = task->stream ? config->max_len : 0};
    if (task->shape.head == QKV_HEAD_CLASSES) {
        s->classes = m->labels.n;
        s->confusion = qkv_zalloc((size_t)s->classes * (size_t)s->classes, sizeof *s->confusion);
        if (!s->confusion) return QKV_FAILED;
    }
    QKV_TRY(qkv_batcher_init(&b));
    qkv_batcher_plan(&b, 0);
    qkv_tape *t;
    qkv_status status = qkv_text_model_lend(m, &t);
    for (int64_t i = 0; i < b.n_batches && status == QKV_OK; i++)
        status = count_batch(m, t, task, &b, i, s);
    if (t) qkv_text_model_return(m, t);
    qkv_batcher_free(&b);
    return status;
}

static qkv_status count_loss(const qkv_text_model *m, const qkv_corpus *corpus, qkv_scores *s) {
    const qkv_config *config = qkv_model_config(m->model);
    qkv_tokenise_spec spec = qkv_tokenise_spec_of(config);
    qkv_tokenise_counts counts;
    qkv_encoded data;
    QKV_TRY(
        qkv_tokenise_spec_trees(&spec, config, corpus->trees.list.n ? &corpus->trees : &m->trees));
    qkv_encoded_init(&data, spec.sides);
    qkv_status status = qkv_tokenise(m->tokenizer, corpus, NULL, &spec, &data, &counts);
    if (status == QKV_OK) status = count_batches(m, &data, s);
    s->n_left_out += counts.n_empty;
    s->n_cut = counts.n_cut;
    s->n_tokens = data.n_seq ? qkv_encoded_tokens(&data) : 0;
    qkv_encoded_free(&data);
    return status;
}

/* Translates the sources and holds the result against the targets. */
static qkv_status count_likeness(const qkv_text_model *m, const qkv_corpus *corpus,
                                 const qkv_evaluate_options *o, qkv_scores *s) {
    QKV_TRY(qkv_likeness_begin(&s->likeness, o->tokenize));
    s->translated = true;
    qkv_text *sources = qkv_alloc(corpus->n * sizeof *sources);
    if (!sources) return QKV_FAILED;
    for (size_t i = 0; i < corpus->n; i++) sources[i] = corpus->rows[i].text;
    qkv_translations found = {0};
    qkv_status status = qkv_translate(m, sources, corpus->n, o->search, &found);
    for (size_t i = 0; i < corpus->n && status == QKV_OK; i++) {
        const qkv_translation *t = &found.at[i * found.nbest];
        const qkv_text hyp = {t->text ? t->text : "", t->text ? t->len : 0};
        status = qkv_likeness_add(&s->likeness, hyp, &corpus->rows[i].second, 1);
    }
    qkv_translations_free(&found);
    qkv_free(sources);
    return status;
}

static qkv_status count(const qkv_text_model *m, const qkv_corpus *corpus,
                        const qkv_evaluate_options *o, qkv_scores *s) {
    const bool translate = qkv_task_of(qkv_model_config(m->model))->sides == 2;
    for (size_t i = 0; i < corpus->n; i++)
        s->n_bytes += (int64_t)(translate ? corpus->rows[i].second.len : corpus->rows[i].text.len);
    s->n_examples = (int64_t)corpus->n;
    s->n_left_out = corpus->n_empty;
    QKV_TRY(count_loss(m, corpus, s));
    return translate ? count_likeness(m, corpus, o, s) : QKV_OK;
}

qkv_status qkv_evaluate(const qkv_text_model *m, const char *const *files,
                        const qkv_evaluate_options *options, bool json, char **text) {
    static const qkv_evaluate_options defaults = {0};
    *text = NULL;
    size_t n = 0;
    while (files && files[n]) n++;
    const qkv_task *task = qkv_task_of(qkv_model_config(m->model));
    const qkv_corpus_spec spec = {
        .shape = task->corpus, .paths = files, .n_paths = n, .labels = &m->labels};
    if (n == 0 || !qkv_task_trains(task))
        return qkv_fail(QKV_USAGE, n ? "a model that only embeds has no score"
                                     : "eval needs data: --data FILE");
    qkv_corpus corpus;
    QKV_TRY(qkv_corpus_read(&corpus, &spec));
    qkv_scores s = {0};
    qkv_status status = count(m, &corpus, options ? options : &defaults, &s);
    qkv_buf out = {0};
    if (status == QKV_OK) (json ? qkv_scores_json : qkv_scores_table)(m, &s, &out);
    if (status == QKV_OK) status = out.status;
    qkv_free(s.confusion);
    qkv_likeness_free(&s.likeness);
    qkv_corpus_free(&corpus);
    if (status == QKV_OK)
        *text = out.data;
    else
        qkv_buf_free(&out);
    return status;
}
