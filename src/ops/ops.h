/* The ops: about twenty coarse, hand-differentiated steps from which every model is written.
 *
 * Conventions: R rows, D width. Optional tensors may be NULL. Options come in a spec struct,
 * zero-initialised by default. Shapes, ids and offsets are checked here, and only here; a message
 * names the op, the shapes and the first offending element. Layouts and arrays of ids must outlive
 * the step's backward.
 *
 * The functions are declared in ops.def, one row per op; here are their options. */
#ifndef QKV_OPS_OPS_H
#define QKV_OPS_OPS_H

#include "kern/kern.h"
#include "tape/gradcheck.h"
#include "tape/tape.h"

typedef struct qkv_embedding_spec {
    const int32_t *ids; /* R */
    int64_t rows;
    real scale;           /* 0 means 1 */
    qkv_tensor *position; /* (P, D) or NULL: a parameter (learned) or a constant (sinusoidal) */
    const int32_t *pos;   /* R, when position is given */
    real dropout;
} qkv_embedding_spec;

typedef struct qkv_bag_spec {
    const int32_t *ids;
    const real *weights; /* one per id, or NULL: 1 */
    int32_t bags;
    const int32_t *start; /* bags + 1: bag s has ids start[s] … start[s+1] − 1 */
    bool mean;
} qkv_bag_spec;

typedef struct qkv_feed_forward_spec {
    qkv_tensor *w_in, *b_in;   /* (F, in) or, gated, (2F, in); (1, F) or (1, 2F) */
    qkv_tensor *w_out, *b_out; /* (out, F); (1, out) */
    qkv_act act;
    bool gated;
} qkv_feed_forward_spec;

typedef struct qkv_norm_spec {
    qkv_norm_kind kind;
    real eps;             /* 0 means 1e-5 */
    qkv_tensor *residual; /* (R, D) or NULL */
    real dropout;         /* of the residual */
    bool last_reader;     /* nobody else reads the residual: the sum may take its memory */
    bool brief;           /* y has one reader, and is made again for its backward */
} qkv_norm_spec;

typedef struct qkv_head_norm_spec {
    int32_t heads, first; /* heads of a row, and how many of them have the first gain */
    real eps;
    qkv_tensor *first_gain, *rest_gain; /* (1, d_head) */
} qkv_head_norm_spec;

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

typedef struct qkv_rope_spec {
    int32_t heads;
    const int32_t *pos;    /* R */
    int32_t turned;        /* elements of each head, the first ones; 0: all */
    const real *cos, *sin; /* (positions, turned/2), constants */
    int64_t positions;
    bool half_split; /* pairs (i, i + turned/2); else (2i, 2i + 1) */
} qkv_rope_spec;

typedef enum qkv_pool_kind {
    QKV_POOL_MEAN,
    QKV_POOL_MAX,
    QKV_POOL_FIRST,
    QKV_POOL_LAST,
    QKV_POOL_COUNT
} qkv_pool_kind;

typedef struct qkv_recurrent_spec {
    qkv_layout layout;
    bool reverse;                  /* from the last row of each sequence to the first */
    qkv_tensor *h0, *c0;           /* (n, k) or NULL: zeros; may want gradients */
    qkv_tensor **h_last, **c_last; /* not NULL: get the final states (n, k); EVAL only */
} qkv_recurrent_spec;

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

typedef enum qkv_point_kind { QKV_POINT_SQUARE, QKV_POINT_SIGMOID } qkv_point_kind;

typedef struct qkv_pointwise_spec {
    qkv_point_kind kind;
    const real *targets; /* R × C; they must outlive the step */
    real agree; /* > 0: rows r and R/2 + r are two views of the same, which are drawn together */
    real scale;
    real edge;        /* an element of at least this says yes */
    int64_t *n_right; /* out, may be NULL: rows whose elements all say what the targets do */
} qkv_pointwise_spec;

/* ---- the table ---- */
#define OP(name, declaration)                                                                      \
    extern const qkv_op qkv_op_##name;                                                             \
    qkv_tensor *declaration;
#include "ops/ops.def"
#undef OP

/* x Wᵀ + b for one reader, which keeps what it needs: the result is BRIEF or KEPT. */
qkv_tensor *qkv_linear_brief(qkv_tape *t, qkv_tensor *x, qkv_tensor *w, qkv_tensor *b);
/* For observers of a tape: what an attention has computed, and from what; NULL: another op. */
const qkv_attention *qkv_attention_of_node(const qkv_node *node);

/* Gradient-check cases by op, for the tests. */
typedef struct qkv_op_row {
    const qkv_op *op;
    const qkv_case *cases;
} qkv_op_row;
size_t qkv_op_table(const qkv_op_row **rows);

#endif
