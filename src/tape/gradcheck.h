/* Gradient check: the derivative that an op's backward gives against central differences, in
 * double.
 *
 * A case builds an op (or a whole model) on a tape from inputs that it asks for by shape. The
 * checker makes the inputs (seeded), reduces the output to a scalar Σ c·y with fixed random c, and
 * compares every partial derivative. */
#ifndef QKV_TAPE_GRADCHECK_H
#define QKV_TAPE_GRADCHECK_H

#include "tape/tape.h"

typedef struct qkv_check qkv_check;

typedef struct qkv_case {
    const char *name; /* "linear: bias, gelu" */
    qkv_tensor *(*build)(qkv_tape *t, qkv_check *c);
    int variant; /* free for the case's own use, read by qkv_check_variant */
} qkv_case;

#define QKV_CHECK_INPUTS 64

/* In a case's build: the next input, rows×cols, values around `centre` with spread `spread`; wants
 * a gradient. */
qkv_tensor *qkv_check_input(qkv_tape *t, qkv_check *c, int64_t rows, int64_t cols, double centre,
                            double spread);
/* Checks a parameter of the case's own too (packed, with its gradient allocated); its gradient is
 * zeroed here. */
void qkv_check_param(qkv_tape *t, qkv_check *c, qkv_tensor *param);
int qkv_check_variant(const qkv_check *c);

/* Runs one case; *worst gets the largest relative error |a − n| / max(|a|, |n|, a thousandth of the
 * case's largest). Fails with NUMERIC and names the element when over `bound`. */
qkv_status qkv_check_run(const qkv_case *test, double bound, double *worst);

/* Runs one case forward and backward: *values (to be freed by qkv_free) gets the output, then all
 * gradients. */
qkv_status qkv_check_collect(const qkv_case *test, int precision, real **values, int64_t *n);

#endif
