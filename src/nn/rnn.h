/* Recurrent stacks: LSTM or GRU layers, one after another, each reading one way or both.
 *
 * A layer's input products are batched over all rows of all sequences (ops); dropout is between
 * layers. A stack that reads both ways gives the two states side by side, 2k wide. */
#ifndef QKV_NN_RNN_H
#define QKV_NN_RNN_H

#include "nn/dense.h"

typedef enum qkv_cell_kind { QKV_CELL_LSTM, QKV_CELL_GRU } qkv_cell_kind;

typedef struct qkv_rnn_spec {
    qkv_cell_kind cell;
    int32_t layers;
    bool bidirectional;
    int64_t in, state; /* widths of the input and of one direction's state */
    double dropout;    /* of each layer's input but the first */
} qkv_rnn_spec;

typedef struct qkv_rnn_cell {
    qkv_param *w_x, *w_h; /* LSTM: (4k, in), (4k, k); GRU: (3k, in), (3k, k) */
    qkv_param *b_x, *b_h; /* b_h: GRU only */
} qkv_rnn_cell;

typedef struct qkv_rnn {
    qkv_rnn_spec spec;
    qkv_rnn_cell *cells; /* layer by layer, forward then backward */
} qkv_rnn;

/* States of n sequences: where each layer starts, and (EVAL mode) where it ended. */
typedef struct qkv_rnn_state {
    qkv_tensor **h, **c; /* one (n, k) a layer; c is NULL for GRU; an entry may be NULL: zeros */
    bool keep;           /* replace them by the final states */
} qkv_rnn_state;

qkv_status qkv_rnn_declare(qkv_rnn *r, const qkv_rnn_spec *spec, qkv_params *params,
                           const char *name);
void qkv_rnn_free(qkv_rnn *r);
static inline int64_t qkv_rnn_width(const qkv_rnn_spec *s) {
    return s->state * (s->bidirectional ? 2 : 1);
}
/* Sets the forget gates' biases to 1, so that an untrained LSTM remembers. */
void qkv_rnn_initialise(qkv_rnn *r);

/* x (R, in) → (R, width). state may be NULL: zeros. Only one-way stacks take a state. */
qkv_tensor *qkv_rnn_apply(qkv_tape *t, const qkv_rnn *r, qkv_tensor *x, qkv_layout layout,
                          qkv_rnn_state *state);

#endif
