/* qkv bench generate: a decoder in use, tokens per second of reading a prompt and of
 * writing after it.
 *
 *     qkv bench generate --set weights=int8 --set prompt=256 --set tokens=64
 *
 * A Llama-type model of 134 million parameters with random weights. Writing a token reads every
 * matrix once and the keys and values of all tokens before, so that the memory's bandwidth is the
 * limit: `share` is the bytes read per second over what `qkv bench memory` measures right before
 * and after. As a shared machine's bandwidth changes from second to second, that is done for each
 * run, and the share is the middle one. */
#include "bench/bench_model.h"
#include "base/machine.h"
#include "base/clock.h"
#include "base/mem.h"
#include "decode/session.h"

#include <stdlib.h>

static const char *const own_keys[] = {"save", "prompt", "tokens", "repeat", "sequences", NULL};
static const char llama[] =
    "vocab_size=32000 max_len=2048 d_model=768 layers=12 heads=12 d_ff=2048 norm=pre norm_kind=rms "
    "norm_eps=1e-5 activation=swiglu position=rope rope_pairing=adjacent qkv_bias=false "
    "out_bias=false "
    "ffn_bias=false tie=false init=normal dropout=0";

enum { PROMPT_MAX = 2048, REPEAT_MAX = 1000 };

typedef struct figures {
    double prompt, write; /* seconds of the best run */
    double memory;        /* bytes per second, the most of all measurements */
    double share[REPEAT_MAX];
} figures;

/* One run; *write: the seconds of its tokens. */
static qkv_status once(qkv_session *s, int32_t prompt, int32_t tokens, figures *f, double *write) {
    static int32_t ids[PROMPT_MAX];
    const int32_t start[] = {0, prompt};
    for (int32_t i = 0; i < prompt; i++) ids[i] = (i * 7919 + 13) % 31000;
    const qkv_tokens begin = {.layout = {.n = 1, .start = start}, .ids = ids, .rows = prompt};
    const double from = qkv_now();
    QKV_TRY(qkv_session_begin(s, NULL, &begin, 1, prompt + tokens + 1));
    const double read = qkv_now();
    for (int32_t i = 0; i < tokens; i++) {
        int32_t best = 0;
        for (int32_t k = 1; k < (int32_t)s->vocab; k++)
            if (s->logits[k] > s->logits[best]) best = k;
        QKV_TRY(qkv_session_step(s, &best));
    }
    *write = qkv_now() - read;
    if (!f->prompt || read - from < f->prompt) f->prompt = read - from;
    if (!f->write || *write < f->write) f->write = *write;
    return QKV_OK;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* All runs, the memory measured between them. */
static qkv_status measure(qkv_session *s, int64_t prompt, int64_t tokens, int64_t repeat,
                          double bytes, figures *f) {
    double before = f->memory = qkv_memory_bandwidth(0.1);
    for (int64_t i = 0; i < repeat; i++) {
        double write;
        QKV_TRY(once(s, (int32_t)prompt, (int32_t)tokens, f, &write));
        const double after = qkv_memory_bandwidth(0.1), limit = (before + after) / 2;
        f->share[i] = limit > 0 ? bytes * (double)tokens / write / limit : 0;
        if (after > f->memory) f->memory = after;
        before = after;
    }
    qsort(f->share, (size_t)repeat, sizeof *f->share, ascending);
    return QKV_OK;
}

/* Keys and values that a token reads when `length` are before it. */
static double bytes_of_cache(qkv_model *m, double length) {
    const qkv_config *c = qkv_model_config(m);
    const int64_t heads = c->kv_heads ? c->kv_heads : c->heads,
                  d_head = c->d_head ? c->d_head : c->d_model / c->heads;
    return length * 2 * (double)(c->layers * heads * d_head) * sizeof(real);
}

/* Bytes of a token: all matrices but the embeddings, of which one row is read. */
static double bytes_of_step(qkv_model *m) {
    const qkv_params *params = qkv_model_params(m);
    double sum = 0;
    for (size_t i = 0; i < params->n; i++) {
        const qkv_param *p = params->list[i];
        const int64_t rows = p->spec.rows, cols = p->spec.cols;
        if (p->spec.sparse) continue;
        const qkv_weight_format format = p->tensor.weight ? p->weight.format : QKV_WEIGHT_F32;
        sum += (double)rows *
               (double)(qkv_weight_row_bytes(format, cols) + 4 * qkv_weight_groups(format, cols));
    }
    return sum;
}

static qkv_status run(const qkv_bench_args *args, qkv_buf *out) {
    int64_t prompt = 256, tokens = 32, repeat = 3;
    QKV_TRY(qkv_bench_int(args, "prompt", 1, PROMPT_MAX / 2, &prompt));
    QKV_TRY(qkv_bench_int(args, "tokens", 1, PROMPT_MAX / 2 - 1, &tokens));
    QKV_TRY(qkv_bench_int(args, "repeat", 1, REPEAT_MAX, &repeat));
    qkv_bench_model m;
    QKV_TRY(qkv_bench_model_make(args, own_keys, QKV_TASK_LM, llama, &m));
    qkv_session *s = NULL;
    qkv_status status = qkv_session_new(m.model, &s);
    figures f = {0};
    const double bytes =
        bytes_of_step(m.model) + bytes_of_cache(m.model, (double)prompt + (double)tokens / 2);
    if (status == QKV_OK) status = measure(s, prompt, tokens, repeat, bytes, &f);
    qkv_session_free(s);
    if (status == QKV_OK) {
        const double rate = (double)tokens / f.write;
        const qkv_bench_figure rows[] = {
            {"prompt_tokens_per_s", (double)prompt / f.prompt},
            {"tokens_per_s", rate},
            {"parameters", (double)qkv_model_params(m.model)->count},
            {"step_mb", bytes / 1e6},
            {"gb_per_s", bytes * rate / 1e9},
            {"memory_gb_per_s", f.memory / 1e9},
            {"share", f.share[repeat / 2]},
            {"peak_rss_mb", (double)qkv_peak_rss() / 1e6},
            {"threads", (double)qkv_threads()},
        };
        qkv_bench_report(rows, sizeof rows / sizeof *rows, args->json, out);
    }
    qkv_bench_model_free(&m);
    return status;
}

const qkv_benchmark qkv_bench_generate = {.keys = (const char *const[]){"*", NULL}, .run = run};
