/* The parameter store: every weight by name, all of them in flat arrays.
 *
 * A model declares its parameters while it is built; declaring costs no memory, so that a
 * 100-billion-parameter configuration can be described in milliseconds. qkv_params_allocate then
 * makes values and (for training) gradients two parallel flat arrays; the optimiser adds its
 * moments the same way. Declaring a name again returns the same parameter: that is how weights are
 * tied. */
#ifndef QKV_NN_PARAMS_H
#define QKV_NN_PARAMS_H

#include "kern/weight.h"
#include "tape/tape.h"

typedef enum qkv_init {
    QKV_INIT_ZERO,
    QKV_INIT_ONE,
    QKV_INIT_NORMAL, /* deviation `gain` */
    QKV_INIT_XAVIER, /* uniform ±gain·√(6/(in+out)) */
    QKV_INIT_KAIMING /* normal, deviation gain·√(2/in) */
} qkv_init;

typedef struct qkv_param_spec {
    int64_t rows, cols; /* (out, in) for a linear map; (1, n) for a vector */
    bool vector;        /* stored on disk with rank 1 */
    qkv_init init;
    double gain; /* 0 means 1 (NORMAL: 0.02) */
    int64_t fan_in,
        fan_out;   /* 0: cols, rows; for stacked matrices (QKV in one) those of one part */
    bool no_decay; /* biases, norms, embeddings */
    bool sparse;   /* a lookup table whose gradient touches few rows */
    bool product;  /* the weights of a linear map: worth packing for use */
    /* Rows of a first part that products use apart from the rest, and so packed apart; 0: none. */
    int64_t split;
    bool narrow; /* read only by products and lookups, so it may be quantized */
    /* Not learned by gradients: no gradient, no moments, not in the flat arrays. */
    bool fixed;
} qkv_param_spec;

typedef struct qkv_param {
    char *name;
    qkv_param_spec spec;
    int64_t offset; /* into the flat arrays, unless fixed; a multiple of 16 */
    qkv_tensor
        tensor; /* data and grad point into the flat arrays (fixed: to `own`) once allocated */
    qkv_rows touched;  /* when sparse */
    qkv_weight weight; /* what tensor.weight points to, where it is not NULL */
    real *own; /* values of this parameter alone: it is fixed, or the flat arrays were not made */
} qkv_param;

typedef struct qkv_params {
    qkv_param **list; /* in order of declaration; pointers are stable */
    size_t n, cap;
    int64_t count;  /* parameters: Σ rows·cols */
    int64_t length; /* of the flat arrays, alignment gaps included (gaps stay zero) */
    real *values, *grads;
    real *packed; /* see qkv_params_pack */
    struct qkv_name_map *names;
    qkv_status status; /* sticky while declaring */
} qkv_params;

void qkv_params_init(qkv_params *p);
void qkv_params_free(qkv_params *p);

/* Finds or declares. A second declaration must have the same shape. Never NULL: after a failure a
 * void one, status set. `name` is printf-style: "encoder.%d.attention.qkv.weight". */
qkv_param *qkv_param_declare(qkv_params *p, const qkv_param_spec *spec, const char *name, ...)
    __attribute__((format(printf, 3, 4)));
qkv_param *qkv_param_find(const qkv_params *p, const char *name); /* NULL if there is none */

/* Before allocating: all gradients are dense, those of lookup tables too. */
void qkv_params_densify(qkv_params *p);
qkv_status qkv_params_allocate(qkv_params *p, bool with_grads);
/* Instead of allocating: the values are elsewhere (a mapped file) and stay there; or are
 * quantized. */
void qkv_param_bind(qkv_param *param, const real *values);
void qkv_param_bind_weight(qkv_param *param, const qkv_weight *weight);
/* Values from the seed: a function of (seed, name, index) only, so the same on every machine and in
 * every order. */
void qkv_params_initialise(qkv_params *p, uint64_t seed);
/* Packs the weights of linear maps, so that products with few rows (a step of decoding) read them
 * once, in order; costs as much memory again. For parameters that do not change any more: does
 * nothing where there are gradients. `integers`: int8 and int4 too, for products with many rows.
 * May be called often and from several threads; the first call packs. */
qkv_status qkv_params_pack(qkv_params *p, bool integers);
void qkv_params_zero_grads(qkv_params *p); /* sparse ones by their touched rows only */

#endif
