/* Rotary positions (Su et al. 2021): pair i of a query or key at position m is turned by the angle m·f_i,
 * f_i = base^(−2i/w), i = 0 … w/2 − 1. A turn keeps norms, and the product of a query at m with a key
 * at n depends on m − n only. w is the width of a head, or the first part of it that is turned. Pairs
 * are neighbours (2i, 2i + 1), as in the paper, or halves (i, i + w/2), as in most public weights. The
 * constants are all cosines (n, w/2), then all sines.
 *
 * For texts longer than the length L of the first training the f_i are made smaller, by a factor s:
 *   linear    f/s
 *   dynamic   nothing up to L; beyond it would depend on the longest text that stands beside, so such
 *             texts are refused
 *   llama3    with t = L·f/2π turns in L: f where t > high, f/s where t < low; between the two
 *             (1 − u)·f/s + u·f, u = (t − low)/(high − low)
 *   yarn      u_i from 0 to 1 between the pairs that make `fast` and `slow` turns in L:
 *             (1 − u)·f + u·f/s, and cosines and sines times `attention` */
#include "nn/position.h"

#include <math.h>

const char *const qkv_rope_scaling_names[] = {"none", "linear", "dynamic", "llama3", "yarn", NULL};

static qkv_status check(const qkv_position_spec *spec) {
    const qkv_rope_scaling *s = &spec->scaling;
    if (spec->d_head % 2 != 0)
        return qkv_fail(QKV_USAGE, "position=rope turns pairs, so d_head must be even; it is %lld",
                        (long long)spec->d_head);
    if (spec->turned % 2 != 0 || spec->turned < 2 || spec->turned > spec->d_head)
        return qkv_fail(QKV_USAGE, "rope_width must be even and at most d_head (%lld); it is %lld",
                        (long long)spec->d_head, (long long)spec->turned);
    if (s->kind > QKV_ROPE_SCALING_LINEAR && s->length < 1)
        return qkv_fail(QKV_USAGE, "rope_scaling=%s needs rope_length",
                        qkv_rope_scaling_names[s->kind]);
    if (s->kind == QKV_ROPE_SCALING_LLAMA3 && s->high <= s->low)
        return qkv_fail(QKV_USAGE, "rope_scaling=llama3: rope_high must be more than rope_low");
    return QKV_OK;
}

#define TURN 6.283185307179586

/* The pair that makes `turns` turns in the length of the first training, as a real number. */
static double pair_of(const qkv_position_spec *spec, double turns) {
    return (double)spec->turned * log(spec->scaling.length / (TURN * turns)) /
           (2 * log(spec->base));
}

static double yarn_share(const qkv_position_spec *spec, double i) {
    const double low = fmax(floor(pair_of(spec, spec->scaling.fast)), 0);
    double high = fmin(ceil(pair_of(spec, spec->scaling.slow)), (double)spec->turned - 1);
    if (low == high) high += 0.001;
    return fmin(fmax((i - low) / (high - low), 0), 1);
}

static double rate_of(const qkv_position_spec *spec, int64_t i) {
    const qkv_rope_scaling *s = &spec->scaling;
    const double f = pow(spec->base, -2 * (double)i / (double)spec->turned);
    double share = 0; /* of f as it is */
    switch (s->kind) {
    case QKV_ROPE_SCALING_NONE:
    case QKV_ROPE_SCALING_DYNAMIC:
        return f;
    case QKV_ROPE_SCALING_LINEAR:
        break;
    case QKV_ROPE_SCALING_LLAMA3:
        share = fmin(fmax((s->length * f / TURN - s->low) / (s->high - s->low), 0), 1);
        break;
    case QKV_ROPE_SCALING_YARN:
        share = 1 - yarn_share(spec, (double)i);
        break;
    }
    return share * f + (1 - share) * f / s->factor;
}

static double length_of_turned(const qkv_rope_scaling *s) {
    if (s->kind != QKV_ROPE_SCALING_YARN) return 1;
    return s->attention > 0 ? s->attention : 0.1 * log(s->factor) + 1;
}

static int64_t constant_size(const qkv_position_spec *spec, int64_t n) {
    return n * spec->turned;
}

static void constant_fill(const qkv_position_spec *spec, int64_t n, real *out) {
    const int64_t pairs = spec->turned / 2;
    const double length = length_of_turned(&spec->scaling);
    for (int64_t i = 0; i < pairs; i++) {
        const double rate = rate_of(spec, i);
        for (int64_t m = 0; m < n; m++) {
            out[m * pairs + i] = (real)(length * cos((double)m * rate));
            out[(n + m) * pairs + i] = (real)(length * sin((double)m * rate));
        }
    }
}

static void begin(qkv_tape *t, const qkv_position *p, const qkv_place *place,
                  qkv_position_terms *out) {
    const qkv_rope_scaling *s = &p->spec.scaling;
    if (s->kind == QKV_ROPE_SCALING_DYNAMIC && (double)place->n_positions > s->length) {
        qkv_tape_fail(
            t, &qkv_position_op, QKV_USAGE,
            "a sequence of %lld tokens, and rope_scaling=dynamic is for at most %.0f here",
            (long long)place->n_positions, s->length);
        return;
    }
    const real *table = qkv_position_constants(t, p, place->n_positions, &out->rotations);
    if (!table) return;
    out->cos = table;
    out->sin = table + out->rotations * (p->spec.turned / 2);
    out->turned = (int32_t)p->spec.turned;
    out->half_split = p->spec.pairing == QKV_PAIRING_HALVES;
}

const qkv_position_scheme qkv_position_rope = {
    .name = "rope",
    .check = check,
    .constant_size = constant_size,
    .constant_fill = constant_fill,
    .begin = begin,
};
