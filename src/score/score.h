/* How like its references a text is: BLEU (Papineni et al. 2002), chrF (Popović 2015) and TER
 * (Snover et al. 2006), counted as sacrebleu counts them, so that figures can be put beside
 * published ones.
 *
 * All are corpus scores: each line adds some numbers, and the score follows from their sums alone.
 * Lines may therefore be added in any order, a score needs no more memory than its longest line,
 * and who keeps the numbers of each line (`line`) has the score of any choice of lines. */
#ifndef QKV_SCORE_SCORE_H
#define QKV_SCORE_SCORE_H

#include "base/buf.h"
#include "score/ngrams.h"

enum {
    QKV_BLEU_ORDERS = 4,
    QKV_CHRF_CHARS = 6,
    QKV_CHRF_WORDS = 2,
    QKV_CHRF_ORDERS = QKV_CHRF_CHARS + QKV_CHRF_WORDS,
    /* numbers that a line adds */
    QKV_BLEU_SUMS = 2 + 2 * QKV_BLEU_ORDERS,
    QKV_CHRF_SUMS = 3 * QKV_CHRF_ORDERS,
    QKV_TER_SUMS = 2
};

/* ---- BLEU: cased, orders 1 … 4, precisions of 0 smoothed "exp" ---- */

typedef enum qkv_bleu_tokens {
    QKV_BLEU_13A,  /* that of WMT's evaluation, mteval-v13a: for languages in Latin script */
    QKV_BLEU_INTL, /* mteval-v14: by Unicode's punctuation and symbols */
    QKV_BLEU_CHAR, /* each character: for languages without blanks */
    QKV_BLEU_ZH,   /* each Chinese character, the rest as 13a */
    QKV_BLEU_NONE, /* at white space: for text that is tokenised already */
    QKV_BLEU_TOKENS
} qkv_bleu_tokens;

extern const char *const qkv_bleu_token_names[]; /* by kind, NULL at the end */

typedef struct qkv_bleu {
    qkv_bleu_tokens tokens; /* set by the caller; the rest begins as zeros */
    size_t n_refs;          /* of the lines so far; all have as many */
    /* words written; of the references; matches and n-grams of each order */
    double sum[QKV_BLEU_SUMS];
    double line[QKV_BLEU_SUMS]; /* what the last line added */
    qkv_score_words words;      /* scratch */
} qkv_bleu;

typedef struct qkv_bleu_score {
    double score;                      /* 0 … 100 */
    double precision[QKV_BLEU_ORDERS]; /* in percent */
    double penalty;                    /* for brevity */
} qkv_bleu_score;

/* Counts a line against its references (one or more). */
qkv_status qkv_bleu_add(qkv_bleu *b, qkv_text hyp, const qkv_text *refs, size_t n_refs);
/* The score that follows from sums. */
qkv_bleu_score qkv_bleu_of(const double *sums);
/* How it was counted, in sacrebleu's form. */
void qkv_bleu_signature(const qkv_bleu *b, qkv_buf *out);
void qkv_bleu_free(qkv_bleu *b);

/* Appends the words of a line to *w: tokenised, cut at white space. */
qkv_status qkv_bleu_tokenise(qkv_bleu_tokens how, qkv_text line, qkv_score_words *w);

/* ---- chrF2: F-score of character 1- … 6-grams, recall counting 4 times; chrF++ adds words ---- */

typedef struct qkv_chrf {
    int word_orders; /* set by the caller: 0 (chrF) or 2 (chrF++); the rest begins as zeros */
    size_t n_refs;
    double sum[QKV_CHRF_SUMS]; /* n-grams written, of the references, of both; by order */
    double line[QKV_CHRF_SUMS];
    qkv_score_words words; /* scratch */
    QKV_VEC(int32_t) chars;
} qkv_chrf;

/* Counts a line against the one of its references that suits it best. */
qkv_status qkv_chrf_add(qkv_chrf *c, qkv_text hyp, const qkv_text *refs, size_t n_refs);
/* 0 … 100, by as many orders of words. */
double qkv_chrf_of(const double *sums, int word_orders);
void qkv_chrf_signature(const qkv_chrf *c, qkv_buf *out);
void qkv_chrf_free(qkv_chrf *c);

/* ---- TER: edits for each word of the reference, cases folded ---- */

typedef struct qkv_ter { /* begins as zeros */
    size_t n_refs;
    double sum[QKV_TER_SUMS],
        line[QKV_TER_SUMS]; /* edits; words (of several references the mean) */
    qkv_score_words words;  /* scratch, and matrices */
    void *scratch;
    size_t room;
} qkv_ter;

/* Counts a line against the reference that takes the fewest edits. */
qkv_status qkv_ter_add(qkv_ter *t, qkv_text hyp, const qkv_text *refs, size_t n_refs);
double qkv_ter_of(const double *sums); /* 0 …, in percent; the lower the better */
void qkv_ter_signature(const qkv_ter *t, qkv_buf *out);
void qkv_ter_free(qkv_ter *t);

#endif
