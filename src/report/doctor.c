/* qkv_doctor: build, instruction sets, threads, memory, and what the machine was measured to do. */
#include "base/machine.h"
#include "base/mem.h"
#include "base/thread.h"
#include "kern/kern.h"
#include "base/parallel.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utf8proc.h>

/* What a diagnosis points to. */
typedef struct texts {
    char pcre2[64], mpi[64], cpu[160], isa_ignored[160];
    const char *isas[]; /* one each, NULL at the end */
} texts;

/* The value of the first line "name : value" of a /proc file; "" when there is none. */
static void proc_value(const char *path, const char *name, char *out, size_t size) {
    char line[512];
    out[0] = 0;
    FILE *file = fopen(path, "re");
    if (!file) return;
    while (fgets(line, sizeof line, file)) {
        size_t n = strlen(name);
        if (strncmp(line, name, n) != 0) continue;
        const char *value = strchr(line, ':');
        if (!value) continue;
        value += 1 + strspn(value + 1, " \t");
        snprintf(out, size, "%.*s", (int)strcspn(value, "\n"), value);
        break;
    }
    fclose(file);
}

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

static void about_build(qkv_diagnosis *d, texts *t) {
    pcre2_config(PCRE2_CONFIG_VERSION, t->pcre2); /* "10.42 2022-12-11": shorter than the buffer */
    qkv_parallel_library(t->mpi, sizeof t->mpi);
    d->version = qkv_version();
    d->compiler = COMPILER;
    d->utf8proc = utf8proc_version();
    d->pcre2 = t->pcre2;
    d->mpi = t->mpi;
    d->openmp = _OPENMP;
    d->real = sizeof(real) == 4 ? "float" : "double";
}

static void about_cpu(qkv_diagnosis *d, texts *t) {
    proc_value("/proc/cpuinfo", "model name", t->cpu, sizeof t->cpu);
    const qkv_kern *const *list;
    const size_t n = qkv_kern_list(&list);
    for (size_t i = 0; i < n; i++) t->isas[i] = list[i]->name;
    d->cpu = *t->cpu ? t->cpu : "unknown";
    d->isas = t->isas;
    d->isa = qkv_kern_get()->name;
    const char *asked = getenv("QKV_ISA");
    if (!asked || strcmp(asked, d->isa) == 0) return;
    snprintf(t->isa_ignored, sizeof t->isa_ignored, "%s", asked);
    d->isa_ignored = t->isa_ignored;
}

static void about_machine(qkv_diagnosis *d) {
    cpu_set_t set;
    d->cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (sched_getaffinity(0, sizeof set, &set) == 0) d->cores_allowed = CPU_COUNT(&set);
    d->threads = qkv_threads();
    d->memory_available_bytes = qkv_machine_memory(&d->memory_bytes);
}

static void measure(qkv_diagnosis *d) {
    const qkv_kern *k = qkv_kern_get();
    d->peak_gflops_f32 = k->peak_gflops(QKV_F32, 0.3);
    if (k->bf16) d->peak_gflops_bf16 = k->peak_gflops(QKV_BF16, 0.3);
    d->memory_bytes_per_s = qkv_memory_bandwidth(0.3);
}

qkv_status qkv_doctor(qkv_diagnosis *out) {
    const qkv_kern *const *list;
    texts *t = qkv_zalloc(1, sizeof *t + (qkv_kern_list(&list) + 1) * sizeof *t->isas);
    *out = (qkv_diagnosis){.memory = t};
    if (!t) return QKV_FAILED;
    about_build(out, t);
    about_cpu(out, t);
    about_machine(out);
    measure(out);
    return QKV_OK;
}

void qkv_diagnosis_free(qkv_diagnosis *d) {
    qkv_free(d->memory);
    *d = (qkv_diagnosis){0};
}
