#include "harness.h"
#include "base/mem.h"
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
        fail_msg("%s: element %lld is %.9g, wanted %.9g (bound %.1e of %.3g)", what, (long long)at,
                 (double)a[at], (double)b[at], bound, largest);
}

void assert_same_bits(const char *what, const real *a, const real *b, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (memcmp(a + i, b + i, sizeof *a) != 0)
            fail_msg("%s: element %lld differs: %.9g and %.9g", what, (long long)i, (double)a[i],
                     (double)b[i]);
}

uint64_t assert_fails_cleanly(qkv_status (*once)(const void *user), const void *user,
                              uint64_t spare) {
    const uint64_t live = qkv_mem_count().live;
    uint64_t done_without = 0;
    for (uint64_t n = 1;; n++) {
        const uint64_t before = qkv_mem_count().allocations;
        qkv_mem_fail(n, false);
        const qkv_status status = once(user);
        qkv_mem_fail(0, false);
        const bool reached = qkv_mem_count().allocations >= before + n;
        done_without += reached && status == QKV_OK;
        if ((status != QKV_OK && !(reached && status == QKV_FAILED)) || done_without > spare)
            fail_msg("allocation %llu %s, and the status is %d (%s)", (unsigned long long)n,
                     reached ? "failed" : "is not made", status, qkv_error());
        if (qkv_mem_count().live != live)
            fail_msg("allocation %llu failed, and %lld blocks are left", (unsigned long long)n,
                     (long long)(qkv_mem_count().live - live));
        if (reached) continue;
        assert_int_equal(done_without, spare);
        return n - 1;
    }
}

void fill(real *x, int64_t n, uint64_t seed) {
    for (int64_t i = 0; i < n; i++)
        x[i] = (real)(2 * qkv_rng_uniform((qkv_rng){seed, 1}, (uint64_t)i) - 1);
}
