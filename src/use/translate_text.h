/* What the files of translation share. */
#ifndef QKV_USE_TRANSLATE_TEXT_H
#define QKV_USE_TRANSLATE_TEXT_H

#include "use/textmodel.h"
#include "decode/beam.h"

typedef QKV_VEC(qkv_link) qkv_links;

/* A text that was translated. */
typedef struct qkv_source {
    const qkv_text *text;
    const qkv_encoding *tokens; /* with offsets, where attention is to become links */
    size_t n;                   /* tokens as the model saw it, with the end */
} qkv_source;

/* Fills *out from the nbest hypotheses that the search found: one block of memory for all of a
 * text's translations, in *block. */
qkv_status qkv_translation_write(const qkv_text_model *m, const qkv_source *source,
                                 const qkv_hypothesis *found, size_t nbest, qkv_translation *out,
                                 void **block);

/* Links between the words of a source and of a text, from the hypothesis's attention. */
qkv_status qkv_links_make(const qkv_tokenizer *tok, const qkv_source *source, const qkv_text *text,
                          const qkv_hypothesis *h, qkv_links *out);

#endif
