/* What is counted when a model is evaluated. */
#ifndef QKV_REPORT_EVALUATE_H
#define QKV_REPORT_EVALUATE_H

#include "report/likeness.h"
#include "use/textmodel.h"

typedef struct qkv_scores {
    double loss; /* Σ over targets */
    int64_t n_right, n_targets;
    int64_t n_tokens, n_bytes; /* of the texts that the tokens are from, as the file has them */
    int64_t n_examples, n_left_out, n_cut;
    int64_t *confusion; /* classify: [truth][answer], else NULL */
    int32_t classes;
    bool translated; /* `likeness` holds something */
    qkv_likeness likeness;
} qkv_scores;

void qkv_scores_json(const qkv_text_model *m, const qkv_scores *s, qkv_buf *out);
void qkv_scores_table(const qkv_text_model *m, const qkv_scores *s, qkv_buf *out);

#endif
