/* The weights of every attention of a forward pass, for looking into a model. The fast path is left
 * alone: the kernel never keeps its weights, so while a record observes a tape each attention is
 * run once more with the identity as values, which gives the weights themselves, patterns, biases
 * and relative positions included. */
#ifndef QKV_NN_ATTENTION_RECORD_H
#define QKV_NN_ATTENTION_RECORD_H

#include "base/buf.h"
#include "ops/ops.h"

/* One sequence in one attention. */
typedef struct qkv_recorded {
    int32_t sequence, heads, n_q, n_k;
    real *weights; /* (n_q, heads·n_k) */
} qkv_recorded;

typedef struct qkv_attention_record {
    QKV_VEC(qkv_recorded)
    list; /* attention after attention in the order of the pass, and in each by sequence */
    qkv_observer observer;
    qkv_status status; /* sticky */
} qkv_attention_record;

/* Records what is run on the tape from now on, until the tape's observer is set to NULL; the record
 * must stay in place. */
void qkv_attention_record_start(qkv_attention_record *r, qkv_tape *t);
void qkv_attention_record_free(qkv_attention_record *r);

#endif
