/* See machine.h. */
#include "base/machine.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

double qkv_machine_memory(double *total) {
    double kib = 0, all = 0, limit = 0, used = 0;
    char line[128];
    FILE *f = fopen("/proc/meminfo", "r");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "MemAvailable: %lf", &kib) != 1)
            (void)!sscanf(line, "MemTotal: %lf", &all);
    }
    if (f) fclose(f);
    *total = 1024 * all;
    double have = 1024 * kib;
    if ((f = fopen("/sys/fs/cgroup/memory.max", "r"))) {
        const bool limited = fscanf(f, "%lf", &limit) == 1;
        fclose(f);
        if (limited && limit < *total) {
            if ((f = fopen("/sys/fs/cgroup/memory.current", "r"))) {
                if (fscanf(f, "%lf", &used) != 1) used = 0;
                fclose(f);
            }
            *total = limit;
            if (limit - used < have) have = limit - used;
        }
    }
    return have;
}

double qkv_process_memory(double *most) {
    double now = 0, kib;
    char line[128];
    FILE *f = fopen("/proc/self/status", "r");
    *most = 0;
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "VmRSS: %lf", &kib) == 1) now = 1024 * kib;
        if (sscanf(line, "VmHWM: %lf", &kib) == 1) *most = 1024 * kib;
    }
    if (f) fclose(f);
    return now;
}

/* ---- bandwidth: all threads read a block far larger than the caches ---- */

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
