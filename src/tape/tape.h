/* The tape: what was computed, so that it can be differentiated.
 *
 * Ops run at once (define by run) and, when some input wants a gradient, leave a node. Creation
 * order is topological order; backward is a reverse scan. Errors are sticky: after the first one
 * every op returns the tape's void tensor (0×0) and does nothing, so that model code needs no
 * plumbing; the step asks qkv_tape_status once.
 *
 * Every tensor is a matrix: R rows (all tokens of a batch) by D columns. A vector is one row.
 *
 * THE LIFE OF A TENSOR, for the writer of an op
 *
 * Who makes it. Inputs are there already: parameters, wrapped memory of the caller's, outputs of
 * other ops, views of any of these. The op makes its outputs, nearly always by qkv_tensor_new,
 * fills their data and hands them to qkv_tape_record, its last line. Headers and nodes are in the
 * arena.
 *
 * Where its data is (qkv_life), and who frees it:
 *
 *     STEP      arena                nobody: all of it is gone at the next qkv_tape_begin
 *     SPARE     arena                likewise; your backward does not read the output, so that a
 *                                    last reader (norm's sum) may overwrite it
 *     BRIEF     heap                 its one reader, in forward: qkv_tensor_done. Your op can make
 *                                    it again (`remake`), or the reader keeps what it needs
 *     KEPT      heap                 its one reader, in backward: qkv_tensor_done
 *     BORROWED  the caller's, or     the caller, after the step; a view frees nothing
 *               the base's of a view
 *     PARAM     parameter store      the store, with the model
 *
 * Begin with STEP; the others save memory where an activation is large and has one reader. The op's
 * own memory has the same lives: qkv_tape_alloc gives STEP, where `saved` must be, qkv_tape_take
 * the BRIEF and the KEPT, which the op gives back by qkv_heap_give. What backward allocates in the
 * arena is gone when it returns.
 *
 * When its gradient appears. Not in forward: an output has wants_grad from qkv_tape_record on, and
 * no grad. In qkv_tape_backward the first reader to run (the last that was recorded) gets memory
 * for it by qkv_grad_write, qkv_grad_add or qkv_grad_pass, in the heap; other readers add to it.
 * When your backward runs, all of them have run: qkv_grad_of(out) is the complete sum, or NULL when
 * nothing that reached the loss read this output (a node with no gradient at all is skipped). It is
 * yours to destroy, and the tape frees it when your backward returns. A view has no gradient of its
 * own but a place in its base's. The gradient of a leaf lives until the next qkv_tape_begin; a
 * parameter's is in the store, is only ever added to, and is zeroed by the optimiser. (An op that
 * is a `root`, a loss, makes gradients in forward.)
 *
 * What EVAL does differently (evaluation, decoding; TRACE is TRAIN without dropout). Nothing is recorded: qkv_tape_records is
 * false, so the op saves nothing for backward, makes arena tensors instead of BRIEF and KEPT ones,
 * and drops nothing out. A last reader may overwrite any tensor of the step (qkv_may_overwrite).
 * And the arena may be given back in the middle of a step (qkv_tape_rewind, see nn/residual.h):
 * what is to outlive a layer is in a heap, as watched attention is, or belongs to the caller, as
 * the cache of keys and values does, which is wrapped again in each step.
 *
 * src/ops/op_scale.c is the shortest op, op_linear.c the one to read next. */
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
    /* When not NULL: called by an op before it reads rows `ids` (checked to be in range). A lazy
     * optimiser registers its callback here. */
    void (*before_read)(void *keeper, const int32_t *ids, int64_t n);
    void *keeper;
} qkv_rows;

/* Where a tensor's data is, and for how long. */
typedef enum qkv_life {
    QKV_LIFE_STEP,     /* in the arena, until the next qkv_tape_begin */
    QKV_LIFE_SPARE,    /* likewise, but its maker's backward does not read it: its last reader may
                       overwrite it */
    QKV_LIFE_BRIEF,    /* in a heap, until its one reader has read it; made again for backward */
    QKV_LIFE_KEPT,     /* in a heap, until its one reader's backward has read it */
    QKV_LIFE_BORROWED, /* in memory of the caller's that outlives the step, or of a view's base */
    QKV_LIFE_PARAM     /* in the parameter store, and so is its gradient: always added to */
} qkv_life;

struct qkv_tensor {
    int64_t rows, cols, ld; /* ld ≥ cols: elements from one row to the next */
    real *data;
    real *grad; /* same shape and ld; NULL while there is none. A view has none: its base has it */
    int64_t grad_from,
        grad_to; /* these columns of grad hold a sum already, the others are not yet initialised */
    bool wants_grad;
    qkv_life life;
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
    /* For an op with a brief output, or NULL: makes rows [row0, row0 + rows) of out[0] again,
     * packed, from what backward needs anyway. */
    void (*remake)(const qkv_node *node, int64_t row0, int64_t rows, real *out);
    bool root; /* its gradients were made in forward, for an upstream gradient of 1: it must be a
                  loss */
    bool over_output; /* backward uses up out[0]'s gradient row by row as it writes that of in[0],
                         which may lie in the same memory: read qkv_grad_of before */
};

/* Sees each op of a step once it has run, as a node whether it is recorded or not: for looking into
 * a model. The node is gone when `after` returns. */
typedef struct qkv_observer {
    void (*after)(void *user, const qkv_node *node);
    void *user;
} qkv_observer;

/* A gradient that an op has written beside the sum to which it is to be added. */
typedef struct qkv_beside {
    qkv_tensor *x;
    const real *written;
} qkv_beside;

typedef enum qkv_mode {
    QKV_TRAIN, /* record, drop out */
    QKV_EVAL,  /* neither */
    QKV_TRACE  /* record, drop nothing: derivatives of a model in use */
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
    const qkv_observer *observer; /* NULL: none */
    const qkv_node *running;      /* the node whose backward runs, or NULL */
    qkv_beside beside[QKV_NODE_INPUTS];
    int n_beside;
    /* When not NULL: called in backward after each node, with the number of those still to come. */
    void (*after_node)(void *user, size_t left);
    void *after_user;
    qkv_heap heap;      /* gradients of activations, and what is BRIEF */
    qkv_heap kept;      /* what is KEPT */
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

/* A new rows×cols tensor of this life (STEP, SPARE, BRIEF or KEPT), data uninitialised. */
qkv_tensor *qkv_tensor_make(qkv_tape *t, qkv_life life, int64_t rows, int64_t cols);
static inline qkv_tensor *qkv_tensor_new(qkv_tape *t, int64_t rows, int64_t cols) {
    return qkv_tensor_make(t, QKV_LIFE_STEP, rows, cols);
}
/* For the one reader of a BRIEF or KEPT tensor; of others they do nothing. _done gives the data
 * back. A backward that needs BRIEF data once more calls _again before reading and _done after, or
 * _rows_again for some rows at a time, which are made in `room` unless they are there. A reader
 * that calls nothing only holds the memory for longer. */
void qkv_tensor_done(qkv_tensor *x);
const real *qkv_tensor_again(qkv_tape *t, qkv_tensor *x); /* its data; NULL without memory */
const real *qkv_tensor_rows_again(const qkv_tensor *x, int64_t row0, int64_t rows, real *room);
/* The reader is about to read x for the last time, each element before it writes that of x's
 * gradient, which therefore takes over the memory, where there is no gradient yet. */
void qkv_tensor_spend(qkv_tensor *x);
static inline bool qkv_has_one_reader(const qkv_tensor *x) {
    return x->life == QKV_LIFE_BRIEF || x->life == QKV_LIFE_KEPT;
}
/* May the last reader of x in forward write its own output there? */
static inline bool qkv_may_overwrite(const qkv_tape *t, const qkv_tensor *x) {
    return x->life == QKV_LIFE_SPARE || (x->life == QKV_LIFE_STEP && t->mode == QKV_EVAL);
}
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
/* Memory of another life, BRIEF (room for a while) or KEPT (from forward to backward): until
 * qkv_heap_give, at the latest the next qkv_tape_begin. Failure as above. */
void *qkv_tape_take(qkv_tape *t, const qkv_op *op, qkv_life life, size_t bytes);

/* A stream of random numbers for one op of the step: qkv_tape_next_index in forward, node->index in
 * backward. */
qkv_rng qkv_tape_rng(const qkv_tape *t, uint64_t index);
static inline uint64_t qkv_tape_next_index(const qkv_tape *t) {
    return t->n_ops;
}

/* ---- gradients, for the backward of ops; row stride x->ld ----
 *
 * One to read and three to give, which return NULL for an x that is NULL or wants no gradient, and
 * (see qkv_tape_stopped) when memory ran out. */

/* The gradient that arrived at an output, complete, to be read or destroyed; NULL when none did. */
real *qkv_grad_of(qkv_tape *t, qkv_tensor *out);
/* Where to add to x's gradient: zeros when it is new. Of a lookup table only rows `ids` (n of them,
 * within range) will be added to; NULL: any. */
real *qkv_grad_add(qkv_tape *t, qkv_tensor *x, const int32_t *ids, int64_t n);
/* Where to write x's gradient, in full. *add says that there is a sum already, to which the op must
 * add. With add NULL it always overwrites; the tape adds that to the sum when backward returns. */
real *qkv_grad_write(qkv_tape *t, qkv_tensor *x, bool *add);
/* Adds out's gradient to those of the inputs in[0 … n−1] (QKV_TENSORS), which have out's shape. The
 * last use of out's gradient: the last input takes over its memory where it has none yet, so that a
 * derivative that was computed in place costs no copy. */
void qkv_grad_pass(qkv_tape *t, qkv_tensor *out, qkv_tensor *const *in, size_t n);

/* Tells the keeper of a sparse parameter that rows `ids` (within range; NULL: all rows) are about
 * to be read. Of other tensors: nothing. Every op that reads a parameter that may be a lookup table
 * calls it first. */
void qkv_rows_read(const qkv_tensor *x, const int32_t *ids, int64_t n);
/* Marks rows of a sparse parameter as touched (ids within range). */
void qkv_rows_touch(qkv_rows *rows, const int32_t *ids, int64_t n);

#endif
