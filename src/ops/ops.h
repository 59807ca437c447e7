/* The ops: about twenty coarse, hand-differentiated steps from which every model is written.
 *
 * Conventions: R rows, D width. Optional tensors may be NULL. Options come in a spec struct,
 * zero-initialised by default. Shapes, ids and offsets are checked here, and only here; a message
 * names the op, the shapes and the first offending element. Layouts and arrays of ids must outlive
 * the step's backward. */
#ifndef QKV_OPS_OPS_H
#define QKV_OPS_OPS_H

#include "kern/kern.h"
#include "tape/gradcheck.h"
#include "tape/tape.h"

/* out[r] = dropout(scale·table[ids[r]] + position[pos[r]]).
 * `position` may be a parameter (learned) or a constant (sinusoidal). */
typedef struct qkv_embedding_spec {
    const int32_t *ids; /* R */
    int64_t rows;
    real scale;           /* 0 means 1 */
    qkv_tensor *position; /* (P, D) or NULL */
    const int32_t *pos;   /* R, when position is given */
    real dropout;
} qkv_embedding_spec;
qkv_tensor *qkv_embedding(qkv_tape *t, qkv_tensor *table /* (V, D) */,
                          const qkv_embedding_spec *spec);

/* One row a bag: the sum (or mean) of table rows, each times its weight; for hashed n-grams. An
 * empty bag gives zeros. */
typedef struct qkv_bag_spec {
    const int32_t *ids;
    const real *weights; /* one an id, or NULL: 1 */
    int32_t bags;
    const int32_t *start; /* bags + 1: bag s has ids start[s] … start[s+1] − 1 */
    bool mean;
} qkv_bag_spec;
qkv_tensor *qkv_embedding_bag(qkv_tape *t, qkv_tensor *table /* (V, D) */,
                              const qkv_bag_spec *spec);

/* act(x Wᵀ + b): x (R, in), w (out, in), b (1, out) or NULL. */
qkv_tensor *qkv_linear(qkv_tape *t, qkv_tensor *x, qkv_tensor *w, qkv_tensor *b, qkv_act act);
/* x Wᵀ + b for one reader, which keeps what it needs: the result is brief. */
qkv_tensor *qkv_linear_brief(qkv_tape *t, qkv_tensor *x, qkv_tensor *w, qkv_tensor *b);

/* h W₂ᵀ + b₂, h = act(x W₁ᵀ + b₁); gated (SwiGLU, GEGLU): h = act(x Waᵀ)·(x Wbᵀ), W₁ holding Wa
 * above Wb. Biases may be NULL. */
typedef struct qkv_feed_forward_spec {
    qkv_tensor *w_in, *b_in;   /* (F, in) or, gated, (2F, in); (1, F) or (1, 2F) */
    qkv_tensor *w_out, *b_out; /* (out, F); (1, out) */
    qkv_act act;
    bool gated;
} qkv_feed_forward_spec;
qkv_tensor *qkv_feed_forward(qkv_tape *t, qkv_tensor *x, const qkv_feed_forward_spec *spec);

/* s = x + dropout(residual), y = norm(s)·gain + bias. Returns y; *sum (when not NULL) gets s. */
typedef struct qkv_norm_spec {
    qkv_norm_kind kind;
    real eps;             /* 0 means 1e-5 */
    qkv_tensor *residual; /* (R, D) or NULL */
    real dropout;         /* of the residual */
    bool last_reader;     /* nobody else reads the residual: the sum may take its memory */
    bool brief;           /* y has one reader, and is made again for its backward */
} qkv_norm_spec;
qkv_tensor *qkv_norm(qkv_tape *t, qkv_tensor *x, qkv_tensor *gain, qkv_tensor *bias,
                     const qkv_norm_spec *spec, qkv_tensor **sum);

/* Fused attention; see qkv_attention in kern.h for the mathematics. q, k, v may be column views of
 * one projection. */
typedef struct qkv_attention_spec {
    int32_t heads, kv_heads;       /* kv_heads 0 means heads */
    real scale;                    /* 0 means 1/√d_head */
    qkv_layout q_layout, k_layout; /* k_layout.n 0 means q_layout */
    const int32_t *q_pos;          /* see kern.h */
    qkv_spans_fn spans;
    const void *pattern;
    qkv_relation relation;
    qkv_tensor *bias;          /* (heads, relation.n) or NULL; may want a gradient */
    qkv_tensor *rel_k, *rel_v; /* (relation.n, d_head), (relation.n, d_value) or NULL */
    real dropout;
    bool rounded; /* products in bf16 where the CPU has them, whatever the tape's precision */
} qkv_attention_spec;
qkv_tensor *qkv_attend(qkv_tape *t, qkv_tensor *q, qkv_tensor *k, qkv_tensor *v,
                       const qkv_attention_spec *spec);
/* For observers of a tape: what an attention has computed, and from what; NULL: another op. */
const qkv_attention *qkv_attention_of_node(const qkv_node *node);

/* Rotates the pairs of each head of x by position, in place: x must be a view of (or) a linear's
 * output without activation, which nobody needs unrotated. Returns x's successor, which shares its
 * memory. */
typedef struct qkv_rope_spec {
    int32_t heads;
    const int32_t *pos;    /* R */
    const real *cos, *sin; /* (positions, d_head/2), constants */
    int64_t positions;
    bool half_split; /* pairs (i, i + d/2); else (2i, 2i + 1) */
} qkv_rope_spec;
qkv_tensor *qkv_rope(qkv_tape *t, qkv_tensor *x, const qkv_rope_spec *spec);

qkv_tensor *qkv_dropout(qkv_tape *t, qkv_tensor *x, real p);
/* x + y; with p > 0 x + dropout(y, p). */
qkv_tensor *qkv_add(qkv_tape *t, qkv_tensor *x, qkv_tensor *y, real p);
qkv_tensor *qkv_scale(qkv_tape *t, qkv_tensor *x, real factor);
qkv_tensor *qkv_mul(qkv_tape *t, qkv_tensor *x, qkv_tensor *y);
qkv_tensor *qkv_activation(qkv_tape *t, qkv_tensor *x, qkv_act act);
/* Columns side by side: (R, D1), (R, D2), … → (R, ΣD). */
qkv_tensor *qkv_concat(qkv_tape *t, qkv_tensor *const *parts, size_t n);

/* One row a sequence. */
typedef enum qkv_pool_kind {
    QKV_POOL_MEAN,
    QKV_POOL_MAX,
    QKV_POOL_FIRST,
    QKV_POOL_LAST,
    QKV_POOL_COUNT
} qkv_pool_kind;
qkv_tensor *qkv_pool(qkv_tape *t, qkv_tensor *x, qkv_layout layout, qkv_pool_kind kind);

/* Linformer's projection along the sequence: out_s = E[:r_s, :len_s]·x_s, r_s = min(r, len_s).
 * e (r, N_max) shared by all columns, or (groups·r, N_max): the g-th group of columns uses the g-th
 * block. *out says how the shorter sequences lie. */
qkv_tensor *qkv_sequence_linear(qkv_tape *t, qkv_tensor *x, qkv_tensor *e, qkv_layout layout,
                                int32_t groups, qkv_layout *out);

/* Recurrent layers over packed sequences; input products are batched over time. They return the
 * states of every row (R, k).
 * LSTM: w_x (4k, d), w_h (4k, k), b (1, 4k), in the order f, u, o, c̃: forget, update, output, new.
 * GRU: w_x (3k, d), w_h (3k, k), b_x, b_h (1, 3k), in the order r, z, n. */
typedef struct qkv_recurrent_spec {
    qkv_layout layout;
    bool reverse;                  /* from the last row of each sequence to the first */
    qkv_tensor *h0, *c0;           /* (n, k) or NULL: zeros; may want gradients */
    qkv_tensor **h_last, **c_last; /* not NULL: get the final states (n, k); EVAL only */
} qkv_recurrent_spec;
qkv_tensor *qkv_lstm(qkv_tape *t, qkv_tensor *x, qkv_tensor *w_x, qkv_tensor *w_h, qkv_tensor *b,
                     const qkv_recurrent_spec *spec);
qkv_tensor *qkv_gru(qkv_tape *t, qkv_tensor *x, qkv_tensor *w_x, qkv_tensor *w_h, qkv_tensor *b_x,
                    qkv_tensor *b_h, const qkv_recurrent_spec *spec);

/* Softmax cross-entropy of x Wᵀ + b against targets, chunked over rows: the logits of the whole
 * batch never exist. A 1×1 tensor:
 *   loss = scale·Σ_r w_r·((1 − ε)·nll_r + ε·mean nll_r)
 * w NULL: x already holds logits (R, V). While training the gradients are made in the same pass, so
 * the loss must be one of qkv_tape_backward's, with nothing after it; weigh it by `scale`. */
typedef struct qkv_xent_spec {
    const int32_t *targets; /* R; −1: ignored */
    const real *weights;    /* R, or NULL */
    real smoothing;
    real agree; /* > 0: rows r and R/2 + r are two views of the same, with the same target; half of
                         * agree·(KL(p‖q) + KL(q‖p))/2 is added to the loss of each */
    real scale; /* 0 means 1 / (number of targets that are not ignored) */
    int64_t *n_targets; /* out, may be NULL: targets counted */
    int64_t *n_right;   /* out, may be NULL: rows whose largest logit is the target */
    real *row_loss;     /* out (R), may be NULL: each row's plain nll (0 where ignored) */
} qkv_xent_spec;
qkv_tensor *qkv_xent(qkv_tape *t, qkv_tensor *x, qkv_tensor *w, qkv_tensor *b,
                     const qkv_xent_spec *spec);

/* ---- the table ---- */
#define OP(name) extern const qkv_op qkv_op_##name;
#include "ops/ops.def"
#undef OP

/* Gradient-check cases by op, for the tests. */
typedef struct qkv_op_row {
    const qkv_op *op;
    const qkv_case *cases;
} qkv_op_row;
size_t qkv_op_table(const qkv_op_row **rows);

#endif
