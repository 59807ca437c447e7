/* What the files of translation share. */
#ifndef QKV_USE_TRANSLATE_H
#define QKV_USE_TRANSLATE_H

#include "use/textmodel.h"
#include "decode/beam.h"

typedef QKV_VEC(qkv_link) qkv_links;

/* Fills *out from what the search found: one block of memory for all of a text's translations, in
 * *block. e: the source's tokens (with offsets, where attention is to become links); n_src: as the
 * model saw it, with the end. */
qkv_status qkv_translation_write(const qkv_text_model *m, const qkv_text *source,
                                 const qkv_encoding *e, const qkv_hypothesis *found, size_t nbest,
                                 size_t n_src, qkv_translation *out, void **block);

/* Links between the words of a source and of a text, from the hypothesis's attention. */
qkv_status qkv_links_make(const qkv_tokenizer *tok, const qkv_text *source, const qkv_encoding *e,
                          const qkv_text *text, const qkv_hypothesis *h, size_t n_src,
                          qkv_links *out);

#endif
