/* The layer shapes of `qkv bench gemm` with other libraries, in one process and in turn, best of
 * several.
 *
 * Not part of the product: bench/gemm.sh builds it against oneDNN, OpenBLAS and libqkv.a. Each
 * library computes forward y (M,out) = x Wᵀ,   dgrad dx (M,in) = dy W,   wgrad dW (out,in) += dyᵀ x
 * on row-major matrices. In bf16 only oneDNN's matmul has a part, and it gets operands that are
 * bf16 already, where qkv rounds reals on the way; the results are fp32 in both. Prints one line
 * per product: out in what threads, then GFLOP/s of each, then ours ÷ the best other. */
#include <cblas.h>
#include <dnnl.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "kern/kern.h"
#include "qkv.h"

enum { M = 2048, FORWARD = 0, DGRAD, WGRAD, OPS, QKV = 0, DNNL_GEMM, DNNL_MATMUL, OPENBLAS, LIBS };
static const char *const op_names[] = {"forward", "dgrad", "wgrad"};
static const char *const lib_names[] = {"qkv", "dnnl_sgemm", "dnnl matmul", "OpenBLAS"};

typedef struct shape {
    int out, in;
} shape;
static const shape shapes[] = {
#define SHAPE(out, in) {out, in},
#include "bench/bench_gemm.def"
#undef SHAPE
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

typedef struct work {
    int op, m, n, k; /* of the product */
    bool a_trans, b_trans, add;
    const float *a, *b;
    float *c;
    bool bf16;
} work;

static work make_work(int op, shape s, const float *x, const float *y, const float *w, float *out,
                      bool bf16) {
    switch (op) {
    case FORWARD:
        return (work){op, M, s.out, s.in, false, true, false, x, w, out, bf16};
    case DGRAD:
        return (work){op, M, s.in, s.out, false, false, false, y, w, out, bf16};
    default:
        return (work){op, s.out, s.in, M, true, false, true, y, x, out, bf16};
    }
}

static int lda(const work *w) {
    return w->a_trans ? w->m : w->k;
}
static int ldb(const work *w) {
    return w->b_trans ? w->k : w->n;
}

/* ---- oneDNN's matmul primitive, made once for each product (a product that adds has no such form:
 * it writes) ---- */

static dnnl_engine_t engine;
static dnnl_stream_t stream;
typedef struct matmul {
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[3];
} matmul;

static void describe(dnnl_memory_desc_t *d, int rows, int cols, bool trans, bool bf16) {
    const dnnl_dims_t dims = {rows, cols}, strides = {trans ? 1 : cols, trans ? rows : 1};
    dnnl_memory_desc_init_by_strides(d, 2, dims, bf16 ? dnnl_bf16 : dnnl_f32, strides);
}

static matmul make_matmul(const work *w) {
    matmul t;
    dnnl_memory_desc_t d[3];
    describe(&d[0], w->m, w->k, w->a_trans, w->bf16);
    describe(&d[1], w->k, w->n, w->b_trans, w->bf16);
    describe(&d[2], w->m, w->n, false, false);
    dnnl_matmul_desc_t desc;
    dnnl_matmul_desc_init(&desc, &d[0], &d[1], NULL, &d[2]);
    dnnl_primitive_attr_t attr;
    dnnl_primitive_attr_create(&attr);
    if (w->add) {
        dnnl_post_ops_t ops;
        dnnl_post_ops_create(&ops);
        dnnl_post_ops_append_sum(ops, 1);
        dnnl_primitive_attr_set_post_ops(attr, ops);
        dnnl_post_ops_destroy(ops);
    }
    dnnl_primitive_desc_t pd;
    if (dnnl_primitive_desc_create(&pd, &desc, attr, engine, NULL) != dnnl_success) exit(1);
    dnnl_primitive_create(&t.primitive, pd);
    dnnl_primitive_desc_destroy(pd);
    dnnl_primitive_attr_destroy(attr);
    void *const data[] = {(void *)w->a, (void *)w->b, w->c};
    for (int i = 0; i < 3; i++) dnnl_memory_create(&t.memory[i], &d[i], engine, data[i]);
    return t;
}

static void drop_matmul(matmul *t) {
    dnnl_primitive_destroy(t->primitive);
    for (int i = 0; i < 3; i++) dnnl_memory_destroy(t->memory[i]);
}

/* ---- one product ---- */

static void run(int lib, const work *w, const matmul *t) {
    const float beta = w->add ? 1 : 0;
    switch (lib) {
    case QKV: {
        const qkv_gemm g = {.m = w->m,
                            .n = w->n,
                            .k = w->k,
                            .a = w->a,
                            .b = w->b,
                            .c = w->c,
                            .lda = lda(w),
                            .ldb = ldb(w),
                            .ldc = w->n,
                            .a_trans = w->a_trans,
                            .b_trans = w->b_trans,
                            .accumulate = w->add,
                            .precision = w->bf16 ? QKV_BF16 : QKV_F32};
        if (!qkv_kern_get()->gemm(&g)) exit(1);
        break;
    }
    case DNNL_GEMM:
        dnnl_sgemm(w->a_trans ? 'T' : 'N', w->b_trans ? 'T' : 'N', w->m, w->n, w->k, 1, w->a,
                   lda(w), w->b, ldb(w), beta, w->c, w->n);
        break;
    case DNNL_MATMUL: {
        const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, t->memory[0]},
                                        {DNNL_ARG_WEIGHTS, t->memory[1]},
                                        {DNNL_ARG_DST, t->memory[2]}};
        dnnl_primitive_execute(t->primitive, stream, 3, args);
        dnnl_stream_wait(stream);
        break;
    }
    default:
        cblas_sgemm(CblasRowMajor, w->a_trans ? CblasTrans : CblasNoTrans,
                    w->b_trans ? CblasTrans : CblasNoTrans, w->m, w->n, w->k, 1, w->a, lda(w), w->b,
                    ldb(w), beta, w->c, w->n);
    }
}

static bool takes_part(int lib, const work *w) {
    return !w->bf16 || lib == QKV || lib == DNNL_MATMUL;
}

/* Best rate of `rounds` turns, each long enough to time. */
static void measure(const work *w, int rounds, double *rates) {
    const double gflop = 2e-9 * w->m * w->n * w->k;
    const int repeats = gflop > 0.5 ? 1 : (int)(0.5 / gflop) + 1;
    matmul t = make_matmul(w);
    for (int lib = 0; lib < LIBS; lib++) {
        rates[lib] = 0;
        if (takes_part(lib, w)) run(lib, w, &t);
    }
    const double begin = qkv_now();
    for (int round = 0; round < rounds && (round < 2 || qkv_now() - begin < 10); round++)
        for (int lib = 0; lib < LIBS; lib++) {
            if (!takes_part(lib, w)) continue;
            if (repeats > 1) run(lib, w, &t); /* wakes this library's threads */
            const double start = qkv_now();
            for (int i = 0; i < repeats; i++) run(lib, w, &t);
            const double rate = gflop * repeats / (qkv_now() - start);
            if (rate > rates[lib]) rates[lib] = rate;
        }
    drop_matmul(&t);
}

static float *numbers(size_t n) {
    float *const x = qkv_alloc_aligned(n * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = (float)(i * 37 % 256) / 4096 - 1.0f / 32;
    return x;
}

/* usage: gemm_peers [f32|bf16 [threads [rounds [first shape [last shape + 1]]]]] */
int main(int argc, char **argv) {
    const bool bf16 = argc > 1 && strcmp(argv[1], "bf16") == 0;
    const int threads = argc > 2 ? atoi(argv[2]) : 1, rounds = argc > 3 ? atoi(argv[3]) : 5;
    const int from = argc > 4 ? atoi(argv[4]) : 0, to = argc > 5 ? atoi(argv[5]) : SHAPES;
    qkv_threads_set(threads);
    omp_set_num_threads(threads);
    dnnl_engine_create(&engine, dnnl_cpu, 0);
    dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
    printf("# %s, %s, %d threads, peak %.1f GFLOP/s\n", qkv_kern_get()->name, bf16 ? "bf16" : "f32",
           threads, qkv_kern_get()->peak_gflops(bf16 ? QKV_BF16 : QKV_F32, 0.3));
    printf("# %5s %5s %-8s %2s", "out", "in", "what", "T");
    for (int lib = 0; lib < LIBS; lib++) printf(" %11s", lib_names[lib]);
    printf("  ratio\n");
    double logs = 0, worst = INFINITY, sums[LIBS] = {0};
    for (int i = from; i < to; i++) {
        const shape s = shapes[i];
        float *const x = numbers((size_t)M * (size_t)s.in), *const y =
                                                                numbers((size_t)M * (size_t)s.out);
        float *const w = numbers((size_t)s.out * (size_t)s.in), *const dw = numbers((size_t)s.out *
                                                                                    (size_t)s.in);
        for (int op = 0; op < OPS; op++) {
            const work job = make_work(op, s, x, y, w,
                                       op == FORWARD ? y
                                       : op == DGRAD ? x
                                                     : dw,
                                       bf16);
            double rates[LIBS], best = 0;
            measure(&job, rounds, rates);
            printf("  %5d %5d %-8s %2d", s.out, s.in, op_names[op], threads);
            for (int lib = 0; lib < LIBS; lib++) {
                printf(" %11.1f", rates[lib]);
                sums[lib] += rates[lib] > 0 ? log(rates[lib]) : 0;
                if (lib != QKV && rates[lib] > best) best = rates[lib];
            }
            const double ratio = rates[QKV] / best;
            printf("  %.3f\n", ratio);
            fflush(stdout);
            logs += log(ratio);
            if (ratio < worst) worst = ratio;
        }
        qkv_free(x), qkv_free(y), qkv_free(w), qkv_free(dw);
    }
    printf("# geometric means           ");
    for (int lib = 0; lib < LIBS; lib++) /* 0: takes no part */
        printf(" %11.1f", sums[lib] > 0 ? exp(sums[lib] / ((to - from) * OPS)) : 0.0);
    printf("  %.3f (worst %.3f)\n", exp(logs / ((to - from) * OPS)), worst);
    return 0;
}
