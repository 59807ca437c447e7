/* The most multiply-adds this CPU can do, from registers: what a product's speed is measured
 * against. */
#include "kern/isa/gemm.h"
#include "base/clock.h"
#include "base/thread.h"

#define KERN(ret, name, params) ret KERN_NAME(name) params;
#include "kern/kern.def"
#undef KERN

/* Enough independent sums to hide a multiply-add's latency (4 cycles × 2 units) in as many
 * registers as a tile has. */
#define CHAINS (2 * MR)
#define ROUNDS 100000

static real chains(bool pairs, real x) {
    vreal s[CHAINS];
    V_UNROLL(32)
    for (int c = 0; c < CHAINS; c++) s[c] = v_set(x + (real)c);
    const vreal half = v_set((real)0.5), add = v_set(x);
    for (int r = 0; r < ROUNDS; r++) V_UNROLL(32)
    for (int c = 0; c < CHAINS; c++)
        s[c] = pairs ? v_dot_pairs(half, add, s[c]) : v_fma(s[c], half, add);
    V_UNROLL(32)
    for (int c = 1; c < CHAINS; c++) s[0] += s[c];
    return v_sum(s[0]);
}

double KERN_NAME(peak_gflops)(qkv_precision precision, double seconds) {
    const bool pairs = HAS_PAIRS && precision == QKV_BF16;
    const int threads = qkv_threads();
    const double flops = 2.0 * (pairs ? 2 : 1) * VW * CHAINS * ROUNDS * threads;
    real sink[QKV_THREADS_MAX];
    double best = 0;
    const double start = qkv_now();
    do {
        const double t0 = qkv_now();
        QKV_PARALLEL_FOR
        for (int t = 0; t < threads; t++) sink[t] = chains(pairs, (real)t);
        const double rate = flops / (qkv_now() - t0) * 1e-9;
        if (sink[0] == sink[0] && rate > best)
            best = rate; /* the sums are used, so they are made */
    } while (qkv_now() - start < seconds);
    return best;
}
