/* Which n-grams two sequences share: the counting under BLEU and chrF.
 *
 * All positions of all sequences are sorted once, by the symbols that follow them. Equal n-grams of
 * every order then stand together, so one walk per order counts them all; no table, no hashing. */
#ifndef QKV_SCORE_NGRAMS_H
#define QKV_SCORE_NGRAMS_H

#include "base/buf.h"
#include "qkv.h"

/* A run of symbols, and which sequence or word it belongs to. */
typedef struct qkv_gram {
    const int32_t *at;
    int32_t n;
    int32_t owner;
} qkv_gram;

typedef struct qkv_score_words {
    QKV_VEC(int32_t) codes; /* code points of all words, one after another */
    QKV_VEC(size_t) ends;   /* where each word ends in `codes` */
    QKV_VEC(size_t) lines;  /* words up to the end of each line */
    QKV_VEC(int32_t) ids;   /* after qkv_score_words_number: equal words have equal numbers */
    QKV_VEC(qkv_gram) grams;
    QKV_VEC(int64_t) counts;
    QKV_VEC(int32_t) from, to; /* a tokeniser's text before and after a rule */
    qkv_buf text;
} qkv_score_words;

void qkv_score_words_free(qkv_score_words *w);
void qkv_score_words_clear(qkv_score_words *w);

/* White space as Python's str.split knows it. */
bool qkv_score_is_space(int32_t cp);
/* The code points of a line; a malformed byte is U+FFFD. */
qkv_status qkv_score_decode(qkv_text line, int32_t *out, size_t *n);

/* Appends a word; empty ones are none. */
qkv_status qkv_score_words_add(qkv_score_words *w, const int32_t *codes, size_t n);
/* Ends a line: the words since the last end are its own. */
qkv_status qkv_score_words_end_line(qkv_score_words *w);
/* Numbers the words of all lines. */
qkv_status qkv_score_words_number(qkv_score_words *w);
/* Line i as a sequence of word numbers. */
qkv_gram qkv_score_words_line(const qkv_score_words *w, size_t i);

/* match[k − 1], for k = 1 … orders: how many k-grams of sequence 0 are found in the others, each
 * counted at most as often as the sequence has it that has it most often. */
qkv_status qkv_ngrams_match(qkv_score_words *scratch, const qkv_gram *sequences, size_t n,
                            int orders, int64_t *match);

#endif
