/* Every kernel but the products, attention and the vector functions (test_kern_functions.c): bits
 * for any number of threads, and plain references in double. Each test runs for every instruction
 * set. */
#include "every_set.h"
#include "harness.h"
#include "base/half.h"
#include "base/mem.h"
#include "base/thread.h"

#include <math.h>

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

/* ---- elementwise, sums ---- */

#define BIG 70001 /* large enough to be shared by threads, and odd */
static real big_x[BIG], big_y[BIG], big_z[BIG];

static void elementwise(void **state) {
    (void)state;
    fill(big_x, BIG, 1);
    FOR_SETS {
        fill(big_y, BIG, 2);
        k->add(big_x, big_y, big_z, BIG);
        for (int i = 0; i < BIG; i++) assert_true(big_z[i] == big_x[i] + big_y[i]);
        k->mul(big_x, big_y, big_z, BIG);
        for (int i = 0; i < BIG; i++) assert_true(big_z[i] == big_x[i] * big_y[i]);
        k->scale((real)0.3, big_x, big_z, BIG);
        for (int i = 0; i < BIG; i++) assert_true(big_z[i] == (real)0.3 * big_x[i]);
        memcpy(big_z, big_y, sizeof big_z);
        k->axpy(2, big_x, big_z, BIG);
        for (int i = 0; i < BIG; i++) assert_true(big_z[i] == 2 * big_x[i] + big_y[i]);
        k->transpose(big_x, 250, 280, 280, big_z, 250);
        for (int r = 0; r < 250; r++)
            for (int c = 0; c < 280; c++) assert_true(big_z[c * 250 + r] == big_x[r * 280 + c]);
    }
}

/* bf16 by one definition: base/half.h's. */
static void halves(void **state) {
    (void)state;
    static uint16_t half[BIG];
    static const real odd[] = {0, -0.0f, INFINITY, -INFINITY, NAN, 3.4e38f, 1e-40f, 1.00390625f};
    FOR_SETS {
        fill(big_x, BIG, 1);
        memcpy(big_x, odd, sizeof odd);
        memcpy(big_y, big_x, sizeof big_y);
        k->narrow(big_x, half, BIG);
        k->widen(half, big_z, BIG);
        assert_same_bits("widen", big_z, big_x, BIG);
        for (int i = 0; i < BIG; i++) {
            assert_int_equal(half[i], qkv_bf16_of((float)big_y[i]));
            const real value = (real)qkv_bf16_value(half[i]);
            assert_true(memcmp(&big_x[i], &value, sizeof value) == 0);
        }
        for (int n = 0; n < 40; n++) { /* tails, and nothing behind them */
            memcpy(big_x, big_y, sizeof big_x);
            memset(half, 0x55, sizeof half);
            k->narrow(big_x, half, n);
            assert_true(half[n] == 0x5555 && memcmp(&big_x[n], &big_y[n], sizeof(real)) == 0);
            big_z[n] = 7;
            k->widen(half, big_z, n);
            assert_true(big_z[n] == 7);
            assert_same_bits("tail", big_z, big_x, n);
        }
    }
}

static void sums(void **state) {
    (void)state;
    fill(big_x, BIG, 5);
    double want = 0;
    for (int i = 0; i < BIG; i++) want += (double)big_x[i] * (double)big_x[i];
    FOR_SETS {
        if (fabs(k->sum_squares(big_x, BIG) - want) > 1e-9 * want)
            fail_msg("%s: sum of squares", k->name);
        assert_int_equal(k->first_not_finite(big_x, BIG), -1);
        const real kept = big_x[60003];
        big_x[60003] = NAN;
        assert_int_equal(k->first_not_finite(big_x, BIG), 60003);
        big_x[60003] = INFINITY;
        assert_int_equal(k->first_not_finite(big_x, 60003), -1);
        assert_int_equal(k->first_not_finite(big_x, BIG), 60003);
        big_x[60003] = kept;
        real out[70];
        for (int j = 0; j < 70; j++) out[j] = 1;
        k->column_sums(big_x, 900, 70, 77, out);
        for (int j = 0; j < 70; j++) {
            double column = 1;
            for (int r = 0; r < 900; r++) column += (double)big_x[r * 77 + j];
            if (fabs((double)out[j] - column) > 2e-5)
                fail_msg("%s: column %d: %g, wanted %g", k->name, j, (double)out[j], column);
        }
    }
}

static void gates(void **state) {
    (void)state;
    real ab[2 * 3 * 13], dy[3 * 13], y[3 * 13], dab[2 * 3 * 13];
    fill(ab, 78, 6);
    fill(dy, 39, 7);
    FOR_SETS {
        k->gate(QKV_ACT_SILU, ab, y, 3, 13);
        k->gate_grad(QKV_ACT_SILU, ab, dy, dab, 3, 13);
        for (int r = 0; r < 3; r++)
            for (int j = 0; j < 13; j++) {
                const double a = (double)ab[r * 26 + j], b = (double)ab[r * 26 + 13 + j],
                             g = (double)dy[r * 13 + j];
                const double s = sigmoid(a);
                assert_true(fabs((double)y[r * 13 + j] - a * s * b) < 1e-6);
                assert_true(fabs((double)dab[r * 26 + j] - g * b * (s + a * s * (1 - s))) < 1e-6);
                assert_true(fabs((double)dab[r * 26 + 13 + j] - g * a * s) < 1e-6);
            }
    }
}

static void dropout_is_by_counter(void **state) {
    (void)state;
    const qkv_rng rng = {0x123456789abcdef0u, 0xfedcba9876543210u};
    const int64_t index0 =
        ((int64_t)1 << 34) - 5000; /* the block's number crosses 2³² on the way */
    const real p = (real)0.3, keep = 1 / (1 - p);
    fill(big_x, BIG, 8);
    FOR_SETS {
        int64_t kept = 0;
        k->dropout(big_x, big_y, BIG, p, rng, index0);
        for (int i = 0; i < BIG; i++) {
            const bool stays =
                qkv_rng_u32(rng, (uint64_t)(index0 + i)) >= (uint32_t)((double)p * 4294967296.0);
            assert_true(big_y[i] == (stays ? big_x[i] * keep : 0));
            kept += stays;
        }
        assert_true(fabs((double)kept / BIG - 0.7) < 0.01);
        k->dropout(big_x + 777, big_z, 1000, p, rng, index0 + 777);
        assert_same_bits("a part", big_z, big_y + 777, 1000);
    }
}

/* ---- norms ---- */

enum { NR = 150, ND = 45 };

static void norm_reference(qkv_norm_kind kind, const real *s, const real *gain, const real *bias,
                           const real *dy, double *y, double *ds, double *dgain, double *dbias) {
    for (int r = 0; r < NR; r++) {
        double mean = 0, var = 0, mg = 0, mgh = 0;
        for (int j = 0; kind == QKV_NORM_LAYER && j < ND; j++) mean += (double)s[r * ND + j] / ND;
        for (int j = 0; j < ND; j++)
            var += ((double)s[r * ND + j] - mean) * ((double)s[r * ND + j] - mean) / ND;
        const double inv = 1 / sqrt(var + 1e-5);
        for (int j = 0; j < ND; j++) {
            const double h = ((double)s[r * ND + j] - mean) * inv,
                         g = (double)dy[r * ND + j] * (double)gain[j];
            y[r * ND + j] = h * (double)gain[j] + (bias ? (double)bias[j] : 0);
            mg += kind == QKV_NORM_LAYER ? g / ND : 0;
            mgh += g * h / ND;
            dgain[j] += (double)dy[r * ND + j] * h;
            dbias[j] += (double)dy[r * ND + j];
        }
        for (int j = 0; j < ND; j++) {
            const double h = ((double)s[r * ND + j] - mean) * inv,
                         g = (double)dy[r * ND + j] * (double)gain[j];
            ds[r * ND + j] = inv * (g - mg - h * mgh);
        }
    }
}

static void check(const char *what, const real *got, const double *want, int n, double bound) {
    for (int i = 0; i < n; i++)
        if (!(fabs((double)got[i] - want[i]) <= bound))
            fail_msg("%s, %s[%d] is %.9g, wanted %.9g", k->name, what, i, (double)got[i], want[i]);
}

static void norms(void **state) {
    (void)state;
    static real x[NR * ND], res[NR * ND], s[NR * ND], y[NR * ND], dy[NR * ND], ds_in[NR * ND],
        ds[NR * ND], stats[2 * NR];
    real gain[ND], bias[ND], dgain[ND], dbias[ND];
    fill(x, NR * ND, 1), fill(res, NR * ND, 2), fill(dy, NR * ND, 3), fill(ds_in, NR * ND, 4),
        fill(gain, ND, 5), fill(bias, ND, 6);
    const qkv_rng rng = {1, 2};
    FOR_SETS for (int kind = 0; kind < QKV_NORM_COUNT; kind++) {
        static double wy[NR * ND], wds[NR * ND];
        double wg[ND] = {0}, wb[ND] = {0};
        const real *b = kind == QKV_NORM_LAYER ? bias : NULL;
        qkv_norm_rows forward = {.kind = (qkv_norm_kind)kind,
                                 .rows = NR,
                                 .d = ND,
                                 .x = x,
                                 .r = res,
                                 .dropout = (real)0.25,
                                 .rng = rng,
                                 .gain = gain,
                                 .bias = b,
                                 .eps = (real)1e-5,
                                 .s = s,
                                 .y = y,
                                 .stats = stats};
        k->norm(&forward);
        for (int i = 0; i < NR * ND; i++) {
            real factor = qkv_rng_u32(rng, (uint64_t)i) >= 1u << 30 ? 1 / (real)0.75 : 0;
            assert_true(fabs((double)(s[i] - (x[i] + res[i] * factor))) < 1e-6);
        }
        norm_reference((qkv_norm_kind)kind, s, gain, b, dy, wy, wds, wg, wb);
        memset(dgain, 0, sizeof dgain), memset(dbias, 0, sizeof dbias);
        const qkv_norm_grad backward = {.kind = (qkv_norm_kind)kind,
                                        .rows = NR,
                                        .d = ND,
                                        .s = s,
                                        .gain = gain,
                                        .stats = stats,
                                        .dy = dy,
                                        .ds_in = ds_in,
                                        .ds = ds,
                                        .dgain = dgain,
                                        .dbias = dbias};
        assert_true(k->norm_grad(&backward));
        for (int i = 0; i < NR * ND; i++) wds[i] += (double)ds_in[i];
        check("y", y, wy, NR * ND, 3e-6);
        check("ds", ds, wds, NR * ND, 3e-6);
        check("dgain", dgain, wg, ND, 2e-5);
        check("dbias", dbias, wb, ND, 2e-5);
        real alone[ND];
        forward.rows = 1, forward.x = s + 7 * ND, forward.y = alone;
        forward.r = forward.s = NULL;
        k->norm(&forward);
        assert_same_bits("a row alone", alone, y + 7 * ND, ND);
    }
}

/* ---- softmax, cross-entropy ---- */

static void cross_entropy(void **state) {
    (void)state;
    enum { R = 5, V = 1003 };
    static real z[R * V], g[R * V], p[R * V];
    const int32_t targets[R] = {0, V - 1, -1, 500, 7};
    const real weights[R] = {1, (real)0.5, 1, 2, 1};
    FOR_SETS for (int smooth = 0; smooth < 2; smooth++) {
        const double eps = smooth ? 0.1 : 0;
        double loss[R], plain[R];
        real lse[R];
        fill(z, R * V, 9);
        for (int i = 0; i < R * V; i++) z[i] *= 8;
        memcpy(g, z, sizeof g);
        memcpy(p, z, sizeof p);
        k->softmax(p, p, R, V);
        qkv_xent_rows spec = {.rows = R,
                              .v = V,
                              .z = g,
                              .targets = targets,
                              .weights = weights,
                              .smoothing = (real)eps,
                              .scale = (real)0.25,
                              .loss = plain};
        k->xent(&spec);
        assert_same_bits("logits without gradient", g, z, R * V);
        spec.grad = true, spec.loss = loss, spec.lse = lse;
        k->xent(&spec);
        for (int r = 0; r < R; r++) {
            double sum = 0, mean = 0;
            for (int j = 0; j < V; j++)
                sum += exp((double)z[r * V + j]), mean += (double)z[r * V + j] / V;
            const double l = log(sum), w = targets[r] < 0 ? 0 : (double)weights[r];
            const double z_t = targets[r] < 0 ? 0 : (double)z[r * V + targets[r]];
            const double want = w * ((1 - eps) * (l - z_t) + eps * (l - mean));
            assert_true(fabs((double)lse[r] - l) < 2e-6 && fabs(loss[r] - want) < 1e-5 &&
                        plain[r] == loss[r]);
            for (int j = 0; j < V; j++) {
                const double share = exp((double)z[r * V + j] - l);
                const double d = 0.25 * w * (share - (j == targets[r] ? 1 - eps : 0) - eps / V);
                assert_true(fabs((double)p[r * V + j] - share) < 1e-6);
                if (fabs((double)g[r * V + j] - d) > 1e-6)
                    fail_msg("%s: dz[%d][%d] %g, wanted %g", k->name, r, j, (double)g[r * V + j],
                             d);
            }
        }
    }
}

/* What a search asks of a row of scores. */
static void scores(void **state) {
    (void)state;
    enum { V = 1003 };
    static real z[V];
    static const double spans[] = {1, 8, 60};
    const uint32_t odd_nan =
        0x7fc0013f; /* a file's, say: its low bits must not become an exponent */
    FOR_SETS for (size_t i = 0; i < sizeof spans / sizeof *spans;
                  i++) for (int n = V; n > 0; n = n > 3 ? n / 3 : n - 1) {
        fill(z, V, 13);
        double sum = 0;
        for (int j = 0; j < n; j++) z[j] *= (real)spans[i], sum += exp((double)z[j]);
        const double got = (double)k->log_sum_exp(z, n);
        if (fabs(got - log(sum)) > 2e-7 * (1 + fabs(log(sum))))
            fail_msg("%s: log of the sum of %d: %.9g, wanted %.9g", k->name, n, got, log(sum));
        for (int from = 0; from < n; from += 1 + n / 7)
            for (real least = -2; least < 3; least += 1) {
                int64_t want = from;
                while (want < n && !(z[want] > least)) want++;
                assert_int_equal(k->find_above(z + from, n - from, least), want - from);
            }
        assert_int_equal(k->find_above(z, n, INFINITY), n);
        z[n / 2] = -INFINITY;
        if (n > 1) assert_true(isfinite((double)k->log_sum_exp(z, n)));
        z[n / 2] = INFINITY;
        assert_false(isfinite((double)k->log_sum_exp(z, n)));
        z[n / 2] = NAN;
        if (sizeof(real) == sizeof odd_nan) memcpy(&z[n / 2], &odd_nan, sizeof odd_nan);
        assert_true(isnan((double)k->log_sum_exp(z, n)));
    }
}

/* Two views that are equal: twice the plain loss and gradient. Others: the distance in double. */
static void cross_entropy_of_pairs(void **state) {
    (void)state;
    enum { P = 3, V = 1003 };
    static real z[2 * P * V], g[2 * P * V], one[P * V];
    const int32_t targets[P] = {V - 1, -1, 500};
    const real weights[P] = {1, 1, (real)0.5};
    FOR_SETS {
        double loss[2 * P], plain[P];
        real lse[2 * P];
        fill(z, 2 * P * V, 9);
        memcpy(z + P * V, z, P * V * sizeof *z);
        memcpy(g, z, sizeof g);
        memcpy(one, z, sizeof one);
        qkv_xent_rows spec = {.rows = P,
                              .v = V,
                              .z = one,
                              .targets = targets,
                              .weights = weights,
                              .smoothing = (real)0.1,
                              .agree = 3,
                              .scale = 2,
                              .grad = true,
                              .loss = plain};
        k->xent(&spec);
        spec.z = g, spec.loss = loss, spec.lse = lse;
        k->xent_pairs(&spec);
        for (int r = 0; r < 2 * P; r++) {
            assert_true(fabs(loss[r] - plain[r % P]) < 1e-5);
            assert_close("equal views", g + r * V, one + r % P * V, V, 1e-5);
        }
        fill(z, 2 * P * V, 10);
        memcpy(g, z, sizeof g);
        spec.smoothing = 0, spec.grad = false;
        k->xent_pairs(&spec);
        assert_same_bits("logits without gradient", g, z, 2 * P * V);
        double sum = 0;
        for (int j = 0; j < V; j++) {
            const double a = (double)z[2 * V + j] - (double)lse[2],
                         b = (double)z[(P + 2) * V + j] - (double)lse[P + 2];
            sum += (exp(a) - exp(b)) * (a - b);
        }
        const double want = 0.5 * ((double)lse[2] - (double)z[2 * V + 500] + 3 * sum / 4);
        if (fabs(loss[2] - want) > 1e-5) fail_msg("%s: %g, wanted %g", k->name, loss[2], want);
        assert_true(loss[1] == 0 && loss[P + 1] == 0);
    }
}

/* ---- rotary, gather, cells ---- */

static void rotation_turns_and_returns(void **state) {
    (void)state;
    enum { R = 4, H = 3, D = 10, LD = 37 };
    real x[R * LD], was[R * LD], c[8 * D / 2], s[8 * D / 2];
    const int32_t pos[R] = {0, 3, 7, 1};
    for (int i = 0; i < 8 * D / 2; i++) { /* position 0 turns nothing */
        const double angle = 0.1 * (i / (D / 2)) * (i % (D / 2) + 1);
        c[i] = (real)cos(angle), s[i] = (real)sin(angle);
    }
    FOR_SETS for (int half = 0; half < 2; half++) {
        fill(was, R * LD, 10);
        memcpy(x, was, sizeof x);
        qkv_rotation spec = {.rows = R,
                             .heads = H,
                             .d = D,
                             .x = x,
                             .ld = LD,
                             .pos = pos,
                             .turned = D,
                             .cos = c,
                             .sin = s,
                             .half_split = half,
                             .sign = 1};
        k->rotate(&spec);
        const int i = 2, low = 2 * D + (half ? i : 2 * i),
                  high = 2 * D + (half ? i + D / 2 : 2 * i + 1);
        const double a = (double)was[LD + low], b = (double)was[LD + high],
                     angle = 0.1 * 3 * (i + 1);
        assert_true(fabs((double)x[LD + low] - (a * cos(angle) - b * sin(angle))) < 1e-6);
        assert_true(fabs((double)x[LD + high] - (b * cos(angle) + a * sin(angle))) < 1e-6);
        assert_same_bits("position 0 and beyond the heads", x, was, LD);
        spec.sign = -1;
        k->rotate(&spec);
        assert_close("turned back", x, was, R * LD, 1e-6);
    }
}

static void rows_are_gathered(void **state) {
    (void)state;
    real table[5 * 7], out[3 * 7];
    const int32_t ids[3] = {4, 0, 4};
    fill(table, 35, 11);
    FOR_SETS {
        k->gather(table, ids, 3, 7, 3, out);
        for (int i = 0; i < 21; i++) assert_true(out[i] == 3 * table[ids[i / 7] * 7 + i % 7]);
    }
}

static void cells(void **state) {
    (void)state;
    enum { R = 3, K = 11, LD = 50 };
    real gates0[R * LD], g[R * LD], c0[R * K], c[R * K], a[R * K], hn[R * K];
    fill(gates0, R * LD, 12), fill(c0, R * K, 13), fill(hn, R * K, 14);
    FOR_SETS {
        memcpy(g, gates0, sizeof g);
        k->lstm(g, c0, c, a, R, K, LD);
        for (int i = 0; i < R * K; i++) {
            const real *x = gates0 + i / K * LD + i % K;
            const double f = sigmoid((double)x[0]), u = sigmoid((double)x[K]),
                         o = sigmoid((double)x[2 * K]);
            const double want = f * (double)c0[i] + u * tanh((double)x[3 * K]);
            assert_true(fabs((double)c[i] - want) < 1e-6 &&
                        fabs((double)a[i] - o * tanh(want)) < 1e-6);
            assert_true(fabs((double)g[i / K * LD + i % K] - f) < 1e-6);
        }
        memcpy(g, gates0, sizeof g);
        k->gru(&(qkv_gru_step){.rows = R,
                               .k = K,
                               .gates = g,
                               .hn = hn,
                               .h_prev = c0,
                               .h = c,
                               .ld_gates = LD,
                               .ld_hn = K});
        for (int i = 0; i < R * K; i++) {
            const real *x = gates0 + i / K * LD + i % K;
            const double r = sigmoid((double)x[0]), z = sigmoid((double)x[K]),
                         n = tanh((double)x[2 * K] + r * (double)hn[i]);
            assert_true(fabs((double)c[i] - ((1 - z) * n + z * (double)c0[i])) < 1e-6);
        }
    }
}

/* ---- optimisers ---- */

static void optimisers(void **state) {
    (void)state;
    enum { N = 203 };
    real w[N], w2[N], g[N], m[N], m2[N], v[N], v2[N];
    fill(g, N, 15);
    FOR_SETS {
        fill(w, N, 16), fill(m, N, 17), fill(v, N, 18);
        for (int i = 0; i < N; i++) v[i] = v[i] * v[i];
        memcpy(w2, w, sizeof w), memcpy(m2, m, sizeof m), memcpy(v2, v, sizeof v);
        qkv_adam adam = {.n = N,
                         .w = w,
                         .g = g,
                         .m = m,
                         .v = v,
                         .g_scale = 0.5,
                         .lr = 1e-2,
                         .beta1 = 0.9,
                         .beta2 = 0.99,
                         .eps = 1e-8,
                         .decay_w = 0.1,
                         .step = 3};
        k->adam(&adam);
        for (int i = 0; i < N; i++) {
            const double gs = 0.5 * (double)g[i], mi = 0.9 * (double)m2[i] + 0.1 * gs,
                         vi = 0.99 * (double)v2[i] + 0.01 * gs * gs;
            const double step =
                1e-2 * (mi / (1 - pow(0.9, 3))) / (sqrt(vi / (1 - pow(0.99, 3))) + 1e-8);
            assert_true(fabs((double)w[i] - ((double)w2[i] * (1 - 1e-3) - step)) <
                        1e-6 * (1 + fabs(step)));
        }
        for (int i = 0; i < N; i += 17) { /* in pieces: the same bits */
            adam.n = N - i < 17 ? N - i : 17;
            adam.w = w2 + i, adam.g = g + i, adam.m = m2 + i, adam.v = v2 + i;
            k->adam(&adam);
        }
        assert_same_bits("w", w, w2, N);
        assert_same_bits("m", m, m2, N);
        assert_same_bits("v", v, v2, N);
        memcpy(w2, w, sizeof w), memcpy(m2, m, sizeof m);
        k->sgd(&(qkv_sgd){.n = N,
                          .w = w,
                          .g = g,
                          .m = m,
                          .g_scale = 2,
                          .lr = 0.1,
                          .momentum = 0.9,
                          .decay = 0.01,
                          .nesterov = true});
        for (int i = 0; i < N; i++) {
            const double d = 2 * (double)g[i] + 0.01 * (double)w2[i], mi = 0.9 * (double)m2[i] + d;
            assert_true(fabs((double)w[i] - ((double)w2[i] - 0.1 * (d + 0.9 * mi))) < 1e-6);
        }
        memcpy(w2, w, sizeof w);
        k->sgd(&(qkv_sgd){.n = N, .w = w, .g = g, .g_scale = 1, .lr = 0.1});
        for (int i = 0; i < N; i++)
            assert_true(fabs((double)(w[i] - (w2[i] - (real)0.1 * g[i]))) < 1e-6);
    }
}

/* ---- threads ---- */

/* What is cut among threads gives the bits of one thread. */
static void same_bits_for_any_threads(void **state) {
    (void)state;
    enum { R = 700, D = 100 };
    static real x[R * D], dy[R * D], out[4 * R * D + 4 * D], one[4 * R * D + 4 * D], stats[2 * R];
    real gain[D];
    fill(x, R * D, 19), fill(dy, R * D, 20), fill(gain, D, 21);
    k = qkv_kern_get();
    double squares = 0;
    for (int threads = 1; threads <= 8;
         threads = threads * 2 + (threads == 1 ? 0 : -1)) { /* 1, 2, 3, 5 */
        qkv_threads_set(threads);
        real *at = out;
        memset(out, 0, sizeof out);
        k->norm(&(qkv_norm_rows){.rows = R,
                                 .d = D,
                                 .x = x,
                                 .gain = gain,
                                 .bias = gain,
                                 .eps = (real)1e-5,
                                 .y = at,
                                 .stats = stats});
        at += R * D;
        assert_true(k->norm_grad(&(qkv_norm_grad){.rows = R,
                                                  .d = D,
                                                  .s = x,
                                                  .gain = gain,
                                                  .stats = stats,
                                                  .dy = dy,
                                                  .ds = at,
                                                  .dgain = at + R * D,
                                                  .dbias = at + R * D + D}));
        at += R * D + 2 * D;
        k->column_sums(x, R, D, D, at), at += D;
        k->softmax(x, at, R, D), at += R * D;
        k->dropout(x, at, R * D, (real)0.1, (qkv_rng){1, 1}, 3);
        const double sum = k->sum_squares(x, R * D);
        if (threads == 1) memcpy(one, out, sizeof one), squares = sum;
        assert_same_bits("threads", out, one, 4 * R * D + 4 * D);
        assert_true(sum == squares);
    }
    qkv_threads_set(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elementwise),
        cmocka_unit_test(halves),
        cmocka_unit_test(sums),
        cmocka_unit_test(gates),
        cmocka_unit_test(dropout_is_by_counter),
        cmocka_unit_test(norms),
        cmocka_unit_test(cross_entropy),
        cmocka_unit_test(cross_entropy_of_pairs),
        cmocka_unit_test(scores),
        cmocka_unit_test(rotation_turns_and_returns),
        cmocka_unit_test(rows_are_gathered),
        cmocka_unit_test(cells),
        cmocka_unit_test(optimisers),
        cmocka_unit_test(same_bits_for_any_threads),
    };
    return cmocka_run_group_tests(tests, list_sets, NULL);
}
