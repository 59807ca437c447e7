/* qkv bench generate: a decoder in use, tokens a second of reading a prompt and of writing after it.
 *
 *     qkv bench generate --set weights=int8 --set prompt=256 --set tokens=64
 *
 * A Llama-type model of 124 million parameters with random weights. Writing a token reads every matrix once, so that the
 * memory's bandwidth is the limit: `share` is the bytes of the matrices read a second over what `qkv bench memory`
 * measures in the same run. */
#include "api/bench_model.h"
#include "base/clock.h"
#include "base/mem.h"
#include "decode/session.h"

static const char *const own_keys[] = {"save", "prompt", "tokens", "repeat", "sequences", NULL};
static const char llama[] =
    "vocab_size=32000 max_len=2048 d_model=768 layers=12 heads=12 d_ff=2048 norm=pre norm_kind=rms "
    "norm_eps=1e-5 activation=swiglu position=rope rope_pairing=adjacent qkv_bias=false "
    "out_bias=false "
    "ffn_bias=false tie=false init=normal dropout=0";

enum { PROMPT_MAX = 2048 };

typedef struct figures {
    double prompt, write; /* seconds of the best run */
} figures;

static qkv_status once(qkv_session *s, int32_t prompt, int32_t tokens, figures *f) {
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
    const double write = qkv_now() - read;
    if (!f->prompt || read - from < f->prompt) f->prompt = read - from;
    if (!f->write || write < f->write) f->write = write;
    return QKV_OK;
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
    QKV_TRY(qkv_bench_int(args, "repeat", 1, 1000, &repeat));
    qkv_bench_model m;
    QKV_TRY(qkv_bench_model_make(args, own_keys, QKV_TASK_LM, llama, &m));
    qkv_session *s = NULL;
    qkv_status status = qkv_session_new(m.model, &s);
    figures f = {0};
    for (int64_t i = 0; i < repeat && status == QKV_OK; i++)
        status = once(s, (int32_t)prompt, (int32_t)tokens, &f);
    qkv_session_free(s);
    if (status == QKV_OK) {
        const double rate = (double)tokens / f.write, bytes = bytes_of_step(m.model);
        const double limit = qkv_memory_bandwidth(0.5);
        const qkv_bench_figure rows[] = {
            {"prompt_tokens_per_s", (double)prompt / f.prompt},
            {"tokens_per_s", rate},
            {"parameters", (double)qkv_model_params(m.model)->count},
            {"step_mb", bytes / 1e6},
            {"gb_per_s", bytes * rate / 1e9},
            {"memory_gb_per_s", limit / 1e9},
            {"share", limit > 0 ? bytes * rate / limit : 0},
            {"peak_rss_mb", (double)qkv_peak_rss() / 1e6},
            {"threads", (double)qkv_threads()},
        };
        qkv_bench_report(rows, sizeof rows / sizeof *rows, args->json, out);
    }
    qkv_bench_model_free(&m);
    return status;
}

const qkv_benchmark qkv_bench_generate = {.keys = (const char *const[]){"*", NULL}, .run = run};
