/* Multi-head attention: project to queries, keys and values, attend by head, project back.
 *
 *     Y = Concat(H_1 … H_h) W_oᵀ,  H_i = softmax(Q_i K_iᵀ·scale + …) V_i,  [Q K V] = X W_qkvᵀ
 *
 * Self-attention has one projection for all three, and q, k, v are columns of its output;
 * cross-attention takes keys and values from the encoder's output. The inner width heads·d_head is
 * free of d_model. */
#ifndef QKV_NN_MULTIHEAD_H
#define QKV_NN_MULTIHEAD_H

#include "nn/kv.h"
#include "nn/mask_pattern.h"
#include "nn/position.h"

typedef enum qkv_score_scale { QKV_SCALE_HEAD, QKV_SCALE_FULL, QKV_SCALE_NONE } qkv_score_scale;
extern const char *const qkv_scale_names[];

typedef struct qkv_multihead_spec {
    int64_t d_model, d_head;
    int32_t heads, kv_heads;
    bool projections; /* false: basic attention, no parameters */
    bool qkv_bias, out_bias;
    qkv_score_scale scale;
    double factor; /* of scores; 0: as scale says */
    bool normed;   /* each head of queries and keys, by RMS */
    double norm_eps;
    double dropout;
    qkv_init_scheme init;
    double out_gain;
    int64_t linformer_rank; /* 0: keys and values stay as they are */
    bool linformer_per_head;
    int64_t max_len; /* columns of Linformer's projections */
} qkv_multihead_spec;

typedef struct qkv_multihead {
    qkv_multihead_spec spec;
    qkv_dense qkv;                 /* self-attention: ((H + 2G)·K, D) */
    qkv_dense q, kv;               /* cross-attention: (H·K, D), (2G·K, D) */
    qkv_dense out;                 /* (D, H·K) */
    qkv_norm_layer q_norm, k_norm; /* (1, K), where heads are normed */
    qkv_param *along_k, *along_v;  /* Linformer: (r, max_len), or one such block per head */
} qkv_multihead;

/* What the layers of one forward pass share. */
typedef struct qkv_pass {
    qkv_place place;
    qkv_position_terms terms;
    /* of layers that do not see everything, where those have positions of their own; else NULL */
    const qkv_position_terms *local;
    qkv_tensor *encoder_out; /* (R_source, D), or NULL */
    qkv_layout encoder_layout;
    qkv_kv *kv; /* NULL: the whole sequences are given */
} qkv_pass;

qkv_multihead qkv_multihead_declare(qkv_params *p, const qkv_multihead_spec *spec, bool cross,
                                    const char *name);
qkv_tensor *qkv_multihead_self(qkv_tape *t, const qkv_multihead *m, qkv_tensor *x,
                               const qkv_pass *pass, const qkv_pattern *pattern, int32_t layer);
qkv_tensor *qkv_multihead_cross(qkv_tape *t, const qkv_multihead *m, qkv_tensor *x,
                                const qkv_pass *pass, int32_t layer);

#endif
