/* Answers looked at singly: the worst of them, which classes are taken for which, whether the
 * probabilities mean what they say, and how much of a figure is the luck of the rows. */
#include "report/evaluate.h"
#include "base/mem.h"
#include "score/agreement.h"
#include "score/resample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the worst ---- */

/* The file that a row is from. */
static const char *file_of(const qkv_corpus *corpus, size_t row) {
    const qkv_reading *best = corpus->readings.n ? &corpus->readings.at[0] : NULL;
    for (size_t i = 1; i < corpus->readings.n; i++) {
        const qkv_reading *r = &corpus->readings.at[i];
        if (r->first <= row && r->first > best->first) best = r;
    }
    return best ? best->path : "";
}

/* A wrong answer that is to be shown: `badness` orders them, `at` finds them again. */
typedef struct candidate {
    double badness;
    size_t at;
} candidate;

static int worst_first(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->badness != y->badness) return x->badness > y->badness ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Text of the corpus as the result's own; of a pair both texts. */
static qkv_status copy_text(qkv_scores *s, const qkv_row *row, bool pair, qkv_text *out) {
    const size_t second = pair && row->second.data ? row->second.len + 1 : 0;
    char *to = qkv_arena_alloc(&s->strings, row->text.len + second + 1);
    if (!to) return QKV_FAILED;
    memcpy(to, row->text.data, row->text.len);
    if (second) {
        to[row->text.len] = '\t';
        memcpy(to + row->text.len + 1, row->second.data, row->second.len);
    }
    to[row->text.len + second] = 0;
    *out = (qkv_text){to, row->text.len + second};
    return QKV_OK;
}

static qkv_status begin_error(qkv_scores *s, const qkv_corpus *corpus, size_t row, bool pair,
                              qkv_wrong_answer *e) {
    const char *file = file_of(corpus, row);
    *e = (qkv_wrong_answer){.line = corpus->rows[row].line,
                            .file = qkv_arena_strndup(&s->strings, file, strlen(file)),
                            .p_truth = NAN,
                            .p_answer = NAN,
                            .score = NAN};
    if (!e->file) return QKV_FAILED;
    QKV_TRY(copy_text(s, &corpus->rows[row], pair, &e->text));
    e->end = e->text.len;
    return QKV_OK;
}

static const char *copy_label(qkv_scores *s, const qkv_text_model *m, int32_t label) {
    const char *name = m->labels.names[label];
    return qkv_arena_strndup(&s->strings, name, strlen(name));
}

static qkv_status add_error(const qkv_text_model *m, const qkv_corpus *corpus, const qkv_answer *a,
                            qkv_scores *s) {
    const size_t row = (size_t)s->row_of[a->example];
    const qkv_text_words words = corpus->rows[row].words;
    qkv_wrong_answer e;
    QKV_TRY(begin_error(s, corpus, row, true, &e));
    if ((size_t)a->place < words.n) {
        e.begin = words.at[a->place].begin;
        e.end = words.at[a->place].end;
    }
    e.truth = copy_label(s, m, a->truth);
    e.answer = copy_label(s, m, a->answer);
    e.p_truth = (double)a->p_truth;
    e.p_answer = (double)a->p_answer;
    return e.truth && e.answer && QKV_PUSH(s->errors, e) ? QKV_OK : QKV_FAILED;
}

/* Labels that the model does not know are no errors that looking at would mend. */
qkv_status qkv_scores_errors(const qkv_text_model *m, const qkv_corpus *corpus, size_t most,
                             qkv_scores *s, qkv_evaluation *out) {
    const qkv_answer *answers = s->tally.answers.at;
    const size_t n = s->tally.answers.n;
    candidate *wrong = qkv_alloc((n + 1) * sizeof *wrong);
    size_t found = 0;
    qkv_status status = wrong ? QKV_OK : QKV_FAILED;
    for (size_t i = 0; i < n && wrong; i++)
        if (answers[i].truth >= 0 && answers[i].answer != answers[i].truth)
            wrong[found++] = (candidate){-(double)answers[i].p_truth, i};
    if (found) qsort(wrong, found, sizeof *wrong, worst_first);
    for (size_t i = 0; i < found && i < most && status == QKV_OK; i++)
        status = add_error(m, corpus, &answers[wrong[i].at], s);
    qkv_free(wrong);
    out->errors = s->errors.at;
    out->n_errors = s->errors.n;
    return status;
}

static qkv_status add_line(const qkv_corpus *corpus, qkv_text written, size_t row, double score,
                           qkv_scores *s) {
    const qkv_text truth = corpus->rows[row].second;
    qkv_wrong_answer e;
    QKV_TRY(begin_error(s, corpus, row, false, &e));
    e.score = score;
    e.truth = qkv_arena_strndup(&s->strings, truth.data, truth.len);
    e.answer = qkv_arena_strndup(&s->strings, written.data, written.len);
    return e.truth && e.answer && QKV_PUSH(s->errors, e) ? QKV_OK : QKV_FAILED;
}

qkv_status qkv_scores_worst_lines(const qkv_corpus *corpus, const qkv_text *written, size_t most,
                                  qkv_scores *s, qkv_evaluation *out) {
    candidate *lines = qkv_alloc((corpus->n + 1) * sizeof *lines);
    qkv_status status = lines ? QKV_OK : QKV_FAILED;
    for (size_t i = 0; i < corpus->n && lines; i++) {
        double figures[QKV_LIKENESS_FIGURES];
        qkv_likeness_line(&s->likeness, i, figures);
        lines[i] = (candidate){-figures[1], i};
    }
    if (corpus->n && lines) qsort(lines, corpus->n, sizeof *lines, worst_first);
    for (size_t i = 0; i < corpus->n && i < most && status == QKV_OK; i++)
        status = add_line(corpus, written[lines[i].at], lines[i].at, -lines[i].badness, s);
    qkv_free(lines);
    out->errors = s->errors.at;
    out->n_errors = s->errors.n;
    return status;
}

static const char *copy_number(qkv_scores *s, double x) {
    return qkv_arena_printf(&s->strings, "%.6g", x);
}

qkv_status qkv_scores_far_numbers(const qkv_corpus *corpus, size_t most, qkv_scores *s,
                                  qkv_evaluation *out) {
    const size_t n = s->tally.truth.n;
    candidate *far = qkv_alloc((n + 1) * sizeof *far);
    qkv_status status = far ? QKV_OK : QKV_FAILED;
    for (size_t i = 0; i < n && far; i++)
        far[i] = (candidate){fabs(s->tally.truth.at[i] - s->tally.answer.at[i]), i};
    if (n && far) qsort(far, n, sizeof *far, worst_first);
    for (size_t i = 0; i < n && i < most && status == QKV_OK; i++) {
        qkv_wrong_answer e;
        status = begin_error(s, corpus, (size_t)s->row_of[far[i].at], true, &e);
        if (status != QKV_OK) break;
        e.truth = copy_number(s, s->tally.truth.at[far[i].at]);
        e.answer = copy_number(s, s->tally.answer.at[far[i].at]);
        if (!e.truth || !e.answer || !QKV_PUSH(s->errors, e)) status = QKV_FAILED;
    }
    qkv_free(far);
    out->errors = s->errors.at;
    out->n_errors = s->errors.n;
    return status;
}

/* ---- classes taken for others ---- */

/* The cells beside the diagonal, the largest first; of equal ones the first. */
qkv_status qkv_scores_mistaken(qkv_scores *s, qkv_evaluation *out) {
    const qkv_tally *t = &s->tally;
    size_t n = 0;
    for (int32_t i = 0; i < t->classes; i++)
        for (int32_t k = 0; k < t->classes; k++) {
            const int64_t times = t->confusion[(size_t)i * (size_t)t->classes + (size_t)k];
            if (i == k || times == 0) continue;
            size_t at = n < QKV_MISTAKEN ? n++ : n - 1;
            if (at == QKV_MISTAKEN - 1 && s->mistaken[at].n >= times) continue;
            for (; at > 0 && s->mistaken[at - 1].n < times; at--)
                s->mistaken[at] = s->mistaken[at - 1];
            s->mistaken[at] = (qkv_mistaken_pair){s->classes[i].label, s->classes[k].label, times};
        }
    out->mistaken = s->mistaken;
    out->n_mistaken = n;
    return QKV_OK;
}

/* ---- probabilities ---- */

void qkv_scores_calibrate(qkv_scores *s, qkv_evaluation *out) {
    int64_t all = 0;
    for (size_t i = 0; i < s->tally.answers.n; i++) {
        const qkv_answer *a = &s->tally.answers.at[i];
        const int at = (int)(a->p_answer * QKV_BINS);
        if (a->truth < 0) continue;
        qkv_calibration_bin *bin = &s->bins[at < QKV_BINS ? at : QKV_BINS - 1];
        bin->n++;
        bin->confidence += (double)a->p_answer;
        bin->accuracy += a->answer == a->truth;
        all++;
    }
    out->ece = all ? 0 : NAN;
    for (int k = 0; k < QKV_BINS; k++) {
        qkv_calibration_bin *bin = &s->bins[k];
        bin->confidence = bin->n ? bin->confidence / (double)bin->n : NAN;
        bin->accuracy = bin->n ? bin->accuracy / (double)bin->n : NAN;
        if (bin->n)
            out->ece += fabs(bin->confidence - bin->accuracy) * (double)bin->n / (double)all;
    }
    out->bins = s->bins;
    out->n_bins = QKV_BINS;
}

/* ---- intervals ---- */

/* Samples of many rows take long and differ little: no more than 2 · 10⁸ draws, but 200 samples. */
size_t qkv_samples_of(const qkv_evaluate_options *o, size_t rows) {
    const size_t most = rows ? (size_t)200000000 / rows : 0, fewest = 200;
    const size_t wanted = rows ? (size_t)o->samples : 0;
    return wanted <= most || wanted <= fewest ? wanted : most > fewest ? most : fewest;
}

/* Rows are drawn with all their answers, since those of one text depend on each other. */
typedef struct answered {
    const qkv_scores *s;
    const int64_t *first; /* by example: its first answer; and the end */
} answered;

enum { ACCURACY, MACRO_F1, SPAN_F1, FIGURES };

static double f1_of(int64_t truth, int64_t found, int64_t both) {
    return both ? 2 * (double)both / (double)(truth + found) : 0;
}

static qkv_status count_answers(const void *data, const uint32_t *drawn, size_t rows, void *scratch,
                                double *figures) {
    const answered *d = data;
    const qkv_scores *s = d->s;
    const int32_t classes = s->tally.classes;
    int64_t *truth = scratch, *found = truth + classes, *both = found + classes, n = 0, right = 0;
    qkv_span_counts spans = {0};
    for (size_t i = 0; i < rows; i++) {
        for (int64_t k = d->first[drawn[i]]; k < d->first[drawn[i] + 1]; k++, n++) {
            const qkv_answer *a = &s->tally.answers.at[k];
            if (a->truth < 0) continue;
            truth[a->truth]++;
            found[a->answer]++;
            both[a->truth] += a->truth == a->answer;
            right += a->truth == a->answer;
        }
        if (!s->in_rows) continue;
        const qkv_span_counts *row = &s->in_rows[s->row_of[drawn[i]]];
        spans.truth += row->truth;
        spans.answered += row->answered;
        spans.both += row->both;
    }
    figures[ACCURACY] = n ? (double)right / (double)n : 0;
    for (int32_t k = 0; k < classes; k++)
        figures[MACRO_F1] += f1_of(truth[k], found[k], both[k]) / classes;
    figures[SPAN_F1] = f1_of(spans.truth, spans.answered, spans.both);
    return QKV_OK;
}

static qkv_status find_first(const qkv_scores *s, int64_t **out) {
    int64_t *first;
    QKV_TRY_ALLOC(first = *out = qkv_zalloc((size_t)s->n_examples + 1, sizeof *first));
    for (size_t i = 0; i < s->tally.answers.n; i++) first[s->tally.answers.at[i].example + 1]++;
    for (int64_t i = 0; i < s->n_examples; i++) first[i + 1] += first[i];
    return QKV_OK;
}

qkv_status qkv_scores_intervals(qkv_scores *s, const qkv_evaluate_options *o, qkv_evaluation *out) {
    const size_t samples = qkv_samples_of(o, (size_t)s->n_examples);
    int64_t *first = NULL;
    if (samples == 0) return QKV_OK;
    double *values = qkv_alloc(FIGURES * samples * sizeof *values);
    qkv_status status = values ? find_first(s, &first) : QKV_FAILED;
    const answered data = {s, first};
    const qkv_resample how = {.rows = (size_t)s->n_examples,
                              .samples = samples,
                              .seed = o->seed ? o->seed : QKV_RESAMPLE_SEED,
                              .figures = FIGURES,
                              .scratch = 3 * (size_t)s->tally.classes * sizeof(int64_t),
                              .count = count_answers,
                              .data = &data};
    if (status == QKV_OK) status = qkv_resample_run(&how, values);
    if (status == QKV_OK) {
        out->accuracy_interval = qkv_interval_of(values + ACCURACY * samples, samples);
        out->macro_f1_interval = qkv_interval_of(values + MACRO_F1 * samples, samples);
        if (s->in_rows)
            out->span_f1_interval = qkv_interval_of(values + SPAN_F1 * samples, samples);
        out->samples = (int64_t)samples;
    }
    qkv_free(first);
    qkv_free(values);
    return status;
}

/* Of numbers: a sample in which either side does not vary has no correlation, and counts as 0. */
enum { MSE, PEARSON, SPEARMAN, OF_NUMBERS };

static qkv_status count_numbers(const void *data, const uint32_t *drawn, size_t rows, void *scratch,
                                double *figures) {
    const qkv_scores *s = data;
    double *truth = scratch, *answer = truth + rows;
    qkv_agreement found;
    for (size_t i = 0; i < rows; i++) {
        truth[i] = s->tally.truth.at[drawn[i]];
        answer[i] = s->tally.answer.at[drawn[i]];
    }
    QKV_TRY(qkv_agreement_of(truth, answer, rows, &found));
    figures[MSE] = found.mse;
    figures[PEARSON] = isnan(found.pearson) ? 0 : found.pearson;
    figures[SPEARMAN] = isnan(found.spearman) ? 0 : found.spearman;
    return QKV_OK;
}

qkv_status qkv_scores_number_intervals(const qkv_scores *s, const qkv_evaluate_options *o,
                                       qkv_evaluation *out) {
    enum { RANKING = 10 }; /* what a row of a sample costs more than elsewhere */
    const size_t rows = s->tally.truth.n, samples = qkv_samples_of(o, RANKING * rows);
    if (samples == 0) return QKV_OK;
    double *values = qkv_alloc(OF_NUMBERS * samples * sizeof *values);
    const qkv_resample how = {.rows = rows,
                              .samples = samples,
                              .seed = o->seed ? o->seed : QKV_RESAMPLE_SEED,
                              .figures = OF_NUMBERS,
                              .scratch = 2 * rows * sizeof(double),
                              .count = count_numbers,
                              .data = s};
    const qkv_status status = values ? qkv_resample_run(&how, values) : QKV_FAILED;
    if (status == QKV_OK) {
        out->mse_interval = qkv_interval_of(values + MSE * samples, samples);
        out->pearson_interval = qkv_interval_of(values + PEARSON * samples, samples);
        out->spearman_interval = qkv_interval_of(values + SPEARMAN * samples, samples);
        out->samples = (int64_t)samples;
    }
    qkv_free(values);
    return status;
}
