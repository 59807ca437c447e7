/* A walk over the parts of a model: what each holds, what it makes and what it costs. Describing a
 * model and counting its work are both sums over this walk. */
#ifndef QKV_MODEL_COST_H
#define QKV_MODEL_COST_H

#include "model/parts.h"

/* How much there is to do: totals over the sequences of a batch. */
typedef struct qkv_workload {
    double source_rows, target_rows;
    double guessed_rows;               /* rows that the vocabulary's projection sees; 0: all */
    double target_squares;             /* Σ n²: cross-attention where a layout is not known */
    const qkv_layout *source, *target; /* or NULL: `batch` sequences of `length` */
    int64_t batch, length;
} qkv_workload;

#define QKV_PART_PARAMS 8
typedef struct qkv_cost_part {
    const qkv_side *side; /* NULL: shared by both, or the head of an encoder */
    int32_t layer;        /* −1: not in a layer */
    const char *name;     /* "attention" */
    bool again;           /* with weights that a part before it has: they are counted there */
    const qkv_param *params[QKV_PART_PARAMS];
    size_t n_params;
    const char *note; /* "tied", or NULL */
    bool by_sequence; /* makes one row per sequence, not per token */
    bool target;      /* its rows are target tokens */
    int64_t width;    /* of what it makes */
    int64_t inside;   /* the widest thing it makes on the way; 0: nothing wider */
    double kept;      /* values per row that a training step keeps for backward */
    double macs;      /* multiply-adds of one forward pass */
} qkv_cost_part;

typedef void (*qkv_cost_fn)(void *user, const qkv_cost_part *part);
void qkv_model_walk(const qkv_model *m, const qkv_workload *work, qkv_cost_fn visit, void *user);

qkv_workload qkv_workload_of(const qkv_layout *source, const qkv_layout *target);
qkv_workload qkv_workload_even(int64_t batch, int64_t length);

#endif
