/* How well numbers agree with the true ones: errors, and correlations of the numbers themselves
 * (Pearson) and of their ranks (Spearman). */
#ifndef QKV_SCORE_AGREEMENT_H
#define QKV_SCORE_AGREEMENT_H

#include "base/error.h"

#include <stddef.h>

typedef struct qkv_agreement {
    double mse, mae;
    double pearson, spearman; /* NaN where one side does not vary */
} qkv_agreement;

qkv_status qkv_agreement_of(const double *truth, const double *answer, size_t n,
                            qkv_agreement *out);

#endif
