#include "report/likeness.h"
#include "base/mem.h"
#include "data/lines.h"
#include "score/resample.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

qkv_status qkv_likeness_begin(qkv_likeness *l, const char *tokens) {
    *l = (qkv_likeness){.chrf_words.word_orders = QKV_CHRF_WORDS};
    for (int k = 0; tokens && k < QKV_BLEU_TOKENS; k++)
        if (strcmp(tokens, qkv_bleu_token_names[k]) == 0) {
            l->bleu.tokens = (qkv_bleu_tokens)k;
            return QKV_OK;
        }
    if (!tokens) return QKV_OK; /* 13a, the first */
    return qkv_fail(QKV_USAGE,
                    "BLEU has the tokenisations 13a, intl, char, zh and none, not \"%s\"", tokens);
}

static bool keep_line(qkv_likeness *l) {
    const struct {
        const double *at;
        int n;
    } parts[] = {{l->bleu.line, QKV_BLEU_SUMS},
                 {l->chrf.line, QKV_CHRF_SUMS},
                 {l->chrf_words.line, QKV_CHRF_SUMS},
                 {l->ter.line, QKV_TER_SUMS}};
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++)
        for (int k = 0; k < parts[p].n; k++)
            if (!QKV_PUSH(l->added, (float)parts[p].at[k])) return false;
    return true;
}

qkv_status qkv_likeness_add(qkv_likeness *l, qkv_text hyp, const qkv_text *refs, size_t n_refs) {
    l->lines++;
    QKV_TRY(qkv_bleu_add(&l->bleu, hyp, refs, n_refs));
    QKV_TRY(qkv_chrf_add(&l->chrf, hyp, refs, n_refs));
    QKV_TRY(qkv_chrf_add(&l->chrf_words, hyp, refs, n_refs));
    QKV_TRY(qkv_ter_add(&l->ter, hyp, refs, n_refs));
    return !l->keep || keep_line(l) ? QKV_OK : QKV_FAILED;
}

void qkv_likeness_free(qkv_likeness *l) {
    qkv_bleu_free(&l->bleu);
    qkv_chrf_free(&l->chrf);
    qkv_chrf_free(&l->chrf_words);
    qkv_ter_free(&l->ter);
    qkv_free(l->added.at);
    l->added.at = NULL;
    l->added.n = l->added.cap = 0;
}

/* ---- what follows from the counts ---- */

/* A signature is short, whatever was counted. */
static qkv_status take_signature(qkv_buf *text, char *out, size_t size) {
    const qkv_status status = text->status;
    assert(status != QKV_OK || text->len < size);
    if (status == QKV_OK) snprintf(out, size, "%s", text->data);
    qkv_buf_free(text);
    return status;
}

static qkv_status sign_chrf(const qkv_chrf *c, char *out, size_t size) {
    qkv_buf text = {0};
    qkv_chrf_signature(c, &text);
    return take_signature(&text, out, size);
}

static qkv_status sign(const qkv_likeness *l, qkv_translation_score *out) {
    qkv_buf text = {0};
    qkv_bleu_signature(&l->bleu, &text);
    QKV_TRY(take_signature(&text, out->bleu_signature, sizeof out->bleu_signature));
    QKV_TRY(sign_chrf(&l->chrf, out->chrf2_signature, sizeof out->chrf2_signature));
    QKV_TRY(sign_chrf(&l->chrf_words, out->chrf2_plus_signature, sizeof out->chrf2_plus_signature));
    qkv_ter_signature(&l->ter, &text);
    return take_signature(&text, out->ter_signature, sizeof out->ter_signature);
}

qkv_status qkv_likeness_conclude(const qkv_likeness *l, qkv_translation_score *out) {
    static const qkv_interval none = {NAN, NAN, NAN};
    const qkv_bleu_score b = qkv_bleu_of(l->bleu.sum);
    *out = (qkv_translation_score){.lines = l->lines,
                                   .bleu = b.score,
                                   .chrf2 = qkv_chrf_of(l->chrf.sum, 0),
                                   .chrf2_plus = qkv_chrf_of(l->chrf_words.sum, QKV_CHRF_WORDS),
                                   .ter = qkv_ter_of(l->ter.sum),
                                   .bleu_interval = none,
                                   .chrf2_interval = none,
                                   .chrf2_plus_interval = none,
                                   .ter_interval = none,
                                   .brevity_penalty = b.penalty,
                                   .hyp_len = (int64_t)l->bleu.sum[0],
                                   .ref_len = (int64_t)l->bleu.sum[1]};
    _Static_assert(sizeof out->precisions == sizeof b.precision, "one a length of n-grams");
    memcpy(out->precisions, b.precision, sizeof b.precision);
    if (out->ref_len) out->length_ratio = (double)out->hyp_len / (double)out->ref_len;
    return sign(l, out);
}

/* ---- samples of the lines ---- */

static void figures_of(const double *sums, double figures[QKV_LIKENESS_FIGURES]) {
    const double *chrf = sums + QKV_BLEU_SUMS, *words = chrf + QKV_CHRF_SUMS;
    figures[0] = qkv_bleu_of(sums).score;
    figures[1] = qkv_chrf_of(chrf, 0);
    figures[2] = qkv_chrf_of(words, QKV_CHRF_WORDS);
    figures[3] = qkv_ter_of(words + QKV_CHRF_SUMS);
}

static void add_line(const qkv_likeness *l, size_t i, double *sums) {
    const float *line = l->added.at + i * QKV_LIKENESS_SUMS;
    for (int k = 0; k < QKV_LIKENESS_SUMS; k++) sums[k] += (double)line[k];
}

void qkv_likeness_line(const qkv_likeness *l, size_t i, double figures[QKV_LIKENESS_FIGURES]) {
    double sums[QKV_LIKENESS_SUMS] = {0};
    add_line(l, i, sums);
    figures_of(sums, figures);
}

static qkv_status count_sample(const void *data, const uint32_t *drawn, size_t rows, void *scratch,
                               double *figures) {
    for (size_t i = 0; i < rows; i++) add_line(data, drawn[i], scratch);
    figures_of(scratch, figures);
    return QKV_OK;
}

qkv_status qkv_likeness_resample(const qkv_likeness *l, size_t samples, uint64_t seed,
                                 double *out) {
    return qkv_resample_run(&(qkv_resample){.rows = (size_t)l->lines,
                                            .samples = samples,
                                            .seed = seed,
                                            .figures = QKV_LIKENESS_FIGURES,
                                            .scratch = QKV_LIKENESS_SUMS * sizeof(double),
                                            .count = count_sample,
                                            .data = l},
                            out);
}

/* Sorts the values. */
static void take_intervals(double *values, size_t samples, qkv_translation_score *out) {
    qkv_interval *to[] = {&out->bleu_interval, &out->chrf2_interval, &out->chrf2_plus_interval,
                          &out->ter_interval};
    for (size_t f = 0; f < QKV_LIKENESS_FIGURES; f++)
        *to[f] = qkv_interval_of(values + f * samples, samples);
    out->samples = (int64_t)samples;
}

static double *room_for(size_t samples) {
    return qkv_zalloc(QKV_LIKENESS_FIGURES * samples, sizeof(double));
}

qkv_status qkv_likeness_intervals(const qkv_likeness *l, size_t samples, uint64_t seed,
                                  qkv_translation_score *out) {
    double *values;
    QKV_TRY_ALLOC(values = room_for(samples));
    const qkv_status status = qkv_likeness_resample(l, samples, seed, values);
    if (status == QKV_OK) take_intervals(values, samples, out);
    qkv_free(values);
    return status;
}

/* ---- files against files ---- */

enum { MOST_REFERENCES = 16, MOST_SAMPLES = 1 << 20 };

typedef struct files {
    qkv_lines hyp, ref[MOST_REFERENCES];
    size_t n; /* references that are open */
} files;

static qkv_status check_request(const qkv_score_request *q) {
    size_t streams = strcmp(q->hypotheses, "-") == 0;
    for (const char *const *path = q->references; path && *path; path++)
        streams += strcmp(*path, "-") == 0;
    if (q->baseline) streams += strcmp(q->baseline, "-") == 0;
    if (streams > 1) return qkv_fail(QKV_USAGE, "only one of the files can be standard input");
    if (q->samples < 0 || q->samples > MOST_SAMPLES)
        return qkv_fail(QKV_USAGE, "%lld samples; 0 to %d can be drawn", (long long)q->samples,
                        MOST_SAMPLES);
    return QKV_OK;
}

static qkv_status open_files(const qkv_score_request *q, const char *hypotheses, files *f) {
    QKV_TRY(qkv_lines_read(&f->hyp, hypotheses));
    for (const char *const *path = q->references; path && *path; path++) {
        if (f->n == MOST_REFERENCES)
            return qkv_fail(QKV_USAGE, "more than %d references", MOST_REFERENCES);
        QKV_TRY(qkv_lines_read(&f->ref[f->n], *path));
        if (f->ref[f->n++].line.n != f->hyp.line.n)
            return qkv_fail(QKV_BAD_FILE,
                            "%s has %zu lines and %s has %zu; line n of one must answer line n "
                            "of the other",
                            qkv_text_name(hypotheses), f->hyp.line.n, qkv_text_name(*path),
                            f->ref[f->n - 1].line.n);
    }
    if (f->n == 0) return qkv_fail(QKV_USAGE, "a score needs a reference: --ref FILE");
    return f->hyp.line.n
               ? QKV_OK
               : qkv_fail(QKV_BAD_FILE, "%s: the file is empty", qkv_text_name(hypotheses));
}

static qkv_status count_files(const files *f, const qkv_lines *hyp, qkv_likeness *l) {
    for (size_t i = 0; i < hyp->line.n; i++) {
        qkv_text refs[MOST_REFERENCES];
        for (size_t k = 0; k < f->n; k++) refs[k] = f->ref[k].line.at[i];
        QKV_TRY(qkv_likeness_add(l, hyp->line.at[i], refs, f->n));
    }
    return QKV_OK;
}

static void close_files(files *f) {
    qkv_lines_free(&f->hyp);
    for (size_t k = 0; k < f->n; k++) qkv_lines_free(&f->ref[k]);
}

static uint64_t seed_of(const qkv_score_request *q) {
    return q->seed ? q->seed : QKV_RESAMPLE_SEED;
}

qkv_status qkv_score(const qkv_score_request *q, qkv_translation_score *out) {
    qkv_likeness l;
    files f = {0};
    *out = (qkv_translation_score){0};
    QKV_TRY(check_request(q));
    QKV_TRY(qkv_likeness_begin(&l, q->tokenize));
    l.keep = q->samples > 0;
    qkv_status status = open_files(q, q->hypotheses, &f);
    if (status == QKV_OK) status = count_files(&f, &f.hyp, &l);
    if (status == QKV_OK) status = qkv_likeness_conclude(&l, out);
    if (status == QKV_OK && l.keep)
        status = qkv_likeness_intervals(&l, (size_t)q->samples, seed_of(q), out);
    qkv_likeness_free(&l);
    close_files(&f);
    return status;
}

/* ---- a system against another ---- */

/* The same samples of both; p-values before the sorting that intervals do. */
static qkv_status compare(const qkv_likeness l[2], qkv_score_comparison *out) {
    const size_t n = (size_t)out->samples;
    qkv_translation_score *score[] = {&out->baseline, &out->system};
    double *values[2] = {room_for(n), room_for(n)}, whole[2][QKV_LIKENESS_FIGURES],
           *p[] = {&out->bleu_p, &out->chrf2_p, &out->chrf2_plus_p, &out->ter_p};
    qkv_status status = values[0] && values[1] ? QKV_OK : QKV_FAILED;
    for (int k = 0; k < 2 && status == QKV_OK; k++)
        status = qkv_likeness_resample(&l[k], n, out->seed, values[k]);
    for (int k = 0; k < 2 && status == QKV_OK; k++) {
        const double figures[] = {score[k]->bleu, score[k]->chrf2, score[k]->chrf2_plus,
                                  score[k]->ter};
        memcpy(whole[k], figures, sizeof figures);
    }
    for (size_t f = 0; f < QKV_LIKENESS_FIGURES && status == QKV_OK; f++)
        *p[f] = qkv_resample_p(whole[0][f], whole[1][f], values[0] + f * n, values[1] + f * n, n);
    for (int k = 0; k < 2 && status == QKV_OK; k++) take_intervals(values[k], n, score[k]);
    qkv_free(values[0]);
    qkv_free(values[1]);
    return status;
}

static qkv_status count_both(const qkv_score_request *q, files *f, qkv_lines *other,
                             qkv_likeness l[2], qkv_score_comparison *out) {
    QKV_TRY(open_files(q, q->hypotheses, f));
    QKV_TRY(qkv_lines_read(other, q->baseline));
    if (other->line.n != f->hyp.line.n)
        return qkv_fail(QKV_BAD_FILE,
                        "%s has %zu lines and %s has %zu; they must be translations of the same "
                        "lines",
                        qkv_text_name(q->hypotheses), f->hyp.line.n, qkv_text_name(q->baseline),
                        other->line.n);
    QKV_TRY(count_files(f, other, &l[0]));
    QKV_TRY(count_files(f, &f->hyp, &l[1]));
    QKV_TRY(qkv_likeness_conclude(&l[0], &out->baseline));
    QKV_TRY(qkv_likeness_conclude(&l[1], &out->system));
    return compare(l, out);
}

qkv_status qkv_score_compare(const qkv_score_request *q, qkv_score_comparison *out) {
    qkv_likeness l[2];
    files f = {0};
    qkv_lines other = {0};
    *out = (qkv_score_comparison){.samples = q->samples ? q->samples : QKV_RESAMPLES,
                                  .seed = seed_of(q)};
    if (!q->baseline) return qkv_fail(QKV_USAGE, "a comparison needs a baseline: --baseline FILE");
    QKV_TRY(check_request(q));
    for (int k = 0; k < 2; k++) {
        QKV_TRY(qkv_likeness_begin(&l[k], q->tokenize));
        l[k].keep = true;
    }
    const qkv_status status = count_both(q, &f, &other, l, out);
    qkv_likeness_free(&l[0]);
    qkv_likeness_free(&l[1]);
    qkv_lines_free(&other);
    close_files(&f);
    return status;
}
