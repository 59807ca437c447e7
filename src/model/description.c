/* Describing a model: the walk of cost.c collected into rows and totals. Nothing is allocated for
 * weights. */
#include "model/description.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/cost.h"

/* What a description points to. */
typedef struct described {
    qkv_config config;
    QKV_VEC(qkv_describe_part) parts;
} described;

typedef struct collector {
    const qkv_model *m;
    qkv_description *d;
    described *held;
    double kept; /* values that a training step keeps */
    qkv_status status;
} collector;

/* Appends "rows×cols" (a vector: "cols") to a list joined by " + "; what does not fit ends in "…".
 */
static void add_shape(char *text, size_t size, const qkv_param_spec *s) {
    size_t n = strlen(text);
    const char *join = n ? " + " : "";
    if (s->vector)
        snprintf(text + n, size - n, "%s%lld", join, (long long)s->cols);
    else
        snprintf(text + n, size - n, "%s%lld×%lld", join, (long long)s->rows, (long long)s->cols);
}

static void add_to_side(qkv_description *d, const collector *c, const qkv_cost_part *part,
                        int64_t n) {
    qkv_describe_side *side = part->side == &c->m->encoder   ? &d->encoder
                              : part->side == &c->m->decoder ? &d->decoder
                                                             : NULL;
    d->total += n;
    if (!side) {
        d->other += n;
        return;
    }
    side->parameters += n;
    if (part->layer < 0) return;
    side->in_layers += n;
    d->total_in_layers += n;
    if (part->layer == 0) side->layer += n;
    if (part->layer >= side->layers) side->layers = part->layer + 1;
    if (part->layer == 0 && strcmp(part->name, "attention") == 0 && !d->attention) d->attention = n;
}

static void collect(void *user, const qkv_cost_part *part) {
    collector *c = user;
    qkv_description *d = c->d;
    qkv_describe_part row = {.layer = part->layer,
                             .name = part->name,
                             .note = part->note,
                             .by_sequence = part->by_sequence,
                             .width = part->width,
                             .inside = part->inside,
                             .macs = part->macs};
    if (part->side) snprintf(row.side, sizeof row.side, "%s", part->side->name);
    for (size_t i = 0; i < part->n_params; i++) {
        const qkv_param_spec *s = &part->params[i]->spec;
        row.parameters += s->rows * s->cols;
        add_shape(row.weights, sizeof row.weights, s);
    }
    add_to_side(d, c, part, row.parameters);
    d->macs += part->macs;
    c->kept += part->kept * (double)d->batch * (part->by_sequence ? 1 : (double)d->length);
    if (!QKV_PUSH(c->held->parts, row)) c->status = QKV_FAILED;
}

/* Keys and values (or states) of all layers for the whole batch and length. */
static double cache_values(const qkv_model *m, int64_t batch, int64_t length) {
    const qkv_side *side = &m->decoder;
    if (!side->name) return 0;
    if (side->recurrent)
        return 2.0 * side->rnn.spec.layers * (double)(batch * side->rnn.spec.state);
    const qkv_multihead_spec *a = &side->stack.spec.attention;
    double rows = (double)batch * (double)length * (m->shape.encoder ? 2 : 1);
    return rows * 2 * (double)(a->kv_heads * a->d_head) * side->stack.spec.layers;
}

qkv_status qkv_describe_make(const qkv_model *m, int64_t batch, int64_t length,
                             qkv_description *out) {
    *out = (qkv_description){.batch = batch, .length = length};
    if (batch < 1 || length < 1 || batch > 1000000 || length > 100000000)
        return qkv_fail(
            QKV_USAGE,
            "describe: batch (%lld) must be 1 to 1,000,000 and length (%lld) 1 to 100,000,000",
            (long long)batch, (long long)length);
    collector c = {.m = m, .d = out};
    qkv_workload work = qkv_workload_even(batch, length);
    QKV_TRY_ALLOC(out->memory = c.held = qkv_zalloc(1, sizeof *c.held));
    c.held->config = m->config;
    qkv_model_walk(m, &work, collect, &c);
    out->parts = c.held->parts.at;
    out->n = c.held->parts.n;
    double flat = (double)length * (double)m->config.d_model;
    const double bytes = 4; /* float, whatever this build's real is */
    out->attention_dense = m->config.arch == QKV_ARCH_TRANSFORMER ? flat * flat : 0;
    out->weight_bytes = bytes * (double)m->params.length;
    out->training_state_bytes = 4 * out->weight_bytes; /* values, gradients, two moments */
    out->activation_bytes = bytes * c.kept;
    out->cache_bytes = bytes * cache_values(m, batch, length);
    if (c.status != QKV_OK) qkv_description_free(out);
    return c.status;
}

const qkv_config *qkv_description_config(const qkv_description *d) {
    return &((const described *)d->memory)->config;
}

bool qkv_description_value(const qkv_description *d, size_t i, double *number, const char **text) {
    described *held = d->memory;
    const qkv_settings s = qkv_config_settings(&held->config);
    if (i < s.n) qkv_setting_value(&s, &s.rows[i], number, text);
    return i < s.n;
}

void qkv_description_free(qkv_description *d) {
    described *held = d->memory;
    if (held) qkv_free(held->parts.at);
    qkv_free(held);
    *d = (qkv_description){0};
}

void qkv_print_grouped(double whole, char out[40]) {
    char digits[40];
    int n = snprintf(digits, sizeof digits, "%.0f", whole), at = 0;
    if (n > 27) { /* more than a count can be */
        snprintf(out, 40, "%.3e", whole);
        return;
    }
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0 && digits[i - 1] != '-') out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = 0;
}
