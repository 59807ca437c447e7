/* Memory bandwidth: all threads read a block far larger than the caches. It is the limit of
 * generating text, where every weight is read once a token. */
#include "api/bench.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/thread.h"

enum { CHUNK = 1 << 14, CHUNKS = 2048 }; /* words of 8 bytes; 256 MiB in all */

/* A sum that needs every word and little arithmetic; eight lanes so that additions do not wait. */
static uint64_t sum_chunk(const uint64_t *x) {
    uint64_t lane[8] = {0};
    for (size_t i = 0; i < CHUNK; i += 8)
        for (size_t l = 0; l < 8; l++) lane[l] += x[i + l];
    return lane[0] + lane[1] + lane[2] + lane[3] + lane[4] + lane[5] + lane[6] + lane[7];
}

double qkv_memory_bandwidth(double seconds) {
    size_t bytes = sizeof(uint64_t) * CHUNK * CHUNKS;
    uint64_t *x = qkv_alloc_aligned(bytes);
    if (!x) return 0;
    QKV_PARALLEL_FOR
    for (int64_t c = 0; c < CHUNKS; c++)
        for (int64_t i = 0; i < CHUNK; i++)
            x[c * CHUNK + i] = (uint64_t)(c ^ i); /* each page near its reader */
    double best = 0, start = qkv_now();
    volatile uint64_t sink[CHUNKS]; /* keeps the reads alive */
    do {
        double begin = qkv_now();
        QKV_PARALLEL_FOR
        for (int64_t c = 0; c < CHUNKS; c++) sink[c] = sum_chunk(x + c * CHUNK);
        double rate = (double)bytes / (qkv_now() - begin);
        if (rate > best) best = rate;
    } while (qkv_now() - start < seconds);
    (void)sink[0];
    qkv_free(x);
    return best;
}

static qkv_status run(const qkv_bench_args *args, qkv_buf *out) {
    double seconds = 1;
    QKV_TRY(qkv_bench_real(args, "seconds", 0.001, 3600, &seconds));
    double rate = qkv_memory_bandwidth(seconds);
    if (rate == 0) return QKV_FAILED;
    if (!args->json) {
        qkv_buf_printf(out, "memory bandwidth  %.1f GB/s read by %d threads\n", rate / 1e9,
                       qkv_threads());
        return QKV_OK;
    }
    qkv_json_out j = qkv_json_begin(out, 0);
    qkv_json_open(&j, '{');
    qkv_json_put_key(&j, "read_gb_per_s");
    qkv_json_put_real(&j, rate / 1e9, 4);
    qkv_json_put_key(&j, "threads");
    qkv_json_put_int(&j, qkv_threads());
    qkv_json_close(&j, '}');
    qkv_buf_putc(out, '\n');
    return QKV_OK;
}

const qkv_benchmark qkv_bench_memory = {
    .keys = (const char *const[]){"seconds", NULL},
    .run = run,
};
