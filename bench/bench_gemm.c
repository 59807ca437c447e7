/* Matrix products of linear layers: forward, gradient of the input, gradient of the weights, for
 * the shapes in bench_gemm.def, as GFLOP/s and as a share of the peak that this CPU reaches from
 * registers. The best of several runs counts: a shared machine can only make a run slower. */
#include "bench/benchmark.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/thread.h"
#include "kern/kern.h"

#include <math.h>
#include <string.h>

static const struct shape {
    int64_t out, in;
} shapes[] = {
#define SHAPE(out, in) {out, in},
#include "bench/bench_gemm.def"
#undef SHAPE
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static const char *const products[] = {"forward", "dgrad", "wgrad"};
enum { PRODUCTS = sizeof products / sizeof *products };

static const char *const precisions[] = {[QKV_F32] = "f32", [QKV_BF16] = "bf16"};
enum { PRECISIONS = sizeof precisions / sizeof *precisions };

typedef struct layer {
    int64_t m;
    struct shape shape;
    real *x, *y, *w, *dw; /* (M, in), (M, out), (out, in) twice */
} layer;

typedef struct result {
    double peak, mean; /* GFLOP/s; mean is geometric */
    double rate[SHAPES][PRODUCTS];
} result;

/* The products of ops/linear.c; each overwrites or adds to what the others only read. */
static qkv_gemm product(const layer *l, int kind, qkv_precision precision) {
    const int64_t m = l->m, out = l->shape.out, in = l->shape.in;
    qkv_gemm g;
    if (kind == 0) /* y = x Wᵀ */
        g = (qkv_gemm){.m = m, .n = out, .k = in, .a = l->x, .b = l->w, .c = l->y, .b_trans = true};
    else if (kind == 1) /* dx = dy W */
        g = (qkv_gemm){.m = m, .n = in, .k = out, .a = l->y, .b = l->w, .c = l->x};
    else /* dW += dyᵀ x */
        g = (qkv_gemm){.m = out,
                       .n = in,
                       .k = m,
                       .a = l->y,
                       .b = l->x,
                       .c = l->dw,
                       .a_trans = true,
                       .accumulate = true};
    g.lda = g.a_trans ? g.m : g.k;
    g.ldb = g.b_trans ? g.k : g.n;
    g.ldc = g.n;
    g.precision = precision;
    return g;
}

/* Best rate within the time given, after one run that is not counted. */
static qkv_status measure(const qkv_gemm *g, double seconds, double *rate) {
    const qkv_kern *const kern = qkv_kern_get();
    const double gflop = 2e-9 * (double)g->m * (double)g->n * (double)g->k;
    if (!kern->gemm(g)) return QKV_FAILED;
    const double start = qkv_now();
    *rate = 0;
    do {
        const double begin = qkv_now();
        if (!kern->gemm(g)) return QKV_FAILED;
        const double now = gflop / (qkv_now() - begin);
        if (now > *rate) *rate = now;
    } while (qkv_now() - start < seconds);
    return QKV_OK;
}

/* Small numbers, so that sums stay finite however often they are added to. */
static real *numbers(int64_t n) {
    real *const x = qkv_alloc_aligned((size_t)n * sizeof *x);
    for (int64_t i = 0; x && i < n; i++) x[i] = (real)(i * 37 % 256 - 128) / 4096;
    return x;
}

static qkv_status measure_shape(int64_t m, size_t s, double seconds, const bool wanted[PRECISIONS],
                                result results[PRECISIONS]) {
    const struct shape shape = shapes[s];
    layer l = {.m = m, .shape = shape};
    qkv_status status = QKV_FAILED;
    if ((l.x = numbers(m * shape.in)) && (l.y = numbers(m * shape.out)) &&
        (l.w = numbers(shape.out * shape.in)) && (l.dw = numbers(shape.out * shape.in))) {
        status = QKV_OK;
        for (int p = 0; p < PRECISIONS; p++)
            for (int kind = 0; status == QKV_OK && wanted[p] && kind < PRODUCTS; kind++) {
                const qkv_gemm g = product(&l, kind, (qkv_precision)p);
                status = measure(&g, seconds, &results[p].rate[s][kind]);
            }
    }
    qkv_free(l.x);
    qkv_free(l.y);
    qkv_free(l.w);
    qkv_free(l.dw);
    return status;
}

static double geometric_mean(const result *r) {
    double logs = 0;
    for (size_t s = 0; s < SHAPES; s++)
        for (int kind = 0; kind < PRODUCTS; kind++) logs += log(r->rate[s][kind]);
    return exp(logs / (SHAPES * PRODUCTS));
}

static void print_table(qkv_buf *out, const result *r, int precision, int64_t m) {
    const qkv_kern *const kern = qkv_kern_get();
    qkv_buf_printf(out,
                   "%s, %s, %d threads, M = %lld: GFLOP/s and share of the peak, %.1f GFLOP/s\n",
                   precisions[precision], kern->name, qkv_threads(), (long long)m, r->peak);
    if (precision == QKV_BF16 && !kern->bf16)
        qkv_buf_puts(out,
                     "(this CPU has no bf16 dot product: rounded to bf16, multiplied in fp32)\n");
    qkv_buf_printf(out, "%6s %6s", "out", "in");
    for (int kind = 0; kind < PRODUCTS; kind++) qkv_buf_printf(out, "  %13s", products[kind]);
    qkv_buf_putc(out, '\n');
    for (size_t s = 0; s < SHAPES; s++) {
        qkv_buf_printf(out, "%6lld %6lld", (long long)shapes[s].out, (long long)shapes[s].in);
        for (int kind = 0; kind < PRODUCTS; kind++)
            qkv_buf_printf(out, "  %7.1f %3.0f %%", r->rate[s][kind],
                           100 * r->rate[s][kind] / r->peak);
        qkv_buf_putc(out, '\n');
    }
    qkv_buf_printf(out, "geometric mean   %.1f GFLOP/s, %.0f %% of the peak\n", r->mean,
                   100 * r->mean / r->peak);
}

static void print_json(qkv_json_out *j, const result *r, int precision) {
    qkv_json_open(j, '{');
    qkv_json_put_key(j, "precision");
    qkv_json_put_text(j, precisions[precision]);
    qkv_json_put_key(j, "peak_gflops");
    qkv_json_put_real(j, r->peak, 5);
    qkv_json_put_key(j, "mean_gflops");
    qkv_json_put_real(j, r->mean, 5);
    qkv_json_put_key(j, "shapes");
    qkv_json_open(j, '[');
    for (size_t s = 0; s < SHAPES; s++) {
        qkv_json_open(j, '{');
        qkv_json_put_key(j, "out");
        qkv_json_put_int(j, shapes[s].out);
        qkv_json_put_key(j, "in");
        qkv_json_put_int(j, shapes[s].in);
        for (int kind = 0; kind < PRODUCTS; kind++) {
            qkv_json_put_key(j, products[kind]);
            qkv_json_put_real(j, r->rate[s][kind], 5);
        }
        qkv_json_close(j, '}');
    }
    qkv_json_close(j, ']');
    qkv_json_close(j, '}');
}

static void print(const qkv_bench_args *args, qkv_buf *out, const bool wanted[PRECISIONS],
                  const result results[PRECISIONS], int64_t m) {
    if (!args->json) {
        for (int p = 0; p < PRECISIONS; p++)
            if (wanted[p]) print_table(out, &results[p], p, m);
        return;
    }
    qkv_json_out j = qkv_json_begin(out, 0);
    qkv_json_open(&j, '{');
    qkv_json_put_key(&j, "isa");
    qkv_json_put_text(&j, qkv_kern_get()->name);
    qkv_json_put_key(&j, "threads");
    qkv_json_put_int(&j, qkv_threads());
    qkv_json_put_key(&j, "m");
    qkv_json_put_int(&j, m);
    qkv_json_put_key(&j, "results");
    qkv_json_open(&j, '[');
    for (int p = 0; p < PRECISIONS; p++)
        if (wanted[p]) print_json(&j, &results[p], p);
    qkv_json_close(&j, ']');
    qkv_json_close(&j, '}');
    qkv_buf_putc(out, '\n');
}

static qkv_status run(const qkv_bench_args *args, qkv_buf *out) {
    double seconds = 6;
    int64_t m = 2048;
    QKV_TRY(qkv_bench_real(args, "seconds", 0.001, 3600, &seconds));
    QKV_TRY(qkv_bench_int(args, "m", 1, 1 << 16, &m));
    qkv_precision only = QKV_F32;
    QKV_TRY(qkv_bench_precision(args, &only));
    const bool all = !qkv_bench_text(args, "precision", NULL);
    bool wanted[PRECISIONS];
    int n_wanted = 0;
    for (int p = 0; p < PRECISIONS; p++) n_wanted += wanted[p] = all || p == (int)only;
    result results[PRECISIONS] = {0};
    const double each = seconds / (SHAPES * PRODUCTS * n_wanted);
    for (size_t s = 0; s < SHAPES; s++) QKV_TRY(measure_shape(m, s, each, wanted, results));
    for (int p = 0; p < PRECISIONS; p++) {
        if (!wanted[p]) continue;
        results[p].peak = qkv_kern_get()->peak_gflops((qkv_precision)p, seconds / 20);
        results[p].mean = geometric_mean(&results[p]);
    }
    print(args, out, wanted, results, m);
    return QKV_OK;
}

const qkv_benchmark qkv_bench_gemm = {
    .keys = (const char *const[]){"seconds", "m", "precision", NULL},
    .run = run,
};
