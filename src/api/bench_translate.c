/* qkv bench translate: beam search with a translator of Multi30k's size, random weights, fixed lengths.
 *
 *     qkv bench translate --set beam=5 --set sentences=512
 *
 * Every target has the length of a made-up caption and no hypothesis ends before it, so that other programs can do the
 * same work. Useful work is two operations for each multiply-add: the encoder once, the decoder for every hypothesis.
 * Batched: all sentences at once; single: one sentence after another, each alone. */
#include "api/bench.h"
#include "api/bench_works.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "decode/batches.h"
#include "kern/kern.h"

#include <string.h>

enum { SENTENCES_MAX = 8000, SINGLE = 64 /* sentences translated alone */ };

typedef struct plan {
    qkv_config config;
    int64_t beam, sentences, repeat;
} plan;

typedef struct figures {
    double batched, single; /* seconds of all; of one, on average */
    double macs, tokens;    /* of all; written */
    double peak;
    int64_t parameters;
} figures;

static const char *const own_keys[] = {"beam", "sentences", "repeat", NULL};

static bool is_own(const char *pair) {
    for (size_t i = 0; own_keys[i]; i++) {
        const size_t n = strlen(own_keys[i]);
        if (strncmp(pair, own_keys[i], n) == 0 && pair[n] == '=') return true;
    }
    return false;
}

static qkv_status read_plan(const qkv_bench_args *args, plan *p) {
    *p = (plan){.beam = 5, .sentences = 512, .repeat = 3};
    QKV_TRY(qkv_bench_int(args, "beam", 1, 64, &p->beam));
    QKV_TRY(qkv_bench_int(args, "sentences", 1, SENTENCES_MAX, &p->sentences));
    QKV_TRY(qkv_bench_int(args, "repeat", 1, 1000, &p->repeat));
    qkv_config_default(&p->config);
    const qkv_settings s = qkv_config_settings(&p->config);
    p->config.task = QKV_TASK_TRANSLATE;
    QKV_TRY(qkv_settings_assign(&s, 1, qkv_bench_work_find("multi30k")->settings));
    for (size_t i = 0; i < args->n; i++)
        if (!is_own(args->pairs[i])) QKV_TRY(qkv_settings_assign(&s, 1, args->pairs[i]));
    if (p->config.task != QKV_TASK_TRANSLATE)
        return qkv_fail(QKV_USAGE, "bench translate: the task must stay translate");
    return QKV_OK;
}

/* ---- running ---- */

static qkv_status forget(void *user, size_t i, const qkv_hypothesis *found) {
    (void)user, (void)i, (void)found;
    return QKV_OK;
}

static qkv_status time_all(const plan *p, qkv_session *s, const qkv_search_item *items,
                           figures *f) {
    const qkv_search_spec spec = {
        .beam = (int32_t)p->beam, .nbest = 1, .penalty = QKV_LENGTH_NONE, .eos = -1};
    const size_t n = (size_t)p->sentences, alone = n < SINGLE ? n : SINGLE;
    for (int64_t r = 0; r <= p->repeat; r++) { /* the first one warms up */
        double start = qkv_now();
        QKV_TRY(qkv_search_all(s, &spec, items, n, forget, NULL));
        const double batched = qkv_now() - start;
        start = qkv_now();
        for (size_t i = 0; i < alone; i++)
            QKV_TRY(qkv_search_all(s, &spec, items + i, 1, forget, NULL));
        const double single = (qkv_now() - start) / (double)alone;
        if (r == 0) continue;
        if (!f->batched || batched < f->batched) f->batched = batched;
        if (!f->single || single < f->single) f->single = single;
    }
    f->peak = qkv_kern_get()->peak_gflops(QKV_F32, 0.2);
    return QKV_OK;
}

static void count(const plan *p, const qkv_model *m, const qkv_search_item *items, figures *f) {
    for (int64_t i = 0; i < p->sentences; i++) {
        const int32_t src_start[] = {0, items[i].n_src}, tgt_start[] = {0, items[i].max_length};
        const qkv_layout src = {.n = 1, .start = src_start}, tgt = {.n = 1, .start = tgt_start};
        const qkv_layout none = {0};
        const double encoder = qkv_model_macs(m, &src, &none);
        const double both = qkv_model_macs(m, &src, &tgt);
        f->macs += encoder + (double)p->beam * (both - encoder);
        f->tokens += items[i].max_length;
    }
}

/* ---- writing ---- */

static void report(const plan *p, const figures *f, bool json, qkv_buf *out) {
    const double gflops = 2 * f->macs / f->batched * 1e-9;
    const struct {
        const char *key;
        double value;
        int digits;
    } rows[] = {
        {"sentences_per_s", (double)p->sentences / f->batched, 6},
        {"tokens_per_s", f->tokens / f->batched, 6},
        {"ms_per_sentence_alone", 1000 * f->single, 5},
        {"gflops", gflops, 5},
        {"peak_gflops", f->peak, 5},
        {"share", gflops / f->peak, 4},
        {"peak_rss_mb", (double)qkv_peak_rss() / 1e6, 5},
        {"beam", (double)p->beam, 4},
        {"sentences", (double)p->sentences, 8},
        {"parameters", (double)f->parameters, 12},
        {"threads", (double)qkv_threads(), 4},
    };
    if (!json) {
        qkv_buf_printf(
            out,
            "beam %lld, %lld sentences, %lld parameters, %d threads\n"
            "  %.1f sentences/s   %.0f tokens/s   alone %.2f ms a sentence\n"
            "  %.1f GFLOP/s useful = %.1f %% of the measured %.1f   peak memory %.0f MB\n",
            (long long)p->beam, (long long)p->sentences, (long long)f->parameters, qkv_threads(),
            rows[0].value, rows[1].value, rows[2].value, gflops, 100 * gflops / f->peak, f->peak,
            rows[6].value);
        return;
    }
    qkv_json_out j = qkv_json_begin(out, 0);
    qkv_json_open(&j, '{');
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        qkv_json_put_key(&j, rows[i].key);
        qkv_json_put_real(&j, rows[i].value, rows[i].digits);
    }
    qkv_json_close(&j, '}');
    qkv_buf_putc(out, '\n');
}

/* ---- all of it ---- */

static qkv_status with_data(const plan *p, const qkv_encoded *data, figures *f) {
    static const int32_t begin = 1;
    qkv_model *m = NULL;
    qkv_search_item *items = qkv_zalloc((size_t)p->sentences, sizeof *items);
    qkv_status status = items ? qkv_model_build(&p->config, &m) : QKV_FAILED;
    if (status == QKV_OK) status = qkv_model_allocate(m, false);
    for (int64_t i = 0; status == QKV_OK && i < p->sentences; i++) {
        const int64_t *at = data->start + 2 * i; /* source, target, the next source */
        items[i] = (qkv_search_item){.src = data->ids + at[0],
                                     .n_src = (int32_t)(at[1] - at[0]),
                                     .begin = &begin,
                                     .n_begin = 1,
                                     .max_length = (int32_t)(at[2] - at[1])};
    }
    if (status == QKV_OK) {
        qkv_model_initialise(m, 1);
        f->parameters = qkv_model_params(m)->count;
        count(p, m, items, f);
        qkv_session *s;
        status = qkv_session_new(m, &s);
        if (status == QKV_OK) status = time_all(p, s, items, f);
        qkv_session_free(s);
    }
    if (m) qkv_model_free(m);
    qkv_free(items);
    return status;
}

static qkv_status run(const qkv_bench_args *args, qkv_buf *out) {
    plan p;
    qkv_encoded data;
    figures f = {0};
    QKV_TRY(read_plan(args, &p));
    QKV_TRY(qkv_bench_work_make(qkv_bench_work_find("multi30k"), &p.config, &data));
    const qkv_status status = with_data(&p, &data, &f);
    qkv_encoded_free(&data);
    if (status == QKV_OK) report(&p, &f, args->json, out);
    return status;
}

const qkv_benchmark qkv_bench_translate = {
    .keys = (const char *const[]){"*", NULL},
    .run = run,
};
