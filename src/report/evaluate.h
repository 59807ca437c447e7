/* What is counted when a model is evaluated, before it becomes a qkv_evaluation. */
#ifndef QKV_REPORT_EVALUATE_H
#define QKV_REPORT_EVALUATE_H

#include "report/likeness.h"
#include "use/textmodel.h"

typedef struct qkv_scores {
    qkv_tally tally;
    int64_t n_tokens; /* of the texts */
    bool translated;  /* `likeness` holds something, and in the end `translation` */
    qkv_likeness likeness;
    qkv_translation_score translation;
    qkv_class_score *classes;
    qkv_buf labels; /* the classes' names, one after the other */
} qkv_scores;

#endif
