/* The works: a classifier of film reviews, a small translator, a masked model,
 * a language model of characters. */
#include "bench/bench_works.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "task/task.h"

#include <math.h>
#include <string.h>

static int64_t clamp(double x, int64_t least, int64_t most) {
    return x < (double)least ? least : x > (double)most ? most : (int64_t)x;
}

/* IMDb: words per review have median 174 and 95th percentile 598; log-normal, cut at 512. */
static int64_t review(uint64_t i, int side) {
    (void)side;
    return clamp(exp(5.16 + 0.75 * qkv_rng_normal((qkv_rng){1, 1}, i)), 10, 512);
}

/* Multi30k: captions of about 14 ± 4.5 pieces; a target is about as long as its source. */
static int64_t caption(uint64_t i, int side) {
    double shared = qkv_rng_normal((qkv_rng){1, 2}, i);
    double own = qkv_rng_normal((qkv_rng){1, 3 + (uint64_t)side}, i);
    return clamp(14 + 4 * shared + 2 * own, 4, 40);
}

/* One stream; windows are cut from it. */
static int64_t stream(uint64_t i, int side) {
    (void)i, (void)side;
    return 1 << 20;
}

static const qkv_bench_work works[] = {
    {"imdb", QKV_TASK_CLASSIFY,
     "d_model=128 layers=6 heads=8 d_ff=512 vocab_size=50000 max_len=512 position=learned "
     "dropout=0.1 attention_dropout=0",
     8192, 8000, review},
    {"multi30k", QKV_TASK_TRANSLATE,
     "d_model=256 layers=3 heads=4 d_ff=1024 vocab_size=8000 max_len=256 position=sinusoidal "
     "dropout=0.1 attention_dropout=0",
     4096, 8000, caption},
    {"mlm", QKV_TASK_MLM,
     "d_model=128 layers=6 heads=8 d_ff=512 vocab_size=8000 max_len=512 position=learned "
     "dropout=0.1 attention_dropout=0",
     8192, 8000, review},
    {"gpt", QKV_TASK_LM,
     "d_model=384 layers=6 heads=6 d_ff=1536 vocab_size=65 max_len=256 position=learned "
     "activation=gelu dropout=0",
     16 * 256, 1, stream},
};
enum { N_WORKS = sizeof works / sizeof *works };

const qkv_bench_work *qkv_bench_work_at(size_t i) {
    return i < N_WORKS ? &works[i] : NULL;
}

const qkv_bench_work *qkv_bench_work_find(const char *name) {
    for (size_t i = 0; i < N_WORKS; i++)
        if (strcmp(works[i].name, name) == 0) return &works[i];
    return NULL;
}

/* Zipf's law: the chance of rank r is about 1/r when log r is uniform. */
static int32_t zipf(uint64_t i, int64_t vocab) {
    return (int32_t)clamp(pow((double)vocab, qkv_rng_uniform((qkv_rng){1, 9}, i)) - 1, 0,
                          vocab - 1);
}

qkv_status qkv_bench_work_make(const qkv_bench_work *w, const qkv_config *config,
                               qkv_encoded *out) {
    const qkv_task *task = qkv_task_at(w->task);
    const int64_t vocab = config->vocab_size;
    uint64_t drawn = 0;
    int32_t *ids = NULL;
    qkv_status status = QKV_OK;
    qkv_encoded_init(out, task->sides);
    for (int64_t i = 0; i < w->examples && status == QKV_OK; i++) {
        for (int side = 0; side < task->sides && status == QKV_OK; side++) {
            const int64_t n = w->length((uint64_t)i, side);
            int32_t *more = qkv_realloc(ids, (size_t)n * sizeof *ids);
            if (!more) {
                status = QKV_FAILED;
                break;
            }
            ids = more;
            for (int64_t k = 0; k < n; k++) ids[k] = zipf(drawn++, vocab);
            status = qkv_encoded_add(out, ids, n);
        }
        if (status == QKV_OK && w->task == QKV_TASK_CLASSIFY)
            status =
                qkv_encoded_label(out, (int32_t)qkv_rng_below((qkv_rng){1, 8}, (uint64_t)i, 2));
    }
    qkv_free(ids);
    if (status != QKV_OK) qkv_encoded_free(out);
    return status;
}

/* ---- ids from a file ---- */

typedef struct id_reader {
    const char *path, *at, *end;
    int64_t line, vocab;
    QKV_VEC(int32_t) ids;
} id_reader;

/* One side of a line: ids up to a TAB or the line's end. */
static qkv_status read_side(id_reader *r, qkv_encoded *out) {
    r->ids.n = 0;
    while (r->at < r->end && *r->at != '\t' && *r->at != '\n') {
        int64_t id = 0;
        const char *digit = r->at;
        while (r->at < r->end && *r->at >= '0' && *r->at <= '9' && id < r->vocab)
            id = 10 * id + (*r->at++ - '0');
        if (r->at == digit || id >= r->vocab)
            return qkv_fail(QKV_BAD_FILE, "%s, line %lld: not an id below %lld", r->path,
                            (long long)r->line, (long long)r->vocab);
        if (!QKV_PUSH(r->ids, (int32_t)id)) return QKV_FAILED;
        while (r->at < r->end && *r->at == ' ') r->at++;
    }
    if (r->ids.n == 0)
        return qkv_fail(QKV_BAD_FILE, "%s, line %lld: no ids", r->path, (long long)r->line);
    return qkv_encoded_add(out, r->ids.at, (int64_t)r->ids.n);
}

static qkv_status read_lines(id_reader *r, bool labelled, qkv_encoded *out) {
    for (r->line = 1; r->at < r->end; r->line++) {
        for (int side = 0; side < out->sides; side++) {
            if (side > 0 && (r->at == r->end || *r->at++ != '\t'))
                return qkv_fail(QKV_BAD_FILE, "%s, line %lld: wants %d sides, separated by a TAB",
                                r->path, (long long)r->line, out->sides);
            QKV_TRY(read_side(r, out));
        }
        if (r->at < r->end && *r->at++ != '\n')
            return qkv_fail(QKV_BAD_FILE, "%s, line %lld: more sides than the task has", r->path,
                            (long long)r->line);
        if (labelled)
            QKV_TRY(qkv_encoded_label(
                out, (int32_t)qkv_rng_below((qkv_rng){1, 8}, (uint64_t)r->line, 2)));
    }
    return QKV_OK;
}

qkv_status qkv_bench_work_read(const char *path, const qkv_config *config, qkv_encoded *out) {
    const qkv_task *task = qkv_task_at((qkv_task_kind)config->task);
    qkv_file file;
    QKV_TRY(qkv_file_open(path, SIZE_MAX / 2, &file));
    id_reader r = {
        .path = path, .at = file.data, .end = file.data + file.size, .vocab = config->vocab_size};
    qkv_encoded_init(out, task->sides);
    qkv_status status = read_lines(&r, config->task == QKV_TASK_CLASSIFY, out);
    if (status != QKV_OK) qkv_encoded_free(out);
    qkv_free(r.ids.at);
    qkv_file_close(&file);
    return status;
}
