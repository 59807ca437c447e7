/* Why a model answered as it did: what each word of the text added to one number, the lead, which
 * is a sum of one or two outputs of the model's head. A classifier's is z_winner − z_runner-up.
 *
 * The lead has two voters. That of the n-grams is linear, so what each of them adds is known
 * exactly (explain_ngrams.c); that of the encoder is not, and is integrated along a path
 * (explain_path.c). explain_text.c puts them together. */
#ifndef QKV_USE_EXPLAIN_H
#define QKV_USE_EXPLAIN_H

#include "use/predict.h"

/* The number that is explained: output `plus` of a row of the head, less output `minus`, scaled and
 * shifted. A head with one output has no `minus`: −1. */
typedef struct qkv_explained {
    int32_t plus, minus;
    double scale, shift;
    int64_t token; /* of a tagger: the token whose row it is; −1: a text has one row */
} qkv_explained;

/* What outputs add to it: of one voter, or (with the shift) of all. */
static inline double qkv_explained_part(const qkv_explained *what, const real *outputs) {
    const double less = what->minus < 0 ? 0 : (double)outputs[what->minus];
    return what->scale * ((double)outputs[what->plus] - less);
}

/* A text as it is explained: its words, and where its tokens and bytes belong. */
typedef struct qkv_explaining {
    const qkv_text_model *m;
    qkv_model
        *plain; /* whose derivatives are taken: m's model, or that with its weights as reals */
    qkv_tape *tape;
    qkv_arena memory;
    qkv_text text;        /* a pair: both, the TAB between */
    qkv_text_words words; /* in order */
    qkv_text_words given; /* of a tagger: the words that the model is told; else none */
    qkv_encoding e;
    int32_t
        *owner; /* of each byte: the word that it is in, or else the last one before; −1: none */
    /* the result, by word */
    double *encoder, *ngrams;
} qkv_explaining;

/* Adds `amount` to the words that the bytes [begin, end) are in, by how many are in each; where
 * none are, to the last word before. Without that one it stays with the rest. */
void qkv_explain_share(const qkv_explaining *x, double *to, uint32_t begin, uint32_t end,
                       double amount);

/* ---- the encoder ---- */

typedef struct qkv_explain_path {
    double factor;     /* what the encoder's outputs count */
    double lead;       /* the answer's, all voters together, */
    double others;     /* and what the words add to it through other voters */
    double start, end; /* out: the encoder's lead where the path begins, and at the text */
    int64_t passes;    /* out: gradients that were computed */
} qkv_explain_path;

/* x->encoder: what each word adds, by integrated gradients, to well below one hundredth of the lead
 * and of what all words add; or by occlusion. */
qkv_status qkv_explain_path_run(qkv_explaining *x, const qkv_explained *what, qkv_explain_by how,
                                qkv_explain_path *spec);

/* ---- the n-grams ---- */

typedef struct qkv_explain_votes {
    double start; /* what every text has */
    double sum;   /* what those of this text add */
    qkv_explain_ngram *largest;
    size_t n;
} qkv_explain_votes;

/* x->ngrams: what each word adds by the n-grams that it is part of; and those that add most. Their
 * logits count `factor`. */
qkv_status qkv_explain_votes_run(qkv_explaining *x, const qkv_explained *what, double factor,
                                 qkv_explain_by how, qkv_explain_votes *out);

#endif
