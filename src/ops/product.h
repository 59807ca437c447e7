/* Matrix products on a tape: the tape's precision, and its error when memory runs out. */
#ifndef QKV_OPS_PRODUCT_H
#define QKV_OPS_PRODUCT_H

#include "kern/kern.h"
#include "tape/tape.h"

/* B of g is Wᵀ, in whatever form the weights have. */
static inline void qkv_product_weights(qkv_gemm *g, const qkv_tensor *w) {
    g->b = w->data, g->ldb = w->ld, g->b_trans = true;
    g->b_packed = w->packed;
    g->weight = w->weight;
}

/* g in the tape's precision; false (recorded) when it failed. */
bool qkv_product(qkv_tape *t, const qkv_op *op, qkv_gemm g);

/* A linear map z = x Wᵀ + b of packed z (rows, w->rows) and its gradients. x is given by its
 * memory, not as a tensor, so that it may be a chunk of rows, or rows in another order. b may be
 * NULL. */
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
