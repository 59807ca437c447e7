/* Sinusoidal positions (Vaswani et al. 2017), added to the embedding:
 *
 *     PE(p, 2i) = sin(p / base^(2i/D)),   PE(p, 2i + 1) = cos(p / base^(2i/D))
 *
 * or, with the pairing "halves", all sines in the first half of the vector and all cosines in the
 * second (Marian). The rates "spread" end with the wavelength of the base itself,
 * base^(−i/(D/2 − 1)), and positions may begin above 0 (fairseq). There is nothing to learn and no
 * longest length. */
#include "nn/position.h"

#include <math.h>

static int64_t constant_size(const qkv_position_spec *spec, int64_t n) {
    return n * spec->d_model;
}

static void constant_fill(const qkv_position_spec *spec, int64_t n, real *out) {
    int64_t d = spec->d_model, sines = (d + 1) / 2;
    bool halves = spec->pairing == QKV_PAIRING_HALVES;
    for (int64_t c = 0; c < d; c++) {
        int64_t i = halves ? c % sines : c / 2;
        bool cosine = halves ? c >= sines : c % 2 == 1;
        double rate =
            pow(spec->base, spec->rates == QKV_RATES_SPREAD ? -(double)i / (double)(sines - 1)
                                                            : -2.0 * (double)i / (double)d);
        for (int64_t p = 0; p < n; p++) {
            double angle = (double)(p + spec->first) * rate;
            out[p * d + c] = (real)(cosine ? cos(angle) : sin(angle));
        }
    }
}

static void begin(qkv_tape *t, const qkv_position *p, const qkv_place *place,
                  qkv_position_terms *out) {
    int64_t n;
    real *table = qkv_position_constants(t, p, place->n_positions, &n);
    if (table) out->table = qkv_tensor_wrap(t, table, n, p->spec.d_model);
}

static qkv_status check(const qkv_position_spec *spec) {
    if (spec->rates == QKV_RATES_PAPER || spec->d_model >= 4) return QKV_OK;
    return qkv_fail(QKV_USAGE, "sinusoidal_rates=spread needs d_model to be at least 4");
}

const qkv_position_scheme qkv_position_sinusoidal = {
    .name = "sinusoidal",
    .check = check,
    .constant_size = constant_size,
    .constant_fill = constant_fill,
    .begin = begin,
};
