/* Vector functions: their largest errors, special values, tails, slopes. Each test runs for every
 * instruction set. */
#include "every_set.h"
#include "harness.h"
#include "base/half.h"
#include "base/mem.h"
#include "base/thread.h"

#include <math.h>

static double gelu(double x) {
    return 0.5 * x * erfc(-x * 0.70710678118654752440);
}
static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}
static double silu(double x) {
    return x * sigmoid(x);
}
static double gelu_tanh(double x) {
    return x * sigmoid(2 * 0.79788456080286535588 * (x + 0.044715 * x * x * x));
}
static double relu(double x) {
    return x > 0 ? x : 0;
}

typedef struct function {
    const char *name;
    qkv_act act; /* QKV_ACT_NONE: exp */
    double (*exact)(double);
    float from, to; /* the range in which the bound holds */
    double bound;   /* units in the last place */
    double unfused; /* likewise where a multiply-add rounds twice; 0: the same */
} function;

static const function functions[] = {
    {"exp", QKV_ACT_NONE, exp, -103, 88, 1.5, 0},
    {"tanh", QKV_ACT_TANH, tanh, -100, 100, 1.6, 0},
    {"sigmoid", QKV_ACT_SIGMOID, sigmoid, -87, 100, 2.5, 0},
    {"silu", QKV_ACT_SILU, silu, -87, 100, 3, 0},
    {"gelu", QKV_ACT_GELU, gelu, -12, 100, 4, 4.5},
    {"gelu, tanh form", QKV_ACT_GELU_TANH, gelu_tanh, -5, 100, 32,
     0}, /* 2u is rounded before exp sees it */
    {"relu", QKV_ACT_RELU, relu, -1e30f, 1e30f, 0, 0},
};
#define N_FUNCTIONS (sizeof functions / sizeof *functions)

static void apply(const function *f, const real *x, real *y, int64_t n) {
    if (f->act == QKV_ACT_NONE)
        k->exp(x, y, n);
    else
        k->act(f->act, x, y, n);
}

/* The distance from y to the exact value, in units of the last place of the latter as a float. */
static double ulps(real y, double exact) {
    const float nearest = (float)exact;
    const double unit =
        fabs(nearest) < 1.17549435e-38f ? 0x1p-149 : ldexp(1, ilogb((double)nearest) - 23);
    return fabs((double)y - exact) / unit;
}

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#define SAMPLE 4096
/* Floats are stepped through by their bits, so all exponents are covered alike. */
static void functions_are_accurate(void **state) {
    (void)state;
    FOR_SETS for (size_t i = 0; i < N_FUNCTIONS; i++) {
        const function *f = &functions[i];
        double worst = 0;
        float at = 0;
        uint32_t bits = 0;
        const uint32_t step = 12289;
        const bool fused = strncmp(k->name, "avx", 3) == 0;
        const double bound = !fused && f->unfused ? f->unfused : f->bound;
        for (bool more = true; more;) {
            static real x[SAMPLE], y[SAMPLE];
            int64_t n = 0;
            while (n < SAMPLE && more) {
                const float candidate = float_of(bits);
                if (candidate >= f->from && candidate <= f->to) x[n++] = candidate;
                more = bits <= UINT32_MAX - step;
                bits += step;
            }
            apply(f, x, y, n);
            for (int64_t j = 0; j < n; j++) {
                const double error = ulps(y[j], f->exact((double)x[j]));
                if (!(error <= worst)) worst = error, at = x[j];
            }
        }
        if (!(worst <= bound))
            fail_msg("%s, %s(%.9g): %.2f ulp, bound %.1f", k->name, f->name, at, worst, bound);
        print_message("%-6s %-16s %.2f ulp at %.9g\n", k->name, f->name, worst, (double)at);
    }
}

static void special_values(void **state) {
    (void)state;
    FOR_SETS {
        const real x[6] = {-INFINITY, INFINITY, NAN, -200, 200, -0.0f};
        real y[6];
        k->exp(x, y, 6);
        assert_true(y[0] == 0 && y[1] == INFINITY && isnan(y[2]) && y[3] == 0 && y[4] == INFINITY &&
                    y[5] == 1);
        k->act(QKV_ACT_TANH, x, y, 6);
        assert_true(y[0] == -1 && y[1] == 1 && isnan(y[2]) && y[3] == -1 && y[4] == 1 && y[5] == 0);
        k->act(QKV_ACT_SIGMOID, x, y, 6);
        assert_true(y[0] == 0 && y[1] == 1 && isnan(y[2]) && y[4] == 1 && y[5] == (real)0.5);
        k->act(QKV_ACT_GELU, x + 2, y + 2, 4);
        assert_true(isnan(y[2]) && y[3] == 0 && y[4] == 200 && y[5] == 0);
        k->act(QKV_ACT_RELU, x, y, 6);
        assert_true(y[0] == 0 && y[1] == INFINITY && isnan(y[2]) && y[3] == 0);
    }
}

/* An element's bits do not depend on where it stands. */
static void tails_equal_bodies(void **state) {
    (void)state;
    real x[100], whole[100], part[100];
    fill(x, 100, 3);
    for (int i = 0; i < 100; i++) x[i] *= 6;
    FOR_SETS for (size_t f = 0; f < N_FUNCTIONS; f++) {
        apply(&functions[f], x, whole, 100);
        for (int n = 1; n < 40; n++) {
            apply(&functions[f], x + n, part, n);
            assert_same_bits(functions[f].name, part, whole + n, n);
        }
    }
}

/* act' by a central difference of the exact function */
static void slopes_match(void **state) {
    (void)state;
    real x[200], y[200], ones[200], dx[200];
    fill(x, 200, 4);
    for (int i = 0; i < 200; i++) x[i] *= 5, ones[i] = 1;
    FOR_SETS for (size_t f = 1; f < N_FUNCTIONS; f++) {
        const function *fn = &functions[f];
        const bool y_alone =
            fn->act == QKV_ACT_RELU || fn->act == QKV_ACT_TANH || fn->act == QKV_ACT_SIGMOID;
        k->act(fn->act, x, y, 200);
        k->act_grad(fn->act, y_alone ? NULL : x, y, ones, dx, 200);
        for (int i = 0; i < 200; i++) {
            const double h = 1e-5,
                         want =
                             (fn->exact((double)x[i] + h) - fn->exact((double)x[i] - h)) / (2 * h);
            if (fabs((double)dx[i] - want) > 2e-6)
                fail_msg("%s, %s'(%.9g) is %.9g, wanted %.9g", k->name, fn->name, (double)x[i],
                         (double)dx[i], want);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_accurate),
        cmocka_unit_test(special_values),
        cmocka_unit_test(tails_equal_bodies),
        cmocka_unit_test(slopes_match),
    };
    return cmocka_run_group_tests(tests, list_sets, NULL);
}
