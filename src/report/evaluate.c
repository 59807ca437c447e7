/* Scores on files: loss for every task; a table of answers for classifiers; BLEU and chrF of what a
 * translator writes. */
#include "report/evaluate.h"
#include "base/mem.h"

#include <math.h>
#include <string.h>

enum { BATCH_TOKENS = 4096 };

/* ---- counting ---- */

static qkv_status count_batches(const qkv_text_model *m, const qkv_encoded *data, qkv_scores *s) {
    const qkv_config *config = qkv_model_config(m->model);
    const qkv_task *task = qkv_task_of(config);
    qkv_batcher b = {
        .data = data, .budget = BATCH_TOKENS, .window = task->stream ? config->max_len : 0};
    if (task->shape.head == QKV_HEAD_CLASSES) {
        const size_t classes = (size_t)m->labels.n;
        s->tally.classes = m->labels.n;
        QKV_TRY_ALLOC(s->tally.confusion = qkv_zalloc(classes * classes, sizeof(int64_t)));
        QKV_TRY_ALLOC(s->classes = qkv_zalloc(classes, sizeof *s->classes));
    }
    QKV_TRY(qkv_batcher_init(&b));
    qkv_batcher_plan(&b, 0);
    qkv_tape *t;
    qkv_status status = qkv_text_model_lend(m, &t);
    for (int64_t i = 0; i < b.n_batches && status == QKV_OK; i++) {
        int64_t n;
        const int64_t *examples = qkv_batcher_get(&b, i, &n);
        qkv_tape_begin(t, QKV_EVAL, 0, (uint64_t)i);
        status = qkv_task_count(t, m->model, &m->spec, &b, examples, n, &s->tally);
    }
    if (t) qkv_text_model_return(m, t);
    qkv_batcher_free(&b);
    return status;
}

static qkv_status count_loss(const qkv_text_model *m, const qkv_corpus *corpus, qkv_scores *s,
                             qkv_evaluation *out) {
    const qkv_config *config = qkv_model_config(m->model);
    qkv_tokenise_spec spec = qkv_tokenise_spec_of(config);
    qkv_tokenise_counts counts;
    qkv_encoded data;
    QKV_TRY(qkv_tokenise_spec_trees(&spec, corpus->trees.list.n ? &corpus->trees : &m->trees));
    qkv_encoded_init(&data, spec.sides);
    qkv_status status = qkv_tokenise(m->tokenizer, corpus, NULL, &spec, &data, &counts);
    if (status == QKV_OK) status = count_batches(m, &data, s);
    out->left_out += counts.n_empty;
    out->cut = counts.n_cut;
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

static qkv_status count_all(const qkv_text_model *m, const qkv_corpus *corpus,
                            const qkv_evaluate_options *o, qkv_scores *s, qkv_evaluation *out) {
    const bool writes = qkv_task_of(qkv_model_config(m->model))->sides == 2;
    for (size_t i = 0; i < corpus->n; i++)
        out->bytes += (int64_t)(writes ? corpus->rows[i].second.len : corpus->rows[i].text.len);
    out->examples = (int64_t)corpus->n;
    out->left_out = corpus->n_empty;
    QKV_TRY(count_loss(m, corpus, s, out));
    return writes ? count_likeness(m, corpus, o, s) : QKV_OK;
}

/* ---- what follows from the counts ---- */

static qkv_class_score score_class(const qkv_tally *t, int32_t k, const char *label) {
    int64_t answered = 0;
    qkv_class_score r = {.label = label};
    for (int32_t i = 0; i < t->classes; i++) {
        answered += t->confusion[i * t->classes + k];
        r.support += t->confusion[k * t->classes + i];
    }
    const double right = (double)t->confusion[k * t->classes + k];
    if (answered) r.precision = right / (double)answered;
    if (r.support) r.recall = right / (double)r.support;
    if (right > 0) r.f1 = 2 * r.precision * r.recall / (r.precision + r.recall);
    return r;
}

static void conclude_classes(const qkv_text_model *m, qkv_scores *s, qkv_evaluation *out) {
    double sum = 0;
    for (int32_t k = 0; k < s->tally.classes; k++) {
        s->classes[k] = score_class(&s->tally, k, m->labels.names[k]);
        sum += s->classes[k].f1;
    }
    out->n_classes = (size_t)s->tally.classes;
    out->classes = s->classes;
    out->confusion = s->tally.confusion;
    out->macro_f1 = sum / s->tally.classes;
}

static void conclude(const qkv_text_model *m, qkv_scores *s, qkv_evaluation *out) {
    const double targets = (double)s->tally.n_targets;
    out->targets = s->tally.n_targets;
    out->right = s->tally.n_right;
    out->loss = s->tally.loss / targets;
    out->accuracy = (double)s->tally.n_right / targets;
    if (s->tally.confusion) {
        conclude_classes(m, s, out);
        return;
    }
    /* Bits per byte of the original text: the mean loss of a token, times the tokens per byte.
     * (Where only some tokens are guessed, as in mlm, as if all were.) */
    const int64_t tokens = s->translated ? s->tally.n_targets : s->n_tokens;
    out->perplexity = exp(out->loss);
    out->bits_per_byte = out->loss / log(2) * (double)tokens / (double)out->bytes;
    if (!s->translated) return;
    out->bleu = qkv_bleu_result(&s->likeness.bleu).score;
    out->chrf2 = qkv_chrf_result(&s->likeness.chrf);
    out->chrf2_plus = qkv_chrf_result(&s->likeness.chrf_words);
}

qkv_status qkv_evaluate(const qkv_text_model *m, const char *const *files,
                        const qkv_evaluate_options *options, qkv_evaluation *out) {
    static const qkv_evaluate_options defaults = {0};
    const qkv_task *task = qkv_task_of(qkv_model_config(m->model));
    *out = (qkv_evaluation){.task = task->name,
                            .perplexity = NAN,
                            .bits_per_byte = NAN,
                            .macro_f1 = NAN,
                            .bleu = NAN,
                            .chrf2 = NAN,
                            .chrf2_plus = NAN};
    size_t n = 0;
    while (files && files[n]) n++;
    if (!options) options = &defaults;
    const qkv_corpus_spec spec = {.shape = task->corpus,
                                  .paths = files,
                                  .n_paths = n,
                                  .format = options->format,
                                  .column = {[QKV_ROLE_LABEL] = options->label,
                                             [QKV_ROLE_TEXT] = options->text,
                                             [QKV_ROLE_PAIR] = options->pair},
                                  .labels = &m->labels};
    if (n == 0 || !qkv_task_trains(task))
        return qkv_fail(QKV_USAGE, n ? "a model that only embeds has no score"
                                     : "eval needs data: --data FILE");
    qkv_scores *s = out->memory = qkv_zalloc(1, sizeof *s);
    if (!s) return QKV_FAILED;
    qkv_corpus corpus;
    QKV_TRY(qkv_corpus_read(&corpus, &spec));
    const qkv_status status = count_all(m, &corpus, options, s, out);
    qkv_corpus_free(&corpus);
    if (status == QKV_OK) conclude(m, s, out);
    return status;
}

void qkv_evaluation_free(qkv_evaluation *e) {
    qkv_scores *s = e->memory;
    if (s) {
        qkv_free(s->tally.confusion);
        qkv_free(s->classes);
        qkv_likeness_free(&s->likeness);
        qkv_free(s);
    }
    *e = (qkv_evaluation){0};
}
