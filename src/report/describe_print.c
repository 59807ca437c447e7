/* A description as a table and as JSON. In the table equal layers are shown once, with their
 * number. */
#include "report/describe_print.h"

#include <stdio.h>
#include <string.h>

#include "draw/text_table.h"

enum { WEIGHTS_WIDTH = 16 }; /* so that the table of the largest models has 80 columns */

/* ---- JSON ---- */

static void put_count(qkv_json_out *j, const char *key, double value) {
    qkv_json_put_key(j, key);
    if (value < 9e15)
        qkv_json_put_int(j, (int64_t)value);
    else
        qkv_json_put_real(j, value, 15);
}

static void part_name(const qkv_describe_part *p, char *out, size_t size) {
    char layer[32] = "";
    if (p->layer >= 0) snprintf(layer, sizeof layer, "layers.%d.", (int)p->layer);
    snprintf(out, size, "%s%s%s%s", p->side, p->side[0] ? "." : "", layer, p->name);
}

static void put_part(qkv_json_out *j, const qkv_description *d, const qkv_describe_part *p) {
    char name[80];
    part_name(p, name, sizeof name);
    qkv_json_open(j, '{');
    qkv_json_put_key(j, "name");
    qkv_json_put_text(j, name);
    qkv_json_put_key(j, "weights");
    qkv_json_put_text(j, p->weights);
    put_count(j, "parameters", (double)p->parameters);
    if (p->width) {
        qkv_json_put_key(j, "activation");
        qkv_json_open(j, '[');
        qkv_json_put_int(j, d->batch);
        if (!p->by_sequence) qkv_json_put_int(j, d->length);
        qkv_json_put_int(j, p->width);
        qkv_json_close(j, ']');
    }
    if (p->inside) put_count(j, "inside_width", (double)p->inside);
    put_count(j, "multiply_adds", p->macs);
    if (p->note) {
        qkv_json_put_key(j, "note");
        qkv_json_put_text(j, p->note);
    }
    qkv_json_close(j, '}');
}

static void put_side(qkv_json_out *j, const char *key, const qkv_describe_side *s) {
    if (!s->parameters) return;
    qkv_json_put_key(j, key);
    qkv_json_open(j, '{');
    put_count(j, "parameters", (double)s->parameters);
    put_count(j, "layers", (double)s->layers);
    put_count(j, "layer_parameters", (double)s->layer);
    put_count(j, "parameters_in_layers", (double)s->in_layers);
    qkv_json_close(j, '}');
}

void qkv_describe_json(const qkv_description *d, qkv_buf *out) {
    qkv_json_out j = qkv_json_begin(out, 2);
    qkv_json_open(&j, '{');
    qkv_json_put_key(&j, "config");
    qkv_json_open(&j, '{');
    qkv_config_write(qkv_description_config(d), &j);
    qkv_json_close(&j, '}');
    put_count(&j, "batch", (double)d->batch);
    put_count(&j, "length", (double)d->length);
    qkv_json_put_key(&j, "parts");
    qkv_json_open(&j, '[');
    for (size_t i = 0; i < d->n; i++) put_part(&j, d, &d->parts[i]);
    qkv_json_close(&j, ']');
    if (d->attention) put_count(&j, "attention_parameters", (double)d->attention);
    put_side(&j, "encoder", &d->encoder);
    put_side(&j, "decoder", &d->decoder);
    put_count(&j, "parameters", (double)d->total);
    put_count(&j, "parameters_in_layers", (double)d->total_in_layers);
    put_count(&j, "multiply_adds", d->macs);
    if (d->attention_dense > 0) put_count(&j, "attention_as_dense_parameters", d->attention_dense);
    put_count(&j, "weight_bytes", d->weight_bytes);
    put_count(&j, "training_bytes", d->training_state_bytes + d->activation_bytes);
    put_count(&j, "activation_bytes", d->activation_bytes);
    put_count(&j, "decoding_bytes", d->weight_bytes + d->cache_bytes);
    put_count(&j, "cache_bytes", d->cache_bytes);
    qkv_json_close(&j, '}');
    qkv_buf_putc(out, '\n');
}

/* ---- table ---- */

/* What fits of a list of weights or of a note into `columns`, up to a blank; returns what is left. */
static const char *put_wrapped(qkv_table *t, const char *text, int columns) {
    size_t end = strlen(text);
    while (qkv_text_width(text, end) > columns) {
        size_t blank = end;
        while (blank > 0 && text[blank - 1] != ' ') blank--;
        if (blank == 0) break;
        end = blank - 1;
        if (end > 1 && text[end - 1] == '+') end -= 2; /* a line begins with the plus */
    }
    qkv_table_cell(t, "%.*s", (int)end, text);
    return text + end + (text[end] == ' ');
}

/* 481036337152 → "481.0 G" */
static void short_count(double value, char out[40]) {
    static const char *const units[] = {"", " k", " M", " G", " T", " P", " E"};
    size_t u = 0;
    for (; value >= 999.95 && u + 1 < sizeof units / sizeof *units; u++) value /= 1000;
    snprintf(out, 40, "%.*f%s", u > 0, value, units[u]);
}

static void put_activation(qkv_table *t, const qkv_description *d, const qkv_describe_part *p,
                           int64_t width) {
    if (!width)
        qkv_table_cell(t, "%s", "");
    else if (p->by_sequence)
        qkv_table_cell(t, "%lld × %lld", (long long)d->batch, (long long)width);
    else
        qkv_table_cell(t, "%lld × %lld × %lld", (long long)d->batch, (long long)d->length,
                       (long long)width);
}

/* A part, and lines below it for more weights than one holds and for what it makes inside. */
static void put_row(qkv_table *t, const qkv_description *d, const qkv_describe_part *p,
                    const char *indent) {
    const bool inside = p->inside && p->inside != p->width;
    char count[40], macs[40] = "";
    const char *weights = p->note ? p->note : p->weights;
    qkv_print_grouped((double)p->parameters, count);
    if (p->macs > 0) short_count(p->macs, macs);
    for (int line = 0; line == 0 || (line == 1 && inside) || *weights; line++) {
        qkv_table_cell(t, "%s%s", indent,
                       line == 0             ? p->name
                       : line == 1 && inside ? "  inside"
                                             : "");
        weights = put_wrapped(t, weights, WEIGHTS_WIDTH);
        qkv_table_cell(t, "%s", line ? "" : count);
        put_activation(t, d, p, line == 0 ? p->width : line == 1 && inside ? p->inside : 0);
        qkv_table_cell(t, "%s", line ? "" : macs);
    }
}

static bool same_part(const qkv_describe_part *a, const qkv_describe_part *b, bool by_work) {
    return strcmp(a->name, b->name) == 0 && strcmp(a->weights, b->weights) == 0 &&
           (!by_work || a->macs == b->macs) && a->width == b->width;
}

/* The parts of the layer that begins at `at`: how many. */
static size_t layer_parts(const qkv_description *d, size_t at) {
    size_t n = 0;
    while (at + n < d->n && d->parts[at + n].layer == d->parts[at].layer &&
           strcmp(d->parts[at + n].side, d->parts[at].side) == 0)
        n++;
    return n;
}

int qkv_describe_layers(const qkv_description *d, size_t at, bool by_work, size_t *n) {
    const size_t parts = *n = layer_parts(d, at);
    int count = 1;
    for (size_t next = at + parts; next + parts <= d->n; next += parts, count++)
        for (size_t i = 0; i < parts; i++)
            if (d->parts[next].layer < 0 || strcmp(d->parts[next].side, d->parts[at].side) != 0 ||
                !same_part(&d->parts[at + i], &d->parts[next + i], by_work))
                return count;
    return count;
}

/* Equal layers as one; returns the index of what follows them. */
static size_t put_layers(qkv_table *t, const qkv_description *d, size_t at) {
    size_t parts;
    const int layers = qkv_describe_layers(d, at, true, &parts), first = d->parts[at].layer + 1;
    double each = 0, macs = 0;
    for (size_t i = 0; i < parts; i++) {
        each += (double)d->parts[at + i].parameters;
        macs += d->parts[at + i].macs;
    }
    char count[40], work[40];
    qkv_print_grouped(each, count);
    short_count(macs, work);
    if (layers > 1)
        qkv_table_cell(t, "  layers %d to %d", first, first + layers - 1);
    else
        qkv_table_cell(t, "  layer %d", first);
    qkv_table_cell(t, "%s", layers > 1 ? "each:" : "");
    qkv_table_cell(t, "%s", count);
    qkv_table_cell(t, "%s", "");
    qkv_table_cell(t, "%s", work);
    for (size_t i = 0; i < parts; i++) put_row(t, d, &d->parts[at + i], "    ");
    return at + parts * (size_t)layers;
}

static void put_parts(qkv_table *t, const qkv_description *d) {
    const char *const heads[] = {"part", "weights", "parameters", "activation", "mul-adds"};
    for (int c = 0; c < 5; c++) qkv_table_cell(t, "%s", heads[c]);
    for (size_t i = 0; i < d->n;) {
        const qkv_describe_part *p = &d->parts[i];
        bool opens = p->side[0] && (i == 0 || strcmp(d->parts[i - 1].side, p->side) != 0);
        if (opens)
            for (int c = 0; c < 5; c++) qkv_table_cell(t, "%s", c ? "" : p->side);
        if (p->layer >= 0)
            i = put_layers(t, d, i);
        else
            put_row(t, d, p, p->side[0] ? "  " : ""), i++;
    }
}

/* ---- totals ---- */

static void put_total(qkv_table *t, const char *name, double value, const char *unit) {
    char text[40];
    qkv_print_grouped(value, text);
    qkv_table_cell(t, "%s", name);
    qkv_table_cell(t, "%s", text);
    qkv_table_cell(t, "%s", unit);
}

static void put_bytes(qkv_table *t, const char *name, double bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t u = 0;
    for (; bytes >= 1024 && u + 1 < sizeof units / sizeof *units; u++) bytes /= 1024;
    qkv_table_cell(t, "%s", name);
    qkv_table_cell(t, "%.1f", bytes);
    qkv_table_cell(t, "%s", units[u]);
}

static void put_side_totals(qkv_table *t, const char *name, const qkv_describe_side *s) {
    char line[64];
    if (!s->parameters) return;
    snprintf(line, sizeof line, "one %s layer", name);
    put_total(t, line, (double)s->layer, "parameters");
    put_total(t, name, (double)s->parameters, "parameters");
    put_total(t, "  its layers alone", (double)s->in_layers, "parameters");
}

static void put_totals(qkv_table *t, const qkv_description *d) {
    for (int c = 0; c < 3; c++) qkv_table_cell(t, "%s", c ? "" : "in all");
    if (d->attention) put_total(t, "one self-attention", (double)d->attention, "parameters");
    put_side_totals(t, "encoder", &d->encoder);
    put_side_totals(t, "decoder", &d->decoder);
    put_total(t, "total", (double)d->total, "parameters");
    put_total(t, "  all layers alone", (double)d->total_in_layers, "parameters");
    put_total(t, "one forward pass", d->macs, "multiply-adds");
    if (d->attention_dense > 0)
        put_total(t, "one attention as a dense layer, (N·D)²", d->attention_dense, "parameters");
    put_bytes(t, "weights", d->weight_bytes);
    put_bytes(t, "training: weights, gradients, moments", d->training_state_bytes);
    put_bytes(t, "training: activations", d->activation_bytes);
    if (d->cache_bytes > 0) put_bytes(t, "decoding: cache", d->cache_bytes);
    put_bytes(t, "decoding: all", d->weight_bytes + d->cache_bytes);
}

qkv_status qkv_describe_text(const qkv_description *d, qkv_buf *out) {
    const qkv_ink ink = {.columns = 200}; /* shapes are not to be cut */
    qkv_table parts = qkv_table_begin("llrlr"), totals = qkv_table_begin("lrl");
    put_parts(&parts, d);
    put_totals(&totals, d);
    qkv_status status = qkv_table_print(&parts, ink, out);
    qkv_buf_putc(out, '\n');
    if (status == QKV_OK) status = qkv_table_print(&totals, ink, out);
    qkv_table_free(&parts);
    qkv_table_free(&totals);
    return status;
}
