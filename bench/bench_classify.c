/* qkv bench classify: reviews per second of a classifier in use, from ids to logits.
 *
 *     qkv bench classify --set ids=FILE --set weights=int8 --set save=FILE
 *
 * The work is that of `qkv bench train --set work=imdb`, random weights included: speed does not
 * depend on their values. bench/classify_peers.py does the same with other programs on the same
 * weights; `check` (the mean of |logit 0 − logit 1|) shows that they compute the same. */
#include "bench/bench_model.h"
#include "bench/bench_works.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "task/task.h"

#include <math.h>

enum { WARM = 32 /* batches before the clock starts */ };

static const char *const own_keys[] = {"ids", "save", "seconds", "batch_tokens", NULL};

typedef struct figures {
    double seconds, check;
    int64_t reviews, tokens;
} figures;

typedef struct worker {
    qkv_tape tape;
    double sum;
    int64_t reviews, tokens;
    qkv_status status;
} worker;

/* Batch i, on this thread. */
static void run_batch(worker *w, qkv_model *m, const qkv_batcher *b, int64_t i) {
    const qkv_task *task = qkv_task_at(QKV_TASK_CLASSIFY);
    const qkv_task_spec spec = {0};
    int64_t n;
    const int64_t *examples = qkv_batcher_get(b, i, &n);
    qkv_batch batch;
    qkv_tape_begin(&w->tape, QKV_EVAL, 0, 0);
    task->assemble(&w->tape, &spec, b, examples, n, &batch);
    const qkv_tensor *logits =
        qkv_tape_status(&w->tape) == QKV_OK ? qkv_model_classify(&w->tape, m, &batch.src) : NULL;
    w->status = qkv_tape_status(&w->tape);
    for (int64_t r = 0; w->status == QKV_OK && r < n; r++)
        w->sum += fabs((double)(logits->data[r * logits->ld] - logits->data[r * logits->ld + 1]));
    w->reviews += n;
    w->tokens += w->status == QKV_OK ? batch.tokens : 0;
}

/* One pass over the first n batches, one batch per thread, as qkv_classify does it. */
static qkv_status pass(worker *workers, qkv_model *m, const qkv_batcher *b, int64_t n, figures *f) {
    const int threads = qkv_threads();
    int64_t next = 0;
    double sum = 0;
    const double start = qkv_now();
    QKV_PARALLEL_FOR_UNEVEN
    for (int k = 0; k < threads; k++) {
        worker *w = &workers[k];
        w->sum = 0, w->reviews = w->tokens = 0;
        qkv_threads_set(1);
        while (w->status == QKV_OK) {
            const int64_t i = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
            if (i >= n) break;
            run_batch(w, m, b, i);
        }
        qkv_threads_set(threads);
    }
    f->seconds += qkv_now() - start;
    for (int k = 0; k < threads; k++) {
        if (workers[k].status != QKV_OK)
            return qkv_fail(workers[k].status, "bench classify: a batch failed");
        sum += workers[k].sum;
        f->reviews += workers[k].reviews;
        f->tokens += workers[k].tokens;
    }
    f->check = sum / (double)b->data->n;
    return QKV_OK;
}

static qkv_status measure(const qkv_bench_args *args, const qkv_bench_model *m,
                          const qkv_encoded *data, figures *f) {
    double seconds = 3;
    int64_t budget = 2048;
    QKV_TRY(qkv_bench_real(args, "seconds", 0.001, 1e9, &seconds));
    QKV_TRY(qkv_bench_int(args, "batch_tokens", 1, 1 << 30, &budget));
    qkv_batcher b = {.data = data, .budget = budget};
    const int threads = qkv_threads();
    worker *workers;
    QKV_TRY_ALLOC(workers = qkv_zalloc((size_t)threads, sizeof *workers));
    qkv_status status = qkv_batcher_init(&b);
    if (status == QKV_OK) qkv_batcher_plan(&b, 0);
    for (int k = 0; k < threads && status == QKV_OK; k++) status = qkv_tape_init(&workers[k].tape);
    figures warm = {0};
    if (status == QKV_OK)
        status = pass(workers, m->model, &b, b.n_batches < WARM ? b.n_batches : WARM, &warm);
    while (status == QKV_OK && f->seconds < seconds)
        status = pass(workers, m->model, &b, b.n_batches, f);
    for (int k = 0; k < threads; k++) qkv_tape_free(&workers[k].tape);
    qkv_batcher_free(&b);
    qkv_free(workers);
    return status;
}

static qkv_status run(const qkv_bench_args *args, qkv_buf *out) {
    const qkv_bench_work *work = qkv_bench_work_find("imdb");
    const char *ids = qkv_bench_text(args, "ids", NULL);
    qkv_bench_model m;
    qkv_encoded data;
    figures f = {0};
    QKV_TRY(qkv_bench_model_make(args, own_keys, QKV_TASK_CLASSIFY, work->settings, &m));
    const qkv_config *config = qkv_model_config(m.model);
    qkv_status status =
        ids ? qkv_bench_work_read(ids, config, &data) : qkv_bench_work_make(work, config, &data);
    if (status == QKV_OK) {
        status = measure(args, &m, &data, &f);
        qkv_encoded_free(&data);
    }
    if (status == QKV_OK) {
        const qkv_bench_figure rows[] = {
            {"reviews_per_s", (double)f.reviews / f.seconds},
            {"tokens_per_s", (double)f.tokens / f.seconds},
            {"seconds", f.seconds},
            {"file_mb", m.bytes / 1e6},
            {"peak_rss_mb", (double)qkv_peak_rss() / 1e6},
            {"check", f.check},
            {"threads", (double)qkv_threads()},
        };
        qkv_bench_report(rows, sizeof rows / sizeof *rows, args->json, out);
    }
    qkv_bench_model_free(&m);
    return status;
}

const qkv_benchmark qkv_bench_classify = {.keys = (const char *const[]){"*", NULL}, .run = run};
