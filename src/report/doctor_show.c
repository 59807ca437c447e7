/* A diagnosis as a table and as JSON: a list of rows first, which are two ways to print it. */
#include "report/show.h"
#include "base/number.h"

#include <stdio.h>

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

static void about_build(const qkv_diagnosis *d, facts *f) {
    char text[16];
    add_text(f, "version", "qkv", d->version);
    add_text(f, "compiler", "compiler", d->compiler);
    snprintf(text, sizeof text, "%d", d->openmp);
    add_text(f, "openmp", "OpenMP", text);
    add_text(f, "utf8proc", "utf8proc", d->utf8proc);
    add_text(f, "pcre2", "PCRE2", d->pcre2);
    add_text(f, "mpi", "MPI", d->mpi);
    add_text(f, "real", "numbers", d->real);
}

static void about_cpu(const qkv_diagnosis *d, facts *f) {
    char text[160] = "";
    size_t used = 0;
    add_text(f, "cpu", "CPU", d->cpu);
    for (size_t i = 0; d->isas[i] && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? " " : "", d->isas[i]);
    add_text(f, "isa_available", "instruction sets", text);
    add_text(f, "isa", "in use", d->isa);
    if (!d->isa_ignored) return;
    snprintf(text, sizeof text, "QKV_ISA=%.40s is not one of them and was ignored", d->isa_ignored);
    add_text(f, "warning", "warning", text);
}

static void about_machine(const qkv_diagnosis *d, facts *f) {
    add_number(f, "cores", "cores online", d->cores, "");
    if (d->cores_allowed) add_number(f, "cores_allowed", "cores allowed", d->cores_allowed, "");
    add_number(f, "threads", "threads in use", d->threads, "");
    add_number(f, "memory_gb", "memory", d->memory_bytes / 1e9, "GB");
    add_number(f, "memory_available_gb", "memory free", d->memory_available_bytes / 1e9, "GB");
    add_number(f, "peak_gflops_f32", "peak, f32", d->peak_gflops_f32, "GFLOP/s");
    if (d->peak_gflops_bf16 > 0)
        add_number(f, "peak_gflops_bf16", "peak, bf16", d->peak_gflops_bf16, "GFLOP/s");
    add_number(f, "memory_gb_per_s", "memory bandwidth", d->memory_bytes_per_s / 1e9, "GB/s");
}

static facts facts_of(const qkv_diagnosis *d) {
    facts f = {.n = 0};
    about_build(d, &f);
    about_cpu(d, &f);
    about_machine(d, &f);
    return f;
}

static void members(const void *result, qkv_json_out *j) {
    const facts f = facts_of(result);
    for (size_t i = 0; i < f.n; i++) {
        if (f.at[i].text[0])
            qkv_put_text(j, f.at[i].key, f.at[i].text);
        else
            qkv_put_real(j, f.at[i].key, f.at[i].number, 4);
    }
}

static void table(const void *result, qkv_buf *out) {
    const facts f = facts_of(result);
    for (size_t i = 0; i < f.n; i++) {
        char number[QKV_NUMBER_TEXT];
        const fact *row = &f.at[i];
        if (!row->text[0]) qkv_number_print(row->number, 4, number);
        qkv_buf_printf(out, "%-18s%s%s%s\n", row->label, row->text[0] ? row->text : number,
                       *row->unit ? " " : "", row->unit);
    }
}

qkv_status qkv_diagnosis_show(const qkv_diagnosis *d, qkv_show how, char **text) {
    return qkv_show_result(d, &(qkv_wording){table, members}, how, text);
}
