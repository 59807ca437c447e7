#include "score/resample.h"
#include "base/mem.h"
#include "base/thread.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the generator: PCG XSL-RR 128/64 (O'Neill 2014) ---- */

__extension__ typedef unsigned __int128 wide;

static wide wide_of(const uint64_t x[2]) {
    return (wide)x[1] << 64 | x[0];
}

static void keep(wide x, uint64_t out[2]) {
    out[0] = (uint64_t)x;
    out[1] = (uint64_t)(x >> 64);
}

static void step(qkv_draws *d) {
    const wide multiplier =
        (wide)UINT64_C(2549297995355413924) << 64 | UINT64_C(4865540595714422341);
    keep(wide_of(d->state) * multiplier + wide_of(d->step), d->state);
}

static uint32_t draw(qkv_draws *d) {
    if (d->kept) {
        d->kept = false;
        return d->half;
    }
    step(d);
    const uint64_t x = d->state[1] ^ d->state[0];
    const unsigned turn = (unsigned)(d->state[1] >> 58);
    const uint64_t word = x >> turn | x << (-turn & 63);
    d->half = (uint32_t)(word >> 32);
    d->kept = true;
    return (uint32_t)word;
}

/* A seed spread over a pool of four words, and eight words made of that (numpy's SeedSequence). */
static uint32_t hash(uint32_t x, uint32_t *with, uint32_t factor) {
    x ^= *with;
    *with *= factor;
    x *= *with;
    return x ^ x >> 16;
}

static uint32_t blend(uint32_t x, uint32_t y) {
    const uint32_t z = x * UINT32_C(0xca01f9dd) - y * UINT32_C(0x4973f715);
    return z ^ z >> 16;
}

void qkv_draws_begin(qkv_draws *d, uint64_t seed) {
    enum { POOL = 4 };
    uint32_t pool[POOL] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t with = UINT32_C(0x43b0d7e5), words[2 * POOL];
    for (int i = 0; i < POOL; i++) pool[i] = hash(pool[i], &with, UINT32_C(0x931e8875));
    for (int from = 0; from < POOL; from++)
        for (int to = 0; to < POOL; to++)
            if (from != to)
                pool[to] = blend(pool[to], hash(pool[from], &with, UINT32_C(0x931e8875)));
    with = UINT32_C(0x8b51f9dd);
    for (int i = 0; i < 2 * POOL; i++) words[i] = hash(pool[i % POOL], &with, UINT32_C(0x58f38ded));
    uint64_t seeds[POOL];
    for (int i = 0; i < POOL; i++) seeds[i] = (uint64_t)words[2 * i + 1] << 32 | words[2 * i];
    const wide start = (wide)seeds[0] << 64 | seeds[1], stream = (wide)seeds[2] << 64 | seeds[3];
    *d = (qkv_draws){0};
    keep(stream << 1 | 1, d->step);
    step(d);
    keep(wide_of(d->state) + start, d->state);
    step(d);
}

/* The upper half of a product of 32-bit numbers, without bias (Lemire 2019). */
void qkv_draws_fill(qkv_draws *d, uint32_t most, uint32_t *out, size_t n) {
    const uint32_t least = most ? -most % most : 0;
    for (size_t i = 0; i < n; i++) {
        if (most < 2) {
            out[i] = 0;
            continue;
        }
        uint64_t product;
        do product = (uint64_t)draw(d) * most;
        while ((uint32_t)product < least);
        out[i] = (uint32_t)(product >> 32);
    }
}

/* ---- samples ---- */

enum { AT_ONCE = 16 }; /* samples drawn, then counted by all threads */

qkv_status qkv_resample_run(const qkv_resample *r, double *out) {
    if (r->rows == 0 || r->rows > UINT32_MAX)
        return qkv_fail(QKV_USAGE, "%zu rows; samples are drawn of 1 to 2^32", r->rows);
    const size_t each = r->scratch + r->figures * sizeof *out;
    qkv_draws draws;
    size_t bytes;
    qkv_draws_begin(&draws, r->seed);
    if (qkv_mul_over(r->rows, AT_ONCE * sizeof(uint32_t), &bytes)) bytes = SIZE_MAX;
    _Atomic bool failed = false;
    uint32_t *drawn = qkv_alloc(bytes);
    char *scratch = qkv_alloc(AT_ONCE * each);
    for (size_t from = 0; from < r->samples && drawn && scratch; from += AT_ONCE) {
        const size_t left = r->samples - from, n = left < AT_ONCE ? left : AT_ONCE;
        qkv_draws_fill(&draws, (uint32_t)r->rows, drawn, n * r->rows);
        memset(scratch, 0, AT_ONCE * each);
        QKV_PARALLEL_FOR_IF(n * r->rows >= 4096)
        for (size_t i = 0; i < n; i++) {
            double *figures = (double *)(void *)(scratch + i * each);
            if (r->count(r->data, drawn + i * r->rows, r->rows, figures + r->figures, figures) !=
                QKV_OK)
                failed = true;
            for (size_t f = 0; f < r->figures; f++) out[f * r->samples + from + i] = figures[f];
        }
    }
    const bool ok = drawn && scratch;
    qkv_free(drawn);
    qkv_free(scratch);
    if (ok && failed) return qkv_fail(QKV_FAILED, "out of memory while samples were counted");
    return ok ? QKV_OK : QKV_FAILED;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

qkv_interval qkv_interval_of(double *values, size_t n) {
    qkv_interval r = {NAN, NAN, NAN};
    if (n == 0) return r;
    double sum = 0;
    qsort(values, n, sizeof *values, by_value);
    for (size_t i = 0; i < n; i++) sum += values[i];
    r.mean = sum / (double)n;
    r.low = values[n / 40];
    r.high = values[n - n / 40 - 1];
    return r;
}

/* The samples' differences, less their mean, are what chance alone makes of no difference. Where no
 * sample differs there is nothing to doubt: 1. */
double qkv_resample_p(double a, double b, const double *samples_a, const double *samples_b,
                      size_t n) {
    double mean = 0;
    size_t larger = 0;
    for (size_t i = 0; i < n; i++) mean += fabs(samples_a[i] - samples_b[i]);
    if (n == 0 || mean == 0) return 1;
    mean /= (double)n;
    for (size_t i = 0; i < n; i++) larger += fabs(samples_a[i] - samples_b[i]) - mean > fabs(a - b);
    return ((double)larger + 1) / ((double)n + 1);
}
