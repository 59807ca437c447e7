/* What the files of translation share. */
#ifndef QKV_API_TRANSLATE_H
#define QKV_API_TRANSLATE_H

#include "api/textmodel.h"
#include "decode/beam.h"

/* Fills *out from what the search found: one block of memory for all of a text's translations, in *block. */
qkv_status qkv_translation_write(const qkv_text_model *m, const qkv_text *source,
                                 const qkv_encoding *e, const qkv_hypothesis *found, size_t nbest,
                                 qkv_translation *out, void **block);

#endif
