/* Matrix products on a tape: the tape's precision, and its error when memory runs out. */
#ifndef QKV_OPS_PRODUCT_H
#define QKV_OPS_PRODUCT_H

#include "kern/kern.h"
#include "tape/tape.h"

/* z = x Wᵀ + b of packed z (rows, w->rows), the weights in whatever form they have. x is given by
 * its memory, not as a tensor, so that it may be a chunk of rows, or rows in another order. b may
 * be NULL. */
qkv_gemm qkv_product_of(const real *x, int64_t ldx, int64_t rows, const qkv_tensor *w,
                        const qkv_tensor *b, real *z);
/* dx = dz W; not for weights in fewer bits */
qkv_gemm qkv_product_back(const real *dz, int64_t rows, const qkv_tensor *w, real *dx);

/* g in the tape's precision; false (recorded) when it failed. */
bool qkv_product(qkv_tape *t, const qkv_op *op, qkv_gemm g);

/* z = x Wᵀ + b, and its gradients. */
bool qkv_product_forward(qkv_tape *t, const qkv_op *op, const real *x, int64_t ldx, int64_t rows,
                         const qkv_tensor *w, const qkv_tensor *b, real *z);
/* Records that weights in fewer bits have no gradients. */
void qkv_product_refuse_gradient(qkv_tape *t, const qkv_op *op);
/* dx (+)= dz W */
bool qkv_product_grad_input(qkv_tape *t, const qkv_op *op, const real *dz, int64_t rows,
                            const qkv_tensor *w, real *dx, int64_t lddx, bool add);
/* dW += dzᵀ x,  db += Σ dz, where they want it */
void qkv_product_grad_weights(qkv_tape *t, const qkv_op *op, const real *dz, int64_t rows,
                              const real *x, int64_t ldx, qkv_tensor *w, qkv_tensor *b);

/* A packed op(B) for many products with the same weights: g describes one of them. NULL (recorded)
 * on failure. */
const real *qkv_product_pack(qkv_tape *t, const qkv_op *op, qkv_gemm g);

#endif
