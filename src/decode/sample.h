/* Drawing the next token from scores: a chain of samplers, each a row of sample.def.
 *
 * All is a function of the scores, the settings and the seed: the n-th token of a text uses the
 * n-th number of the seed's stream. */
#ifndef QKV_DECODE_SAMPLE_H
#define QKV_DECODE_SAMPLE_H

#include "base/error.h"
#include "base/real.h"

typedef enum qkv_sampler_kind {
#define SAMPLER(name, largest, help) QKV_SAMPLER_##name,
#include "decode/sample.def"
#undef SAMPLER
    QKV_SAMPLERS
} qkv_sampler_kind;

/* A value for each row. */
typedef struct qkv_sampling {
    double value[QKV_SAMPLERS];
    uint64_t seed;
} qkv_sampling;

/* Refuses values out of bounds, by name. */
qkv_status qkv_sampling_check(const qkv_sampling *s);

typedef struct qkv_candidate {
    real key; /* what they are ordered by */
    real logit;
    real weight; /* exp(logit − largest), when asked for */
    int32_t id;
} qkv_candidate;

/* Memory of a sampler, for a vocabulary of n. */
typedef struct qkv_sampler {
    qkv_candidate *list;
    real *run;     /* as many reals */
    uint8_t *seen; /* by id; cleared after use */
    int64_t n;
} qkv_sampler;
qkv_status qkv_sampler_init(qkv_sampler *s, int64_t vocab);
void qkv_sampler_free(qkv_sampler *s);

/* Draws token number `index` from logits (n); those that are −∞ are never drawn. `recent`: the
 * tokens so far, for the repetition penalty. −1: none may be drawn. */
int32_t qkv_sampler_draw(qkv_sampler *s, const qkv_sampling *how, const real *logits,
                         const int32_t *recent, int64_t n_recent, uint64_t index);

#endif
