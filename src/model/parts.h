/* What a model is made of; for the files of src/model only. */
#ifndef QKV_MODEL_PARTS_H
#define QKV_MODEL_PARTS_H

#include "model/model.h"
#include "nn/rnn.h"
#include "nn/stack.h"
#include "store/safetensors.h"

/* Token ids → rows. */
typedef struct qkv_embedding_layer {
    qkv_param *table;    /* (V, D) */
    qkv_param *segments; /* (kinds, D), or NULL */
    real scale, dropout;
    bool normed;
    qkv_norm_layer norm;
} qkv_embedding_layer;

/* An encoder or a decoder: embeddings and a stack of layers, of one kind or the other. */
typedef struct qkv_side {
    const char *name; /* "encoder", "decoder"; NULL: the task has no such side */
    bool recurrent;
    qkv_embedding_layer embedding;
    qkv_stack stack;
    qkv_rnn rnn;
    int64_t width; /* of its output */
} qkv_side;

/* What a recurrent decoder does with the encoder's output (Luong et al. 2015): its states start
 * from the mean of it, and each of its outputs attends to it once: tanh(W_c [context; state]). */
typedef struct qkv_rnn_bridge {
    qkv_dense *start;  /* by layer: (k, encoder width) */
    qkv_dense ask;     /* (encoder width, k) */
    qkv_dense combine; /* (D, encoder width + k) */
} qkv_rnn_bridge;

typedef struct qkv_head {
    /* vocabulary */
    bool transformed;
    qkv_dense transform;
    qkv_norm_layer transform_norm;
    qkv_param *weight, *bias; /* (V, D), often an embedding table; (1, V) or NULL */
    bool tied;
    /* classes */
    qkv_dense pooler; /* when config.pooler asks for it */
    qkv_dense classes;
    qkv_param *ngrams;    /* (ngram_buckets, classes), or NULL */
    qkv_param *ngram_idf; /* (1, ngram_buckets), or NULL: see ngram_head.c */
} qkv_head;

struct qkv_model {
    qkv_config config; /* resolved */
    int64_t built_for; /* max_len of what was declared; that of the configuration may be set */
    qkv_shape shape;
    qkv_params params;
    qkv_side encoder, decoder;
    qkv_rnn_bridge bridge;
    qkv_head head;
    qkv_safetensors file; /* that the parameters point into, of a model that was opened */
    void *kept;           /* or what they point into, and how it is freed */
    void (*free_kept)(void *what);
};

struct qkv_cache {
    const qkv_model *model;
    qkv_kv kv; /* Transformers; recurrent models use its bookkeeping of lengths and source rows */
    /* recurrent: states by layer, (max_n, k) each, and the encoder's output */
    real **h, **c;
    real *encoder_out;
};

/* Rows (R, D) of tokens; place and terms are NULL where there are no positions. */
qkv_tensor *qkv_embed_tokens(qkv_tape *t, const qkv_embedding_layer *e, const qkv_tokens *tokens,
                             const qkv_place *place, const qkv_position_terms *at);

/* The recurrent decoder's forward pass. */
qkv_tensor *qkv_decode_recurrent(qkv_tape *t, const qkv_model *m, const qkv_tokens *tgt,
                                 qkv_tensor *encoder_out, const qkv_tokens *src, qkv_cache *cache);

#endif
