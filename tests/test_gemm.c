/* The matrix product of every instruction set that runs here, against sums in double precision. */
#include "harness.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/thread.h"
#include "kern/kern.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* A product and what it owns. Every buffer ends where its matrix ends, so that the sanitizer sees a
 * step too far. */
typedef struct problem {
    qkv_gemm g;
    real *a, *b, *c, *start, *bias, *pre, *packed;
    int64_t n_c;
    double *sum; /* (M, N, 2), made by the first check */
} problem;

typedef struct traits {
    bool a_trans, b_trans, accumulate, bias, pre, packed, bf16;
    qkv_act act;
    int pad; /* added to every row stride */
} traits;

static real *numbers(int64_t n, uint64_t seed) {
    real *const x = malloc((size_t)(n > 0 ? n : 1) * sizeof *x);
    assert_non_null(x);
    fill(x, n, seed);
    return x;
}

/* Reals from the first element to the last of a rows×cols matrix. */
static int64_t span(int64_t rows, int64_t cols, int64_t ld) {
    return rows > 0 && cols > 0 ? (rows - 1) * ld + cols : 0;
}

static problem make(int64_t m, int64_t n, int64_t k, traits t) {
    problem p = {.g = {.m = m,
                       .n = n,
                       .k = k,
                       .lda = (t.a_trans ? m : k) + t.pad,
                       .ldb = (t.b_trans ? k : n) + t.pad,
                       .ldc = n + t.pad,
                       .a_trans = t.a_trans,
                       .b_trans = t.b_trans,
                       .accumulate = t.accumulate,
                       .precision = t.bf16 ? QKV_BF16 : QKV_F32,
                       .act = t.act}};
    p.n_c = span(m, n, p.g.ldc);
    p.g.a = p.a = numbers(t.a_trans ? span(k, m, p.g.lda) : span(m, k, p.g.lda), 1);
    p.g.b = p.b = numbers(t.b_trans ? span(n, k, p.g.ldb) : span(k, n, p.g.ldb), 2);
    p.g.c = p.c = numbers(p.n_c, 3);
    p.start = numbers(p.n_c, 3);
    if (t.bias) p.g.bias = p.bias = numbers(n, 4);
    if (t.pre) p.g.pre = p.pre = numbers(p.n_c, 5);
    return p;
}

static void pack(problem *p, const qkv_kern *kern) {
    free(p->packed);
    p->packed = malloc((kern->gemm_pack_size(&p->g) + 1) * sizeof(real));
    assert_non_null(p->packed);
    kern->gemm_pack(&p->g, p->packed);
    p->g.b_packed = p->packed;
}

static void drop(problem *p) {
    void *const all[] = {p->a, p->b, p->c, p->start, p->bias, p->pre, p->packed, p->sum};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void run(problem *p, const qkv_kern *kern) {
    memcpy(p->c, p->start, (size_t)p->n_c * sizeof *p->c);
    if (!kern->gemm(&p->g)) fail_msg("gemm: %s", qkv_error());
}

/* ---- what it should be ---- */

static double rounded(double x, qkv_precision precision) {
    if (precision == QKV_F32) return x;
    int exponent;
    const double fraction = frexp(x, &exponent); /* bf16 has 8 bits of fraction */
    return ldexp(nearbyint(ldexp(fraction, 8)), exponent - 8);
}

static double activated(qkv_act act, double x) {
    switch (act) {
    case QKV_ACT_RELU:
        return x > 0 ? x : 0;
    case QKV_ACT_GELU:
        return 0.5 * x * erfc(-x * sqrt(0.5));
    case QKV_ACT_GELU_TANH:
        return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
    case QKV_ACT_SILU:
        return x / (1 + exp(-x));
    case QKV_ACT_TANH:
        return tanh(x);
    case QKV_ACT_SIGMOID:
        return 1 / (1 + exp(-x));
    default:
        return x;
    }
}

/* The sums before the activation, and the most by which k + 3 roundings can have moved each. */
static void make_exact(problem *p) {
    const qkv_gemm *const g = &p->g;
    p->sum = calloc((size_t)(2 * g->m * g->n + 1), sizeof *p->sum);
    assert_non_null(p->sum);
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            const double c = g->accumulate ? (double)p->start[i * g->ldc + j] : 0;
            const double bias = g->bias ? (double)g->bias[j] : 0;
            double sum = c + bias, size = fabs(c) + fabs(bias);
            for (int64_t q = 0; q < g->k; q++) {
                const real a = g->a[g->a_trans ? q * g->lda + i : i * g->lda + q];
                const real b = g->b[g->b_trans ? j * g->ldb + q : q * g->ldb + j];
                const double product = rounded(a, g->precision) * rounded(b, g->precision);
                sum += product;
                size += fabs(product);
            }
            p->sum[2 * (i * g->n + j)] = sum;
            p->sum[2 * (i * g->n + j) + 1] = ((double)g->k + 3) * FLT_EPSILON * size;
        }
}

static void check(problem *p, const char *what) {
    const qkv_gemm *const g = &p->g;
    if (!p->sum) make_exact(p);
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            const double *const exact = p->sum + 2 * (i * g->n + j);
            const double want = activated(g->act, exact[0]), got = (double)g->c[i * g->ldc + j];
            /* no activation here is steeper than 1.13; its own error is relative to 1 */
            if (!(fabs(got - want) <= 1.13 * exact[1] + (g->act ? 1e-6 : 0)))
                fail_msg("%s: %lld×%lld×%lld [%lld][%lld] is %.9g, wanted %.9g", what,
                         (long long)g->m, (long long)g->n, (long long)g->k, (long long)i,
                         (long long)j, got, want);
            if (g->pre && !(fabs((double)g->pre[i * g->ldc + j] - exact[0]) <= exact[1]))
                fail_msg("%s: pre [%lld][%lld] is %.9g, wanted %.9g", what, (long long)i,
                         (long long)j, (double)g->pre[i * g->ldc + j], exact[0]);
        }
    /* what lies between the rows is not touched */
    for (int64_t i = 0; i + 1 < g->m; i++)
        assert_same_bits(what, p->c + i * g->ldc + g->n, p->start + i * g->ldc + g->n,
                         g->ldc - g->n);
}

#define FOR_EACH_SET(kern)                                                                         \
    const qkv_kern *const *sets_;                                                                  \
    const size_t n_sets_ = qkv_kern_list(&sets_);                                                  \
    for (size_t s_ = 0; s_ < n_sets_; s_++)                                                        \
        for (const qkv_kern *kern = sets_[s_]; kern; kern = NULL)

/* ---- tests ---- */

/* Sizes 1 … 70 and combinations of everything, drawn by number. */
static void test_many_shapes(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 400; i++) {
        const qkv_rng rng = {7, i};
        const uint64_t bits = qkv_rng_below(rng, 3, 256);
        const traits t = {.a_trans = bits & 1,
                          .b_trans = bits & 2,
                          .accumulate = bits & 4,
                          .bias = bits & 8,
                          .pre = bits & 16,
                          .bf16 = bits & 64,
                          .pad = bits & 128 ? 3 : 0,
                          .act = (qkv_act)(i % QKV_ACT_COUNT)};
        problem p =
            make(1 + (int64_t)qkv_rng_below(rng, 0, 70), 1 + (int64_t)qkv_rng_below(rng, 1, 70),
                 1 + (int64_t)qkv_rng_below(rng, 2, 70), t);
        FOR_EACH_SET(kern) {
            if (bits & 32) pack(&p, kern);
            run(&p, kern);
            check(&p, kern->name);
        }
        drop(&p);
    }
}

/* Several blocks of every dimension; and B packed before or on the way gives the same bits. */
static void test_large_shapes(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {
        {100, 1100, 20}, {231, 50, 600}, {1, 500, 1000}, {5, 65, 2051}, {97, 33, 513}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int bits = 0; bits < 8; bits++) {
            const traits t = {.a_trans = bits & 1,
                              .b_trans = bits & 2,
                              .bf16 = bits & 4,
                              .bias = true,
                              .accumulate = bits == 3};
            problem p = make(sizes[s][0], sizes[s][1], sizes[s][2], t);
            real *const first = numbers(p.n_c, 9);
            FOR_EACH_SET(kern) {
                p.g.b_packed = NULL;
                run(&p, kern);
                check(&p, kern->name);
                memcpy(first, p.c, (size_t)p.n_c * sizeof *first);
                pack(&p, kern);
                run(&p, kern);
                assert_same_bits("packed", p.c, first, p.n_c);
            }
            free(first);
            drop(&p);
        }
}

/* The sums of op(A)'s rows, made while it is packed;
 * for any threads, and bf16 does not round them. */
static void test_sums(void **state) {
    (void)state;
    enum { M = 203, N = 40, K = 1100 };
    const int threads[] = {1, 3};
    real first[M];
    FOR_EACH_SET(kern)
    for (int bf16 = 0; bf16 < 2; bf16++)
        for (int i = 0; i < 2; i++) {
            real sums[M];
            for (int m = 0; m < M; m++) sums[m] = 1;
            problem p = make(M, N, K, (traits){.a_trans = true, .bf16 = bf16, .pad = 3});
            p.g.a_sums = sums;
            qkv_threads_set(threads[i]);
            run(&p, kern);
            for (int m = 0; m < M; m++) {
                double sum = 1, size = 0;
                for (int k = 0; k < K; k++) {
                    sum += (double)p.a[k * p.g.lda + m];
                    size += fabs((double)p.a[k * p.g.lda + m]);
                }
                assert_true(fabs((double)sums[m] - sum) <= 4 * (double)FLT_EPSILON * size);
            }
            if (i == 0) memcpy(first, sums, sizeof first);
            assert_memory_equal(first, sums, sizeof first);
            drop(&p);
        }
    qkv_threads_set(0);
}

static void test_empty(void **state) {
    (void)state;
    FOR_EACH_SET(kern) {
        problem p = make(5, 40, 0, (traits){.bias = true, .act = QKV_ACT_RELU, .pre = true});
        run(&p, kern); /* nothing to add up: the bias */
        check(&p, "k = 0");
        drop(&p);
        p = make(0, 40, 8, (traits){.bias = true});
        run(&p, kern);
        drop(&p);
        p = make(5, 0, 8, (traits){.b_trans = true});
        run(&p, kern);
        drop(&p);
    }
}

static void test_threads_give_same_bits(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {
        {64, 256, 300}, {300, 48, 128}, {3, 500, 300}, {157, 129, 65}};
    static const int threads[] = {2, 3, 8};
    FOR_EACH_SET(kern)
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int bits = 0; bits < 8; bits++) {
            const traits t = {.a_trans = bits & 1,
                              .b_trans = bits & 2,
                              .bf16 = bits & 4,
                              .bias = true,
                              .act = QKV_ACT_SILU};
            problem p = make(sizes[s][0], sizes[s][1], sizes[s][2], t);
            qkv_threads_set(1);
            run(&p, kern);
            real *const one = numbers(p.n_c, 9);
            memcpy(one, p.c, (size_t)p.n_c * sizeof *one);
            for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
                qkv_threads_set(threads[i]);
                run(&p, kern);
                assert_same_bits("threads", p.c, one, p.n_c);
            }
            qkv_threads_set(0);
            free(one);
            drop(&p);
        }
}

/* A row or a column computed alone has the bits that it has among others. */
static void test_alone_or_in_company(void **state) {
    (void)state;
    FOR_EACH_SET(kern)
    for (int bits = 0; bits < 8; bits++) {
        const traits t = {.a_trans = bits & 1,
                          .b_trans = bits & 2,
                          .bf16 = bits & 4,
                          .bias = true,
                          .act = QKV_ACT_TANH};
        problem p = make(23, 107, 270, t);
        run(&p, kern);
        real alone[107];
        for (int64_t i = 0; i < p.g.m; i++) {
            qkv_gemm g = p.g;
            g.m = 1;
            g.a += t.a_trans ? i : i * g.lda;
            g.c = alone;
            assert_true(kern->gemm(&g));
            assert_same_bits("a row alone", alone, p.c + i * p.g.ldc, p.g.n);
        }
        for (int64_t j = 0; j < p.g.n; j += 13) {
            qkv_gemm g = p.g;
            g.n = g.ldc = 1;
            g.b += t.b_trans ? j * g.ldb : j;
            g.bias += j;
            g.c = alone;
            assert_true(kern->gemm(&g));
            for (int64_t i = 0; i < g.m; i++)
                assert_same_bits("a column alone", alone + i, p.c + i * p.g.ldc + j, 1);
        }
        drop(&p);
    }
}

/* Rounding both operands moves each product by less than 2⁻⁷ of itself; over a sum the errors
 * cancel, and 2⁻⁸ of the root mean square is left at most. */
static void test_bf16_is_near_f32(void **state) {
    (void)state;
    FOR_EACH_SET(kern) {
        problem p = make(64, 96, 384, (traits){.b_trans = true});
        run(&p, kern);
        real *const f32 = numbers(p.n_c, 9);
        memcpy(f32, p.c, (size_t)p.n_c * sizeof *f32);
        p.g.precision = QKV_BF16;
        run(&p, kern);
        double squares = 0, error_squares = 0;
        for (int64_t i = 0; i < p.n_c; i++) {
            const double error = (double)p.c[i] - (double)f32[i];
            const real *const a = p.a + i / p.g.n * p.g.k, *const b = p.b + i % p.g.n * p.g.k;
            double size = 0;
            for (int64_t q = 0; q < p.g.k; q++) size += fabs((double)a[q] * (double)b[q]);
            assert_true(fabs(error) <= size / 128);
            squares += (double)f32[i] * (double)f32[i];
            error_squares += error * error;
        }
        assert_true(error_squares > 0);
        assert_true(sqrt(error_squares) <= sqrt(squares) / 256);
        free(f32);
        drop(&p);
    }
}

static void test_not_finite_stays_in_its_row_and_column(void **state) {
    (void)state;
    FOR_EACH_SET(kern)
    for (int bits = 0; bits < 8; bits++) {
        problem p =
            make(33, 70, 90, (traits){.a_trans = bits & 1, .b_trans = bits & 2, .bf16 = bits & 4});
        p.a[p.g.a_trans ? 5 * p.g.lda + 17 : 17 * p.g.lda + 5] = (real)NAN;
        p.b[p.g.b_trans ? 66 * p.g.ldb + 2 : 2 * p.g.ldb + 66] = (real)INFINITY;
        run(&p, kern);
        for (int64_t i = 0; i < p.g.m; i++)
            for (int64_t j = 0; j < p.g.n; j++) {
                const double c = (double)p.c[i * p.g.ldc + j];
                if (i == 17)
                    assert_true(isnan(c));
                else
                    assert_true(j == 66 ? isinf(c) : isfinite(c));
            }
        drop(&p);
    }
}

static void test_memory(void **state) {
    (void)state;
    FOR_EACH_SET(kern) {
        problem p = make(40, 40, 40, (traits){.b_trans = true});
        qkv_kern_scratch_free();
        qkv_mem_fail(1, true);
        const bool ok = kern->gemm(&p.g);
        qkv_mem_fail(0, false);
        assert_false(ok);
        assert_non_null(strstr(qkv_error(), "memory"));
        run(&p, kern);
        const uint64_t before = qkv_mem_count().allocations;
        run(&p, kern);
        assert_int_equal(qkv_mem_count().allocations,
                         before); /* only the first product of its size allocates */
        drop(&p);
    }
}

static void test_peak(void **state) {
    (void)state;
    FOR_EACH_SET(kern) {
        assert_true(kern->peak_gflops(QKV_F32, 0) > 0.1);
        assert_true(kern->peak_gflops(QKV_BF16, 0) > 0.1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_shapes),
        cmocka_unit_test(test_large_shapes),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_threads_give_same_bits),
        cmocka_unit_test(test_alone_or_in_company),
        cmocka_unit_test(test_bf16_is_near_f32),
        cmocka_unit_test(test_not_finite_stays_in_its_row_and_column),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_peak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
