/* A recurrent layer over whole sequences, forward and backward: what is left of the machine's peak
 * when one product a time step waits for the one before. Useful work is a multiply-add for each
 * weight and row, times three for forward and backward; the pointwise part counts nothing. */
#include "bench/benchmark.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/thread.h"
#include "kern/kern.h"
#include "nn/rnn.h"

#include <math.h>
#include <string.h>

static const char *const cell_names[] = {[QKV_CELL_LSTM] = "lstm", [QKV_CELL_GRU] = "gru"};

typedef struct work {
    qkv_cell_kind cell;
    int64_t batch, state, length;
    qkv_params params;
    qkv_rnn rnn;
    int32_t *start, *labels;
    real *x;
} work;

typedef struct measured {
    double forward, backward; /* seconds of the best run */
} measured;

static qkv_status prepare(work *w) {
    const int64_t rows = w->batch * w->length;
    const qkv_rnn_spec spec = {.cell = w->cell, .layers = 1, .in = w->state, .state = w->state};
    QKV_TRY(qkv_rnn_declare(&w->rnn, &spec, &w->params, "layer"));
    QKV_TRY(qkv_params_allocate(&w->params, true));
    qkv_params_initialise(&w->params, 1);
    QKV_TRY_ALLOC(w->start = qkv_zalloc((size_t)w->batch + 1, sizeof *w->start));
    QKV_TRY_ALLOC(w->labels = qkv_zalloc((size_t)w->batch, sizeof *w->labels));
    QKV_TRY_ALLOC(w->x = qkv_alloc_aligned((size_t)(rows * w->state) * sizeof *w->x));
    for (int64_t s = 0; s <= w->batch; s++) w->start[s] = (int32_t)(s * w->length);
    for (int64_t i = 0; i < rows * w->state; i++)
        w->x[i] = (real)(qkv_rng_uniform((qkv_rng){1, 1}, (uint64_t)i) - 0.5);
    return QKV_OK;
}

/* One pass; the loss, a cross-entropy of the last states, costs next to nothing. */
static qkv_status pass(qkv_tape *t, work *w, uint64_t step, measured *best) {
    const qkv_layout layout = {.n = (int32_t)w->batch, .start = w->start};
    qkv_tape_begin(t, QKV_TRAIN, 1, step);
    const double t0 = qkv_now();
    qkv_tensor *x = qkv_tensor_wrap(t, w->x, w->batch * w->length, w->state);
    x->wants_grad = true;
    qkv_tensor *y = qkv_rnn_apply(t, &w->rnn, x, layout, NULL);
    qkv_tensor *loss = qkv_xent(t, qkv_pool(t, y, layout, QKV_POOL_LAST), NULL, NULL,
                                &(qkv_xent_spec){.targets = w->labels});
    QKV_TRY(qkv_tape_status(t));
    const double t1 = qkv_now();
    QKV_TRY(qkv_tape_backward(t, &loss, 1));
    const double t2 = qkv_now();
    if (step && t2 - t0 < best->forward + best->backward) *best = (measured){t1 - t0, t2 - t1};
    return QKV_OK;
}

static void write(const work *w, const measured *m, double peak, bool json, qkv_buf *out) {
    const double gates = w->cell == QKV_CELL_LSTM ? 4 : 3, k = (double)w->state;
    const double useful = 6 * (double)(w->batch * w->length) * gates * k * 2 * k;
    const double rate = useful / (m->forward + m->backward) / 1e9;
    if (!json) {
        qkv_buf_printf(out, "%s, batch %lld, width %lld, %lld steps, %d threads\n",
                       cell_names[w->cell], (long long)w->batch, (long long)w->state,
                       (long long)w->length, qkv_threads());
        qkv_buf_printf(out,
                       "forward %.1f ms, backward %.1f ms: %.1f GFLOP/s, %.1f%% of the measured "
                       "peak (%.1f)\n",
                       m->forward * 1e3, m->backward * 1e3, rate, 100 * rate / peak, peak);
        return;
    }
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"batch", (double)w->batch},
                   {"state", k},
                   {"length", (double)w->length},
                   {"threads", qkv_threads()},
                   {"forward_ms", m->forward * 1e3},
                   {"backward_ms", m->backward * 1e3},
                   {"gflops", rate},
                   {"peak_gflops", peak},
                   {"share_of_peak", rate / peak}};
    qkv_json_out j = qkv_json_begin(out, 0);
    qkv_json_open(&j, '{');
    qkv_json_put_key(&j, "cell");
    qkv_json_put_text(&j, cell_names[w->cell]);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        qkv_json_put_key(&j, numbers[i].key);
        qkv_json_put_real(&j, numbers[i].value, 6);
    }
    qkv_json_close(&j, '}');
    qkv_buf_putc(out, '\n');
}

static qkv_status measure(work *w, double seconds, bool json, qkv_buf *out) {
    qkv_tape t;
    measured best = {INFINITY, 0};
    QKV_TRY(prepare(w));
    QKV_TRY(qkv_tape_init(&t));
    double peak = qkv_kern_get()->peak_gflops(QKV_F32, 0.2);
    const double begin = qkv_now();
    qkv_status status = QKV_OK;
    for (uint64_t step = 0; status == QKV_OK && (step < 4 || qkv_now() - begin < seconds); step++)
        status = pass(&t, w, step, &best);
    qkv_tape_free(&t);
    QKV_TRY(status);
    peak = fmax(peak, qkv_kern_get()->peak_gflops(QKV_F32, 0.2));
    write(w, &best, peak, json, out);
    return QKV_OK;
}

static qkv_status run(const qkv_bench_args *args, qkv_buf *out) {
    const char *cell = qkv_bench_text(args, "cell", cell_names[QKV_CELL_LSTM]);
    double seconds = 3;
    work w = {.batch = 64, .state = 512, .length = 128};
    w.cell = strcmp(cell, cell_names[QKV_CELL_GRU]) == 0 ? QKV_CELL_GRU : QKV_CELL_LSTM;
    if (strcmp(cell, cell_names[w.cell]) != 0)
        return qkv_fail(QKV_USAGE, "bench recurrent: cell is lstm or gru, not \"%.40s\"", cell);
    QKV_TRY(qkv_bench_int(args, "batch", 1, 4096, &w.batch));
    QKV_TRY(qkv_bench_int(args, "state", 1, 8192, &w.state));
    QKV_TRY(qkv_bench_int(args, "length", 1, 65536, &w.length));
    QKV_TRY(qkv_bench_real(args, "seconds", 0.001, 3600, &seconds));
    qkv_params_init(&w.params);
    const qkv_status status = measure(&w, seconds, args->json, out);
    qkv_free(w.start);
    qkv_free(w.labels);
    qkv_free(w.x);
    qkv_rnn_free(&w.rnn);
    qkv_params_free(&w.params);
    return status;
}

const qkv_benchmark qkv_bench_recurrent = {
    .keys = (const char *const[]){"cell", "batch", "state", "length", "seconds", NULL},
    .run = run,
};
