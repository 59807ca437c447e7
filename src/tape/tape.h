/* The tape: what was computed, so that it can be differentiated.
 *
 * Ops run at once (define by run) and, when some input wants a gradient, leave a node. Creation
 * order is topological order; backward is a reverse scan. Everything on a tape lives in its arena
 * and dies at the next qkv_tape_begin. Errors are sticky: after the first one every op returns the
 * tape's void tensor (0×0) and does nothing, so that model code needs no plumbing; the step asks
 * qkv_tape_status once.
 *
 * Every tensor is a matrix: R rows (all tokens of a batch) by D columns. A vector is one row. */
#ifndef QKV_TAPE_TAPE_H
#define QKV_TAPE_TAPE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/layout.h"
#include "base/real.h"
#include "base/rng.h"
#include "base/weight_format.h"
#include "tape/heap.h"

typedef struct qkv_tensor qkv_tensor;
typedef struct qkv_node qkv_node;
typedef struct qkv_tape qkv_tape;
typedef struct qkv_op qkv_op;

/* Rows of a sparse parameter (an embedding table) whose gradient is not zero in this step. */
typedef struct qkv_rows {
    int32_t *list; /* distinct rows, in order of first touch */
    int64_t n;
    uint8_t *seen; /* one flag per row of the table */
    /* When not NULL: called by an op before it reads rows `ids` (checked to be in range). An
     * optimiser that updates rows only when they are needed hangs itself in here. */
    void (*before_read)(void *keeper, const int32_t *ids, int64_t n);
    void *keeper;
} qkv_rows;

struct qkv_tensor {
    int64_t rows, cols, ld; /* ld ≥ cols: elements from one row to the next */
    real *data;
    real *grad; /* same shape and ld; NULL while there is none. A view has none: its base has it */
    int64_t grad_from,
        grad_to; /* these columns of grad hold a sum already, the others are not yet initialised */
    bool wants_grad;
    bool is_param;    /* grad belongs to the parameter store: always add */
    bool spare;       /* its maker does not read it again: a last reader may overwrite it */
    bool brief;       /* data lives from its maker to its one reader, see qkv_tensor_new_brief */
    qkv_node *maker;  /* the node it came from, when that was recorded */
    qkv_tensor *base; /* for a view: the tensor that it shares data and gradient with */
    int64_t offset;   /* of a view's first element in its base */
    int64_t base_from,
        base_to; /* the columns of base that the view is; empty when it is not whole columns */
    qkv_rows *touched;  /* for a sparse parameter; else NULL */
    const real *packed; /* not NULL: for products with it as weights, as gemm_pack left it (fp32) */
    const qkv_weight *weight; /* not NULL: the values are quantized, and data is NULL */
    const char *name;         /* parameters: their name; else the op's */
};

#define QKV_NODE_INPUTS  8
#define QKV_NODE_OUTPUTS 2

struct qkv_node {
    const qkv_op *op;
    qkv_tensor *in[QKV_NODE_INPUTS]; /* NULL for an optional one that is absent */
    qkv_tensor *out[QKV_NODE_OUTPUTS];
    void *saved;    /* the op's own struct, in the arena: what backward needs */
    uint64_t index; /* place among the step's ops; keys the node's random numbers */
};

/* An op: one const struct per file of ops/. */
struct qkv_op {
    const char *name;
    /* Adds to (or fills) the gradients of node->in that want one, from those of node->out, which it
     * may destroy. What it takes from qkv_tape_alloc is given back when it returns. */
    void (*backward)(qkv_tape *t, qkv_node *node);
    /* For an op with a brief output, or NULL: makes rows [row0, row0 + rows) of out[0] again, packed,
     * from what backward needs anyway. */
    void (*remake)(const qkv_node *node, int64_t row0, int64_t rows, real *out);
    bool root; /* its gradients were made in forward, for an upstream gradient of 1: it must be a
                  loss */
};

/* Sees each op of a step once it has run, as a node whether it is recorded or not: for looking into
 * a model. The node is gone when `after` returns. */
typedef struct qkv_observer {
    void (*after)(void *user, const qkv_node *node);
    void *user;
} qkv_observer;

typedef enum qkv_mode {
    QKV_TRAIN, /* record, drop out */
    QKV_EVAL   /* neither */
} qkv_mode;

struct qkv_tape {
    qkv_arena arena;
    qkv_mode mode;
    int precision;     /* a qkv_precision: of the matrix products */
    qkv_rng rng;       /* the step's stream; see qkv_tape_rng */
    qkv_status status; /* sticky */
    char error[768];   /* its message */
    bool check_finite; /* name the first op whose output or gradient is not finite (slow: for
                          finding trouble) */
    qkv_node **nodes;
    size_t n_nodes, cap_nodes;
    uint64_t n_ops;               /* ops run in this step, recorded or not */
    const qkv_observer *observer; /* NULL: nobody looks */
    /* When not NULL: called in backward after each node, with the number of those still to come. */
    void (*after_node)(void *user, size_t left);
    void *after_user;
    qkv_heap heap;      /* gradients of activations, and what else lives for a while */
    qkv_heap kept;      /* from an op's forward to its backward */
    qkv_tensor nothing; /* what ops return after an error */
};

qkv_status qkv_tape_init(qkv_tape *t); /* allocates nothing yet; precision fp32 */
void qkv_tape_free(qkv_tape *t);

/* Starts a step: forgets the last one (its tensors are gone) and keys the random numbers by (seed,
 * step). */
void qkv_tape_begin(qkv_tape *t, qkv_mode mode, uint64_t seed, uint64_t step);

/* The step's verdict; the message is in qkv_error() then. */
qkv_status qkv_tape_status(const qkv_tape *t);

/* Runs backward from each scalar (1×1) loss with gradient 1. Once a step. Leaves keep their
 * gradients until the next qkv_tape_begin, parameters theirs for ever; all others are gone. */
qkv_status qkv_tape_backward(qkv_tape *t, qkv_tensor *const *losses, size_t n);

/* For EVAL, where nothing is recorded: gives back all that was put on the tape since the mark. To
 * run a deep model in the memory of one layer, make the tensor for the layer's result before the
 * mark and copy it there before rewinding. */
static inline qkv_arena_mark qkv_tape_here(const qkv_tape *t) {
    return qkv_arena_here(&t->arena);
}
static inline void qkv_tape_rewind(qkv_tape *t, qkv_arena_mark mark) {
    if (t->n_nodes == 0) qkv_arena_rewind(&t->arena, mark);
}

/* ---- tensors ---- */

/* A new rows×cols tensor in the arena, data uninitialised. */
qkv_tensor *qkv_tensor_new(qkv_tape *t, int64_t rows, int64_t cols);
/* The output of an op (with these inputs) that is not kept from forward to backward. Its one reader
 * calls _done when it has read it. Where the op can make it again at little cost (`remake`), the
 * reader's backward calls _again before reading and _done after, or _rows_again for some rows at a
 * time, which are made in `room` unless they are there; else the reader keeps what it needs
 * and in what form it likes. A reader that calls nothing only keeps it in memory; `stays`: it
 * probably will. */
qkv_tensor *qkv_tensor_new_brief(qkv_tape *t, qkv_tensor *const *in, size_t n_in, int64_t rows,
                                 int64_t cols, bool stays);
void qkv_tensor_done(qkv_tensor *x);                      /* nothing for tensors that are kept */
const real *qkv_tensor_again(qkv_tape *t, qkv_tensor *x); /* its data; NULL without memory */
const real *qkv_tensor_rows_again(const qkv_tensor *x, int64_t row0, int64_t rows, real *room);
/* A leaf over memory of the caller's that outlives the step: an input, or a constant table. Set
 * wants_grad to get one. */
qkv_tensor *qkv_tensor_wrap(qkv_tape *t, real *data, int64_t rows, int64_t cols);
/* Columns [col, col + cols) of x, sharing data and gradient. No node: its gradient is x's. */
qkv_tensor *qkv_tensor_columns(qkv_tape *t, qkv_tensor *x, int64_t col, int64_t cols);
/* Rows [row, row + rows) of x, likewise. */
qkv_tensor *qkv_tensor_rows(qkv_tape *t, qkv_tensor *x, int64_t row, int64_t rows);
/* The elements of a packed x in another shape, likewise: (R, H·K) as (R·H, K), for a norm of each
 * head. */
qkv_tensor *qkv_tensor_reshape(qkv_tape *t, qkv_tensor *x, int64_t rows, int64_t cols);

static inline bool qkv_is_void(const qkv_tensor *x) {
    return x->rows == 0;
}
static inline bool qkv_is_packed(const qkv_tensor *x) {
    return x->ld == x->cols || x->rows == 1;
}

/* ---- for ops ---- */

/* True when the op should stop: there was an error. First line of every op. */
static inline bool qkv_tape_stopped(const qkv_tape *t) {
    return t->status != QKV_OK;
}

/* Records the error "<op>: <text>" and returns the void tensor. */
qkv_tensor *qkv_tape_fail(qkv_tape *t, const qkv_op *op, qkv_status code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* For code that failed below with the message already set (out of memory in an arena or a kernel).
 */
qkv_tensor *qkv_tape_fail_below(qkv_tape *t, const qkv_op *op);

/* A list of tensors and its length, as the two arguments that the functions below take. */
#define QKV_TENSORS(...)                                                                           \
    (qkv_tensor *[]){__VA_ARGS__}, sizeof((qkv_tensor *[]){__VA_ARGS__}) / sizeof(qkv_tensor *)

/* Will backward run over an op with these inputs, so that it must save what that needs? */
bool qkv_tape_records(const qkv_tape *t, qkv_tensor *const *in, size_t n);

/* The last line of every op: records it if need be, and then marks the outputs as wanting
 * gradients. `saved` must be in the arena. Returns out[0], or the void tensor when that failed. */
qkv_tensor *qkv_tape_record(qkv_tape *t, const qkv_op *op, qkv_tensor *const *in, size_t n_in,
                            qkv_tensor *const *out, size_t n_out, void *saved);

/* Memory that lives until the next qkv_tape_begin (in backward: until the node's is done). On
 * failure records the error and returns NULL. */
void *qkv_tape_alloc(qkv_tape *t, const qkv_op *op, size_t bytes);
/* Memory that lives until qkv_heap_give (or the next qkv_tape_begin): room for a while, and what
 * forward keeps until the node's backward is done. Failure as above. */
void *qkv_tape_take(qkv_tape *t, const qkv_op *op, size_t bytes);
void *qkv_tape_keep(qkv_tape *t, const qkv_op *op, size_t bytes);

/* A stream of random numbers for one op of the step: qkv_tape_next_index in forward, node->index in
 * backward. */
qkv_rng qkv_tape_rng(const qkv_tape *t, uint64_t index);
static inline uint64_t qkv_tape_next_index(const qkv_tape *t) {
    return t->n_ops;
}

/* ---- gradients, for the backward of ops; row stride x->ld ---- */

/* The gradient that arrived at an output, complete; NULL when none did. */
real *qkv_grad_of(qkv_tape *t, qkv_tensor *out);
/* The gradient of an input to write to: *add says whether to add to it or to overwrite it (in
 * full). NULL when x is NULL or wants none, or (see qkv_tape_stopped) memory ran out. */
real *qkv_grad(qkv_tape *t, qkv_tensor *x, bool *add);
/* The same, zeroed when new, for ops that can only add. */
real *qkv_grad_add(qkv_tape *t, qkv_tensor *x);
/* The same for a lookup: only these rows (ids within range) will be added to. */
real *qkv_grad_add_rows(qkv_tape *t, qkv_tensor *x, const int32_t *ids, int64_t n);
/* For code that can only write: where to write x's gradient (beside it when there is a sum
 * already), and, once written, the sum. NULL as above; qkv_grad_written takes it. */
real *qkv_grad_write(qkv_tape *t, qkv_tensor *x);
void qkv_grad_written(qkv_tape *t, qkv_tensor *x, const real *written);
/* Adds out's gradient to x's, which has the same shape. */
void qkv_grad_copy(qkv_tape *t, qkv_tensor *out, qkv_tensor *x);
/* The same, giving it away: where x has none yet it takes over out's memory, so that a derivative
 * that was computed in place costs no copy. The last use of out's gradient. */
void qkv_grad_pass(qkv_tape *t, qkv_tensor *out, qkv_tensor *x);
/* For the last reader of a brief x that has no gradient yet: x's memory becomes its gradient's, which
 * the reader writes as it is done with the data. Else nothing. */
void qkv_grad_over_data(qkv_tensor *x);
/* Would it give it away? Then x's gradient may be made over out's, as that is used up. */
bool qkv_grad_may_pass(const qkv_tensor *out, const qkv_tensor *x);

/* Tells the keeper of a sparse parameter that rows `ids` (within range; NULL: all rows) are about
 * to be read. Of other tensors: nothing. Every op that reads a parameter that may be a lookup table
 * calls it first. */
void qkv_rows_read(const qkv_tensor *x, const int32_t *ids, int64_t n);
/* Marks rows of a sparse parameter as touched (ids within range). */
void qkv_rows_touch(qkv_rows *rows, const int32_t *ids, int64_t n);

#endif
