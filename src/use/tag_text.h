/* Labels of words: what `qkv tag` and its evaluation share. */
#ifndef QKV_USE_TAG_TEXT_H
#define QKV_USE_TAG_TEXT_H

#include "use/textmodel.h"

/* Gives each word of n texts its label (words[i].at[k].tag) and, in order, the probability of that.
 * The texts are the words with blanks between them, as tagged corpora are read. */
qkv_status qkv_tag_words(const qkv_text_model *m, const qkv_text *texts,
                         const qkv_text_words *words, size_t n, float *probability);

/* A text as the model gets it: its words, a blank between. */
typedef struct qkv_spelled {
    qkv_word_list places; /* of the words, in the text as it was given; at: qkv_free */
    qkv_text text;
    qkv_text_words words; /* places in that */
} qkv_spelled;
qkv_status qkv_tag_spell(qkv_text text, bool blanks, qkv_arena *memory, qkv_spelled *out);

/* Such texts whole, or cut between words to what the model reads. Zeros at first. */
typedef struct qkv_tag_parts {
    QKV_VEC(qkv_text) text;
    QKV_VEC(qkv_text_words) words;
    qkv_arena memory; /* words of parts, counted from the part's beginning */
} qkv_tag_parts;
/* Adds the parts of a text that has words. */
qkv_status qkv_tag_cut(const qkv_text_model *m, qkv_text text, qkv_text_words words,
                       qkv_tag_parts *p);
void qkv_tag_parts_free(qkv_tag_parts *p);

#endif
