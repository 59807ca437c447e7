#include "harness.h"
#include "base/rng.h"

#include <math.h>

void assert_close(const char *what, const real *a, const real *b, int64_t n, double bound) {
    double largest = 1, worst = 0;
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++)
        if (fabs((double)b[i]) > largest) largest = fabs((double)b[i]);
    for (int64_t i = 0; i < n; i++) {
        double error = fabs((double)a[i] - (double)b[i]);
        if (!(error <= worst)) worst = error, at = i; /* NaN counts as worst */
    }
    if (!(worst <= bound * largest))
        fail_msg("%s: element %lld is %.9g, wanted %.9g (bound %.1e of %.3g)", what, (long long)at, (double)a[at],
                 (double)b[at], bound, largest);
}

void assert_same_bits(const char *what, const real *a, const real *b, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (memcmp(a + i, b + i, sizeof *a) != 0)
            fail_msg("%s: element %lld differs: %.9g and %.9g", what, (long long)i, (double)a[i], (double)b[i]);
}

void fill(real *x, int64_t n, uint64_t seed) {
    for (int64_t i = 0; i < n; i++) x[i] = (real)(2 * qkv_rng_uniform((qkv_rng){seed, 1}, (uint64_t)i) - 1);
}
