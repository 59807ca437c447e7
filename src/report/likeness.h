/* BLEU, chrF2 and chrF2++ counted together, line by line. */
#ifndef QKV_REPORT_LIKENESS_H
#define QKV_REPORT_LIKENESS_H

#include "base/json.h"
#include "score/score.h"

typedef struct qkv_likeness {
    qkv_bleu bleu; /* .tokens is set by the caller; the rest by begin and add */
    qkv_chrf chrf, chrf_words;
    int64_t lines;
} qkv_likeness;

/* Begins, with BLEU's tokenisation by name (NULL: 13a). */
qkv_status qkv_likeness_begin(qkv_likeness *l, const char *tokens);
qkv_status qkv_likeness_add(qkv_likeness *l, qkv_text hyp, const qkv_text *refs, size_t n_refs);
void qkv_likeness_free(qkv_likeness *l);

qkv_status qkv_likeness_conclude(const qkv_likeness *l, qkv_translation_score *out);

/* score_show.c */
/* Members of an object that is open. */
void qkv_translation_score_json(const qkv_translation_score *s, qkv_json_out *j);
void qkv_translation_score_table(const qkv_translation_score *s, qkv_buf *out);

#endif
