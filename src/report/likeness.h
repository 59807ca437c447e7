/* BLEU, chrF2, chrF2++ and TER counted together, line by line. */
#ifndef QKV_REPORT_LIKENESS_H
#define QKV_REPORT_LIKENESS_H

#include "base/json.h"
#include "score/score.h"

enum {
    QKV_LIKENESS_FIGURES = 4, /* BLEU, chrF2, chrF2++, TER */
    QKV_LIKENESS_SUMS = QKV_BLEU_SUMS + 2 * QKV_CHRF_SUMS + QKV_TER_SUMS
};

typedef struct qkv_likeness {
    qkv_bleu bleu; /* .tokens is set by the caller; the rest by begin and add */
    qkv_chrf chrf, chrf_words;
    qkv_ter ter;
    int64_t lines;
    bool keep;            /* keep what each line adds, so that lines can be drawn again */
    QKV_VEC(float) added; /* QKV_LIKENESS_SUMS of each line: whole numbers, far below 2^24 */
} qkv_likeness;

/* Begins, with BLEU's tokenisation by name (NULL: 13a). */
qkv_status qkv_likeness_begin(qkv_likeness *l, const char *tokens);
qkv_status qkv_likeness_add(qkv_likeness *l, qkv_text hyp, const qkv_text *refs, size_t n_refs);
void qkv_likeness_free(qkv_likeness *l);

qkv_status qkv_likeness_conclude(const qkv_likeness *l, qkv_translation_score *out);
/* The figures of line i alone. */
void qkv_likeness_line(const qkv_likeness *l, size_t i, double figures[QKV_LIKENESS_FIGURES]);
/* The figures of samples of the lines, by figure: out has room for figures × samples. */
qkv_status qkv_likeness_resample(const qkv_likeness *l, size_t samples, uint64_t seed, double *out);
/* The same as intervals in a score. */
qkv_status qkv_likeness_intervals(const qkv_likeness *l, size_t samples, uint64_t seed,
                                  qkv_translation_score *out);

/* score_show.c */
/* Members of an object that is open. */
void qkv_translation_score_json(const qkv_translation_score *s, qkv_json_out *j);
void qkv_translation_score_table(const qkv_translation_score *s, qkv_buf *out);

#endif
