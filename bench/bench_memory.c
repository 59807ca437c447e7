/* Memory bandwidth: all threads read a block far larger than the caches. It is the limit of
 * generating text, where every weight is read once a token. */
#include "bench/benchmark.h"
#include "base/json.h"
#include "base/machine.h"

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
