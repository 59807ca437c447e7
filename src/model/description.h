/* A model described from its declarations alone: shapes, parameters, work and memory, part by part
 * and in all. */
#ifndef QKV_MODEL_DESCRIBE_H
#define QKV_MODEL_DESCRIBE_H

#include "model/model.h"

typedef struct qkv_describe_part {
    char side[12]; /* "encoder", "decoder", "" */
    int32_t layer; /* −1: not in a layer */
    const char *name, *note;
    char weights[96]; /* "2304×1024 + 2304" */
    int64_t parameters;
    bool by_sequence; /* activation batch × width instead of batch × length × width */
    int64_t width, inside;
    double macs;
} qkv_describe_part;

typedef struct qkv_describe_side {
    int64_t parameters, in_layers; /* all; in its layers */
    int64_t layers, layer;         /* how many; parameters of the first */
} qkv_describe_side;

typedef struct qkv_description {
    int64_t batch, length;
    qkv_describe_part *parts;
    size_t n, cap;
    qkv_describe_side encoder, decoder;
    int64_t other;     /* heads of encoders */
    int64_t attention; /* parameters of one self-attention */
    int64_t total, total_in_layers;
    double macs;            /* of one forward pass */
    double attention_dense; /* weights of the same attention as one dense layer over the flattened
                               input: (N·D)² */
    /* bytes; training: values, gradients, two moments and what is kept for backward; decoding:
     * values and cache */
    double weight_bytes, training_state_bytes, activation_bytes, cache_bytes;
    qkv_status status;
} qkv_description;

qkv_status qkv_describe_make(const qkv_model *m, int64_t batch, int64_t length,
                             qkv_description *out);
void qkv_describe_free(qkv_description *d);

/* "201399600" → "201,399,600". */
void qkv_print_grouped(double whole, char out[40]);

#endif
