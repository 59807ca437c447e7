/* The smallest layers: a linear map with an optional bias, and a norm.
 *
 * A layer is a struct of parameters with two functions: _declare, while the model is built, and one
 * that puts its forward pass on a tape. How initial weights are drawn is one small struct, passed
 * down from the model. */
#ifndef QKV_NN_DENSE_H
#define QKV_NN_DENSE_H

#include "nn/params.h"
#include "ops/ops.h"

/* Initial weights: AUTO is resolved by the model before any layer sees it. */
#define QKV_INIT_SCHEME_TABLE(X)                                                                   \
    X(AUTO, auto)                                                                                  \
    X(XAVIER, xavier)                                                                              \
    X(NORMAL, normal)                                                                              \
    X(KAIMING, kaiming)

typedef enum qkv_init_scheme {
#define QKV_INIT_SCHEME_ENUM(id, name) QKV_INIT_SCHEME_##id,
    QKV_INIT_SCHEME_TABLE(QKV_INIT_SCHEME_ENUM)
#undef QKV_INIT_SCHEME_ENUM
} qkv_init_scheme;
extern const char *const qkv_init_names[];

typedef struct qkv_dense_spec {
    int64_t in, out;
    int64_t parts; /* matrices stacked in one (Q, K and V: 3); 0 means 1 */
    bool bias;
    qkv_init_scheme init;
    double gain; /* 0 means 1; less for what feeds the residual stream of a deep stack */
} qkv_dense_spec;

typedef struct qkv_dense {
    qkv_param *weight, *bias; /* (out, in); (1, out) or NULL */
} qkv_dense;

/* Declares <name>.weight and, when asked, <name>.bias. */
qkv_dense qkv_dense_declare(qkv_params *p, const qkv_dense_spec *spec, const char *name);
qkv_tensor *qkv_dense_apply(qkv_tape *t, const qkv_dense *d, qkv_tensor *x, qkv_act act);
qkv_tensor *qkv_dense_brief(qkv_tape *t, const qkv_dense *d, qkv_tensor *x); /* for one reader */

typedef struct qkv_norm_layer {
    qkv_norm_kind kind;
    real eps, dropout; /* dropout of the residual that is added first */
    qkv_param *gain, *bias;
} qkv_norm_layer;

typedef struct qkv_norm_shape {
    qkv_norm_kind kind;
    bool bare; /* LayerNorm without a bias */
    int64_t width;
    double eps, dropout;
} qkv_norm_shape;

qkv_norm_layer qkv_norm_declare(qkv_params *p, const qkv_norm_shape *shape, const char *name);
/* norm(x + dropout(residual)); residual may be NULL, and *sum (when not NULL) gets what was normed.
 */
qkv_tensor *qkv_norm_apply(qkv_tape *t, const qkv_norm_layer *n, qkv_tensor *x,
                           qkv_tensor *residual, qkv_tensor **sum);
/* The same for one reader: the result is brief. */
qkv_tensor *qkv_norm_brief(qkv_tape *t, const qkv_norm_layer *n, qkv_tensor *x,
                           qkv_tensor *residual, qkv_tensor **sum);
extern const char *const qkv_norm_names[];

/* A parameter as the input of an op; NULL for an absent one. */
static inline qkv_tensor *qkv_of(qkv_param *p) {
    return p ? &p->tensor : NULL;
}

/* Longest name of a layer, its prefix included; longer ones are refused where parameters are
 * declared. */
#define QKV_NAME_BYTES 192

#endif
