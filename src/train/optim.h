/* Optimisers on the flat store: one table row and one function each.
 *
 * A sparse parameter (lookup table) is brought up to date row by row, just before the row is read:
 * the steps that a row missed are replayed with a zero gradient by the same kernel, so the result
 * has the bits of the dense update (AdamW, Adam and SGD alike; Muon leaves tables to AdamW) while a
 * step costs only the rows it reads: the op that is about to read them says which (qkv_rows_read).
 * Call qkv_optim_settle before a whole table is read (evaluation, checkpoint) and before lr_scale
 * changes. The moving average of the weights is replayed with them. Fixed
 * parameters are left alone. Muon treats matrices that are neither lookup tables nor marked
 * no_decay; the rest gets AdamW. */
#ifndef QKV_TRAIN_OPTIM_H
#define QKV_TRAIN_OPTIM_H

#include "kern/kern.h"
#include "nn/params.h"

typedef enum qkv_optim_kind {
#define OPTIM(id, name) QKV_OPTIM_##id,
#include "train/optim.def"
#undef OPTIM
    QKV_OPTIM_COUNT
} qkv_optim_kind;

typedef struct qkv_optim_spec {
    qkv_optim_kind kind;
    double beta1, beta2, eps; /* Adam, AdamW */
    double momentum;          /* SGD, Muon */
    bool nesterov;            /* SGD, Muon */
    double decay;             /* weight decay, off where the parameter says no_decay */
    double muon_lr_scale;     /* Muon's rate relative to lr; 0 means 1 */
    double ema;               /* decay of the moving average of the weights; 0: none is kept */
    qkv_precision precision;  /* of Muon's products */
} qkv_optim_spec;

typedef struct qkv_optim {
    qkv_optim_spec spec;
    qkv_params *params;
    int64_t step;             /* updates done */
    real *m, *v;              /* parallel to params->values; v is NULL for SGD */
    real *ema;                /* likewise: the moving average of the weights; NULL: none */
    double *lr_history;       /* rates of steps history_base + 1 … step, for replays */
    int64_t history_base;     /* every row is current to this step at least */
    int64_t **row_step;       /* per parameter (NULL if dense): the step each row is current to */
    const double *lr_scale;   /* per parameter factor (0: frozen), or NULL: all 1 */
    struct qkv_chunk *chunks; /* the parameters in runs of whole rows: the items of parallel work */
    int64_t n_chunks;
    double *partial; /* per chunk: Σ g² */
    /* Several ranks (parallel.h): rank r keeps and updates chunks chunk_cut[r] …
     * chunk_cut[r + 1] − 1, which are elements cut[r] … cut[r + 1] − 1 of the flat arrays; the
     * moments of the others stay untouched. */
    int64_t *chunk_cut, *cut;
    struct qkv_keeper *keepers; /* the `keeper` of each table's before_read: do not move */
    real *zeros;                /* a row of no gradient, for replays */
    struct qkv_muon *muon;      /* scratch of Newton-Schulz, or NULL */
} qkv_optim;

/* The usual settings of a kind (those of PyTorch): what a configuration starts from. */
qkv_optim_spec qkv_optim_defaults(qkv_optim_kind kind);

/* Takes moments for allocated parameters with gradients. On failure nothing is left to free. */
qkv_status qkv_optim_init(qkv_optim *o, qkv_params *params, const qkv_optim_spec *spec);
void qkv_optim_free(qkv_optim *o);

/* Global norm of the gradients (touched rows only for sparse ones); in double, fixed order. */
double qkv_optim_grad_norm(const qkv_optim *o);

void qkv_optim_settle(
    qkv_optim *o); /* all rows of all tables; several ranks: all of `ema` on each */

/* Several ranks: the moments of all segments on rank 0, for a checkpoint;
 * and back to its own only. */
void qkv_optim_collect(qkv_optim *o);
void qkv_optim_release(qkv_optim *o);

/* One update. */
typedef struct qkv_update {
    double lr;
    double clip;       /* gradients are scaled by clip/norm when norm > clip > 0 */
    double grad_scale; /* multiplies every gradient first (1 / number of targets); 0 means 1 */
    double limit;      /* > 0: a larger norm is refused as one that is not finite is */
    double norm;       /* out: the norm of the scaled gradients before clipping */
} qkv_update;

/* Updates all parameters and zeroes the gradients. Refuses (NUMERIC, naming the parameter and
 * element) when the norm is not finite or over `limit`: nothing is changed then. */
qkv_status qkv_optim_step(qkv_optim *o, qkv_update *u);

/* After a checkpoint's m, v and step were put in place: all rows are current. */
void qkv_optim_restored(qkv_optim *o, int64_t step);

const char *qkv_optim_name(qkv_optim_kind kind);

#endif
