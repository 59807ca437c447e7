/* Speed of a tokenizer: megabytes of text per second, encoded in one batch over all threads,
 * and the time to load it. */
#include "bench/benchmark.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "qkv.h"

#include <string.h>

static qkv_status cut_lines(const qkv_file *file, qkv_text **lines, size_t *n) {
    QKV_VEC(qkv_text) all = {0};
    for (size_t i = 0; i < file->size;) {
        const char *end = memchr(file->data + i, '\n', file->size - i);
        const size_t len = end ? (size_t)(end - file->data) - i : file->size - i;
        if (!QKV_PUSH(all, ((qkv_text){file->data + i, len}))) {
            qkv_free(all.at);
            return QKV_FAILED;
        }
        i += len + 1;
    }
    *lines = all.at;
    *n = all.n;
    return QKV_OK;
}

typedef struct result {
    double load, seconds; /* the best of the rounds */
    size_t bytes, lines, tokens;
} result;

static qkv_status measure(const qkv_tokenizer *tok, const qkv_file *file, int64_t rounds,
                          result *r) {
    qkv_text *lines = NULL;
    QKV_TRY(cut_lines(file, &lines, &r->lines));
    qkv_encoding *out = qkv_zalloc(r->lines + 1, sizeof *out);
    qkv_status status = out ? QKV_OK : QKV_FAILED;
    for (int64_t i = 0; i < rounds && status == QKV_OK; i++) {
        const double start = qkv_now();
        status = qkv_tokenizer_encode_batch(tok, lines, r->lines, NULL, out);
        const double seconds = qkv_now() - start;
        if (i == 0 || seconds < r->seconds) r->seconds = seconds;
    }
    for (size_t i = 0; out && i < r->lines; i++) {
        r->tokens += out[i].n;
        qkv_encoding_free(&out[i]);
    }
    qkv_free(out);
    qkv_free(lines);
    return status;
}

static void print(const result *r, bool json, qkv_buf *out) {
    const double rate = (double)r->bytes / r->seconds / 1e6,
                 tokens = (double)r->tokens / r->seconds;
    if (!json) {
        qkv_buf_printf(out,
                       "loading     %.1f ms\nencoding    %.1f MB/s, %.2f million tokens/s (%zu "
                       "lines, %zu tokens, %d threads)\n",
                       1e3 * r->load, rate, tokens / 1e6, r->lines, r->tokens, qkv_threads());
        return;
    }
    qkv_json_out j = qkv_json_begin(out, 0);
    const struct {
        const char *key;
        double value;
    } reals[] = {{"load_ms", 1e3 * r->load},
                 {"mb_per_s", rate},
                 {"tokens_per_s", tokens},
                 {"seconds", r->seconds}};
    qkv_json_open(&j, '{');
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        qkv_json_put_key(&j, reals[i].key);
        qkv_json_put_real(&j, reals[i].value, 6);
    }
    qkv_json_put_key(&j, "tokens");
    qkv_json_put_int(&j, (int64_t)r->tokens);
    qkv_json_put_key(&j, "threads");
    qkv_json_put_int(&j, qkv_threads());
    qkv_json_close(&j, '}');
    qkv_buf_putc(out, '\n');
}

static qkv_status run(const qkv_bench_args *args, qkv_buf *out) {
    const char *path = qkv_bench_text(args, "tokenizer", NULL),
               *data = qkv_bench_text(args, "data", NULL);
    int64_t rounds = 3;
    QKV_TRY(qkv_bench_int(args, "rounds", 1, 1000, &rounds));
    if (!path || !data)
        return qkv_fail(QKV_USAGE, "bench tokenizer needs tokenizer=FILE and data=TEXT");
    result r = {0};
    qkv_tokenizer *tok;
    qkv_file file;
    const double start = qkv_now();
    QKV_TRY(qkv_tokenizer_open(path, &tok));
    r.load = qkv_now() - start;
    qkv_status status = qkv_file_open(data, (size_t)4 << 30, &file);
    if (status == QKV_OK) {
        r.bytes = file.size;
        status = measure(tok, &file, rounds, &r);
        qkv_file_close(&file);
    }
    qkv_tokenizer_free(tok);
    if (status == QKV_OK) print(&r, args->json, out);
    return status;
}

const qkv_benchmark qkv_bench_tokenizer = {
    .keys = (const char *const[]){"tokenizer", "data", "rounds", NULL},
    .run = run,
};
