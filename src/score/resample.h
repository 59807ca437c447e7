/* How much a figure owes to the rows that happen to be in a file: it is counted again on samples of
 * as many rows, drawn from the same file with replacement (the bootstrap, Efron 1979). The middle
 * 95 % of what comes out is its interval. Of two systems on the same rows the same samples tell
 * whether their difference is more than luck (Koehn 2004).
 *
 * The draws are those of numpy's default generator (PCG64, seeded by SeedSequence), so that
 * intervals and p-values are sacrebleu's for the same seed. They are made one after another and
 * handed out to threads, so that no result depends on how many there are. */
#ifndef QKV_SCORE_RESAMPLE_H
#define QKV_SCORE_RESAMPLE_H

#include "base/error.h"
#include "qkv.h"

enum { QKV_RESAMPLES = 1000, QKV_RESAMPLE_SEED = 12345 }; /* sacrebleu's */

typedef struct qkv_resample {
    size_t rows, samples;
    uint64_t seed;
    size_t figures; /* numbers that a sample gives */
    size_t scratch; /* bytes that counting it may use */
    /* Counts rows drawn[0 … rows), zeros in scratch at first. */
    qkv_status (*count)(const void *data, const uint32_t *drawn, size_t rows, void *scratch,
                        double *figures);
    const void *data;
} qkv_resample;

/* out[f · samples + i]: figure f of sample i. */
qkv_status qkv_resample_run(const qkv_resample *r, double *out);

/* Mean, and the middle 95 %; sorts the values. */
qkv_interval qkv_interval_of(double *values, size_t n);
/* How likely a difference of at least |a − b| would be by chance, from the same samples of both. */
double qkv_resample_p(double a, double b, const double *samples_a, const double *samples_b,
                      size_t n);

/* Numbers below `most`, as numpy draws them. */
typedef struct qkv_draws {
    uint64_t state[2], step[2]; /* low, high */
    uint32_t half;              /* of the last word, */
    bool kept;                  /* when it is still to be used */
} qkv_draws;
void qkv_draws_begin(qkv_draws *d, uint64_t seed);
void qkv_draws_fill(qkv_draws *d, uint32_t most, uint32_t *out, size_t n);

#endif
