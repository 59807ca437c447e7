/* Rotary positions (Su et al. 2021): pair i of a query or key at position m is turned by the angle
 * m·base^(−2i/d_head), i = 0 … d_head/2 − 1. A turn keeps norms, and the product of a query at m
 * with a key at n depends on m − n only. Pairs are neighbours (2i, 2i + 1), as in the paper, or
 * halves (i, i + d_head/2), as in most public weights. The constants are all cosines (n, d_head/2),
 * then all sines. */
#include "nn/position.h"

#include <math.h>

static qkv_status check(const qkv_position_spec *spec) {
    if (spec->d_head % 2 == 0) return QKV_OK;
    return qkv_fail(QKV_USAGE, "position=rope turns pairs, so d_head must be even; it is %lld",
                    (long long)spec->d_head);
}

static int64_t constant_size(const qkv_position_spec *spec, int64_t n) {
    return n * spec->d_head;
}

static void constant_fill(const qkv_position_spec *spec, int64_t n, real *out) {
    int64_t pairs = spec->d_head / 2;
    for (int64_t i = 0; i < pairs; i++) {
        double rate = pow(spec->base, -(double)i / (double)pairs);
        for (int64_t m = 0; m < n; m++) {
            out[m * pairs + i] = (real)cos((double)m * rate);
            out[(n + m) * pairs + i] = (real)sin((double)m * rate);
        }
    }
}

static void begin(qkv_tape *t, const qkv_position *p, const qkv_place *place,
                  qkv_position_terms *out) {
    const real *table = qkv_position_constants(t, p, place->n_positions, &out->rotations);
    if (!table) return;
    out->cos = table;
    out->sin = table + out->rotations * (p->spec.d_head / 2);
    out->half_split = p->spec.pairing == QKV_PAIRING_HALVES;
}

const qkv_position_scheme qkv_position_rope = {
    .name = "rope",
    .check = check,
    .constant_size = constant_size,
    .constant_fill = constant_fill,
    .begin = begin,
};
