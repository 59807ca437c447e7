/* One time step of the recurrent cells, after their matrix products: the pointwise part.
 *
 * LSTM (σ on f, u, o; tanh on c̃):  c = f·c₋ + u·c̃,  a = o·tanh c
 *     dc += da·o·(1 − tanh²c);  do = da·tanh c·o(1−o);  dc̃ = dc·u·(1−c̃²)
 *     du = dc·c̃·u(1−u);  df = dc·c₋·f(1−f);  dc·f goes on to the previous step
 * GRU (σ on r, z):  n = tanh(x_n + r·h_n),  h = (1 − z)·n + z·h₋
 *     dn = dh·(1−z)·(1−n²) (of x_n);  dh_n = dn·r;  dr = dn·h_n·r(1−r)
 *     dz = dh·(h₋ − n)·z(1−z);  dh₋ = dh·z */
#include "base/thread.h"
#include "kern/isa/math.h"

#define FOR_LANES(i, n, k) for (int64_t i = 0, n = 0; n = (k)-i < VW ? (k)-i : VW, i < (k); i += VW)

static void lstm_row(real *g, const real *c_prev, real *c, real *a, int64_t k) {
    FOR_LANES(i, n, k) {
        vreal f = v_sigmoid(v_load_n(g + i, n)), u = v_sigmoid(v_load_n(g + k + i, n));
        vreal o = v_sigmoid(v_load_n(g + 2 * k + i, n)), t = v_tanh(v_load_n(g + 3 * k + i, n));
        vreal state = v_fma(f, v_load_n(c_prev + i, n), u * t);
        v_store_n(g + i, f, n);
        v_store_n(g + k + i, u, n);
        v_store_n(g + 2 * k + i, o, n);
        v_store_n(g + 3 * k + i, t, n);
        v_store_n(c + i, state, n);
        v_store_n(a + i, o * v_tanh(state), n);
    }
}

void KERN_NAME(lstm)(real *gates, const real *c_prev, real *c, real *a, int64_t rows, int64_t k,
                     int64_t ld_gates) {
    QKV_PARALLEL_FOR_IF(rows * k * 4 >= QKV_PARALLEL_FROM)
    for (int64_t r = 0; r < rows; r++)
        lstm_row(gates + r * ld_gates, c_prev + r * k, c + r * k, a + r * k, k);
}

static void lstm_grad_row(const real *g, const real *c_prev, const real *c, const real *da,
                          real *dc, real *dg, int64_t k) {
    FOR_LANES(i, n, k) {
        vreal f = v_load_n(g + i, n), u = v_load_n(g + k + i, n), o = v_load_n(g + 2 * k + i, n);
        vreal t = v_load_n(g + 3 * k + i, n), squashed = v_tanh(v_load_n(c + i, n)),
              d = v_load_n(da + i, n);
        vreal e = v_fma(d * o, 1 - squashed * squashed, v_load_n(dc + i, n));
        v_store_n(dg + i, e * v_load_n(c_prev + i, n) * (f * (1 - f)), n);
        v_store_n(dg + k + i, e * t * (u * (1 - u)), n);
        v_store_n(dg + 2 * k + i, d * squashed * (o * (1 - o)), n);
        v_store_n(dg + 3 * k + i, e * u * (1 - t * t), n);
        v_store_n(dc + i, e * f, n);
    }
}

void KERN_NAME(lstm_grad)(const qkv_lstm_grad *spec) {
    const int64_t k = spec->k;
    QKV_PARALLEL_FOR_IF(spec->rows * k * 4 >= QKV_PARALLEL_FROM)
    for (int64_t r = 0; r < spec->rows; r++)
        lstm_grad_row(spec->gates + r * spec->ld_gates, spec->c_prev + r * k, spec->c + r * k,
                      spec->da + r * k, spec->dc + r * k, spec->dgates + r * spec->ld_dgates, k);
}

static void gru_row(real *g, const real *hn, const real *h_prev, real *h, int64_t k) {
    FOR_LANES(i, n, k) {
        vreal r = v_sigmoid(v_load_n(g + i, n)), z = v_sigmoid(v_load_n(g + k + i, n));
        vreal t = v_tanh(v_fma(r, v_load_n(hn + i, n), v_load_n(g + 2 * k + i, n)));
        v_store_n(g + i, r, n);
        v_store_n(g + k + i, z, n);
        v_store_n(g + 2 * k + i, t, n);
        v_store_n(h + i, v_fma(z, v_load_n(h_prev + i, n) - t, t), n);
    }
}

void KERN_NAME(gru)(const qkv_gru_step *spec) {
    const int64_t k = spec->k;
    QKV_PARALLEL_FOR_IF(spec->rows * k * 3 >= QKV_PARALLEL_FROM)
    for (int64_t r = 0; r < spec->rows; r++)
        gru_row(spec->gates + r * spec->ld_gates, spec->hn + r * spec->ld_hn, spec->h_prev + r * k,
                spec->h + r * k, k);
}

static void gru_grad_row(const qkv_gru_grad *spec, int64_t row) {
    const int64_t k = spec->k;
    const real *g = spec->gates + row * spec->ld_gates, *hn = spec->hn + row * spec->ld_hn;
    const real *h_prev = spec->h_prev + row * k, *dh = spec->dh + row * k;
    real *dg = spec->dgates + row * spec->ld_dgates, *dhn = spec->dhn + row * spec->ld_dhn;
    real *dh_prev = spec->dh_prev + row * k;
    FOR_LANES(i, n, k) {
        vreal r = v_load_n(g + i, n), z = v_load_n(g + k + i, n), t = v_load_n(g + 2 * k + i, n);
        vreal d = v_load_n(dh + i, n), e = d * (1 - z) * (1 - t * t);
        v_store_n(dg + i, e * v_load_n(hn + i, n) * (r * (1 - r)), n);
        v_store_n(dg + k + i, d * (v_load_n(h_prev + i, n) - t) * (z * (1 - z)), n);
        v_store_n(dg + 2 * k + i, e, n);
        v_store_n(dhn + i, e * r, n);
        v_store_n(dh_prev + i, d * z, n);
    }
}

void KERN_NAME(gru_grad)(const qkv_gru_grad *spec) {
    QKV_PARALLEL_FOR_IF(spec->rows * spec->k * 3 >= QKV_PARALLEL_FROM)
    for (int64_t r = 0; r < spec->rows; r++) gru_grad_row(spec, r);
}
