/* qkv doctor: build, instruction sets, threads, memory, and what the machine was measured to do.
 *
 * Facts are gathered as a list of rows first; the table and the JSON object are two ways to print
 * it. */
#include "base/machine.h"
#include "base/json.h"
#include "base/number.h"
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

typedef struct fact {
    const char *key;   /* in JSON */
    const char *label; /* in the table */
    const char *unit;
    double number; /* when text is empty */
    char text[160];
} fact;

typedef struct facts {
    fact at[32];
    size_t n;
} facts;

static void add_text(facts *f, const char *key, const char *label, const char *text) {
    fact *row = &f->at[f->n++];
    *row = (fact){.key = key, .label = label, .unit = ""};
    snprintf(row->text, sizeof row->text, "%s", text);
}

static void add_number(facts *f, const char *key, const char *label, double number,
                       const char *unit) {
    f->at[f->n++] = (fact){.key = key, .label = label, .unit = unit, .number = number};
}

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

static void about_build(facts *f) {
    char text[64];
    add_text(f, "version", "qkv", qkv_version());
#if defined(__clang__)
    add_text(f, "compiler", "compiler", "clang " __clang_version__);
#else
    add_text(f, "compiler", "compiler", "gcc " __VERSION__);
#endif
    snprintf(text, sizeof text, "%d", _OPENMP);
    add_text(f, "openmp", "OpenMP", text);
    add_text(f, "utf8proc", "utf8proc", utf8proc_version());
    pcre2_config(PCRE2_CONFIG_VERSION, text); /* "10.42 2022-12-11": shorter than the buffer */
    add_text(f, "pcre2", "PCRE2", text);
    qkv_parallel_library(text, sizeof text);
    add_text(f, "mpi", "MPI", text);
    add_text(f, "real", "numbers", sizeof(real) == 4 ? "float" : "double");
}

static void about_cpu(facts *f) {
    char text[160];
    proc_value("/proc/cpuinfo", "model name", text, sizeof text);
    add_text(f, "cpu", "CPU", *text ? text : "unknown");
    const qkv_kern *const *list;
    size_t n = qkv_kern_list(&list), used = 0;
    text[0] = 0;
    for (size_t i = 0; i < n && used < sizeof text; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? " " : "", list[i]->name);
    add_text(f, "isa_available", "instruction sets", text);
    add_text(f, "isa", "in use", qkv_kern_get()->name);
    const char *asked = getenv("QKV_ISA");
    if (asked && strcmp(asked, qkv_kern_get()->name) != 0) {
        snprintf(text, sizeof text, "QKV_ISA=%.40s is not one of them and was ignored", asked);
        add_text(f, "warning", "warning", text);
    }
    cpu_set_t set;
    add_number(f, "cores", "cores online", (double)sysconf(_SC_NPROCESSORS_ONLN), "");
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        add_number(f, "cores_allowed", "cores allowed", CPU_COUNT(&set), "");
    add_number(f, "threads", "threads in use", qkv_threads(), "");
    double total;
    const double available = qkv_machine_memory(&total);
    add_number(f, "memory_gb", "memory", total / 1e9, "GB");
    add_number(f, "memory_available_gb", "memory free", available / 1e9, "GB");
}

static void measure(facts *f) {
    const qkv_kern *k = qkv_kern_get();
    add_number(f, "peak_gflops_f32", "peak, f32", k->peak_gflops(QKV_F32, 0.3), "GFLOP/s");
    if (k->bf16)
        add_number(f, "peak_gflops_bf16", "peak, bf16", k->peak_gflops(QKV_BF16, 0.3), "GFLOP/s");
    add_number(f, "memory_gb_per_s", "memory bandwidth", qkv_memory_bandwidth(0.3) / 1e9, "GB/s");
}

static void print_json(const facts *f, qkv_buf *out) {
    qkv_json_out j = qkv_json_begin(out, 0);
    qkv_json_open(&j, '{');
    for (size_t i = 0; i < f->n; i++) {
        qkv_json_put_key(&j, f->at[i].key);
        if (f->at[i].text[0])
            qkv_json_put_text(&j, f->at[i].text);
        else
            qkv_json_put_real(&j, f->at[i].number, 4);
    }
    qkv_json_close(&j, '}');
    qkv_buf_putc(out, '\n');
}

static void print_table(const facts *f, qkv_buf *out) {
    for (size_t i = 0; i < f->n; i++) {
        char number[QKV_NUMBER_TEXT];
        const fact *row = &f->at[i];
        if (!row->text[0]) qkv_number_print(row->number, 4, number);
        qkv_buf_printf(out, "%-18s%s%s%s\n", row->label, row->text[0] ? row->text : number,
                       *row->unit ? " " : "", row->unit);
    }
}

qkv_status qkv_doctor(bool json, char **text) {
    facts f = {.n = 0};
    *text = NULL;
    about_build(&f);
    about_cpu(&f);
    measure(&f);
    qkv_buf out = {0};
    if (json)
        print_json(&f, &out);
    else
        print_table(&f, &out);
    if (out.status != QKV_OK) {
        qkv_buf_free(&out);
        return QKV_FAILED;
    }
    *text = out.data;
    return QKV_OK;
}
