/* The feed-forward layer, applied to each position: W₂·act(W₁x + b₁) + b₂, or gated,
 * W₂·(act(W_a x)·(W_b x)). */
#ifndef QKV_NN_FFN_H
#define QKV_NN_FFN_H

#include "nn/dense.h"

typedef enum qkv_ffn_kind {
#define FFN(id, name, act, gated, help) QKV_FFN_##id,
#include "nn/ffn.def"
#undef FFN
    QKV_FFN_COUNT
} qkv_ffn_kind;
extern const char *const qkv_ffn_names[];

typedef struct qkv_ffn_shape {
    qkv_act act;
    bool gated;
} qkv_ffn_shape;
extern const qkv_ffn_shape qkv_ffn_shapes[QKV_FFN_COUNT];

typedef struct qkv_ffn_spec {
    qkv_ffn_kind kind;
    int64_t d_model, d_ff;
    bool bias;
    qkv_init_scheme init;
    double out_gain;
} qkv_ffn_spec;

typedef struct qkv_ffn {
    qkv_ffn_kind kind;
    qkv_dense in, out; /* (F, D) or, gated, (2F, D); (D, F) */
} qkv_ffn;

qkv_ffn qkv_ffn_declare(qkv_params *p, const qkv_ffn_spec *spec, const char *name);
qkv_tensor *qkv_ffn_apply(qkv_tape *t, const qkv_ffn *f, qkv_tensor *x);

#endif
