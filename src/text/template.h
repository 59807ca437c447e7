/* The post-processor as a template, and the parts of stages that the tokenizer's own files share.
 */
#ifndef QKV_TEXT_TEMPLATE_H
#define QKV_TEXT_TEMPLATE_H

#include "text/pipeline.h"

qkv_status qkv_template_parse(qkv_tokenizer *tok, qkv_json_at json, const char *type, size_t len);
void qkv_template_clear(qkv_template *t);

const char *qkv_stage_name(qkv_stage stage);
void qkv_text_steps_drop(qkv_text_steps *s);
void qkv_text_steps_settle(qkv_tokenizer *tok);
qkv_status qkv_text_steps_normalize(const qkv_tokenizer *tok, qkv_draft *w);
qkv_status qkv_text_steps_split(const qkv_tokenizer *tok, qkv_draft *w);

/* ---- added tokens: added.c ---- */

qkv_status qkv_matcher_build(qkv_tokenizer *tok);
void qkv_matcher_free(qkv_matcher *m);

/* A search for added tokens in a text; starts as zeros. */
typedef struct qkv_added_search {
    size_t at;         /* where to look on */
    size_t taken;      /* where the text not yet given away begins */
    size_t begin, end; /* the token found, with the white space it takes */
    size_t which;      /* its number in tok->added */
} qkv_added_search;

/* Is there another one? */
bool qkv_matcher_next(const qkv_tokenizer *tok, const qkv_matcher *m, const char *text, size_t len,
                      qkv_added_search *s);

#endif
