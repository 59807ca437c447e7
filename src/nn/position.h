/* Positions: how a model learns the order of its tokens.
 *
 * A scheme acts at one or more of four places: it adds to the input, rotates queries and keys,
 * adds a bias to scores, or adds relative vectors to keys and values. Once a forward pass it fills
 * in what it has for each (qkv_position_terms); the embedding and the attention layers apply what
 * they find there and know no scheme by name. A new scheme is one file and one row of position.def.
 * Positions start at 0. */
#ifndef QKV_NN_POSITION_H
#define QKV_NN_POSITION_H

#include "base/column.h"
#include "nn/dense.h"

typedef enum qkv_position_kind {
#define POSITION(id, name, traits, help) QKV_POSITION_##id,
#include "nn/position.def"
#undef POSITION
    QKV_POSITION_COUNT
} qkv_position_kind;
extern const char *const qkv_position_names[], *const qkv_position_helps[];

/* What a scheme asks of the rest of a model; its row of position.def says which of these it has. */
typedef enum qkv_position_trait {
    QKV_POSITION_ON_SCORES = 1,  /* relates a query's place to a key's, so keys must have places */
    QKV_POSITION_ROTATES = 2,    /* turns queries and keys, so there must be projections */
    QKV_POSITION_HAS_END = 4,    /* knows positions below max_len only */
    QKV_POSITION_WANTS_TREES = 8 /* needs a dependency tree for each sequence; encoders only */
} qkv_position_trait;
bool qkv_position_has(qkv_position_kind kind, qkv_position_trait trait);

typedef enum qkv_pairing { QKV_PAIRING_ADJACENT, QKV_PAIRING_HALVES } qkv_pairing;
extern const char *const qkv_pairing_names[];

typedef enum qkv_wave_rates { QKV_RATES_PAPER, QKV_RATES_SPREAD } qkv_wave_rates;
extern const char *const qkv_wave_rates_names[];

typedef enum qkv_rope_scaling_kind {
    QKV_ROPE_SCALING_NONE,
    QKV_ROPE_SCALING_LINEAR,
    QKV_ROPE_SCALING_DYNAMIC,
    QKV_ROPE_SCALING_LLAMA3,
    QKV_ROPE_SCALING_YARN
} qkv_rope_scaling_kind;
extern const char *const qkv_rope_scaling_names[];

/* See pos_rope.c. */
typedef struct qkv_rope_scaling {
    qkv_rope_scaling_kind kind;
    double factor, length, low, high, fast, slow, attention;
} qkv_rope_scaling;

typedef struct qkv_position_spec {
    qkv_position_kind kind;
    int64_t d_model, d_head, max_len;
    int32_t heads, layers;
    bool causal;
    double base; /* sinusoidal, RoPE */
    qkv_pairing pairing;
    qkv_wave_rates rates; /* sinusoidal: of the wavelengths, and the position of the first token */
    int64_t first;
    int64_t turned; /* RoPE: elements of a head */
    qkv_rope_scaling scaling;
    int32_t distance; /* relative, structural: clipped to it; T5: the last bucket begins there */
    int32_t buckets;  /* T5 */
} qkv_position_spec;

/* The rows of a forward pass. */
typedef struct qkv_place {
    qkv_layout layout;
    int64_t rows;
    const int32_t *pos;             /* R: each row's position in its sequence */
    const int32_t *first;           /* position of each sequence's first row; NULL: all 0 */
    int64_t n_positions;            /* one more than the largest */
    const qkv_cells *const *column; /* by qkv_column; entries or all of it may be NULL */
} qkv_place;

/* What a scheme contributes to one forward pass; zeros mean nothing at that place. */
typedef struct qkv_position_terms {
    qkv_tensor *table;     /* (P, D): row pos[r] is added to input row r */
    qkv_tensor *added;     /* (R, D): added to the input */
    const real *cos, *sin; /* (rotations, turned/2): q and k are rotated */
    int64_t rotations;
    int32_t turned; /* elements of each head, the first ones */
    bool half_split;
    qkv_relation relation;   /* of query and key, for the bias and the relative vectors */
    qkv_tensor *bias;        /* (heads, relation.n) */
    qkv_param *const *rel_k; /* one (relation.n, d_head) per layer */
    qkv_param *const *rel_v;
} qkv_position_terms;

typedef struct qkv_position {
    qkv_position_spec spec;
    qkv_param *table;           /* a scheme's shared parameter */
    qkv_param **rel_k, **rel_v; /* its parameters by layer */
    real *constants;            /* its table for positions 0 … n_constants − 1 */
    int64_t n_constants;
} qkv_position;

typedef struct qkv_position_scheme {
    const char *name;
    /* Refuses a model in which the scheme makes no sense. */
    qkv_status (*check)(const qkv_position_spec *spec);
    void (*declare)(qkv_position *p, qkv_params *params, const char *stack);
    /* Constants: reals needed for n positions, and their values. */
    int64_t (*constant_size)(const qkv_position_spec *spec, int64_t n);
    void (*constant_fill)(const qkv_position_spec *spec, int64_t n, real *out);
    void (*begin)(qkv_tape *t, const qkv_position *p, const qkv_place *place,
                  qkv_position_terms *out);
} qkv_position_scheme; /* every function may be NULL */

qkv_status qkv_position_check(const qkv_position_spec *spec);
qkv_status qkv_position_declare(qkv_position *p, const qkv_position_spec *spec, qkv_params *params,
                                const char *stack);
/* Makes the constants for max_len positions (at most some thousand, or 16 MiB); more are made on
 * the tape of the pass that needs them. */
qkv_status qkv_position_allocate(qkv_position *p);
void qkv_position_free(qkv_position *p);

qkv_position_terms qkv_position_begin(qkv_tape *t, const qkv_position *p, const qkv_place *place);

/* For schemes: the name under which they report to a tape. */
extern const qkv_op qkv_position_op;
/* For schemes: constants for at least n positions (how many exactly in *count); NULL when the tape
 * failed. */
real *qkv_position_constants(qkv_tape *t, const qkv_position *p, int64_t n, int64_t *count);
/* For schemes: relative vectors for keys and values, by layer. */
void qkv_position_declare_relative(qkv_position *p, qkv_params *params, const char *stack,
                                   int64_t n);

#define POSITION(id, name, traits, help) extern const qkv_position_scheme qkv_position_##name;
#include "nn/position.def"
#undef POSITION

#endif
