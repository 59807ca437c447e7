/* The residual stream x of a stack, to which each part f (attention, feed-forward) adds:
 *
 *     pre-norm:   x ← x + f(norm(x))      and a last norm at the end
 *     post-norm:  x ← norm(x + f(x))
 *
 * written as  y = read(x, norm);  add(x, f(y)).
 *
 * Two things happen behind these lines. In pre-norm the sum waits for the next norm, which adds and
 * norms in one pass over the rows. And in EVAL, where there is no backward, what a part leaves is
 * moved to one of two tensors, which take turns, and the rest of its memory is given back: so a
 * deep model runs in the memory of one part, which stays in the cache. What is to outlive a part
 * must not lie in the arena then (see qkv_tape_take). */
#ifndef QKV_NN_RESIDUAL_H
#define QKV_NN_RESIDUAL_H

#include "nn/dense.h"

typedef struct qkv_residual {
    qkv_tape *t;
    bool pre_norm;
    qkv_tensor *x, *pending;    /* pre-norm: what the last part made, not yet added */
    const qkv_norm_layer *norm; /* of the part at work */
    qkv_tensor *turns[2];       /* EVAL */
    int turn;
    qkv_arena_mark part; /* where it began */
} qkv_residual;

qkv_residual qkv_residual_begin(qkv_tape *t, bool pre_norm, qkv_tensor *x);
/* What the next part reads, and nobody else: norm(x), in post-norm x. */
qkv_tensor *qkv_residual_read(qkv_residual *r, const qkv_norm_layer *norm);
/* x + made, in post-norm the norm of it. */
void qkv_residual_add(qkv_residual *r, qkv_tensor *made);
/* The stream after the last part: in pre-norm last(x). `read_once`: that has one reader. */
qkv_tensor *qkv_residual_end(qkv_residual *r, const qkv_norm_layer *last, bool read_once);

#endif
