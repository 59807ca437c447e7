/* The table of benchmarks and their key=value arguments. */
#include "bench/bench.h"
#include "bench/benchmark.h"
#include "base/number.h"

#include <math.h>
#include <string.h>

#define BENCH(name, summary) extern const qkv_benchmark qkv_bench_##name;
#include "bench/bench.def"
#undef BENCH

static const struct row {
    const char *name, *summary;
    const qkv_benchmark *benchmark;
} rows[] = {
#define BENCH(name, summary) {#name, summary, &qkv_bench_##name},
#include "bench/bench.def"
#undef BENCH
};
enum { N_ROWS = sizeof rows / sizeof *rows };

bool qkv_bench_row(size_t i, const char **name, const char **summary) {
    if (i >= N_ROWS) return false;
    *name = rows[i].name;
    *summary = rows[i].summary;
    return true;
}

/* ---- arguments ---- */

/* The value in "key=value", NULL when the pair is of another key. */
static const char *value_of(const char *pair, const char *key) {
    size_t n = strlen(key);
    return strncmp(pair, key, n) == 0 && pair[n] == '=' ? pair + n + 1 : NULL;
}

const char *qkv_bench_text(const qkv_bench_args *args, const char *key, const char *otherwise) {
    for (size_t i = args->n; i-- > 0;) {
        const char *value = value_of(args->pairs[i], key);
        if (value) return value;
    }
    return otherwise;
}

const char *qkv_bench_next(const qkv_bench_args *args, const char *key, size_t *cursor) {
    while (*cursor < args->n) {
        const char *value = value_of(args->pairs[(*cursor)++], key);
        if (value) return value;
    }
    return NULL;
}

qkv_status qkv_bench_real(const qkv_bench_args *args, const char *key, double min, double max,
                          double *value) {
    const char *text = qkv_bench_text(args, key, NULL);
    double given;
    if (!text) return QKV_OK;
    if (!qkv_number_parse(text, strlen(text), &given) || !(given >= min && given <= max))
        return qkv_fail(QKV_USAGE,
                        "bench: %s must be a number between %.10g and %.10g, not \"%.40s\"", key,
                        min, max, text);
    *value = given;
    return QKV_OK;
}

qkv_status qkv_bench_precision(const qkv_bench_args *args, qkv_precision *value) {
    const char *text = qkv_bench_text(args, "precision", NULL);
    if (text && strcmp(text, "f32") != 0 && strcmp(text, "bf16") != 0)
        return qkv_fail(QKV_USAGE, "bench: precision must be f32 or bf16, not \"%.40s\"", text);
    if (text) *value = strcmp(text, "bf16") == 0 ? QKV_BF16 : QKV_F32;
    return QKV_OK;
}

qkv_status qkv_bench_int(const qkv_bench_args *args, const char *key, int64_t min, int64_t max,
                         int64_t *value) {
    double given = (double)*value;
    QKV_TRY(qkv_bench_real(args, key, (double)min, (double)max, &given));
    if (given != floor(given) || fabs(given) > 9e15)
        return qkv_fail(QKV_USAGE, "bench: %s must be a whole number, not %.17g", key, given);
    *value = (int64_t)given;
    return QKV_OK;
}

/* ---- running ---- */

static qkv_status check_keys(const struct row *row, const qkv_bench_args *args) {
    const char *const *keys = row->benchmark->keys;
    size_t n_keys = 0;
    while (keys[n_keys]) n_keys++;
    if (n_keys && strcmp(keys[0], "*") == 0) return QKV_OK;
    for (size_t i = 0; i < args->n; i++) {
        const char *pair = args->pairs[i];
        size_t k = 0;
        while (k < n_keys && !value_of(pair, keys[k])) k++;
        if (k < n_keys) continue;
        char key[64] = "";
        size_t len = strcspn(pair, "=");
        memcpy(key, pair, len < sizeof key ? len : sizeof key - 1);
        if (!pair[len])
            return qkv_fail(QKV_USAGE, "bench %s: \"%s\" is not of the form key=value", row->name,
                            key);
        const char *near = qkv_nearest(key, keys, n_keys);
        return qkv_fail(QKV_USAGE, "bench %s: takes no \"%s\"%s%s%s", row->name, key,
                        near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    }
    return QKV_OK;
}

static const struct row *find(const char *name) {
    for (size_t i = 0; i < N_ROWS; i++)
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    return NULL;
}

static qkv_status unknown(const char *name) {
    const char *names[N_ROWS];
    for (size_t i = 0; i < N_ROWS; i++) names[i] = rows[i].name;
    const char *near = qkv_nearest(name, names, N_ROWS);
    return qkv_fail(QKV_USAGE, "bench: there is no benchmark \"%.40s\"%s%s%s", name,
                    near ? "; did you mean \"" : "; \"qkv bench\" lists them", near ? near : "",
                    near ? "\"?" : "");
}

qkv_status qkv_bench(const char *name, const char *const *pairs, bool json, char **text) {
    *text = NULL;
    const struct row *row = find(name);
    if (!row) return unknown(name);
    qkv_bench_args args = {.pairs = pairs, .json = json};
    while (pairs && pairs[args.n]) args.n++;
    QKV_TRY(check_keys(row, &args));
    qkv_buf out = {0};
    qkv_status status = row->benchmark->run(&args, &out);
    if (status == QKV_OK) {
        qkv_buf_puts(&out, ""); /* a benchmark without output still gives a text */
        status = out.status;
    }
    if (status != QKV_OK) {
        qkv_buf_free(&out);
        return status;
    }
    *text = out.data;
    return QKV_OK;
}
