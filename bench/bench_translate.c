/* qkv bench translate: beam search with a translator of Multi30k's size, random weights,
 * fixed lengths.
 *
 *     qkv bench translate --set beam=5 --set sentences=512 --set weights=int8
 *
 * Every target has the length of a synthetic caption and no hypothesis ends before it, so that
 * other programs can do the same work. Useful work is two operations for each multiply-add: the
 * encoder once, the decoder for every hypothesis. Batched: all sentences at once; alone:
 * one sentence after another. */
#include "bench/bench_model.h"
#include "bench/bench_works.h"
#include "base/clock.h"
#include "base/mem.h"
#include "decode/batches.h"
#include "kern/kern.h"

enum { SENTENCES_MAX = 8000, ALONE = 64 /* sentences translated alone */ };

static const char *const own_keys[] = {"beam", "sentences", "repeat", "save", NULL};

typedef struct plan {
    int64_t beam, sentences, repeat;
} plan;

typedef struct figures {
    double batched, alone; /* seconds of all; of one, on average */
    double macs, tokens;   /* of all; written */
} figures;

static qkv_status forget(void *user, size_t i, const qkv_hypothesis *found) {
    (void)user, (void)i, (void)found;
    return QKV_OK;
}

static qkv_status time_all(const plan *p, qkv_session *s, const qkv_search_item *items,
                           figures *f) {
    const qkv_search_spec spec = {
        .beam = (int32_t)p->beam, .nbest = 1, .penalty = QKV_LENGTH_NONE, .eos = -1};
    const size_t n = (size_t)p->sentences, alone = n < ALONE ? n : ALONE;
    for (int64_t r = 0; r <= p->repeat; r++) { /* the first one warms up */
        double start = qkv_now();
        QKV_TRY(qkv_search_all(s, &spec, items, n, forget, NULL));
        const double batched = qkv_now() - start;
        start = qkv_now();
        for (size_t i = 0; i < alone; i++)
            QKV_TRY(qkv_search_all(s, &spec, items + i, 1, forget, NULL));
        const double one = (qkv_now() - start) / (double)alone;
        if (r == 0) continue;
        if (!f->batched || batched < f->batched) f->batched = batched;
        if (!f->alone || one < f->alone) f->alone = one;
    }
    return QKV_OK;
}

static void count(const plan *p, const qkv_model *m, const qkv_search_item *items, figures *f) {
    const qkv_layout none = {0};
    for (int64_t i = 0; i < p->sentences; i++) {
        const int32_t src_start[] = {0, items[i].n_src}, tgt_start[] = {0, items[i].max_length};
        const qkv_layout src = {.n = 1, .start = src_start}, tgt = {.n = 1, .start = tgt_start};
        const double encoder = qkv_model_macs(m, &src, &none, 0);
        const double both = qkv_model_macs(m, &src, &tgt, 0);
        f->macs += encoder + (double)p->beam * (both - encoder);
        f->tokens += items[i].max_length;
    }
}

static void report(const plan *p, const figures *f, const qkv_bench_model *m, bool json,
                   qkv_buf *out) {
    const double gflops = 2 * f->macs / f->batched * 1e-9;
    const double peak = qkv_kern_get()->peak_gflops(QKV_F32, 0.2);
    const qkv_bench_figure rows[] = {
        {"sentences_per_s", (double)p->sentences / f->batched},
        {"tokens_per_s", f->tokens / f->batched},
        {"alone_ms", 1000 * f->alone},
        {"gflops", gflops},
        {"peak_gflops", peak},
        {"share", gflops / peak},
        {"peak_rss_mb", (double)qkv_peak_rss() / 1e6},
        {"beam", (double)p->beam},
        {"sentences", (double)p->sentences},
        {"parameters", (double)qkv_model_params(m->model)->count},
        {"threads", (double)qkv_threads()},
    };
    qkv_bench_report(rows, sizeof rows / sizeof *rows, json, out);
}

static qkv_status with_data(const plan *p, qkv_model *m, const qkv_encoded *data, figures *f) {
    static const int32_t begin = 1;
    qkv_session *s = NULL;
    qkv_search_item *items = qkv_zalloc((size_t)p->sentences, sizeof *items);
    for (int64_t i = 0; items && i < p->sentences; i++) {
        const int64_t *at = data->start + 2 * i; /* source, target, the next source */
        items[i] = (qkv_search_item){.src = data->ids + at[0],
                                     .n_src = (int32_t)(at[1] - at[0]),
                                     .begin = &begin,
                                     .n_begin = 1,
                                     .max_length = (int32_t)(at[2] - at[1])};
    }
    qkv_status status = items ? qkv_session_new(m, &s) : QKV_FAILED;
    if (status == QKV_OK) {
        count(p, m, items, f);
        status = time_all(p, s, items, f);
    }
    qkv_session_free(s);
    qkv_free(items);
    return status;
}

static qkv_status run(const qkv_bench_args *args, qkv_buf *out) {
    const qkv_bench_work *work = qkv_bench_work_find("multi30k");
    plan p = {.beam = 5, .sentences = 512, .repeat = 3};
    QKV_TRY(qkv_bench_int(args, "beam", 1, 64, &p.beam));
    QKV_TRY(qkv_bench_int(args, "sentences", 1, SENTENCES_MAX, &p.sentences));
    QKV_TRY(qkv_bench_int(args, "repeat", 1, 1000, &p.repeat));
    qkv_bench_model m;
    QKV_TRY(qkv_bench_model_make(args, own_keys, work->task, work->settings, &m));
    qkv_encoded data;
    figures f = {0};
    qkv_status status = qkv_bench_work_make(work, qkv_model_config(m.model), &data);
    if (status == QKV_OK) {
        status = with_data(&p, m.model, &data, &f);
        qkv_encoded_free(&data);
    }
    if (status == QKV_OK) report(&p, &f, &m, args->json, out);
    qkv_bench_model_free(&m);
    return status;
}

const qkv_benchmark qkv_bench_translate = {.keys = (const char *const[]){"*", NULL}, .run = run};
