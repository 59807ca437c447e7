/* What every test includes: cmocka, and checks whose failure names the element and both values. */
#ifndef QKV_TESTS_HARNESS_H
#define QKV_TESTS_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/error.h"
#include "base/real.h"

/* The call must succeed; else the message is shown. */
#define assert_ok(call)                                                                            \
    do {                                                                                           \
        qkv_status s_ = (call);                                                                    \
        if (s_ != QKV_OK) fail_msg("%s: %s", #call, qkv_error());                                  \
    } while (0)

/* The call must fail with `code` and a message that contains `words`. */
#define assert_fails(call, code, words)                                                            \
    do {                                                                                           \
        qkv_status s_ = (call);                                                                    \
        if (s_ != (code))                                                                          \
            fail_msg("%s: status %d, wanted %d (%s)", #call, s_, (code), qkv_error());             \
        if (!strstr(qkv_error(), words))                                                           \
            fail_msg("message \"%s\" lacks \"%s\"", qkv_error(), words);                           \
    } while (0)

/* |a − b| ≤ bound·max(1, largest |b|) for all elements; both shown for the worst. */
void assert_close(const char *what, const real *a, const real *b, int64_t n, double bound);
void assert_same_bits(const char *what, const real *a, const real *b, int64_t n);

/* Calls `once` with its first allocation failing, then its second, and so on until it makes no
 * more: each time it must return QKV_FAILED (but QKV_OK where it can do without, which is so
 * `spare` times) and leave nothing behind. Returns how many allocations it makes. They are counted
 * over all threads, so `once` should use one. */
uint64_t assert_fails_cleanly(qkv_status (*once)(const void *user), const void *user,
                              uint64_t spare);

/* Seeded values in [−1, 1). */
void fill(real *x, int64_t n, uint64_t seed);

#endif
