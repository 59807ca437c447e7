/* What is counted when a model is evaluated, before it becomes a qkv_evaluation. */
#ifndef QKV_REPORT_EVALUATE_H
#define QKV_REPORT_EVALUATE_H

#include "base/arena.h"
#include "draw/ink.h"
#include "report/likeness.h"
#include "use/textmodel.h"

enum { QKV_BINS = 15, QKV_MISTAKEN = 20 }; /* of the reliability diagram; pairs of classes named */

/* Spans of a text or of all: in truth, answered, both. */
typedef struct qkv_span_counts {
    int64_t truth, answered, both;
} qkv_span_counts;

typedef struct qkv_scores {
    qkv_tally tally;
    int64_t n_tokens; /* of the texts */
    bool translated;  /* `likeness` holds something, and in the end `translation` */
    qkv_likeness likeness;
    qkv_translation_score translation;
    qkv_class_score *classes;
    qkv_span_counts *spans;   /* by type, and of all */
    qkv_span_counts *in_rows; /* by row of the corpus */
    qkv_class_score *types;
    bool *left_out;  /* rows of the corpus that are no example */
    int64_t *row_of; /* by example, and one more: the end */
    int64_t n_examples;
    QKV_VEC(qkv_wrong_answer) errors;
    qkv_mistaken_pair mistaken[QKV_MISTAKEN];
    qkv_calibration_bin bins[QKV_BINS];
    qkv_length_score lengths[3];
    qkv_arena strings; /* that the result points to */
} qkv_scores;

/* ---- answers.c: answers looked at singly ---- */

/* The worst of the answers that were kept. */
qkv_status qkv_scores_errors(const qkv_text_model *m, const qkv_corpus *corpus, size_t most,
                             qkv_scores *s, qkv_evaluation *out);
/* The lines that a translator did worst: written[i] answers row i. */
qkv_status qkv_scores_worst_lines(const qkv_corpus *corpus, const qkv_text *written, size_t most,
                                  qkv_scores *s, qkv_evaluation *out);
/* The numbers furthest from the true ones. */
qkv_status qkv_scores_far_numbers(const qkv_corpus *corpus, size_t most, qkv_scores *s,
                                  qkv_evaluation *out);
void qkv_scores_calibrate(qkv_scores *s, qkv_evaluation *out);
qkv_status qkv_scores_mistaken(qkv_scores *s, qkv_evaluation *out);
/* Intervals of accuracy, macro F1 and, of taggers with spans, their F1: over rows. */
qkv_status qkv_scores_intervals(qkv_scores *s, const qkv_evaluate_options *o, qkv_evaluation *out);
/* Intervals of a task's numbers. */
qkv_status qkv_scores_number_intervals(const qkv_scores *s, const qkv_evaluate_options *o,
                                       qkv_evaluation *out);
/* How many samples are drawn of so many rows. */
size_t qkv_samples_of(const qkv_evaluate_options *o, size_t rows);

/* ---- reliability.c: what the model says of its answers, and how often they are right ---- */
qkv_status qkv_reliability_svg(const qkv_evaluation *e, qkv_buf *out);
void qkv_reliability_terminal(const qkv_evaluation *e, qkv_buf *out);

#endif
