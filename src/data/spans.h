/* Spans: what labels of words say when they are named B-type, I-type and O (IOB2; where no type has a
 * B-, IOB1). */
#ifndef QKV_DATA_SPANS_H
#define QKV_DATA_SPANS_H

#include "data/labels.h"

typedef struct qkv_span_label {
    char part;     /* 'B', 'I', 'O'; 0: a label that says nothing about spans */
    int32_t type;  /* number of its type; −1 */
    int32_t other; /* of an I: the label B of its type, or −1; of a B: the label I, or −1 */
} qkv_span_label;

/* How the labels of a tagger are to be read. */
typedef struct qkv_span_scheme {
    qkv_span_label *label; /* one per label */
    int32_t n;
    qkv_labels types;
    bool spans; /* some label is B or I */
} qkv_span_scheme;

qkv_status qkv_span_scheme_of(const qkv_labels *labels, qkv_span_scheme *out);
void qkv_span_scheme_free(qkv_span_scheme *s);

/* Words [from, to) of a sequence are a span of a type. */
typedef struct qkv_word_span {
    size_t from, to;
    int32_t type;
} qkv_word_span;

/* The spans of n words with these labels (−1: an unknown one, outside of any), as conlleval finds
 * them; `out` has room for n. Returns how many. */
size_t qkv_spans_find(const qkv_span_scheme *s, const int32_t *label, size_t n, qkv_word_span *out);

/* The most probable sequence of labels that is well formed: an I only after a B or I of its type,
 * where that type has a B. score: (n, labels), logarithms, used up; from: room for n·labels. */
void qkv_spans_decode(const qkv_span_scheme *s, float *score, size_t n, int32_t *from,
                      int32_t *label);

#endif
