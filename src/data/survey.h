/* What a corpus holds, counted, so that it can be said before anything is trained; and what no
 * classifier can be trained on. */
#ifndef QKV_DATA_SURVEY_H
#define QKV_DATA_SURVEY_H

#include "data/corpus.h"

typedef struct qkv_class_count {
    const char *name;
    int64_t n;
} qkv_class_count;

/* Two labels that differ only by blanks or case. */
typedef struct qkv_alike {
    const char *a, *b;
} qkv_alike;

typedef struct qkv_survey {
    int64_t rows, empty;
    int64_t texts;            /* different ones (pairs of them, where there are pairs) */
    int64_t doubled;          /* rows whose text stands in an earlier row */
    int64_t disputed;         /* of these, rows whose label is not that of the first */
    qkv_class_count *classes; /* LABELLED: the largest first */
    int32_t n_classes, n_rare;
    int64_t labels, unlabelled; /* where rows have several: all of them; rows without any */
    double least, most, mean, deviation; /* RATED: of the numbers */
    QKV_VEC(qkv_alike) alike;
} qkv_survey;

enum {
    QKV_RARE = 3,           /* a class of fewer rows is rare */
    QKV_COMPARED = 1 << 24, /* rows whose texts are compared: half a gigabyte */
};

qkv_status qkv_survey_make(const qkv_corpus *c, qkv_survey *s);
void qkv_survey_free(qkv_survey *s);

/* Refuses labels that are none: a single one (or number), as many as rows, texts in the place of labels. The
 * message says which columns to give instead. */
qkv_status qkv_survey_check(const qkv_corpus *c, const qkv_survey *s);

/* The share of the largest class, which always answering it would get right; 0: no class stands out
 * enough to be worth a warning. */
double qkv_survey_imbalance(const qkv_survey *s);

#endif
