/* The cost of attention alone, forward + backward, over the length of one sequence: full, causal, a
 * local window, and BigBird. Useful work is 4·d multiply-adds' operations for each pair (query,
 * key) that is seen, times three for forward and backward; what is not seen counts nothing. */
#include "bench/benchmark.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/thread.h"
#include "nn/mask_pattern.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *name;
    qkv_pattern pattern;
} patterns[] = {
    {"full", {.kind = QKV_PATTERN_FULL}},
    {"causal", {.kind = QKV_PATTERN_FULL, .causal = true}},
    {"local", {.kind = QKV_PATTERN_LOCAL, .window = 64}},
    {"bigbird",
     {.kind = QKV_PATTERN_BIGBIRD, .window = 64, .global_tokens = 64, .random_links = 3}},
};

/* ---- one measurement ---- */

typedef struct work {
    int64_t n, heads, width;
    qkv_precision precision;
    double seconds, peak; /* for each measurement; GFLOP/s that the CPU has */
    real *memory;         /* q, k, v side by side, their gradients, out, dout, lse */
} work;

typedef struct measured {
    double forward, backward; /* seconds, the best of the runs */
} measured;

static qkv_status measure(const work *w, const qkv_pattern *pattern, measured *out) {
    const int64_t d = w->heads * w->width, n = w->n;
    const int32_t start[2] = {0, (int32_t)n};
    real *qkv = w->memory, *grads = qkv + 3 * n * d, *result = grads + 3 * n * d,
         *dout = result + n * d;
    const qkv_attention a = {
        .heads = (int32_t)w->heads,
        .kv_heads = (int32_t)w->heads,
        .d_head = (int32_t)w->width,
        .d_value = (int32_t)w->width,
        .scale = (real)(1 / sqrt((double)w->width)),
        .q_layout = {.n = 1, .start = start},
        .k_layout = {.n = 1, .start = start},
        .spans = qkv_pattern_spans(pattern),
        .pattern = pattern,
        .precision = w->precision,
        .q = qkv,
        .k = qkv + d,
        .v = qkv + 2 * d,
        .ldq = 3 * d,
        .ldk = 3 * d,
        .ldv = 3 * d,
        .ldo = d,
        .out = result,
        .lse = dout + n * d,
    };
    const qkv_attention_grad g = {
        .dout = dout,
        .dq = grads,
        .dk = grads + d,
        .dv = grads + 2 * d,
        .lddq = 3 * d,
        .lddk = 3 * d,
        .lddv = 3 * d,
        .lddo = d,
    };
    const qkv_kern *kern = qkv_kern_get();
    *out = (measured){INFINITY, INFINITY};
    const double begin = qkv_now();
    do {
        const double t0 = qkv_now();
        if (!kern->attention(&a)) return QKV_FAILED;
        const double t1 = qkv_now();
        if (!kern->attention_grad(&a, &g)) return QKV_FAILED;
        const double t2 = qkv_now();
        out->forward = fmin(out->forward, t1 - t0);
        out->backward = fmin(out->backward, t2 - t1);
    } while (qkv_now() - begin < w->seconds);
    return QKV_OK;
}

/* ---- the table ---- */

typedef struct line {
    const char *pattern;
    int64_t n;
    measured time;
    double gflops, share; /* of useful work; of the measured peak */
    size_t peak_memory;
} line;

static void write_line(const line *l, qkv_json_out *json, qkv_buf *out) {
    if (!json) {
        qkv_buf_printf(out, "%-8s %7lld %10.2f %10.2f %9.1f %6.0f%% %8.0f\n", l->pattern,
                       (long long)l->n, l->time.forward * 1e3, l->time.backward * 1e3, l->gflops,
                       100 * l->share, (double)l->peak_memory / 1048576);
        return;
    }
    const struct {
        const char *key;
        double value;
    } numbers[] = {
        {"n", (double)l->n},
        {"forward_ms", l->time.forward * 1e3},
        {"backward_ms", l->time.backward * 1e3},
        {"gflops", l->gflops},
        {"share_of_peak", l->share},
        {"peak_rss_mib", (double)l->peak_memory / 1048576},
    };
    qkv_json_open(json, '{');
    qkv_json_put_key(json, "pattern");
    qkv_json_put_text(json, l->pattern);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        qkv_json_put_key(json, numbers[i].key);
        qkv_json_put_real(json, numbers[i].value, 6);
    }
    qkv_json_close(json, '}');
}

/* Memory that was never written is one page of zeros,
 * which would be read from the nearest cache. */
static void fill(const work *w) {
    for (int64_t i = 0; i < 8 * w->n * w->heads * w->width; i++)
        w->memory[i] = (real)((double)(i % 1000) / 500 - 1);
}

static qkv_status run_lengths(const qkv_bench_args *args, work *w, int64_t min, int64_t max,
                              qkv_json_out *json, qkv_buf *out) {
    const char *only = qkv_bench_text(args, "pattern", NULL);
    for (w->n = min; w->n <= max; w->n *= 2) /* short first, so that the memory's growth shows */
        for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
            if (only && strcmp(only, patterns[i].name) != 0) continue;
            line l = {.pattern = patterns[i].name, .n = w->n};
            fill(w);
            QKV_TRY(measure(w, &patterns[i].pattern, &l.time));
            const double useful = 12.0 * (double)(w->heads * w->width) *
                                  qkv_pattern_pairs(&patterns[i].pattern, w->n);
            l.gflops = useful / (l.time.forward + l.time.backward) / 1e9;
            l.share = l.gflops / w->peak;
            l.peak_memory = qkv_peak_rss();
            write_line(&l, json, out);
        }
    return QKV_OK;
}

static qkv_status run(const qkv_bench_args *args, qkv_buf *out) {
    int64_t heads = 8, width = 16, min = 512, max = 16384;
    work w = {.seconds = 0.5};
    QKV_TRY(qkv_bench_int(args, "heads", 1, 1024, &heads));
    QKV_TRY(qkv_bench_int(args, "width", 1, 1024, &width));
    QKV_TRY(qkv_bench_int(args, "min", 1, 1 << 20, &min));
    QKV_TRY(qkv_bench_int(args, "max", 1, 1 << 20, &max));
    QKV_TRY(qkv_bench_real(args, "seconds", 0.001, 3600, &w.seconds));
    w.heads = heads, w.width = width;
    QKV_TRY(qkv_bench_precision(args, &w.precision));
    const size_t reals = (size_t)max * (size_t)(8 * heads * width + heads);
    if (!(w.memory = qkv_alloc_aligned(reals * sizeof(real)))) return QKV_FAILED;
    w.peak = qkv_kern_get()->peak_gflops(w.precision, 0.2);
    qkv_json_out j = qkv_json_begin(out, 0);
    if (args->json) {
        qkv_json_open(&j, '{');
        qkv_json_put_key(&j, "peak_gflops");
        qkv_json_put_real(&j, w.peak, 5);
        qkv_json_put_key(&j, "threads");
        qkv_json_put_int(&j, qkv_threads());
        qkv_json_put_key(&j, "lines");
        qkv_json_open(&j, '[');
    } else {
        qkv_buf_printf(out, "%lld heads of %lld, one sequence, %d threads, peak %.0f GFLOP/s\n",
                       (long long)heads, (long long)width, qkv_threads(), w.peak);
        qkv_buf_printf(out, "%-8s %7s %10s %10s %9s %7s %8s\n", "pattern", "N", "forward ms",
                       "backward", "GFLOP/s", "of peak", "peak MiB");
    }
    const qkv_status status = run_lengths(args, &w, min, max, args->json ? &j : NULL, out);
    if (args->json) {
        qkv_json_close(&j, ']');
        qkv_json_close(&j, '}');
        qkv_buf_putc(out, '\n');
    }
    qkv_free(w.memory);
    return status;
}

const qkv_benchmark qkv_bench_attention_kernel = {
    .keys = (const char *const[]){"heads", "width", "min", "max", "seconds", "pattern", "precision",
                                  NULL},
    .run = run,
};
