/* What a layer costs as sequences grow: one layer of width 128 with each kind of attention, and an
 * LSTM, forward and backward over one sequence of N tokens. The claim that all but full attention
 * are linear in N is read off the column "to linear": the time of a token at N over that at the
 * first length. */
#include "bench/benchmark.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/thread.h"
#include "draw/chart.h"
#include "model/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COMMON                                                                                     \
    "task=classify vocab_size=256 layers=1 d_model=128 heads=8 d_ff=512 dropout=0 "                \
    "position=sinusoidal max_len=16 norm=pre window=64 global_tokens=2 random_links=2 "            \
    "linformer_rank=128 bidirectional=false "

static const struct {
    const char *name, *settings;
} kinds[] = {
    {"full", "attention=full"},
    {"local", "attention=local"},
    {"bigbird", "attention=bigbird"},
    {"linformer", "attention=linformer"},
    {"lstm", "arch=lstm bidirectional=false"},
};
enum { KINDS = sizeof kinds / sizeof *kinds, LENGTHS_MAX = 12, ROUNDS = 8 };

/* Best seconds of a training step's forward and backward pass; 0 when the length is left out. */
typedef struct curves {
    size_t n;
    double length[LENGTHS_MAX], seconds[KINDS][LENGTHS_MAX];
} curves;

static qkv_status make_model(const char *settings, int64_t longest, qkv_model **out) {
    qkv_config config;
    qkv_config_default(&config);
    const qkv_settings s = qkv_config_settings(&config);
    QKV_TRY(qkv_settings_assign(&s, 1, COMMON));
    QKV_TRY(qkv_settings_assign(&s, 1, settings));
    config.max_len = longest;
    QKV_TRY(qkv_model_build(&config, out));
    qkv_status status = qkv_model_allocate(*out, true);
    if (status == QKV_OK) qkv_model_initialise(*out, 1);
    if (status != QKV_OK) qkv_model_free(*out);
    return status;
}

static qkv_status pass(qkv_tape *t, qkv_model *m, const int32_t *ids, int32_t n, uint64_t step) {
    const int32_t start[] = {0, n}, label[] = {1};
    const qkv_tokens tokens = {.layout = {.n = 1, .start = start}, .ids = ids, .rows = n};
    const qkv_xent_spec spec = {.targets = label};
    qkv_tape_begin(t, QKV_TRAIN, 1, step);
    qkv_tensor *loss = qkv_xent(t, qkv_model_classify(t, m, &tokens), NULL, NULL, &spec);
    QKV_TRY(qkv_tape_status(t));
    return qkv_tape_backward(t, &loss, 1);
}

/* At least one pass, and more until `seconds` are over. */
static qkv_status measure(qkv_tape *t, qkv_model *m, const int32_t *ids, int32_t n, double seconds,
                          double *best) {
    const double begin = qkv_now();
    for (uint64_t step = 0; !step || qkv_now() - begin < seconds; step++) {
        const double from = qkv_now();
        QKV_TRY(pass(t, m, ids, n, step));
        *best = fmin(*best, qkv_now() - from);
    }
    return QKV_OK;
}

static qkv_status measure_kind(size_t kind, const int32_t *ids, double seconds, curves *c) {
    qkv_model *m;
    qkv_tape t;
    QKV_TRY(make_model(kinds[kind].settings, (int64_t)c->length[c->n - 1], &m));
    qkv_status status = qkv_tape_init(&t);
    /* All lengths in turn, several times, so that what else the machine does slows them alike; the
     * longest goes first, to make the memory. */
    if (status == QKV_OK) status = pass(&t, m, ids, (int32_t)c->length[c->n - 1], 0);
    for (size_t i = 0; i < c->n; i++) c->seconds[kind][i] = INFINITY;
    for (size_t k = 0; k < ROUNDS * c->n && status == QKV_OK; k++)
        status = measure(&t, m, ids, (int32_t)c->length[k % c->n], seconds / ROUNDS,
                         &c->seconds[kind][k % c->n]);
    qkv_tape_free(&t);
    qkv_model_free(m);
    return status;
}

/* ---- what it says ---- */

static double to_linear(const curves *c, size_t kind, size_t i) {
    return c->seconds[kind][i] / c->length[i] / (c->seconds[kind][0] / c->length[0]);
}

static void write_json(const curves *c, qkv_buf *out) {
    qkv_json_out j = qkv_json_begin(out, 0);
    qkv_json_open(&j, '{');
    qkv_json_put_key(&j, "threads");
    qkv_json_put_int(&j, qkv_threads());
    qkv_json_put_key(&j, "lines");
    qkv_json_open(&j, '[');
    for (size_t k = 0; k < KINDS; k++)
        for (size_t i = 0; i < c->n && c->seconds[k][i] > 0; i++) {
            qkv_json_open(&j, '{');
            qkv_json_put_key(&j, "kind");
            qkv_json_put_text(&j, kinds[k].name);
            qkv_json_put_key(&j, "n");
            qkv_json_put_int(&j, (int64_t)c->length[i]);
            qkv_json_put_key(&j, "ms");
            qkv_json_put_real(&j, c->seconds[k][i] * 1e3, 5);
            qkv_json_put_key(&j, "us_per_token");
            qkv_json_put_real(&j, c->seconds[k][i] / c->length[i] * 1e6, 5);
            qkv_json_put_key(&j, "to_linear");
            qkv_json_put_real(&j, to_linear(c, k, i), 4);
            qkv_json_close(&j, '}');
        }
    qkv_json_close(&j, ']');
    qkv_json_close(&j, '}');
    qkv_buf_putc(out, '\n');
}

static void write_table(const curves *c, qkv_buf *out) {
    qkv_buf_printf(out, "one layer, width 128, forward + backward, one sequence, %d threads\n",
                   qkv_threads());
    qkv_buf_printf(out, "%-10s %7s %10s %10s %10s %10s\n", "kind", "N", "ms", "us/token",
                   "to linear", "vs full");
    for (size_t k = 0; k < KINDS; k++)
        for (size_t i = 0; i < c->n && c->seconds[k][i] > 0; i++) {
            const double full = c->seconds[0][i], mine = c->seconds[k][i];
            qkv_buf_printf(out, "%-10s %7.0f %10.2f %10.2f %10.2f", kinds[k].name, c->length[i],
                           mine * 1e3, mine / c->length[i] * 1e6, to_linear(c, k, i));
            if (full > 0) qkv_buf_printf(out, " %9.1fx", full / mine);
            qkv_buf_printf(out, "\n");
        }
}

static qkv_status write_svg(const curves *c, const char *path) {
    qkv_series series[KINDS];
    double y[KINDS][LENGTHS_MAX];
    for (size_t k = 0; k < KINDS; k++) {
        for (size_t i = 0; i < c->n; i++) y[k][i] = c->seconds[k][i] / c->length[i] * 1e6;
        series[k] = (qkv_series){.name = kinds[k].name, .x = c->length, .y = y[k], .n = c->n};
    }
    const qkv_chart chart = {.title = "One layer, width 128, forward + backward",
                             .x_label = "tokens in the sequence",
                             .y_label = "microseconds per token",
                             .series = series,
                             .n = KINDS};
    qkv_buf out = {0};
    qkv_status status = qkv_chart_svg(&chart, 720, 420, &out);
    if (status == QKV_OK) status = qkv_file_write(path, out.data, out.len);
    qkv_buf_free(&out);
    return status;
}

static qkv_status run(const qkv_bench_args *args, qkv_buf *out) {
    int64_t min = 512, max = 16384;
    double seconds = 1;
    QKV_TRY(qkv_bench_int(args, "min", 16, 1 << 20, &min));
    QKV_TRY(qkv_bench_int(args, "max", 16, 1 << 20, &max));
    QKV_TRY(qkv_bench_real(args, "seconds", 0.001, 3600, &seconds));
    if (max < min)
        return qkv_fail(QKV_USAGE, "bench attention: max (%lld) is less than min (%lld)",
                        (long long)max, (long long)min);
    curves c = {0};
    for (int64_t n = min; n <= max && c.n < LENGTHS_MAX; n *= 2) c.length[c.n++] = (double)n;
    const int32_t longest = (int32_t)c.length[c.n - 1];
    int32_t *ids;
    QKV_TRY_ALLOC(ids = qkv_alloc((size_t)longest * sizeof *ids));
    for (int32_t i = 0; i < longest; i++)
        ids[i] = (int32_t)qkv_rng_below((qkv_rng){1, 1}, (uint64_t)i, 256);
    qkv_status status = QKV_OK;
    const char *only = qkv_bench_text(args, "kind", NULL);
    for (size_t k = 0; k < KINDS && status == QKV_OK; k++)
        if (!only || strcmp(only, kinds[k].name) == 0) status = measure_kind(k, ids, seconds, &c);
    qkv_free(ids);
    QKV_TRY(status);
    const char *svg = qkv_bench_text(args, "svg", NULL);
    if (svg) QKV_TRY(write_svg(&c, svg));
    if (args->json)
        write_json(&c, out);
    else
        write_table(&c, out);
    return QKV_OK;
}

const qkv_benchmark qkv_bench_attention = {
    .keys = (const char *const[]){"min", "max", "seconds", "kind", "svg", NULL},
    .run = run,
};
