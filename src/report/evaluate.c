/* Scores on files: loss for every task; a table of answers for classifiers; BLEU, chrF and TER of
 * what a translator writes. What was answered to each target is kept where it is asked for (errors,
 * calibration, intervals): a row of a task needs only to count its answers. */
#include "report/evaluate.h"
#include "base/mem.h"
#include "score/agreement.h"
#include "score/resample.h"
#include "use/tag_text.h"

#include <math.h>
#include <string.h>

enum { BATCH_TOKENS = 4096 };

/* ---- counting ---- */

static qkv_status count_batches(const qkv_text_model *m, const qkv_encoded *data, int64_t window,
                                qkv_tally *sum) {
    qkv_batcher b = {.data = data, .budget = BATCH_TOKENS, .window = window};
    QKV_TRY(qkv_batcher_init(&b));
    qkv_batcher_plan(&b, 0);
    qkv_tape *t;
    qkv_status status = qkv_text_model_take_tape(m, &t);
    for (int64_t i = 0; i < b.n_batches && status == QKV_OK; i++) {
        int64_t n;
        const int64_t *examples = qkv_batcher_get(&b, i, &n);
        qkv_tape_begin(t, QKV_EVAL, 0, (uint64_t)i);
        status = qkv_task_count(t, m->model, &m->spec, &b, examples, n, sum);
    }
    if (t) qkv_text_model_give_tape(m, t);
    qkv_batcher_free(&b);
    return status;
}

static qkv_status begin_classes(const qkv_text_model *m, const qkv_evaluate_options *o,
                                qkv_scores *s) {
    const size_t classes = (size_t)m->labels.n;
    s->tally.classes = m->labels.n;
    QKV_TRY_ALLOC(s->classes = qkv_zalloc(classes, sizeof *s->classes));
    if (qkv_model_config(m->model)->several) {
        QKV_TRY_ALLOC(s->tally.labels = qkv_zalloc(classes + 1, sizeof *s->tally.labels));
        return QKV_OK;
    }
    s->tally.keep = o->errors || o->samples || o->calibration;
    QKV_TRY_ALLOC(s->tally.confusion = qkv_zalloc(classes * classes, sizeof(int64_t)));
    return QKV_OK;
}

/* Which row of the corpus each example is: some rows gave none. */
static qkv_status number_rows(const qkv_corpus *corpus, const qkv_encoded *data, qkv_scores *s) {
    int64_t n = 0;
    s->n_examples = data->n;
    QKV_TRY_ALLOC(s->row_of = qkv_zalloc(corpus->n + 1, sizeof *s->row_of));
    for (size_t i = 0; i < corpus->n; i++)
        if (!s->left_out[i]) s->row_of[n++] = (int64_t)i;
    return QKV_OK;
}

/* The loss by windows of 1, 2 and 4 times the trained length. */
static qkv_status count_lengths(const qkv_text_model *m, const qkv_encoded *data, qkv_scores *s) {
    const int64_t trained = qkv_model_config(m->model)->max_len;
    for (int k = 0; k < 3; k++) {
        qkv_length_score *to = &s->lengths[k];
        qkv_tally sum = s->tally;
        to->length = trained << k;
        if (k) {
            sum = (qkv_tally){0};
            QKV_TRY(qkv_model_may_read(m->model, to->length));
            QKV_TRY(count_batches(m, data, to->length, &sum));
        }
        to->targets = sum.n_targets;
        to->loss = sum.loss / (double)sum.n_targets;
    }
    return QKV_OK;
}

static qkv_status count_examples(const qkv_text_model *m, const qkv_corpus *corpus,
                                 const qkv_encoded *data, const qkv_evaluate_options *o,
                                 qkv_scores *s) {
    const qkv_config *config = qkv_model_config(m->model);
    const qkv_task *task = qkv_task_of(config);
    if (qkv_has_labels(task->shape)) QKV_TRY(begin_classes(m, o, s));
    if (s->tally.keep || o->errors) QKV_TRY(number_rows(corpus, data, s));
    QKV_TRY(count_batches(m, data, task->stream ? config->max_len : 0, &s->tally));
    return o->lengths ? count_lengths(m, data, s) : QKV_OK;
}

static qkv_status count_loss(const qkv_text_model *m, const qkv_corpus *corpus,
                             const qkv_evaluate_options *o, qkv_scores *s, qkv_evaluation *out) {
    const qkv_config *config = qkv_model_config(m->model);
    qkv_tokenise_spec spec = qkv_tokenise_spec_of(config);
    qkv_tokenise_counts counts;
    qkv_encoded data;
    QKV_TRY(qkv_tokenise_spec_trees(&spec, corpus->trees.list.n ? &corpus->trees : &m->trees));
    QKV_TRY_ALLOC(s->left_out = spec.left_out = qkv_zalloc(corpus->n + 1, sizeof(bool)));
    qkv_encoded_init(&data, spec.sides);
    qkv_status status = qkv_tokenise(m->tokenizer, corpus, NULL, &spec, &data, &counts);
    if (status == QKV_OK) status = count_examples(m, corpus, &data, o, s);
    out->left_out += counts.n_empty;
    out->cut = counts.n_cut;
    s->n_tokens = data.n_seq ? qkv_encoded_tokens(&data) : 0;
    qkv_encoded_free(&data);
    return status;
}

/* Translates the sources and holds the result against the targets. */
static qkv_status count_likeness(const qkv_text_model *m, const qkv_corpus *corpus,
                                 const qkv_evaluate_options *o, qkv_scores *s,
                                 qkv_evaluation *out) {
    QKV_TRY(qkv_likeness_begin(&s->likeness, o->tokenize));
    s->translated = true;
    s->likeness.keep = o->samples || o->errors;
    qkv_text *texts = qkv_alloc(corpus->n * sizeof *texts); /* sources, then translations */
    if (!texts) return QKV_FAILED;
    for (size_t i = 0; i < corpus->n; i++) texts[i] = corpus->rows[i].text;
    qkv_translations found = {0};
    qkv_status status = qkv_translate(m, texts, corpus->n, o->search, &found);
    for (size_t i = 0; i < corpus->n && status == QKV_OK; i++) {
        const qkv_translation *t = &found.at[i * found.nbest];
        texts[i] = (qkv_text){t->text ? t->text : "", t->text ? t->len : 0};
        status = qkv_likeness_add(&s->likeness, texts[i], &corpus->rows[i].second, 1);
    }
    if (status == QKV_OK && o->errors)
        status = qkv_scores_worst_lines(corpus, texts, (size_t)o->errors, s, out);
    qkv_translations_free(&found);
    qkv_free(texts);
    return status;
}

/* Spans that are the same in both lists count as found, by type and in the row. */
static void compare_spans(const qkv_word_span *truth, size_t n, const qkv_word_span *found,
                          size_t m, qkv_span_counts *by_type, qkv_span_counts *row) {
    for (size_t i = 0; i < n; i++) by_type[truth[i].type].truth++;
    for (size_t i = 0; i < m; i++) by_type[found[i].type].answered++;
    *row = (qkv_span_counts){.truth = (int64_t)n, .answered = (int64_t)m};
    for (size_t i = 0, k = 0; i < n && k < m;) {
        if (truth[i].from == found[k].from && truth[i].to == found[k].to &&
            truth[i].type == found[k].type)
            by_type[truth[i].type].both++, row->both++;
        if (truth[i].from <= found[k].from)
            i++;
        else
            k++;
    }
}

typedef struct tagged_rows {
    qkv_text *texts;
    qkv_text_words *words; /* the rows' own, whose labels become the model's */
    int32_t *label;        /* those of the rows */
    qkv_word_span *truth, *found;
    float *probability;
} tagged_rows;

static qkv_status tag_rows(const qkv_text_model *m, const qkv_corpus *corpus, tagged_rows *r) {
    size_t all = 1;
    for (size_t i = 0; i < corpus->n; i++) all += corpus->rows[i].words.n;
    QKV_TRY_ALLOC(r->texts = qkv_alloc(corpus->n * sizeof *r->texts));
    QKV_TRY_ALLOC(r->words = qkv_alloc(corpus->n * sizeof *r->words));
    QKV_TRY_ALLOC(r->label = qkv_alloc(2 * all * sizeof *r->label));
    QKV_TRY_ALLOC(r->truth = qkv_alloc(2 * all * sizeof *r->truth));
    QKV_TRY_ALLOC(r->probability = qkv_alloc(all * sizeof *r->probability));
    r->found = r->truth + all;
    for (size_t i = 0, at = 0; i < corpus->n; i++) {
        r->texts[i] = corpus->rows[i].text;
        r->words[i] = corpus->rows[i].words;
        for (size_t k = 0; k < r->words[i].n; k++) r->label[at++] = r->words[i].at[k].tag;
    }
    return qkv_tag_words(m, r->texts, r->words, corpus->n, r->probability);
}

static qkv_status count_spans(const qkv_text_model *m, const qkv_corpus *corpus, qkv_scores *s) {
    const qkv_span_scheme *scheme = &m->spans;
    tagged_rows r = {0};
    qkv_span_counts *all;
    QKV_TRY_ALLOC(s->spans = qkv_zalloc((size_t)scheme->types.n + 1, sizeof *s->spans));
    QKV_TRY_ALLOC(s->in_rows = qkv_zalloc(corpus->n + 1, sizeof *s->in_rows));
    all = &s->spans[scheme->types.n];
    const qkv_status status = tag_rows(m, corpus, &r);
    int32_t *label = r.label;
    for (size_t i = 0; i < corpus->n && status == QKV_OK; i++) {
        const qkv_text_words w = r.words[i];
        const size_t n = qkv_spans_find(scheme, label, w.n, r.truth);
        for (size_t k = 0; k < w.n; k++) *label++ = w.at[k].tag;
        const size_t found = qkv_spans_find(scheme, label - w.n, w.n, r.found);
        compare_spans(r.truth, n, r.found, found, s->spans, &s->in_rows[i]);
        all->truth += s->in_rows[i].truth;
        all->answered += s->in_rows[i].answered;
        all->both += s->in_rows[i].both;
    }
    qkv_free(r.texts);
    qkv_free(r.words);
    qkv_free(r.label);
    qkv_free(r.truth);
    qkv_free(r.probability);
    return status;
}

/* The names are copied, so that the result may outlive the corpus. */
static qkv_status name_unknown(const qkv_corpus *corpus, qkv_scores *s, qkv_evaluation *out) {
    const size_t n = (size_t)corpus->unknown.n;
    const char **names = qkv_arena_alloc(&s->strings, n * sizeof *names);
    if (!names) return QKV_FAILED;
    for (size_t i = 0; i < n; i++) {
        const char *name = corpus->unknown.names[i];
        names[i] = qkv_arena_strndup(&s->strings, name, strlen(name));
        if (!names[i]) return QKV_FAILED;
    }
    out->unknown_labels = names;
    out->n_unknown_labels = n;
    return QKV_OK;
}

static qkv_status count_all(const qkv_text_model *m, const qkv_corpus *corpus,
                            const qkv_evaluate_options *o, qkv_scores *s, qkv_evaluation *out) {
    const bool writes = qkv_task_of(qkv_model_config(m->model))->sides == 2;
    for (size_t i = 0; i < corpus->n; i++)
        out->bytes += (int64_t)(writes ? corpus->rows[i].second.len : corpus->rows[i].text.len);
    out->examples = (int64_t)corpus->n;
    out->left_out = corpus->n_empty;
    for (size_t i = 0; i < corpus->readings.n; i++) /* two that answer each other are one place */
        out->n_files += i == 0 || corpus->readings.at[i].first > 0;
    QKV_TRY(count_loss(m, corpus, o, s, out));
    if (m->spans.spans) QKV_TRY(count_spans(m, corpus, s));
    if (writes) QKV_TRY(count_likeness(m, corpus, o, s, out));
    if (s->tally.keep && o->errors)
        QKV_TRY(qkv_scores_errors(m, corpus, (size_t)o->errors, s, out));
    if (s->tally.truth.n && o->errors)
        QKV_TRY(qkv_scores_far_numbers(corpus, (size_t)o->errors, s, out));
    return name_unknown(corpus, s, out);
}

/* ---- what follows from the counts ---- */

static qkv_class_score score(const char *label, int64_t truth, int64_t answered, int64_t both) {
    qkv_class_score r = {.label = label, .support = truth};
    if (answered) r.precision = (double)both / (double)answered;
    if (truth) r.recall = (double)both / (double)truth;
    if (both) r.f1 = 2 * r.precision * r.recall / (r.precision + r.recall);
    return r;
}

static qkv_class_score score_class(const qkv_tally *t, int32_t k, const char *label) {
    int64_t answered = 0, truth = 0;
    if (t->labels) return score(label, t->labels[k][0], t->labels[k][1], t->labels[k][2]);
    for (int32_t i = 0; i < t->classes; i++) {
        answered += t->confusion[i * t->classes + k];
        truth += t->confusion[k * t->classes + i];
    }
    return score(label, truth, answered, t->confusion[k * t->classes + k]);
}

static qkv_class_score score_spans(const char *type, const qkv_span_counts *c) {
    return score(type, c->truth, c->answered, c->both);
}

/* A type's name is what follows "B-" or "I-" in that of a class. */
static qkv_status conclude_spans(const qkv_span_scheme *scheme, qkv_scores *s,
                                 qkv_evaluation *out) {
    const int32_t n = scheme->types.n;
    QKV_TRY_ALLOC(s->types = qkv_zalloc((size_t)n, sizeof *s->types));
    for (int32_t k = 0; k < scheme->n; k++) {
        const int32_t type = scheme->label[k].type;
        if (type < 0) continue;
        s->types[type] = score_spans(s->classes[k].label + 2, &s->spans[type]);
    }
    const qkv_class_score all = score_spans(NULL, &s->spans[n]);
    out->n_types = (size_t)n;
    out->types = s->types;
    out->span_precision = all.precision;
    out->span_recall = all.recall;
    out->span_f1 = all.f1;
    return QKV_OK;
}

/* The names are copied, so that the result may outlive the model. */
static qkv_status conclude_classes(const qkv_text_model *m, const qkv_evaluate_options *o,
                                   qkv_scores *s, qkv_evaluation *out) {
    double sum = 0;
    for (int32_t k = 0; k < s->tally.classes; k++) {
        const char *label = m->labels.names[k],
                   *name = qkv_arena_strndup(&s->strings, label, strlen(label));
        if (!name) return QKV_FAILED;
        s->classes[k] = score_class(&s->tally, k, name);
        sum += s->classes[k].f1;
    }
    out->n_classes = (size_t)s->tally.classes;
    out->classes = s->classes;
    out->confusion = s->tally.confusion;
    out->macro_f1 = sum / s->tally.classes;
    if (s->tally.labels) {
        const qkv_class_score all = score_class(&s->tally, s->tally.classes, NULL);
        out->several = true;
        out->micro_precision = all.precision;
        out->micro_recall = all.recall;
        out->micro_f1 = all.f1;
        return QKV_OK;
    }
    if (s->spans) QKV_TRY(conclude_spans(&m->spans, s, out));
    QKV_TRY(qkv_scores_mistaken(s, out));
    if (o->calibration || o->samples) qkv_scores_calibrate(s, out);
    if (!o->calibration) out->n_bins = 0;
    return o->samples ? qkv_scores_intervals(s, o, out) : QKV_OK;
}

static qkv_status conclude_numbers(const qkv_scores *s, const qkv_evaluate_options *o,
                                   qkv_evaluation *out) {
    qkv_agreement found;
    QKV_TRY(qkv_agreement_of(s->tally.truth.at, s->tally.answer.at, s->tally.truth.n, &found));
    out->accuracy = NAN;
    out->mse = found.mse;
    out->mae = found.mae;
    out->pearson = found.pearson;
    out->spearman = found.spearman;
    return qkv_scores_number_intervals(s, o, out);
}

static qkv_status conclude_translation(qkv_scores *s, const qkv_evaluate_options *o,
                                       qkv_evaluation *out) {
    const size_t samples = qkv_samples_of(o, (size_t)s->likeness.lines);
    QKV_TRY(qkv_likeness_conclude(&s->likeness, &s->translation));
    if (samples)
        QKV_TRY(qkv_likeness_intervals(&s->likeness, samples, o->seed ? o->seed : QKV_RESAMPLE_SEED,
                                       &s->translation));
    out->samples = (int64_t)samples;
    out->translation = &s->translation;
    out->bleu = s->translation.bleu;
    out->chrf2 = s->translation.chrf2;
    out->chrf2_plus = s->translation.chrf2_plus;
    out->ter = s->translation.ter;
    return QKV_OK;
}

static void conclude_lengths(qkv_scores *s, double tokens_per_byte, qkv_evaluation *out) {
    for (int k = 0; k < 3; k++) {
        qkv_length_score *l = &s->lengths[k];
        l->perplexity = exp(l->loss);
        l->bits_per_byte = l->loss / log(2) * tokens_per_byte;
    }
    out->lengths = s->lengths;
    out->n_lengths = 3;
}

static qkv_status conclude(const qkv_text_model *m, const qkv_evaluate_options *o, qkv_scores *s,
                           qkv_evaluation *out) {
    const double targets = (double)s->tally.n_targets;
    if (s->tally.n_unknown && s->tally.n_unknown == s->tally.n_targets)
        return qkv_fail(
            QKV_BAD_FILE,
            "no label of the data (\"%.60s\", …) occurs in the training data (\"%.60s\", "
            "…): is it for another model, or are the columns others (--label, --text)?",
            out->unknown_labels[0], m->labels.names[0]);
    out->targets = s->tally.n_targets;
    out->right = s->tally.n_right;
    out->unknown = s->tally.n_unknown;
    out->loss = s->tally.loss / (targets - (double)s->tally.n_unknown);
    out->accuracy = (double)s->tally.n_right / targets;
    if (s->tally.classes) return conclude_classes(m, o, s, out);
    if (s->tally.truth.n) return conclude_numbers(s, o, out);
    /* Bits per byte of the original text: the mean loss of a token, times the tokens per byte.
     * (Where only some tokens are guessed, as in mlm, as if all were.) */
    const int64_t tokens = s->translated ? s->tally.n_targets : s->n_tokens;
    const double tokens_per_byte = (double)tokens / (double)out->bytes;
    out->perplexity = exp(out->loss);
    out->bits_per_byte = out->loss / log(2) * tokens_per_byte;
    if (o->lengths) conclude_lengths(s, tokens_per_byte, out);
    return s->translated ? conclude_translation(s, o, out) : QKV_OK;
}

/* What was asked for that this task has not. */
static qkv_status check_options(const qkv_task *task, const qkv_evaluate_options *o) {
    const bool labels = qkv_has_labels(task->shape);
    if (o->errors < 0 || o->samples < 0)
        return qkv_fail(QKV_USAGE, "numbers of errors and samples must not be negative");
    if (o->errors && !labels && task->shape.head != QKV_HEAD_NUMBER && task->sides == 1)
        return qkv_fail(QKV_USAGE,
                        "--errors lists wrong answers; a model of \"%s\" gives none, only a loss",
                        task->name);
    if (o->calibration && !labels)
        return qkv_fail(QKV_USAGE,
                        "a reliability diagram is of probabilities of labels; a model of \"%s\" "
                        "has none",
                        task->name);
    if (o->lengths && !task->stream)
        return qkv_fail(QKV_USAGE, "--lengths is for running text; a model of \"%s\" reads rows",
                        task->name);
    return QKV_OK;
}

static qkv_status evaluate(const qkv_text_model *m, const char *const *files,
                           const qkv_evaluate_options *options, qkv_evaluation *out) {
    static const qkv_evaluate_options defaults = {0};
    const qkv_task *task = qkv_task_of(qkv_model_config(m->model));
    size_t n = 0;
    while (files && files[n]) n++;
    if (!options) options = &defaults;
    QKV_TRY(check_options(task, options));
    if (qkv_text_model_several(m) && (options->errors || options->calibration))
        return qkv_fail(QKV_USAGE, "a text of this model may have several labels: --errors and "
                                   "--calibration are for models of one label a text");
    const qkv_corpus_spec spec = {.shape = task->corpus,
                                  .paths = files,
                                  .n_paths = n,
                                  .format = options->format,
                                  .column = {[QKV_ROLE_LABEL] = options->label,
                                             [QKV_ROLE_TEXT] = options->text,
                                             [QKV_ROLE_PAIR] = options->pair},
                                  .between = options->labels_separator,
                                  .several = qkv_text_model_several(m),
                                  .second = m->pairs           ? QKV_SECOND_MUST
                                            : task->sides == 1 ? QKV_SECOND_NOT
                                                               : QKV_SECOND_MAY,
                                  .labels = &m->labels,
                                  .pass_unknown = true};
    if (spec.second == QKV_SECOND_NOT && options->pair)
        return qkv_fail(QKV_USAGE, "--pair %.60s: this model was trained on single texts",
                        options->pair);
    if (n == 0 || !qkv_task_trains(task))
        return qkv_fail(QKV_USAGE, n ? "a model that only embeds has no score"
                                     : "eval needs data: --data FILE");
    qkv_scores *s = out->memory = qkv_zalloc(1, sizeof *s);
    if (!s) return QKV_FAILED;
    qkv_arena_init(&s->strings);
    qkv_corpus corpus;
    QKV_TRY(qkv_corpus_read(&corpus, &spec));
    const qkv_status status = count_all(m, &corpus, options, s, out);
    qkv_corpus_free(&corpus);
    return status == QKV_OK ? conclude(m, options, s, out) : status;
}

qkv_status qkv_evaluate(const qkv_text_model *m, const char *const *files,
                        const qkv_evaluate_options *options, qkv_evaluation *out) {
    static const qkv_interval none = {NAN, NAN, NAN};
    *out = (qkv_evaluation){.task = qkv_text_model_task(m),
                            .ece = NAN,
                            .accuracy_interval = none,
                            .macro_f1_interval = none,
                            .span_f1_interval = none,
                            .mse_interval = none,
                            .pearson_interval = none,
                            .spearman_interval = none,
                            .ter = NAN,
                            .perplexity = NAN,
                            .bits_per_byte = NAN,
                            .macro_f1 = NAN,
                            .span_precision = NAN,
                            .span_recall = NAN,
                            .span_f1 = NAN,
                            .micro_precision = NAN,
                            .micro_recall = NAN,
                            .micro_f1 = NAN,
                            .mse = NAN,
                            .mae = NAN,
                            .pearson = NAN,
                            .spearman = NAN,
                            .bleu = NAN,
                            .chrf2 = NAN,
                            .chrf2_plus = NAN};
    const qkv_status status = evaluate(m, files, options, out);
    if (status != QKV_OK) qkv_evaluation_free(out);
    return status;
}

void qkv_evaluation_free(qkv_evaluation *e) {
    qkv_scores *s = e->memory;
    if (s) {
        qkv_free(s->tally.confusion);
        qkv_free(s->tally.answers.at);
        qkv_free(s->tally.labels);
        qkv_free(s->tally.truth.at);
        qkv_free(s->tally.answer.at);
        qkv_free(s->classes);
        qkv_free(s->spans);
        qkv_free(s->in_rows);
        qkv_free(s->types);
        qkv_free(s->left_out);
        qkv_free(s->row_of);
        qkv_free(s->errors.at);
        qkv_arena_free(&s->strings);
        qkv_likeness_free(&s->likeness);
        qkv_free(s);
    }
    *e = (qkv_evaluation){0};
}
