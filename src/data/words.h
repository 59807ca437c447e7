/* The words of a text: what a tagger gives a label each. Training files bring theirs; other texts are
 * cut by qkv_words_split. */
#ifndef QKV_DATA_WORDS_H
#define QKV_DATA_WORDS_H

#include "base/arena.h"
#include "base/error.h"
#include "text/tokenizer.h"

typedef struct qkv_text_word {
    uint32_t begin, end; /* bytes of the text */
    int32_t tag;         /* the number of its label; −1: it has none */
} qkv_text_word;

typedef struct qkv_text_words {
    qkv_text_word *at;
    size_t n;
} qkv_text_words;

typedef QKV_VEC(qkv_text_word) qkv_word_list;

/* Appends the words of a text: runs between blanks, without the punctuation at their ends, each
 * character of which is a word of its own; English "n't" and "'s" too ("don't" is do + n't), as in
 * the treebanks. With `blanks` blanks alone separate. */
qkv_status qkv_words_split(qkv_text text, bool blanks, qkv_word_list *out);

#endif
