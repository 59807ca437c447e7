/* The matrix product C = act(op(A)·op(B) [+ C] + bias).
 *
 * op(B) is laid out as K×N once; then each row of C is a sum of rows of op(B), k in order, so that
 * an element's bits depend on neither its neighbours nor the threads. */
#include "kern/simd.h"
#include "base/clock.h"
#include "base/thread.h"

#define KERN(ret, name, params) ret KERN_NAME(name) params;
#include "kern/kern.def"
#undef KERN

size_t KERN_NAME(gemm_pack_size)(const qkv_gemm *g) {
    return (size_t)(g->k * g->n);
}

/* Rounds to bf16, to nearest even; NaN stays NaN. */
static real round_bf16(real x) {
    const float f = (float)x;
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    if ((u & 0x7fffffffu) > 0x7f800000u) return x;
    u = (u + 0x7fffu + ((u >> 16) & 1)) & 0xffff0000u;
    float r;
    memcpy(&r, &u, sizeof r);
    return (real)r;
}

static real rounded(qkv_precision precision, real x) {
    return precision == QKV_BF16 ? round_bf16(x) : x;
}

void KERN_NAME(gemm_pack)(const qkv_gemm *g, real *out) {
    QKV_PARALLEL_FOR
    for (int64_t p = 0; p < g->k; p++)
        for (int64_t j = 0; j < g->n; j++)
            out[p * g->n + j] =
                rounded(g->precision, g->b_trans ? g->b[j * g->ldb + p] : g->b[p * g->ldb + j]);
}

static void one_row(const qkv_gemm *g, const real *b, int64_t i) {
    real *const c = g->c + i * g->ldc;
    for (int64_t j = 0; j < g->n; j += VW) {
        const int64_t w = g->n - j < VW ? g->n - j : VW;
        vreal sum = g->accumulate ? v_load_n(c + j, w) : v_set(0);
        for (int64_t p = 0; p < g->k; p++) {
            const real a = g->a_trans ? g->a[p * g->lda + i] : g->a[i * g->lda + p];
            sum = v_fma(v_set(rounded(g->precision, a)), v_load_n(b + p * g->n + j, w), sum);
        }
        if (g->bias) sum += v_load_n(g->bias + j, w);
        v_store_n(c + j, sum, w);
    }
    if (g->pre) memcpy(g->pre + i * g->ldc, c, (size_t)g->n * sizeof *c);
    if (g->act != QKV_ACT_NONE) KERN_NAME(act)(g->act, c, c, g->n);
}

bool KERN_NAME(gemm)(const qkv_gemm *g) {
    const real *b = g->b_packed;
    if (!b) {
        real *const packed = qkv_kern_scratch(0, KERN_NAME(gemm_pack_size)(g) * sizeof *packed);
        if (!packed) return false;
        KERN_NAME(gemm_pack)(g, packed);
        b = packed;
    }
    QKV_PARALLEL_FOR
    for (int64_t i = 0; i < g->m; i++) one_row(g, b, i);
    return true;
}

double KERN_NAME(peak_gflops)(qkv_precision precision, double seconds) {
    (void)precision; /* sums are fp32 multiply-adds here in both precisions */
    enum { CHAINS = 12, ROUNDS = 100000 };
    double best = 0;
    const double start = qkv_now();
    do {
        const double t0 = qkv_now();
        const int threads = qkv_threads();
        real sink[QKV_THREADS_MAX];
        QKV_PARALLEL_FOR
        for (int t = 0; t < threads; t++) {
            vreal s[CHAINS];
            for (int c = 0; c < CHAINS; c++) s[c] = v_set((real)c);
            const vreal x = v_set((real)0.5), y = v_set((real)(t + 1));
            for (int r = 0; r < ROUNDS; r++)
                for (int c = 0; c < CHAINS; c++) s[c] = v_fma(s[c], x, y);
            for (int c = 1; c < CHAINS; c++) s[0] += s[c];
            sink[t] = v_sum(s[0]);
        }
        const double elapsed = qkv_now() - t0;
        const double rate = 2.0 * VW * CHAINS * ROUNDS * threads / elapsed * 1e-9;
        if (sink[0] == sink[0] && rate > best) best = rate;
    } while (qkv_now() - start < seconds);
    return best;
}
