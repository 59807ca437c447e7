/* Labels of words: what `qkv tag` and its evaluation share. */
#ifndef QKV_USE_TAG_TEXT_H
#define QKV_USE_TAG_TEXT_H

#include "use/textmodel.h"

/* Gives each word of n texts its label (words[i].at[k].tag) and, in order, the probability of that.
 * The texts are the words with blanks between them, as tagged corpora are read. */
qkv_status qkv_tag_words(const qkv_text_model *m, const qkv_text *texts,
                         const qkv_text_words *words, size_t n, float *probability);

#endif
