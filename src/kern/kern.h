/* kern: loops on numbers; the only place with SIMD, and it knows nothing of tensors or tapes.
 *
 * Every file of kern/isa is compiled once per instruction set (avx512, avx2, plain; "wide" is the
 * AVX-512 code without AVX-512, for tests). kern.def lists the functions; the table of the best set
 * this CPU has is chosen at the first call, or the one named by the environment variable QKV_ISA.
 *
 * Contract of every function: deterministic; bits do not depend on the number of threads; an output
 * row depends on its own input rows only, not on what lies beside them (packed = alone). Pointers
 * need no alignment. Matrices are row-major with a row stride `ld…` counted in elements. */
#ifndef QKV_KERN_KERN_H
#define QKV_KERN_KERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/layout.h"
#include "base/real.h"
#include "base/rng.h"
#include "kern/weight.h"

/* ---- activations ---- (the rows of nn's table point here; `gate` kinds are these times a linear
 * half) */
typedef enum qkv_act {
    QKV_ACT_NONE,
    QKV_ACT_RELU,
    QKV_ACT_GELU,
    QKV_ACT_GELU_TANH,
    QKV_ACT_SILU,
    QKV_ACT_TANH,
    QKV_ACT_SIGMOID,
    QKV_ACT_COUNT
} qkv_act;

/* Does the derivative need what the activation was given? Others follow from what it made. */
static inline bool qkv_act_needs_input(qkv_act act) {
    return act == QKV_ACT_GELU || act == QKV_ACT_GELU_TANH || act == QKV_ACT_SILU;
}

typedef enum qkv_precision { QKV_F32, QKV_BF16 } qkv_precision;

/* ---- matrix product: C = op(A)·op(B) [+ C] [+ bias], then act ----
 * op(A) is M×K: stored M×K (ld = lda), or K×M when a_trans. op(B) is K×N: stored K×N, or N×K when
 * b_trans.
 *   forward  y = x Wᵀ      : A = x (R,in),  B = W (out,in) b_trans
 *   dgrad    dx = dz W     : A = dz (R,out), B = W (out,in)
 *   wgrad    dW += dzᵀ x   : A = dz (R,out) a_trans, B = x (R,in), accumulate
 * The sum over K runs in the same order for every element, whatever M, N and the threads. */
typedef struct qkv_gemm {
    int64_t m, n, k;
    const real *a, *b;
    real *c;
    int64_t lda, ldb, ldc;
    bool a_trans, b_trans;
    bool accumulate;         /* C += instead of C = */
    qkv_precision precision; /* QKV_BF16: operands are rounded to bf16, sums stay fp32 */
    const real *bias;        /* length N or NULL; added once */
    qkv_act act;
    real *pre; /* when not NULL: the value before `act` (ld = ldc), for backward */
    /* When not NULL (a_trans only): a_sums[m] += Σ_k op(A)[m][k], unrounded: a bias' gradient. */
    real *a_sums;
    /* When not NULL: B as made by gemm_pack (then b, ldb, b_trans describe its source). */
    const real *b_packed;
    /* When not NULL: B is this (N×K, quantized), not b; neither accumulate nor a_trans. */
    const qkv_weight *weight;
} qkv_gemm;

/* ---- attention ---- */

/* A query at position i sees keys j in [k0, k1) with i + lo ≤ j ≤ i + hi. A query block sees a
 * union of disjoint spans, of which one may be for some of its queries only: those at positions q0
 * … q1 − 1. */
typedef struct qkv_span {
    int32_t k0, k1;
    int32_t lo, hi;
    int32_t q0, q1;
} qkv_span;
/* For all queries of the block. */
static inline qkv_span qkv_span_of(int32_t k0, int32_t k1, int32_t lo, int32_t hi) {
    return (qkv_span){.k0 = k0, .k1 = k1, .lo = lo, .hi = hi, .q1 = INT32_MAX};
}
#define QKV_SPAN_ANY    0x3fffffff /* lo = −ANY, hi = ANY: no bound */
#define QKV_SPANS_MAX   32
#define QKV_QUERY_BLOCK 64 /* queries [64b, 64b + 64) of a sequence ask for their spans together */

/* Which keys do queries q0 … q1−1 (positions, within one QKV_QUERY_BLOCK) of a sequence with n_k
 * keys see? Writes spans, sorted and disjoint for each query, and returns how many (≤
 * QKV_SPANS_MAX). */
typedef int (*qkv_spans_fn)(const void *pattern, int32_t n_k, int32_t q0, int32_t q1,
                            qkv_span *out);

/* How query i relates to key j, for biases and relative vectors: an index r(i, j) in [0, n). */
typedef enum qkv_relation_kind {
    QKV_REL_NONE,
    QKV_REL_DISTANCE, /* r = clamp(j − i + zero, 0, n − 1) */
    /* r = matrix[matrix_start[s] + i·n_k + j]: any relation, a tree's distances for example */
    QKV_REL_MATRIX
} qkv_relation_kind;

typedef struct qkv_relation {
    qkv_relation_kind kind;
    int32_t n, zero;
    const uint8_t *matrix;
    const int64_t *matrix_start; /* per sequence */
} qkv_relation;

/* softmax(scale·q·kᵀ + bias[h][r] + q·rel_k[r]) (v + rel_v[r]), by head, by packed sequence.
 * Query head h uses key head h / (heads / kv_heads). A query that sees no key gets zeros. */
typedef struct qkv_attention {
    int32_t heads, kv_heads, d_head, d_value; /* widths of a head's q/k and of its v and output */
    real scale;
    qkv_layout q_layout,
        k_layout; /* same n; k_layout may list its rows, where no backward follows */
    const int32_t
        *q_pos; /* position of each sequence's first query; NULL: n_k − n_q is not added, all 0 */
    qkv_spans_fn spans; /* NULL: every key */
    const void *pattern;
    const real *q, *k, *v; /* (Rq, heads·d_head), (Rk, kv_heads·d_head), (Rk, kv_heads·d_value) */
    int64_t ldq, ldk, ldv, ldo;
    qkv_relation relation;
    const real *bias; /* (heads, relation.n) or NULL */
    const real *rel_k,
        *rel_v;   /* (relation.n, d_head), (relation.n, d_value), shared by heads; or NULL */
    real dropout; /* of the weights; 0: none */
    qkv_rng rng;
    /* QKV_BF16: products of rounded operands, where the CPU has an instruction for them */
    qkv_precision precision;
    real *out; /* (Rq, heads·d_value) */
    real *lse; /* (Rq, heads): log₂ of each row's softmax sum; NULL when no backward follows */
} qkv_attention;

/* Dropout of weights: there are too many of them for a call of the generator each. The weight of
 * query row `row` (of q), head `head` and key j of its sequence gets 16 bits, half of a mix of two
 * random words, one for (row, head) and one that eight pairs of keys (j, j + 8) share:
 * qkv_attention_drop_bits. It stays when they are at least the threshold, and is then divided by
 * the exact probability of staying. */
static inline uint64_t qkv_attention_drop_row(int64_t row, int32_t head) {
    return (uint64_t)head << 40 | (uint64_t)row;
}
static inline uint64_t qkv_attention_drop_column(int32_t j) {
    return (uint64_t)1 << 63 | (uint64_t)(j / 16 * 8 + j % 8);
}
static inline uint32_t qkv_attention_drop_mix(uint32_t row_word, uint32_t column_word) {
    uint32_t x = row_word + column_word;
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}
static inline uint32_t qkv_attention_drop_bits(qkv_rng rng, int64_t row, int32_t head, int32_t j) {
    const uint32_t x = qkv_attention_drop_mix(qkv_rng_u32(rng, qkv_attention_drop_row(row, head)),
                                              qkv_rng_u32(rng, qkv_attention_drop_column(j)));
    return j & 8 ? x >> 16 : x & 0xffff;
}
static inline uint32_t qkv_attention_drop_threshold(real dropout) {
    const uint32_t t = (uint32_t)((double)dropout * 65536 + 0.5);
    return t < 65535 ? t : 65535;
}

/* Gradients; each is written (not added) where the pointer is not NULL, except dbias, drel_k,
 * drel_v: added. dq, dk and dv may be q, k and v, where those do not overlap: what is written has
 * been read for the last time. */
typedef struct qkv_attention_grad {
    const real *dout; /* (Rq, heads·d_value), row stride lddo */
    real *dq, *dk, *dv;
    int64_t lddq, lddk, lddv, lddo;
    real *dbias, *drel_k, *drel_v;
} qkv_attention_grad;

/* ---- norms ---- */
typedef enum qkv_norm_kind { QKV_NORM_LAYER, QKV_NORM_RMS, QKV_NORM_COUNT } qkv_norm_kind;

/* s = x + dropout(r);  y = norm(s)·gain + bias, by row of width d. */
typedef struct qkv_norm_rows {
    qkv_norm_kind kind;
    int64_t rows, d;
    const real *x;    /* (rows, d) */
    const real *r;    /* (rows, d): the residual, or NULL */
    real dropout;     /* of r; 0: none */
    qkv_rng rng;      /* of the dropout: element i of r uses index i */
    const real *gain; /* (d) */
    const real *bias; /* (d), or NULL; RMS norm has none */
    real eps;         /* added to the mean square before its root */
    real *s;          /* (rows, d): may be x or r, or NULL when r is NULL */
    real *y;          /* (rows, d) */
    real *stats;      /* (rows, 2): mean and 1/deviation, for norm_again and norm_grad */
} qkv_norm_rows;

/* ds = the gradient through the norm + ds_in. */
typedef struct qkv_norm_grad {
    qkv_norm_kind kind;
    int64_t rows, d;
    const real *s, *gain, *stats; /* as norm had and left them */
    const real *dy;               /* (rows, d) */
    const real *ds_in;            /* (rows, d): what arrives at s from elsewhere, or NULL */
    real *ds;                     /* (rows, d): may be dy or ds_in */
    real *dgain, *dbias;          /* (d): added to; NULL: not wanted */
} qkv_norm_grad;

/* ---- softmax cross-entropy ----
 * Logits z against targets t, with label smoothing ε and a row weight w:
 *   loss[i] = w·((1−ε)·(lse − z_t) + ε·(lse − mean z)) */
typedef struct qkv_xent_rows {
    int64_t rows;           /* of xent_pairs: pairs, so that z, loss and lse have twice as many */
    int64_t v;              /* logits in a row */
    real *z;                /* (rows, v): replaced by scale·dloss/dz when `grad` */
    const int32_t *targets; /* (rows): −1: the row is ignored */
    const real *weights;    /* (rows): w, or NULL: 1 */
    real smoothing;         /* ε */
    real agree;             /* of xent_pairs: what the distance of two rows counts */
    real scale;             /* of the gradient */
    bool grad;
    double *loss; /* (rows) */
    real *lse;    /* (rows): log Σ exp(z), or NULL */
} qkv_xent_rows;

/* ---- rotary positions ----
 * The pairs of each head of a row turn by angles that the row's position selects. */
typedef struct qkv_rotation {
    int64_t rows;
    int32_t heads, d;      /* heads of a row, their width */
    real *x;               /* (rows, heads·d), row stride ld */
    int64_t ld;            /* at least heads·d */
    const int32_t *pos;    /* (rows): rows of the tables */
    int32_t turned;        /* elements of a head that turn, the first ones */
    const real *cos, *sin; /* (positions, turned/2): of the angles */
    bool half_split;       /* pairs are (i, i + turned/2), else (2i, 2i + 1) */
    int sign;              /* −1 turns back: the gradient */
} qkv_rotation;

/* ---- recurrent cells: one time step of `rows` sequences, width k ---- */
typedef struct qkv_lstm_grad {
    int64_t rows, k;
    const real *gates;  /* (rows, 4k): as lstm left them */
    const real *c_prev; /* (rows, k) */
    const real *c;      /* (rows, k) */
    const real *da;     /* (rows, k): wrt the output */
    real *dc;           /* (rows, k): in: from the next step; out: to the previous */
    real *dgates;       /* (rows, 4k): may be gates */
    int64_t ld_gates, ld_dgates;
} qkv_lstm_grad;

typedef struct qkv_gru_step {
    int64_t rows, k;
    real *gates;        /* (rows, 3k): r, z, n; n holds the input part before, tanh(..) after */
    const real *hn;     /* (rows, k): recurrent part of n with its bias */
    const real *h_prev; /* (rows, k) */
    real *h;            /* (rows, k) */
    int64_t ld_gates, ld_hn;
} qkv_gru_step;

typedef struct qkv_gru_grad {
    int64_t rows, k;
    const real *gates;  /* (rows, 3k): as gru left them */
    const real *hn;     /* (rows, k): as gru had it */
    const real *h_prev; /* (rows, k) */
    const real *dh;     /* (rows, k) */
    real *dh_prev;      /* (rows, k): the direct path z·dh */
    real *dgates;       /* (rows, 3k): wrt the input parts; may be gates */
    real *dhn;          /* (rows, k): may be hn */
    int64_t ld_gates, ld_hn, ld_dgates, ld_dhn;
} qkv_gru_grad;

/* ---- optimisers: a step of one contiguous run of a parameter ---- */
typedef struct qkv_adam {
    int64_t n;
    real *w;        /* (n) */
    const real *g;  /* (n): the gradient */
    real *m, *v;    /* (n): the moments */
    double g_scale; /* the gradient is multiplied by it first (clipping) */
    double lr, beta1, beta2, eps;
    double decay_w; /* AdamW: w −= lr·decay·w first */
    double decay_g; /* Adam: g += decay·w */
    int64_t step;   /* from 1 */
} qkv_adam;

typedef struct qkv_sgd {
    int64_t n;
    real *w;        /* (n) */
    const real *g;  /* (n): the gradient */
    real *m;        /* (n): the momentum; may be NULL when `momentum` is 0 */
    double g_scale; /* the gradient is multiplied by it first (clipping) */
    double lr, momentum;
    double decay; /* g += decay·w */
    bool nesterov;
} qkv_sgd;

/* ---- the table ---- */
typedef struct qkv_kern {
    const char *name;
    int width; /* reals in a vector */
    bool bf16; /* has a bf16 dot product that beats fp32 */
#define KERN(ret, name, params) ret(*name) params;
#include "kern/kern.def"
#undef KERN
} qkv_kern;

/* The chosen table; the first call chooses. */
const qkv_kern *qkv_kern_get(void);
/* All tables compiled in and able to run here, best first; for tests and benchmarks. */
size_t qkv_kern_list(const qkv_kern *const **out);
/* Uses `name` from now on; false if it is not there or cannot run on this CPU. */
bool qkv_kern_choose(const char *name);

/* Scratch memory of the calling thread: one block per slot that only ever grows, so that nothing is
 * allocated in a step after the first. What a slot held is lost when it grows. NULL on failure
 * (message set). */
#define QKV_SCRATCH_SLOTS 8
void *qkv_kern_scratch(int slot, size_t bytes);
/* Frees the scratch of all threads; only while no kernel runs. */
void qkv_kern_scratch_free(void);

#endif
