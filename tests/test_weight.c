/* Quantized weights: rounding, and products with them in every instruction set
 * against a plain reference. */
#include "harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kern/kern.h"

typedef struct matrix {
    qkv_weight w;
    real *values; /* what was rounded */
    void *data;
    float *scale;
} matrix;

static matrix make(qkv_weight_format format, int64_t rows, int64_t cols, uint64_t seed) {
    const size_t bytes = (size_t)qkv_weight_row_bytes(format, cols);
    const size_t groups = (size_t)qkv_weight_groups(format, cols);
    matrix m = {.values = malloc((size_t)(rows * cols) * sizeof(real)),
                .data = malloc((size_t)rows * bytes),
                .scale = malloc(((size_t)rows * groups + 1) * sizeof(float))};
    fill(m.values, rows * cols, seed);
    for (int64_t r = 0; r < rows; r++)
        qkv_weight_row_make(format, m.values + r * cols, cols, (char *)m.data + (size_t)r * bytes,
                            m.scale + (size_t)r * groups);
    m.w = (qkv_weight){.format = format,
                       .rows = rows,
                       .cols = cols,
                       .data = m.data,
                       .scale = groups ? m.scale : NULL};
    return m;
}

static void release(matrix *m) {
    free(m->values);
    free(m->data);
    free(m->scale);
}

/* The integer q of element (row, col). */
static int integer_at(const qkv_weight *w, int64_t row, int64_t col) {
    const uint8_t *x = (const uint8_t *)w->data + row * qkv_weight_row_bytes(w->format, w->cols);
    if (w->format == QKV_WEIGHT_INT8) return (int8_t)x[col];
    const uint8_t pair = x[col / 32 * 16 + col % 16];
    return (col % 32 < 16 ? pair & 15 : pair >> 4) - 8;
}

/* kern/weight.h, word for word. */
static float reference(const float *x, int64_t k, const qkv_weight *w, int64_t row) {
    float most = 0, sum = 0;
    for (int64_t p = 0; p < k; p++) most = fmaxf(most, fabsf(x[p]));
    const int64_t groups = qkv_weight_groups(w->format, k), size = groups == 1 ? k : 32;
    const float factor = most > 0 ? 127 / most : 0;
    for (int64_t g = 0; g < groups; g++) {
        int32_t inner = 0;
        for (int64_t p = g * size; p < (g + 1) * size && p < k; p++)
            inner += (int32_t)rintf(x[p] * factor) * integer_at(w, row, p);
        const float part = (float)inner * w->scale[row * groups + g];
        sum = g == 0 ? part : sum + part;
    }
    return sum * (most / 127);
}

static const int64_t shapes[][3] = {
    {1, 1, 1},    {1, 17, 32},   {3, 16, 64},   {6, 33, 100}, {7, 50, 31},    {14, 32, 128},
    {15, 70, 65}, {29, 20, 257}, {100, 40, 96}, {2, 300, 40}, {400, 24, 640}, {1, 300, 77},
};
#define N_SHAPES (sizeof shapes / sizeof *shapes)

/* Products of integers have the reference's bits, whatever the instruction set and the threads. */
static void check_integers(qkv_weight_format format) {
    const qkv_kern *const *list;
    const size_t n_kern = qkv_kern_list(&list);
    for (size_t s = 0; s < N_SHAPES; s++) {
        const int64_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
        matrix w = make(format, n, k, 7 + s);
        real *x = malloc((size_t)(m * k) * sizeof *x), *c = malloc((size_t)(m * n) * sizeof *c);
        real *bias = malloc((size_t)n * sizeof *bias);
        fill(x, m * k, 3);
        fill(bias, n, 4);
        if (m > 2) memset(x + k, 0, (size_t)k * sizeof *x); /* a row of zeros */
        for (size_t i = 0; i < 2 * n_kern; i++) {           /* with three threads: packed before */
            qkv_threads_set(i % 2 ? 3 : 1);
            qkv_gemm g = {.m = m, .n = n, .k = k, .a = x, .lda = k, .c = c, .ldc = n};
            g.weight = &w.w, g.bias = bias, g.act = QKV_ACT_RELU;
            real *packed = malloc((list[i / 2]->gemm_pack_size(&g) + 1) * sizeof *packed);
            list[i / 2]->gemm_pack(&g, packed);
            if (i % 2) g.b_packed = packed;
            assert_true(list[i / 2]->gemm(&g));
            free(packed);
            for (int64_t r = 0; r < m; r++)
                for (int64_t j = 0; j < n; j++) {
                    const float y = reference(x + r * k, k, &w.w, j) + bias[j];
                    if (c[r * n + j] != (y > 0 ? y : 0))
                        fail_msg("%s %s %dx%dx%d at %d,%d: %.9g, not %.9g", list[i / 2]->name,
                                 qkv_weight_names[format], (int)m, (int)n, (int)k, (int)r, (int)j,
                                 (double)c[r * n + j], (double)(y > 0 ? y : 0));
                }
        }
        release(&w);
        free(x);
        free(c);
        free(bias);
    }
    qkv_threads_set(0);
}

static void int8_is_exact(void **state) {
    (void)state;
    check_integers(QKV_WEIGHT_INT8);
}

static void int4_is_exact(void **state) {
    (void)state;
    check_integers(QKV_WEIGHT_INT4);
}

/* The largest sums there are: nothing may saturate or wrap. */
static void extremes(void **state) {
    (void)state;
    enum { K = QKV_WEIGHT_COLS_MAX, N = 3 };
    const qkv_kern *const *list;
    int8_t *q = malloc((size_t)N * K);
    float *x = malloc(K * sizeof *x), scale[N] = {1, 1, 1};
    memset(q, 127, K);
    memset(q + K, -127, K);
    for (int i = 0; i < K; i++) q[2 * K + i] = i % 2 ? 127 : -127, x[i] = i % 2 ? -127 : 127;
    const qkv_weight w = {
        .format = QKV_WEIGHT_INT8, .rows = N, .cols = K, .data = q, .scale = scale};
    for (size_t i = 0, n = qkv_kern_list(&list); i < n; i++) {
        real c[N];
        qkv_gemm g = {.m = 1, .n = N, .k = K, .a = x, .lda = K, .c = c, .ldc = N, .weight = &w};
        assert_true(list[i]->gemm(&g));
        assert_true(c[0] == 0 && c[1] == 0);
        assert_true(c[2] == -127.0f * 127 * K);
    }
    free(q);
    free(x);
}

/* A row that is not finite gives NaN, and the rows beside it what they always give. */
static void not_finite(void **state) {
    (void)state;
    const qkv_kern *const *list;
    matrix w = make(QKV_WEIGHT_INT8, 5, 40, 1);
    for (size_t i = 0, n = qkv_kern_list(&list); i < n; i++)
        for (int bad = 0; bad < 2; bad++) {
            real x[80], c[10], alone[5];
            fill(x, 80, 2);
            x[13] = bad ? INFINITY : NAN;
            qkv_gemm g = {.m = 2, .n = 5, .k = 40, .a = x, .lda = 40, .c = c, .ldc = 5};
            g.weight = &w.w;
            assert_true(list[i]->gemm(&g));
            g.m = 1, g.a = x + 40, g.c = alone;
            assert_true(list[i]->gemm(&g));
            assert_true(isnan(c[0]) && isnan(c[4]));
            assert_memory_equal(c + 5, alone, sizeof alone);
        }
    release(&w);
}

/* bf16 weights are those floats: the bits of the product with them expanded; in bf16, its other
 * operand rounded too, where the set multiplies pairs of them (those with 16 reals in a vector). */
static void bf16_is_its_floats(void **state) {
    (void)state;
    const qkv_kern *const *list;
    const size_t n_kern = qkv_kern_list(&list);
    for (size_t s = 0; s < N_SHAPES; s++) {
        const int64_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
        matrix w = make(QKV_WEIGHT_BF16, n, k, 7 + s);
        real *x = malloc((size_t)(m * k) * sizeof *x), *b = malloc((size_t)(n * k) * sizeof *b);
        real *c = malloc((size_t)(2 * m * n) * sizeof *c);
        fill(x, m * k, 3);
        for (int64_t r = 0; r < n; r++) {
            qkv_weight_row_value(&w.w, r, 1, b + r * k);
            assert_close("row", b + r * k, w.values + r * k, k, 0x1p-8);
        }
        for (size_t i = 0; i < n_kern; i++) {
            qkv_gemm g = {.m = m, .n = n, .k = k, .a = x, .lda = k, .c = c, .ldc = n};
            g.weight = &w.w;
            assert_true(list[i]->gemm(&g));
            g.weight = NULL, g.b = b, g.ldb = k, g.b_trans = true, g.c = c + m * n;
            g.precision = list[i]->width == 16 ? QKV_BF16 : QKV_F32;
            assert_true(list[i]->gemm(&g));
            assert_memory_equal(c, c + m * n, (size_t)(m * n) * sizeof *c);
        }
        release(&w);
        free(x);
        free(b);
        free(c);
    }
}

/* A row and what it becomes: no further off than half a step. */
static void rounding(void **state) {
    (void)state;
    for (int64_t cols = 1; cols <= 100; cols += 33) {
        real back[100];
        matrix w = make(QKV_WEIGHT_INT8, 4, cols, 5);
        for (int64_t r = 0; r < 4; r++) {
            qkv_weight_row_value(&w.w, r, 2, back);
            for (int64_t j = 0; j < cols; j++)
                assert_true(fabs((double)(back[j] / 2 - w.values[r * cols + j])) <=
                            0.5001 * (double)w.scale[r]);
        }
        release(&w);
        w = make(QKV_WEIGHT_INT4, 4, cols, 6);
        for (int64_t r = 0; r < 4; r++) {
            double most = 0, error = 0;
            qkv_weight_row_value(&w.w, r, 1, back);
            for (int64_t j = 0; j < cols; j++) { /* not fmax: gcc 12 fails on it for aarch64 */
                const double value = (double)w.values[r * cols + j];
                if (fabs(value) > most) most = fabs(value);
                if (fabs((double)back[j] - value) > error) error = fabs((double)back[j] - value);
            }
            assert_true(error <= most / 5);
        }
        release(&w);
    }
    assert_int_equal(qkv_weight_row_bytes(QKV_WEIGHT_INT4, 33), 32);
    assert_int_equal(qkv_weight_groups(QKV_WEIGHT_INT4, 33), 2);
    assert_int_equal(qkv_weight_groups(QKV_WEIGHT_INT8, 33), 1);
    assert_int_equal(qkv_weight_groups(QKV_WEIGHT_BF16, 33), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(int8_is_exact),      cmocka_unit_test(int4_is_exact),
        cmocka_unit_test(extremes),           cmocka_unit_test(not_finite),
        cmocka_unit_test(bf16_is_its_floats), cmocka_unit_test(rounding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
