/*   mse = (1/n) Σ (y − ŷ)²,  mae = (1/n) Σ |y − ŷ|
 *   pearson = Σ (y − ȳ)(ŷ − ŷ̄) / √(Σ (y − ȳ)² · Σ (ŷ − ŷ̄)²)
 * Spearman's is Pearson's of ranks; equal numbers share the mean of theirs. */
#include "score/agreement.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

static double pearson(const double *x, const double *y, size_t n) {
    double mx = 0, my = 0, xx = 0, yy = 0, xy = 0;
    for (size_t i = 0; i < n; i++) mx += x[i] / (double)n, my += y[i] / (double)n;
    for (size_t i = 0; i < n; i++) {
        xx += (x[i] - mx) * (x[i] - mx);
        yy += (y[i] - my) * (y[i] - my);
        xy += (x[i] - mx) * (y[i] - my);
    }
    return xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : NAN;
}

typedef struct placed {
    double x;
    size_t at;
} placed;

static int by_size(const void *a, const void *b) {
    const double x = ((const placed *)a)->x, y = ((const placed *)b)->x;
    return (x > y) - (x < y);
}

static void rank(const double *x, size_t n, placed *sorted, double *out) {
    for (size_t i = 0; i < n; i++) sorted[i] = (placed){x[i], i};
    qsort(sorted, n, sizeof *sorted, by_size);
    for (size_t i = 0, run; i < n; i += run) {
        for (run = 1; i + run < n && !(sorted[i + run].x > sorted[i].x);) run++;
        for (size_t k = i; k < i + run; k++)
            out[sorted[k].at] = (double)i + 0.5 * (double)(run - 1);
    }
}

qkv_status qkv_agreement_of(const double *truth, const double *answer, size_t n,
                            qkv_agreement *out) {
    placed *sorted = qkv_alloc((n + 1) * sizeof *sorted);
    double *ranks = qkv_alloc((2 * n + 1) * sizeof *ranks);
    const bool ok = sorted && ranks;
    *out = (qkv_agreement){.pearson = pearson(truth, answer, n)};
    for (size_t i = 0; i < n; i++) {
        const double off = truth[i] - answer[i];
        out->mse += off * off / (double)n;
        out->mae += fabs(off) / (double)n;
    }
    if (ok) {
        rank(truth, n, sorted, ranks);
        rank(answer, n, sorted, ranks + n);
        out->spearman = pearson(ranks, ranks + n, n);
    }
    qkv_free(sorted);
    qkv_free(ranks);
    return ok ? QKV_OK : QKV_FAILED;
}
