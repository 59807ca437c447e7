/* qkv bench train: whole training steps, optimiser included, on synthetic or given data.
 *
 * Useful work is two operations for each multiply-add of the forward pass over real tokens, three
 * times (forward, and backward twice), causal attention counted half; the peak is measured in the
 * same run. The first step takes the largest batch, so that every later step finds its memory
 * there: allocations in the steps that are timed are counted and must be none. */
#include "bench/benchmark.h"
#include "bench/bench_works.h"
#include "use/textmodel.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "train/step.h"

#include <string.h>

enum { SMALL_SET = 32 /* batches */ };

typedef struct plan {
    const qkv_bench_work *work;
    qkv_config config;
    int64_t batch_tokens, steps;
    double seconds;
    qkv_precision precision;
} plan;

typedef struct figures {
    double seconds, macs, loss_first, loss_last, peak;
    int64_t steps, tokens, parameters;
    uint64_t allocations;
} figures;

/* Keys of the benchmark itself; all others are the model's. */
static const char *const own_keys[] = {"work",         "task",  "data",    "ids",       "tokenizer",
                                       "batch_tokens", "steps", "seconds", "precision", NULL};

static bool is_own(const char *pair) {
    for (size_t i = 0; own_keys[i]; i++) {
        const size_t n = strlen(own_keys[i]);
        if (strncmp(pair, own_keys[i], n) == 0 && pair[n] == '=') return true;
    }
    return false;
}

/* The work that stands for a task. */
static const char *work_of_task(const char *task) {
    const qkv_bench_work *work;
    for (size_t i = 0; (work = qkv_bench_work_at(i)); i++)
        if (strcmp(qkv_task_at(work->task)->name, task) == 0) return work->name;
    return task;
}

static qkv_status no_such_work(const char *name) {
    qkv_buf list = {0};
    const qkv_bench_work *work;
    for (size_t i = 0; (work = qkv_bench_work_at(i)); i++)
        qkv_buf_printf(&list, "%s%s", i ? ", " : "", work->name);
    const qkv_status status =
        qkv_fail(QKV_USAGE, "bench train: there is no work \"%.40s\"; there are %s", name,
                 list.data ? list.data : "none");
    qkv_buf_free(&list);
    return status;
}

static qkv_status read_plan(const qkv_bench_args *args, plan *p) {
    const char *task = qkv_bench_text(args, "task", "classify");
    const char *name = qkv_bench_text(args, "work", work_of_task(task));
    p->work = qkv_bench_work_find(name);
    if (!p->work) return no_such_work(name);
    p->batch_tokens = p->work->batch_tokens;
    p->steps = 1 << 30;
    p->seconds = 5;
    QKV_TRY(qkv_bench_precision(args, &p->precision));
    QKV_TRY(qkv_bench_int(args, "batch_tokens", 1, 1 << 30, &p->batch_tokens));
    QKV_TRY(qkv_bench_int(args, "steps", 1, 1 << 30, &p->steps));
    if (p->steps < 1 << 30) p->seconds = 1e9;
    QKV_TRY(qkv_bench_real(args, "seconds", 0.001, 1e9, &p->seconds));
    qkv_config_default(&p->config);
    const qkv_settings settings = qkv_config_settings(&p->config);
    p->config.task = p->work->task;
    QKV_TRY(qkv_settings_assign(&settings, 1, p->work->settings));
    for (size_t i = 0; i < args->n; i++)
        if (!is_own(args->pairs[i])) QKV_TRY(qkv_settings_assign(&settings, 1, args->pairs[i]));
    return QKV_OK;
}

/* The batch with the most tokens of the planned epoch. */
static int64_t largest(const qkv_batcher *b) {
    int64_t best = 0, most = -1;
    for (int64_t i = 0; i < b->n_batches; i++) {
        int64_t n, tokens = 0;
        const int64_t *examples = qkv_batcher_get(b, i, &n);
        for (int64_t k = 0; k < n; k++)
            for (int side = 0; side < b->data->sides; side++) {
                int64_t len;
                qkv_batcher_ids(b, examples[k], side, &len);
                tokens += len + 1;
            }
        if (tokens > most) most = tokens, best = i;
    }
    return best;
}

static qkv_status one_step(qkv_stepper *s, const qkv_batcher *b, int64_t i, uint64_t key,
                           qkv_step_result *r) {
    qkv_update u = {.lr = 1e-4, .clip = 1};
    *r = (qkv_step_result){0};
    QKV_TRY(qkv_stepper_accumulate(s, b, i, key, r));
    return qkv_stepper_update(s, &u, r);
}

/* A small set is timed in whole passes, so that a peer who does the same times the same lengths. */
static bool inside_pass(const qkv_batcher *b, int64_t at) {
    return b->n_batches <= SMALL_SET && at < b->n_batches;
}

static qkv_status measure(const plan *p, qkv_stepper *s, qkv_batcher *b, figures *f) {
    const qkv_kern *kern = qkv_kern_get();
    qkv_step_result r;
    f->peak = kern->peak_gflops((qkv_precision)p->precision, 0.2);
    qkv_batcher_plan(b, 0);
    const int64_t first = largest(b);
    for (uint64_t warm = 0; warm < 2; warm++) {
        QKV_TRY(one_step(s, b, first, warm, &r));
        if (warm == 0) f->loss_first = r.loss / (double)r.n_targets;
    }
    const uint64_t allocations = qkv_mem_count().allocations;
    int64_t epoch = 0, at = 0;
    while (f->steps < p->steps && (f->seconds < p->seconds || inside_pass(b, at))) {
        if (at == b->n_batches) qkv_batcher_plan(b, ++epoch), at = 0;
        const double start = qkv_now();
        QKV_TRY(one_step(s, b, at++, 2 + (uint64_t)f->steps, &r));
        f->seconds += qkv_now() - start;
        f->tokens += r.tokens;
        f->macs += r.macs;
        f->loss_last = r.loss / (double)r.n_targets;
        f->steps++;
    }
    f->allocations = qkv_mem_count().allocations - allocations;
    const double again = kern->peak_gflops((qkv_precision)p->precision, 0.2);
    if (again > f->peak) f->peak = again;
    return QKV_OK;
}

static qkv_status with_data(const plan *p, const qkv_config *config, const qkv_encoded *data,
                            figures *f) {
    qkv_batcher b = {.data = data,
                     .budget = p->batch_tokens,
                     .seed = 1,
                     .shuffle = true,
                     .window = p->work->task == QKV_TASK_LM ? config->max_len : 0};
    qkv_model *model = NULL;
    qkv_stepper s = {0};
    const qkv_optim_spec optim = qkv_optim_defaults(QKV_OPTIM_ADAMW);
    const qkv_task_spec task = {
        .bos = 1, .eos = 2, .mask = 3, .n_special = 4, .vocab_size = (int32_t)config->vocab_size};
    qkv_status status = qkv_batcher_init(&b);
    if (status == QKV_OK) status = qkv_model_build(config, &model);
    if (status == QKV_OK) status = qkv_model_allocate(model, true);
    if (status == QKV_OK) {
        qkv_model_initialise(model, 1);
        f->parameters = qkv_model_params(model)->count;
        status = qkv_stepper_init(&s, model, &optim, &task, p->precision, 1);
    }
    if (status == QKV_OK) {
        status = measure(p, &s, &b, f);
        qkv_stepper_free(&s);
    }
    if (model) qkv_model_free(model);
    qkv_batcher_free(&b);
    return status;
}

static void report(const plan *p, const figures *f, bool json, qkv_buf *out) {
    const double gflops = 6 * f->macs / f->seconds * 1e-9;
    const double rss = (double)qkv_peak_rss() / 1e6;
    if (!json) {
        qkv_buf_printf(out,
                       "%s, %s: %lld parameters, batches of %lld tokens, %d threads\n"
                       "  %.0f tokens/s   %.1f GFLOP/s useful = %.1f %% of the measured %.1f\n"
                       "  %lld steps in %.2f s, loss %.4f → %.4f\n"
                       "  peak memory %.0f MB, %llu allocations in the steps timed\n",
                       p->work->name, p->precision == QKV_BF16 ? "bf16" : "f32",
                       (long long)f->parameters, (long long)p->batch_tokens, qkv_threads(),
                       (double)f->tokens / f->seconds, gflops, 100 * gflops / f->peak, f->peak,
                       (long long)f->steps, f->seconds, f->loss_first, f->loss_last, rss,
                       (unsigned long long)f->allocations);
        return;
    }
    const struct {
        const char *key;
        double value;
        int digits;
    } rows[] = {
        {"tokens_per_s", (double)f->tokens / f->seconds, 7},
        {"steps", (double)f->steps, 10},
        {"seconds", f->seconds, 6},
        {"gflops", gflops, 6},
        {"peak_gflops", f->peak, 6},
        {"share", gflops / f->peak, 4},
        {"peak_rss_mb", rss, 6},
        {"loss_first", f->loss_first, 7},
        {"loss_last", f->loss_last, 7},
        {"tokens", (double)f->tokens, 12},
        {"parameters", (double)f->parameters, 12},
        {"allocations", (double)f->allocations, 10},
        {"threads", (double)qkv_threads(), 4},
    };
    qkv_json_out j = qkv_json_begin(out, 0);
    qkv_json_open(&j, '{');
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        qkv_json_put_key(&j, rows[i].key);
        qkv_json_put_real(&j, rows[i].value, rows[i].digits);
    }
    qkv_json_close(&j, '}');
    qkv_buf_putc(out, '\n');
}

/* Real text: read, tokenised, cut to the model's length. Classes and vocabulary follow from it. */
static qkv_status read_data(const qkv_bench_args *args, plan *p, qkv_encoded *out) {
    const char *paths[8];
    size_t n = 0, cursor = 0;
    for (const char *path; n < 8 && (path = qkv_bench_next(args, "data", &cursor));)
        paths[n++] = path;
    qkv_corpus corpus;
    const qkv_corpus_spec spec = {
        .shape = qkv_task_at((int)p->work->task)->corpus, .paths = paths, .n_paths = n};
    QKV_TRY(qkv_corpus_read(&corpus, &spec));
    qkv_tokenizer *tok = NULL;
    qkv_status status = qkv_tokenizer_for(qkv_bench_text(args, "tokenizer", "word"), &corpus,
                                          &p->config, false, NULL, &tok);
    if (status == QKV_OK) {
        const qkv_tokenise_spec how = qkv_tokenise_spec_of(&p->config);
        qkv_tokenise_counts counts;
        p->config.vocab_size = (int64_t)qkv_tokenizer_size(tok);
        if (corpus.labels.n) p->config.classes = corpus.labels.n;
        qkv_encoded_init(out, how.sides);
        status = qkv_tokenise(tok, &corpus, NULL, &how, out, &counts);
        if (status != QKV_OK) qkv_encoded_free(out);
    }
    qkv_tokenizer_free(tok);
    qkv_corpus_free(&corpus);
    return status;
}

static qkv_status run(const qkv_bench_args *args, qkv_buf *out) {
    plan p = {0};
    QKV_TRY(read_plan(args, &p));
    const char *ids = qkv_bench_text(args, "ids", NULL);
    qkv_encoded data;
    QKV_TRY(qkv_bench_text(args, "data", NULL) ? read_data(args, &p, &data)
            : ids                              ? qkv_bench_work_read(ids, &p.config, &data)
                                               : qkv_bench_work_make(p.work, &p.config, &data));
    figures f = {0};
    qkv_status status = with_data(&p, &p.config, &data, &f);
    qkv_encoded_free(&data);
    if (status == QKV_OK) report(&p, &f, args->json, out);
    return status;
}

const qkv_benchmark qkv_bench_train = {
    .keys = (const char *const[]){"*", NULL},
    .run = run,
};
