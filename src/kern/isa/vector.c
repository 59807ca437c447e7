/* Elementwise kernels and simple sums.
 *
 * Large arrays are cut into blocks that threads share; elementwise results cannot depend on the
 * cut, and sums are taken per block (or per strip of columns) in a fixed order. */
#include "base/thread.h"
#include "kern/isa/math.h"
#include "kern/isa/pairs.h"
#include "kern/isa/random.h"

#define BLOCK 8192

/* for each block [b, b + count) of n elements, in parallel when there are many */
#define FOR_BLOCKS(b, n)                                                                           \
    QKV_PARALLEL_FOR_IF((n) >= QKV_PARALLEL_FROM)                                                  \
    for (int64_t b = 0; b < (n); b += BLOCK)

static inline int64_t span(int64_t b, int64_t n) {
    return n - b < BLOCK ? n - b : BLOCK;
}

typedef vreal binary(vreal x, vreal y, vreal a);

/* z[i] = f(x[i], y[i], a); the tail goes through the same vector code. */
static inline __attribute__((always_inline)) void map(binary *f, const real *x, const real *y,
                                                      real a, real *z, int64_t n) {
    const vreal av = v_set(a);
    int64_t i = 0;
    for (; i + VW <= n; i += VW) v_store(z + i, f(v_load(x + i), v_load(y + i), av));
    if (i < n) v_store_n(z + i, f(v_load_n(x + i, n - i), v_load_n(y + i, n - i), av), n - i);
}

static inline vreal sum2(vreal x, vreal y, vreal a) {
    (void)a;
    return x + y;
}
static inline vreal product2(vreal x, vreal y, vreal a) {
    (void)a;
    return x * y;
}
static inline vreal scaled(vreal x, vreal y, vreal a) {
    (void)y;
    return a * x;
}
static inline vreal added(vreal x, vreal y, vreal a) {
    return v_fma(a, x, y);
}
static inline vreal exponential(vreal x, vreal y, vreal a) {
    (void)y, (void)a;
    return v_exp(x);
}

void KERN_NAME(add)(const real *x, const real *y, real *z, int64_t n) {
    FOR_BLOCKS(b, n) map(sum2, x + b, y + b, 0, z + b, span(b, n));
}

void KERN_NAME(mul)(const real *x, const real *y, real *z, int64_t n) {
    FOR_BLOCKS(b, n) map(product2, x + b, y + b, 0, z + b, span(b, n));
}

void KERN_NAME(axpy)(real a, const real *x, real *y, int64_t n) {
    FOR_BLOCKS(b, n) map(added, x + b, y + b, a, y + b, span(b, n));
}

void KERN_NAME(scale)(real a, const real *x, real *y, int64_t n) {
    FOR_BLOCKS(b, n) map(scaled, x + b, x + b, a, y + b, span(b, n));
}

void KERN_NAME(exp)(const real *x, real *y, int64_t n) {
    FOR_BLOCKS(b, n) map(exponential, x + b, x + b, 0, y + b, span(b, n));
}

/* ---- activations ---- */

/* `act` is a constant where these are inlined: the loop is then free of choices, and its constants
 * stay in registers. */
static inline __attribute__((always_inline)) void act_loop(qkv_act act, const real *x, real *y,
                                                           int64_t n) {
    int64_t i = 0;
    for (; i + VW <= n; i += VW) v_store(y + i, v_act(act, v_load(x + i)));
    if (i < n) v_store_n(y + i, v_act(act, v_load_n(x + i, n - i)), n - i);
}

static inline __attribute__((always_inline)) void
act_grad_loop(qkv_act act, const real *x, const real *y, const real *dy, real *dx, int64_t n) {
    int64_t i = 0;
    for (; i + VW <= n; i += VW)
        v_store(dx + i, v_load(dy + i) * v_act_grad(act, v_load(x + i), v_load(y + i)));
    if (i < n) {
        vreal slope = v_act_grad(act, v_load_n(x + i, n - i), v_load_n(y + i, n - i));
        v_store_n(dx + i, v_load_n(dy + i, n - i) * slope, n - i);
    }
}

#define FOR_ACTS(CASE)                                                                             \
    CASE(NONE) CASE(RELU) CASE(GELU) CASE(GELU_TANH) CASE(SILU) CASE(TANH) CASE(SIGMOID)

static void act_run(qkv_act act, const real *x, real *y, int64_t n) {
    switch (act) {
#define CASE(name)                                                                                 \
    case QKV_ACT_##name:                                                                           \
        act_loop(QKV_ACT_##name, x, y, n);                                                         \
        break;
        FOR_ACTS(CASE)
#undef CASE
    case QKV_ACT_COUNT:
        break;
    }
}

static void act_grad_run(qkv_act act, const real *x, const real *y, const real *dy, real *dx,
                         int64_t n) {
    switch (act) {
#define CASE(name)                                                                                 \
    case QKV_ACT_##name:                                                                           \
        act_grad_loop(QKV_ACT_##name, x, y, dy, dx, n);                                            \
        break;
        FOR_ACTS(CASE)
#undef CASE
    case QKV_ACT_COUNT:
        break;
    }
}

void KERN_NAME(act)(qkv_act act, const real *x, real *y, int64_t n) {
    FOR_BLOCKS(b, n) act_run(act, x + b, y + b, span(b, n));
}

void KERN_NAME(act_grad)(qkv_act act, const real *x, const real *y, const real *dy, real *dx,
                         int64_t n) {
    if (!x) x = y; /* the activations that may leave x out do not look at it, nor the others at y */
    if (!y) y = x;
    FOR_BLOCKS(b, n) act_grad_run(act, x + b, y + b, dy + b, dx + b, span(b, n));
}

static inline __attribute__((always_inline)) void slopes_loop(qkv_act act, real *x, real *y,
                                                              int64_t n) {
    int64_t i = 0;
    for (; i + VW <= n; i += VW) {
        const vreal in = v_load(x + i), out = v_act(act, in);
        v_store(y + i, out);
        v_store(x + i, v_act_grad(act, in, out));
    }
    if (i < n) {
        const vreal in = v_load_n(x + i, n - i), out = v_act(act, in);
        v_store_n(y + i, out, n - i);
        v_store_n(x + i, v_act_grad(act, in, out), n - i);
    }
}

static void slopes_run(qkv_act act, real *x, real *y, int64_t n) {
    switch (act) {
#define CASE(name)                                                                                 \
    case QKV_ACT_##name:                                                                           \
        slopes_loop(QKV_ACT_##name, x, y, n);                                                      \
        break;
        FOR_ACTS(CASE)
#undef CASE
    case QKV_ACT_COUNT:
        break;
    }
}

void KERN_NAME(act_slopes)(qkv_act act, real *x, real *y, int64_t n) {
    FOR_BLOCKS(b, n) slopes_run(act, x + b, y + b, span(b, n));
}

static void gate_row(qkv_act act, const real *a, const real *b, real *y, int64_t d) {
    for (int64_t i = 0; i < d; i += VW) {
        int64_t n = d - i < VW ? d - i : VW;
        v_store_n(y + i, v_act(act, v_load_n(a + i, n)) * v_load_n(b + i, n), n);
    }
}

void KERN_NAME(gate)(qkv_act act, const real *ab, real *y, int64_t rows, int64_t d) {
    QKV_PARALLEL_FOR_IF(rows * d >= QKV_PARALLEL_FROM)
    for (int64_t r = 0; r < rows; r++)
        gate_row(act, ab + r * 2 * d, ab + r * 2 * d + d, y + r * d, d);
}

/* da = dy·b·act'(a), db = dy·act(a) */
static void gate_grad_row(qkv_act act, const real *ab, const real *dy, real *dab, int64_t d) {
    for (int64_t i = 0; i < d; i += VW) {
        int64_t n = d - i < VW ? d - i : VW;
        vreal a = v_load_n(ab + i, n), b = v_load_n(ab + d + i, n), g = v_load_n(dy + i, n);
        vreal y = v_act(act, a);
        v_store_n(dab + i, g * b * v_act_grad(act, a, y), n);
        v_store_n(dab + d + i, g * y, n);
    }
}

void KERN_NAME(gate_grad)(qkv_act act, const real *ab, const real *dy, real *dab, int64_t rows,
                          int64_t d) {
    QKV_PARALLEL_FOR_IF(rows * d >= QKV_PARALLEL_FROM)
    for (int64_t r = 0; r < rows; r++)
        gate_grad_row(act, ab + r * 2 * d, dy + r * d, dab + r * 2 * d, d);
}

/* ---- bf16 ---- */

typedef uint16_t vhalf __attribute__((vector_size(VW * sizeof(uint16_t)), aligned(2), may_alias));

static inline vreal half_to_real(vhalf x) {
#ifdef QKV_DOUBLE
    vreal y;
    for (int i = 0; i < VW; i++) y[i] = (real)qkv_bf16_value(x[i]);
    return y;
#else
    return (vreal)(__builtin_convertvector(x, vbits) << 16);
#endif
}

static inline vhalf real_to_half(vreal x) {
#ifdef QKV_DOUBLE
    vhalf y;
    for (int i = 0; i < VW; i++) y[i] = qkv_bf16_of((float)x[i]);
    return y;
#else
    return __builtin_convertvector(to_bf16((vbits)x) >> 16, vhalf);
#endif
}

void KERN_NAME(narrow)(real *x, uint16_t *out, int64_t n) {
    FOR_BLOCKS(b, n) {
        const int64_t end = b + span(b, n);
        int64_t i = b;
        for (; i + VW <= end; i += VW) {
            const vhalf half = real_to_half(v_load(x + i));
            *(vhalf *)(out + i) = half;
            v_store(x + i, half_to_real(half));
        }
        if (i == end) continue;
        const vhalf half = real_to_half(v_load_n(x + i, end - i));
        memcpy(out + i, &half, (size_t)(end - i) * sizeof *out);
        v_store_n(x + i, half_to_real(half), end - i);
    }
}

void KERN_NAME(widen)(const uint16_t *x, real *out, int64_t n) {
    FOR_BLOCKS(b, n) {
        const int64_t end = b + span(b, n);
        int64_t i = b;
        for (; i + VW <= end; i += VW) v_store(out + i, half_to_real(*(const vhalf *)(x + i)));
        vhalf rest = {0};
        memcpy(&rest, x + i, (size_t)(end - i) * sizeof *x);
        if (i < end) v_store_n(out + i, half_to_real(rest), end - i);
    }
}

/* ---- sums and searches ---- */

#define SUM_BLOCKS 64

/* Σ x² of each of at most 64 blocks in double, then the blocks in order. */
double KERN_NAME(sum_squares)(const real *x, int64_t n) {
    double part[SUM_BLOCKS] = {0};
    const int64_t size = (n + SUM_BLOCKS - 1) / SUM_BLOCKS;
    QKV_PARALLEL_FOR_IF(n >= QKV_PARALLEL_FROM)
    for (int b = 0; b < SUM_BLOCKS; b++) {
        int64_t end = (b + 1) * size < n ? (b + 1) * size : n;
        double lane[8] = {0};
        int64_t i = b * size;
        for (; i + 8 <= end; i += 8)
            for (int l = 0; l < 8; l++) lane[l] += (double)x[i + l] * (double)x[i + l];
        for (; i < end; i++) lane[0] += (double)x[i] * (double)x[i];
        for (int l = 0; l < 8; l++) part[b] += lane[l];
    }
    double sum = 0;
    for (int b = 0; b < SUM_BLOCKS; b++) sum += part[b];
    return sum;
}

int64_t KERN_NAME(first_not_finite)(const real *x, int64_t n) {
    for (int64_t b = 0; b < n; b += BLOCK) {
        /* x − x is 0 for a number and NaN for ∞ and NaN, so a sum tells whether to look closer */
        vreal bad = v_set(0);
        int64_t count = span(b, n);
        for (int64_t i = 0; i < count; i += VW) {
            vreal v = v_load_n(x + b + i, count - i < VW ? count - i : VW);
            bad = bad + (v - v);
        }
        if (v_sum(bad) == 0) continue;
        for (int64_t i = b; i < b + count; i++)
            if (!isfinite(x[i])) return i;
    }
    return -1;
}

#define SUM_STRIP 64 /* columns that one owner sums */
#define SUM_STRIP_ROWS                                                                             \
    64 /* rows summed before they are added to the total: keeps the rounding error small */

/* Each strip of columns has one owner, so that no partial sums need memory. */
void KERN_NAME(column_sums)(const real *x, int64_t rows, int64_t d, int64_t ld, real *out) {
    QKV_PARALLEL_FOR_IF(rows * d >= QKV_PARALLEL_FROM)
    for (int64_t c = 0; c < d; c += SUM_STRIP) {
        const int64_t width = d - c < SUM_STRIP ? d - c : SUM_STRIP;
        real total[SUM_STRIP] = {0};
        for (int64_t r0 = 0; r0 < rows; r0 += SUM_STRIP_ROWS) {
            const int64_t r1 = r0 + SUM_STRIP_ROWS < rows ? r0 + SUM_STRIP_ROWS : rows;
            real part[SUM_STRIP] = {0};
            for (int64_t r = r0; r < r1; r++)
                for (int64_t j = 0; j < width; j++) part[j] += x[r * ld + c + j];
            for (int64_t j = 0; j < width; j++) total[j] += part[j];
        }
        for (int64_t j = 0; j < width; j++) out[c + j] += total[j];
    }
}

/* ---- dropout, transpose ---- */

void KERN_NAME(dropout)(const real *x, real *y, int64_t n, real p, qkv_rng rng, int64_t index0) {
    FOR_BLOCKS(b, n) {
        const int64_t end = b + span(b, n);
        real factors[DROP_RUN];
        for (int64_t i = b; i < end; i += DROP_RUN) {
            const int64_t count = end - i < DROP_RUN ? end - i : DROP_RUN;
            drop_factors(rng, (uint64_t)(index0 + i), count, p, factors);
            map(product2, x + i, factors, 0, y + i, count);
        }
    }
}

/* Blocks of VW×VW in registers; what does not fill one, element by element. */
void KERN_NAME(transpose)(const real *x, int64_t rows, int64_t cols, int64_t ldx, real *y,
                          int64_t ldy) {
    QKV_PARALLEL_FOR_IF(rows * cols >= QKV_PARALLEL_FROM)
    for (int64_t c0 = 0; c0 < cols; c0 += VW)
        for (int64_t r0 = 0; r0 < rows; r0 += VW) {
            if (c0 + VW <= cols && r0 + VW <= rows) {
                vreal t[VW];
                V_UNROLL(16)
                for (int i = 0; i < VW; i++) t[i] = v_load(x + (r0 + i) * ldx + c0);
                v_transpose(t);
                V_UNROLL(16)
                for (int i = 0; i < VW; i++) v_store(y + (c0 + i) * ldy + r0, t[i]);
                continue;
            }
            for (int64_t c = c0; c < cols && c < c0 + VW; c++)
                for (int64_t r = r0; r < rows && r < r0 + VW; r++) y[c * ldy + r] = x[r * ldx + c];
        }
}
