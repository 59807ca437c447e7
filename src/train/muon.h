/* Muon (Jordan et al. 2024): momentum, then the nearest orthogonal matrix, as the step of a matrix.
 */
#ifndef QKV_TRAIN_MUON_H
#define QKV_TRAIN_MUON_H

#include "kern/kern.h"
#include "nn/params.h"

typedef struct qkv_muon qkv_muon;

/* Is this a parameter that Muon treats? */
bool qkv_muon_takes(const qkv_param_spec *p);

/* Scratch for the largest matrix of the store. */
qkv_status qkv_muon_new(const qkv_params *params, qkv_muon **out);
void qkv_muon_free(qkv_muon *muon);

typedef struct qkv_muon_step {
    double lr, lr_scale, momentum, decay, g_scale;
    bool nesterov;
    qkv_precision precision; /* of the products that orthogonalise */
} qkv_muon_step;

/* Updates one parameter: w (values), g (gradient), m (momentum) of its shape. False when a product
 * ran out of memory (message set); w is unchanged then. */
bool qkv_muon_update(qkv_muon *muon, const qkv_param_spec *p, real *w, const real *g, real *m,
                     const qkv_muon_step *s);

#endif
