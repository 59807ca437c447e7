/* Optimisers on the flat store: one table row and one function each.
 *
 * A sparse parameter (lookup table) is brought up to date row by row, just before the row is read: the steps that a row
 * missed are replayed with a zero gradient by the same kernel, so the result has the bits of the dense update at a cost
 * that follows the rows touched. Call qkv_optim_prepare with the ids of the coming batch, and qkv_optim_settle
 * before the whole table is read (evaluation, checkpoint). Muon treats matrices that are not lookup tables; the rest gets AdamW. */
#ifndef QKV_TRAIN_OPTIM_H
#define QKV_TRAIN_OPTIM_H

#include "nn/params.h"

typedef enum qkv_optim_kind { QKV_OPTIM_ADAMW, QKV_OPTIM_ADAM, QKV_OPTIM_SGD, QKV_OPTIM_MUON, QKV_OPTIM_COUNT } qkv_optim_kind;

typedef struct qkv_optim_spec {
    qkv_optim_kind kind;
    double beta1, beta2, eps; /* 0.9, 0.999 (or 0.98), 1e-8 */
    double momentum;          /* SGD, Muon */
    bool nesterov;
    double decay;             /* weight decay, off where the parameter says no_decay */
    double muon_lr_scale;     /* Muon's rate relative to lr; 0 means 1 */
} qkv_optim_spec;

typedef struct qkv_optim {
    qkv_optim_spec spec;
    qkv_params *params;
    int64_t step;            /* updates done */
    real *m, *v;             /* parallel to params->values; v may be NULL (SGD) */
    double *lr_history;      /* rate and clip of each step since the oldest row was current, for replays */
    size_t history_n, history_cap;
    int64_t **row_step;      /* per parameter (NULL if dense): the step to which each row is current */
    const double *lr_scale;  /* per parameter factor (layer-wise decay, frozen = 0), or NULL: all 1 */
} qkv_optim;

qkv_status qkv_optim_init(qkv_optim *o, qkv_params *params, const qkv_optim_spec *spec);
void qkv_optim_free(qkv_optim *o);

/* Global norm of the gradients (touched rows only for sparse ones); in double, fixed order. */
double qkv_optim_grad_norm(const qkv_optim *o);

/* Brings the rows of sparse tables that `ids` names up to date. */
void qkv_optim_prepare(qkv_optim *o, const qkv_param *table, const int32_t *ids, int64_t n);
void qkv_optim_settle(qkv_optim *o); /* all rows of all tables */

/* One update with rate `lr`; gradients are scaled by clip/norm when norm > clip > 0; then gradients are zeroed.
 * Refuses (NUMERIC, naming the parameter and element) when the norm is not finite: nothing is changed then. */
qkv_status qkv_optim_step(qkv_optim *o, double lr, double clip, double *norm);

const char *qkv_optim_name(qkv_optim_kind kind);
bool qkv_optim_by_name(const char *name, qkv_optim_kind *out);

#endif
