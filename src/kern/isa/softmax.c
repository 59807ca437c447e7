/* Softmax by rows, and softmax cross-entropy with its gradient in place. */
#include "base/thread.h"
#include "kern/isa/math.h"

#define RUN 512 /* elements summed in the lanes before the sum moves to a double */

static real row_max(const real *x, int64_t d) {
    vreal m = v_set(-INFINITY);
    int64_t i = 0;
    for (; i + VW <= d; i += VW) m = v_max(m, v_load(x + i));
    real top = v_maximum(m);
    for (; i < d; i++) top = x[i] > top ? x[i] : top;
    return top;
}

/* Σ exp(x − m); y (NULL: not kept) gets the terms. */
static double exp_sum(const real *x, real *y, int64_t d, real m) {
    double total = 0;
    for (int64_t b = 0; b < d; b += RUN) {
        const int64_t end = b + RUN < d ? b + RUN : d;
        vreal sum = v_set(0);
        for (int64_t i = b; i < end; i += VW) {
            const int64_t n = end - i < VW ? end - i : VW;
            vreal e = v_exp(v_load_n(x + i, n) - m);
            if (n < VW) e = v_load_n((const real *)&e, n);
            sum = sum + e;
            if (y) v_store_n(y + i, e, n);
        }
        total += (double)v_sum(sum);
    }
    return total;
}

void KERN_NAME(softmax)(const real *x, real *y, int64_t rows, int64_t d) {
    QKV_PARALLEL_FOR_IF(rows * d >= QKV_PARALLEL_FROM)
    for (int64_t r = 0; r < rows; r++) {
        const real inv = (real)(1 / exp_sum(x + r * d, y + r * d, d, row_max(x + r * d, d)));
        for (int64_t j = 0; j < d; j++) y[r * d + j] *= inv;
    }
}

void KERN_NAME(log_sum_exp)(const real *x, real *out, int64_t rows, int64_t d) {
    QKV_PARALLEL_FOR_IF(rows * d >= QKV_PARALLEL_FROM)
    for (int64_t r = 0; r < rows; r++) {
        const real top = row_max(x + r * d, d);
        out[r] = (real)((double)top + log(exp_sum(x + r * d, NULL, d, top)));
    }
}

static double row_sum(const real *x, int64_t d) {
    double total = 0;
    for (int64_t b = 0; b < d; b += RUN) {
        const int64_t end = b + RUN < d ? b + RUN : d;
        vreal sum = v_set(0);
        for (int64_t i = b; i < end; i += VW)
            sum = sum + v_load_n(x + i, end - i < VW ? end - i : VW);
        total += (double)v_sum(sum);
    }
    return total;
}

/* dz = scale·w·(softmax(z) − (1 − ε)·[j = t] − ε/V) */
void KERN_NAME(xent)(real *z, const int32_t *targets, const real *weights, real smoothing,
                     real scale, bool grad, double *loss, real *lse, int64_t rows, int64_t v) {
    QKV_PARALLEL_FOR_IF(rows * v >= QKV_PARALLEL_FROM)
    for (int64_t r = 0; r < rows; r++) {
        real *row = z + r * v;
        const int32_t t = targets[r];
        const real top = row_max(row, v);
        const double z_t = t >= 0 ? (double)row[t] : 0, w = weights ? (double)weights[r] : 1;
        const double mean = smoothing > 0 ? row_sum(row, v) / (double)v : 0;
        const double sum = exp_sum(row, grad ? row : NULL, v, top),
                     log_sum = (double)top + log(sum);
        if (lse) lse[r] = (real)log_sum;
        const double eps = (double)smoothing;
        loss[r] = t >= 0 ? w * ((1 - eps) * (log_sum - z_t) + eps * (log_sum - mean)) : 0;
        if (!grad) continue;
        const double factor = t >= 0 ? (double)scale * w : 0;
        const real share = (real)(factor / sum), base = (real)(factor * eps / (double)v);
        for (int64_t j = 0; j < v; j++) row[j] = row[j] * share - base;
        if (t >= 0) row[t] -= (real)(factor * (1 - eps));
    }
}
