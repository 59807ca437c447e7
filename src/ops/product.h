/* Matrix products on a tape: the tape's precision, and its error when memory runs out. */
#ifndef QKV_OPS_PRODUCT_H
#define QKV_OPS_PRODUCT_H

#include "kern/kern.h"
#include "tape/tape.h"

/* The rows of a product's x by their memory, as it may be a chunk of a tensor's rows, or rows in
 * another order. */
typedef struct qkv_block {
    const real *data;
    int64_t ld, rows;
} qkv_block;

/* Where a product goes. */
typedef struct qkv_target {
    real *data;
    int64_t ld;
    bool add; /* to what is there */
} qkv_target;

/* z = x Wᵀ + b of packed z (rows, w->rows), the weights in whatever form they have. b may be
 * NULL. */
qkv_gemm qkv_product_of(qkv_block x, const qkv_tensor *w, const qkv_tensor *b, real *z);
/* dx = dz W; not for quantized weights */
qkv_gemm qkv_product_back(const real *dz, int64_t rows, const qkv_tensor *w, real *dx);

/* g in the tape's precision; false (recorded) when it failed. */
bool qkv_product(qkv_tape *t, const qkv_op *op, qkv_gemm g);

/* z = x Wᵀ + b, and its gradients. */
bool qkv_product_forward(qkv_tape *t, const qkv_op *op, qkv_block x, const qkv_tensor *w,
                         const qkv_tensor *b, real *z);
/* Records that quantized weights have no gradients. */
void qkv_product_refuse_gradient(qkv_tape *t, const qkv_op *op);
/* dx (+)= dz W */
bool qkv_product_grad_input(qkv_tape *t, const qkv_op *op, const real *dz, int64_t rows,
                            const qkv_tensor *w, qkv_target dx);
/* dW += dzᵀ x,  db += Σ dz, where they want it; dz is packed, its rows are x's */
void qkv_product_grad_weights(qkv_tape *t, const qkv_op *op, const real *dz, qkv_block x,
                              qkv_tensor *w, qkv_tensor *b);

/* A packed op(B) for many products with the same weights: g describes one of them. NULL (recorded)
 * on failure. */
const real *qkv_product_pack(qkv_tape *t, const qkv_op *op, qkv_gemm g);

#endif
