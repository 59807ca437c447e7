/* The T5 bias (Raffel et al. 2020): a learned scalar for each head and bucket of distances, shared
 * by all layers.
 *
 * Small distances have a bucket each, larger ones share logarithmically growing buckets up to
 * t5_distance, from which all fall into the last. In an encoder half of the buckets are for keys to
 * the right. Since the bucket of a distance beyond t5_distance no longer changes, a table over the
 * distances −t5_distance … t5_distance is enough.
 *
 * The scores (heads, distances) are the learned matrix B (heads, buckets) times a constant one-hot
 * matrix O (distances, buckets): B·Oᵀ is a linear map like any other, so its gradient needs no op
 * of its own. */
#include "nn/position.h"

#include <math.h>
#include <string.h>

static qkv_status check(const qkv_position_spec *spec) {
    int32_t exact = spec->buckets / (spec->causal ? 2 : 4);
    if (spec->buckets % 4 == 0 && spec->distance > exact) return QKV_OK;
    return qkv_fail(QKV_USAGE,
                    "position=t5: t5_buckets (%d) must be a multiple of 4 and t5_distance (%d) "
                    "more than the %d "
                    "distances that have a bucket each",
                    (int)spec->buckets, (int)spec->distance, (int)exact);
}

/* The bucket of key j seen from query i, distance = j − i. The logarithm is in single precision, as
 * in the original. */
static int32_t bucket_of(const qkv_position_spec *spec, int32_t distance) {
    int32_t n = spec->buckets, first = 0;
    if (!spec->causal) {
        n /= 2;
        if (distance > 0) first = n;
        distance = distance < 0 ? -distance : distance;
    } else {
        distance = distance < 0 ? -distance : 0;
    }
    int32_t exact = n / 2;
    if (distance < exact) return first + distance;
    float share =
        logf((float)distance / (float)exact) / (float)log((double)spec->distance / (double)exact);
    int32_t bucket = exact + (int32_t)(share * (float)(n - exact));
    return first + (bucket < n ? bucket : n - 1);
}

static int32_t span(const qkv_position_spec *spec) {
    return spec->causal ? spec->distance + 1 : 2 * spec->distance + 1;
}

static void declare(qkv_position *p, qkv_params *params, const char *stack) {
    qkv_param_spec spec = {.rows = p->spec.heads,
                           .cols = p->spec.buckets,
                           .init = QKV_INIT_NORMAL,
                           .gain = 0.02,
                           .no_decay = true};
    p->table = qkv_param_declare(params, &spec, "%s.position.bias", stack);
}

static int64_t constant_size(const qkv_position_spec *spec, int64_t n) {
    (void)n; /* the same for every length */
    return (int64_t)span(spec) * spec->buckets;
}

static void constant_fill(const qkv_position_spec *spec, int64_t n, real *out) {
    memset(out, 0, (size_t)constant_size(spec, n) * sizeof *out);
    for (int32_t r = 0; r < span(spec); r++)
        out[(int64_t)r * spec->buckets + bucket_of(spec, r - spec->distance)] = 1;
}

static void begin(qkv_tape *t, const qkv_position *p, const qkv_place *place,
                  qkv_position_terms *out) {
    (void)place;
    int64_t count;
    real *one_hot = qkv_position_constants(t, p, 1, &count);
    if (!one_hot) return;
    int32_t n = span(&p->spec);
    out->relation = (qkv_relation){.kind = QKV_REL_DISTANCE, .n = n, .zero = p->spec.distance};
    out->bias = qkv_linear(t, qkv_of(p->table), qkv_tensor_wrap(t, one_hot, n, p->spec.buckets),
                           NULL, QKV_ACT_NONE);
}

const qkv_position_scheme qkv_position_t5 = {
    .name = "t5",
    .check = check,
    .declare = declare,
    .constant_size = constant_size,
    .constant_fill = constant_fill,
    .begin = begin,
};
