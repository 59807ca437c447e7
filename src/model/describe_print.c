/* A description as a table and as JSON. In the table equal layers are shown once, with their
 * number. */
#include <stdio.h>
#include <string.h>

#include "model/describe.h"

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

void qkv_describe_json(const qkv_description *d, const qkv_config *config, qkv_buf *out) {
    qkv_json_out j = qkv_json_begin(out, 2);
    qkv_json_open(&j, '{');
    qkv_json_put_key(&j, "config");
    qkv_json_open(&j, '{');
    qkv_config_write(config, &j);
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

/* Columns on the screen that UTF-8 text takes: code points, all of width 1 here. */
static int columns_of(const char *text) {
    int n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void put_cell(qkv_buf *out, const char *text, int width, bool right) {
    int pad = width - columns_of(text);
    if (right) qkv_buf_printf(out, "%*s", pad > 0 ? pad : 0, "");
    qkv_buf_puts(out, text);
    if (!right) qkv_buf_printf(out, "%*s", pad > 0 ? pad : 0, "");
    qkv_buf_puts(out, "  ");
}

static void put_line(qkv_buf *out, const char *name, const char *weights, const char *parameters,
                     const char *activation, const char *macs) {
    put_cell(out, name, 30, false);
    put_cell(out, weights, 38, false);
    put_cell(out, parameters, 17, true);
    put_cell(out, activation, 22, false);
    put_cell(out, macs, 23, true);
    while (out->len && out->data[out->len - 1] == ' ') out->data[--out->len] = 0;
    qkv_buf_putc(out, '\n');
}

static void put_row(qkv_buf *out, const qkv_description *d, const qkv_describe_part *p,
                    const char *indent) {
    char name[48], count[40], activation[80] = "", macs[40] = "";
    snprintf(name, sizeof name, "%s%s", indent, p->name);
    qkv_print_grouped((double)p->parameters, count);
    if (p->width && p->by_sequence)
        snprintf(activation, sizeof activation, "%lld × %lld", (long long)d->batch,
                 (long long)p->width);
    else if (p->width)
        snprintf(activation, sizeof activation, "%lld × %lld × %lld", (long long)d->batch,
                 (long long)d->length, (long long)p->width);
    if (p->macs > 0) qkv_print_grouped(p->macs, macs);
    put_line(out, name, p->note ? p->note : p->weights, count, activation, macs);
    if (!p->inside || p->inside == p->width) return;
    snprintf(activation, sizeof activation, "%lld × %lld × %lld", (long long)d->batch,
             (long long)d->length, (long long)p->inside);
    snprintf(name, sizeof name, "%s  inside", indent);
    put_line(out, name, "", "", activation, "");
}

static bool same_part(const qkv_describe_part *a, const qkv_describe_part *b) {
    return strcmp(a->name, b->name) == 0 && strcmp(a->weights, b->weights) == 0 &&
           a->macs == b->macs && a->width == b->width;
}

/* The parts of the layer that begins at `at`: how many. */
static size_t layer_parts(const qkv_description *d, size_t at) {
    size_t n = 0;
    while (at + n < d->n && d->parts[at + n].layer == d->parts[at].layer &&
           strcmp(d->parts[at + n].side, d->parts[at].side) == 0)
        n++;
    return n;
}

/* How many layers from `at` on are equal to the first. */
static int equal_layers(const qkv_description *d, size_t at, size_t parts) {
    int count = 1;
    for (size_t next = at + parts; next + parts <= d->n; next += parts, count++)
        for (size_t i = 0; i < parts; i++)
            if (d->parts[next].layer < 0 || strcmp(d->parts[next].side, d->parts[at].side) != 0 ||
                !same_part(&d->parts[at + i], &d->parts[next + i]))
                return count;
    return count;
}

static size_t put_layers(qkv_buf *out, const qkv_description *d, size_t at) {
    size_t parts = layer_parts(d, at);
    int layers = equal_layers(d, at, parts), first = d->parts[at].layer;
    double each = 0, macs = 0;
    for (size_t i = 0; i < parts; i++) {
        each += (double)d->parts[at + i].parameters;
        macs += d->parts[at + i].macs;
    }
    char name[48], note[40], count[40], work[40];
    if (layers > 1)
        snprintf(name, sizeof name, "  layers %d to %d", first, first + layers - 1);
    else
        snprintf(name, sizeof name, "  layer %d", first);
    snprintf(note, sizeof note, "%s", layers > 1 ? "each:" : "");
    qkv_print_grouped(each, count);
    qkv_print_grouped(macs, work);
    put_line(out, name, note, count, "", work);
    for (size_t i = 0; i < parts; i++) put_row(out, d, &d->parts[at + i], "    ");
    return at + parts * (size_t)layers;
}

static void put_total(qkv_buf *out, const char *name, double value, const char *unit) {
    char text[40];
    qkv_print_grouped(value, text);
    put_cell(out, name, 44, false);
    put_cell(out, text, 27, true);
    qkv_buf_printf(out, "%s\n", unit);
}

static void put_bytes(qkv_buf *out, const char *name, double bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    size_t u = 0;
    for (; bytes >= 1024 && u + 1 < sizeof units / sizeof *units; u++) bytes /= 1024;
    char text[40];
    snprintf(text, sizeof text, "%.1f %s", bytes, units[u]);
    put_cell(out, name, 44, false);
    put_cell(out, text, 27, true);
    while (out->len && out->data[out->len - 1] == ' ') out->data[--out->len] = 0;
    qkv_buf_putc(out, '\n');
}

static void put_side_totals(qkv_buf *out, const char *name, const qkv_describe_side *s) {
    char line[64];
    if (!s->parameters) return;
    snprintf(line, sizeof line, "one %s layer", name);
    put_total(out, line, (double)s->layer, "parameters");
    put_total(out, name, (double)s->parameters, "parameters");
    snprintf(line, sizeof line, "  its layers alone");
    put_total(out, line, (double)s->in_layers, "parameters");
}

void qkv_describe_text(const qkv_description *d, const qkv_config *config, qkv_buf *out) {
    (void)config;
    put_line(out, "part", "weights", "parameters", "activation", "multiply-adds");
    for (size_t i = 0; i < d->n;) {
        const qkv_describe_part *p = &d->parts[i];
        bool opens = p->side[0] && (i == 0 || strcmp(d->parts[i - 1].side, p->side) != 0);
        if (opens) qkv_buf_printf(out, "%s\n", p->side);
        if (p->layer >= 0)
            i = put_layers(out, d, i);
        else
            put_row(out, d, p, p->side[0] ? "  " : ""), i++;
    }
    qkv_buf_putc(out, '\n');
    if (d->attention) put_total(out, "one self-attention", (double)d->attention, "parameters");
    put_side_totals(out, "encoder", &d->encoder);
    put_side_totals(out, "decoder", &d->decoder);
    put_total(out, "total", (double)d->total, "parameters");
    put_total(out, "  all layers alone", (double)d->total_in_layers, "parameters");
    put_total(out, "one forward pass", d->macs, "multiply-adds");
    if (d->attention_dense > 0)
        put_total(out, "one attention as a dense layer, (N·D)²", d->attention_dense, "parameters");
    put_bytes(out, "weights", d->weight_bytes);
    put_bytes(out, "training: weights, gradients, moments", d->training_state_bytes);
    put_bytes(out, "training: activations", d->activation_bytes);
    if (d->cache_bytes > 0) put_bytes(out, "decoding: cache", d->cache_bytes);
    put_bytes(out, "decoding: all", d->weight_bytes + d->cache_bytes);
}
