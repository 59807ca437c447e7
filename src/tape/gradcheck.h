/* Gradient check: the derivative that an op's backward gives against central differences, in double.
 *
 * A case builds an op (or a whole model) on a tape from inputs that it asks for by shape. The checker makes the inputs
 * (seeded), reduces the output to a scalar Σ c·y with fixed random c, and compares every partial derivative. */
#ifndef QKV_TAPE_GRADCHECK_H
#define QKV_TAPE_GRADCHECK_H

#include "tape/tape.h"

typedef struct qkv_check qkv_check;

typedef struct qkv_case {
    const char *name; /* "linear: bias, gelu" */
    qkv_tensor *(*build)(qkv_tape *t, qkv_check *c);
    int variant;      /* free for the case's own use, read by qkv_check_variant */
} qkv_case;

/* In a case's build: the next input, rows×cols, values around `centre` with spread `spread`; wants a gradient. */
qkv_tensor *qkv_check_input(qkv_tape *t, qkv_check *c, int64_t rows, int64_t cols, double centre, double spread);
int qkv_check_variant(const qkv_check *c);

/* Runs one case; *worst gets the largest relative error. Fails with NUMERIC and names the element when over `bound`. */
qkv_status qkv_check_run(const qkv_case *test, double bound, double *worst);

#endif
