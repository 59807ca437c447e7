/* Weights in GGUF's blocks: their values are gguf-py's, bit for bit, and products with them are
 * those of kern/isa/gemm_block.h in every instruction set, batch and number of threads. */
#include "harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kern/kern.h"

#include "golden/block_golden.h"

/* ---- values ---- */

/* As the script makes it: noise, with finite f16 where those stand. */
static uint8_t *make_blocks(size_t type, size_t n, uint64_t seed) {
    const size_t size = (size_t)block_golden[type].bytes;
    uint8_t *raw = malloc(n * size);
    for (size_t i = 0; i < n * size; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        raw[i] = (uint8_t)(seed >> 56);
    }
    for (size_t block = 0; block < n; block++)
        for (int h = 0; h < 2; h++)
            if (block_golden[type].half[h] >= 0) {
                uint8_t *const at = raw + block * size + block_golden[type].half[h] + 1;
                *at = (*at & 0x8f) | 0x20;
            }
    return raw;
}

static uint64_t hash_floats(const real *x, int64_t n) {
    uint64_t h = 0xcbf29ce484222325u;
    for (int64_t i = 0; i < n; i++) {
        const float value = (float)x[i];
        uint8_t bytes[4];
        memcpy(bytes, &value, 4);
        for (int b = 0; b < 4; b++) h = (h ^ bytes[b]) * 0x100000001b3u;
    }
    return h;
}

static void values_are_ggufs(void **state) {
    (void)state;
    for (size_t t = 0; t < sizeof block_golden / sizeof *block_golden; t++) {
        const qkv_weight_format format = block_golden[t].format;
        const int64_t cols = BLOCKS * qkv_weight_block(format);
        assert_int_equal(qkv_weight_row_bytes(format, cols), BLOCKS * block_golden[t].bytes);
        uint8_t *raw = make_blocks(t, BLOCKS, (uint64_t)qkv_weight_gguf_number(format));
        real *x = malloc((size_t)cols * sizeof *x);
        const qkv_weight w = {.format = format, .rows = 1, .cols = cols, .data = raw};
        qkv_weight_row_value(&w, 0, 1, x);
        if (hash_floats(x, cols) != block_golden[t].hash)
            fail_msg("%s: other values than gguf-py's", qkv_weight_format_name(format));
        free(raw);
        free(x);
    }
    assert_int_equal(
        sizeof block_golden / sizeof *block_golden,
        (size_t)(QKV_WEIGHT_FORMATS - QKV_WEIGHT_F16 - 1)); /* a type has its golden values */
}

/* ---- products ---- */

static const struct {
    int group, zero;
    bool offset;
} forms[] = {
#define ROW(id, name, number, elements, bytes, group, zero, offset) {group, zero, offset},
    QKV_BLOCK_TABLE(ROW)
#undef ROW
};

/* u, scale and offset of an element, taken from what values say: w(u), w(0 everywhere). */
typedef struct element {
    float scale, offset;
    int u;
} element;

static float half_of(const uint8_t *p) {
    uint16_t bits;
    memcpy(&bits, p, 2);
    const int e = bits >> 10 & 31, m = bits & 1023;
    const float x = e ? ldexpf((float)(1024 + m), e - 25) : ldexpf((float)m, -24);
    return bits >> 15 ? -x : x;
}

/* One type of each shape, read here by the letter of the format. */
static element read_element(qkv_weight_format format, const uint8_t *row, int64_t j) {
    element e = {0};
    if (format == QKV_WEIGHT_Q4_1) {
        const uint8_t *const b = row + j / 32 * 20;
        e = (element){half_of(b), -half_of(b + 2), b[4 + j % 16] >> (j % 32 < 16 ? 0 : 4) & 15};
    } else if (format == QKV_WEIGHT_Q8_0) {
        const uint8_t *const b = row + j / 32 * 34;
        e = (element){half_of(b), 0, (int8_t)b[2 + j % 32] + 128};
    } else if (format == QKV_WEIGHT_Q2_K) {
        const uint8_t *const b = row + j / 256 * 84;
        const int i = (int)(j % 256);
        e = (element){half_of(b + 80) * (float)(b[i / 16] & 15),
                      half_of(b + 82) * (float)(b[i / 16] >> 4),
                      b[16 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3};
    } else { /* Q6_K */
        const uint8_t *const b = row + j / 256 * 210;
        const int i = (int)(j % 256), a = i / 128, k = i % 128 / 32, l = i % 32;
        e = (element){half_of(b + 208) * (float)(int8_t)b[192 + i / 16], 0,
                      (b[64 * a + 32 * (k & 1) + l] >> (4 * (k >> 1)) & 15) |
                          (b[128 + 32 * a + l] >> (2 * k) & 3) << 4};
    }
    return e;
}

/* kern/isa/gemm_block.h, word for word. */
static float reference(const float *x, const qkv_weight *w, int64_t row) {
    const uint8_t *const at =
        (const uint8_t *)w->data + row * qkv_weight_row_bytes(w->format, w->cols);
    const int shape = (int)w->format - QKV_WEIGHT_F16 - 1, group = forms[shape].group;
    float sum = 0;
    for (int64_t g = 0; g < w->cols / group; g++) {
        float most = 0;
        const int64_t run = g * group / 32 * 32;
        for (int64_t p = run; p < run + 32; p++) most = fmaxf(most, fabsf(x[p]));
        const float factor = most > 0 ? 32512 / most : 0, s = most / 32512;
        int32_t inner = 0, all = 0;
        element e = {0};
        for (int64_t p = g * group; p < (g + 1) * group; p++) {
            const int32_t q = (int32_t)rintf(x[p] * factor);
            e = read_element(w->format, at, p);
            inner += q * (e.u - forms[shape].zero);
            all += q;
        }
        float y = (float)inner * e.scale * s;
        if (forms[shape].offset) y = y - e.offset * (s * (float)all);
        sum = sum + y;
    }
    return sum;
}

static const int64_t shapes[][3] = {{1, 1, 1},   {1, 70, 2},  {2, 33, 3},  {7, 40, 1},
                                    {14, 64, 2}, {15, 31, 5}, {29, 20, 3}, {1, 300, 4}};

static size_t type_of(qkv_weight_format format) {
    for (size_t t = 0;; t++)
        if (block_golden[t].format == format) return t;
}

static void check_shape(qkv_weight_format format, size_t s) {
    const qkv_kern *const *list;
    const size_t n_kern = qkv_kern_list(&list);
    const int block = qkv_weight_block(format);
    /* of small blocks odd numbers too: chunks that are not full */
    const int64_t m = shapes[s][0], n = shapes[s][1],
                  k = block * shapes[s][2] * (block < 256 ? 3 : 1);
    uint8_t *data = make_blocks(type_of(format), (size_t)(n * (k / block)), 5 + s);
    real *x = malloc((size_t)(m * k) * sizeof *x), *c = malloc((size_t)(m * n) * sizeof *c);
    real *bias = malloc((size_t)n * sizeof *bias);
    fill(x, m * k, 3);
    fill(bias, n, 4);
    if (m > 2) memset(x + k, 0, (size_t)k * sizeof *x); /* a row of zeros */
    float *row = malloc((size_t)k * sizeof *row);
    for (size_t i = 0; i < 2 * n_kern; i++) {
        qkv_threads_set(i % 2 ? 3 : 1);
        const qkv_weight w = {.format = format, .rows = n, .cols = k, .data = data};
        const qkv_gemm g = {.m = m,
                            .n = n,
                            .k = k,
                            .a = x,
                            .lda = k,
                            .c = c,
                            .ldc = n,
                            .weight = &w,
                            .bias = bias,
                            .act = QKV_ACT_RELU};
        assert_true(list[i / 2]->gemm(&g));
        for (int64_t r = 0; r < m; r++) {
            for (int64_t p = 0; p < k; p++) row[p] = (float)x[r * k + p];
            for (int64_t j = 0; j < n; j++) {
                const real y = (real)reference(row, &w, j) + bias[j];
                if (c[r * n + j] != (y > 0 ? y : 0))
                    fail_msg("%s %s %dx%dx%d at %d,%d: %.9g, not %.9g", list[i / 2]->name,
                             qkv_weight_format_name(format), (int)m, (int)n, (int)k, (int)r, (int)j,
                             (double)c[r * n + j], (double)y);
            }
        }
    }
    qkv_threads_set(0);
    free(data);
    free(x);
    free(c);
    free(bias);
    free(row);
}

static void products(void **state) {
    (void)state;
    static const qkv_weight_format one_of_each[] = {QKV_WEIGHT_Q4_1, QKV_WEIGHT_Q8_0,
                                                    QKV_WEIGHT_Q2_K, QKV_WEIGHT_Q6_K};
    for (size_t f = 0; f < 4; f++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) check_shape(one_of_each[f], s);
}

/* Every type: near to the product with its values, rows of all types one below the other (parts),
 * and a row alone as in any batch. */
static void near_and_alone(void **state) {
    (void)state;
    enum { M = 20, N = 10, K = 512, PARTS = QKV_WEIGHT_FORMATS };
    const qkv_kern *const *list;
    const size_t n_kern = qkv_kern_list(&list);
    qkv_weight parts[PARTS];
    int32_t n = 0;
    float *floats = malloc(N * K * sizeof *floats);
    uint16_t *halves = malloc(N * K * sizeof *halves);
    for (int i = 0; i < N * K; i++) {
        floats[i] = (float)((i * 37 % 101 - 50) / 64.0);
        halves[i] = (uint16_t)(0x3000 | (i * 7919 & 0x8fff & ~0x4000)); /* f16 below 1 */
    }
    if (sizeof(real) == 4)
        parts[n++] = (qkv_weight){.format = QKV_WEIGHT_F32, .rows = N, .cols = K, .data = floats};
    parts[n++] = (qkv_weight){.format = QKV_WEIGHT_F16, .rows = N, .cols = K, .data = halves};
    const int32_t first = n;
    for (size_t t = 0; t < sizeof block_golden / sizeof *block_golden; t++) {
        const qkv_weight_format f = block_golden[t].format;
        parts[n++] = (qkv_weight){.format = f,
                                  .rows = N,
                                  .cols = K,
                                  .data = make_blocks(t, (size_t)(N * K / qkv_weight_block(f)), t)};
    }
    const int64_t rows = (int64_t)n * N;
    const qkv_weight all = {.rows = rows, .cols = K, .parts = parts, .n_parts = n};
    real *x = malloc(M * K * sizeof *x), *c = malloc((size_t)(M * rows) * sizeof *c);
    real *alone = malloc((size_t)rows * sizeof *alone), w[K];
    fill(x, M * K, 3);
    for (size_t i = 0; i < n_kern; i++) {
        const qkv_gemm g = {
            .m = M, .n = rows, .k = K, .a = x, .lda = K, .c = c, .ldc = rows, .weight = &all};
        assert_true(list[i]->gemm(&g));
        for (int64_t j = 0; j < rows; j++) {
            double sum = 0, size = 0;
            qkv_weight_row_value(&all, j, 1, w);
            for (int p = 0; p < K; p++) {
                sum += (double)w[p] * (double)x[K + p];
                size += (double)w[p] * (double)w[p] * (double)x[K + p] * (double)x[K + p];
            }
            if (!(fabs((double)c[rows + j] - sum) <= 2e-4 * sqrt(size) + 1e-6))
                fail_msg("%s row %d (%s): %g, not %g", list[i]->name, (int)j,
                         qkv_weight_format_name(parts[j / N].format), (double)c[rows + j], sum);
        }
        qkv_gemm one = g;
        one.m = 1, one.a = x + 7 * K, one.c = alone;
        assert_true(list[i]->gemm(&one));
        assert_memory_equal(alone, c + 7 * rows, (size_t)rows * sizeof *c);
    }
    for (int32_t i = first; i < n; i++) free((void *)parts[i].data);
    free(floats);
    free(halves);
    free(x);
    free(c);
    free(alone);
}

/* A number that is not finite spoils its own row alone. */
static void not_finite(void **state) {
    (void)state;
    enum { N = 5, K = 64 };
    const qkv_kern *const *list;
    uint8_t *data = make_blocks(type_of(QKV_WEIGHT_Q4_0), N * K / 32, 1);
    const qkv_weight w = {.format = QKV_WEIGHT_Q4_0, .rows = N, .cols = K, .data = data};
    for (size_t i = 0, n = qkv_kern_list(&list); i < n; i++)
        for (int bad = 0; bad < 2; bad++) {
            real x[2 * K], c[2 * N];
            fill(x, 2 * K, 2);
            x[13] = bad ? (real)INFINITY : (real)NAN;
            const qkv_gemm g = {
                .m = 2, .n = N, .k = K, .a = x, .lda = K, .c = c, .ldc = N, .weight = &w};
            assert_true(list[i]->gemm(&g));
            for (int j = 0; j < N; j++) {
                assert_false(isfinite((double)c[j]));
                assert_true(isfinite((double)c[N + j]));
            }
        }
    free(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_ggufs),
        cmocka_unit_test(products),
        cmocka_unit_test(near_and_alone),
        cmocka_unit_test(not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
