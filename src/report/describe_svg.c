/* A model as a block diagram: the parts of its description,
 * one layer of each side standing for all. */
#include "report/describe_svg.h"
#include "draw/diagram.h"

#include <stdio.h>
#include <string.h>

enum { BLOCKS = 32, TEXT = 96 };

/* Parts by name: what the picture calls them. "causal" is put before the title in a decoder. */
static const struct face {
    const char *name, *title;
    qkv_diagram_kind kind;
    bool causal;
} faces[] = {
    {"embedding", "Token embedding", QKV_BLOCK_INPUT, false},
    {"position", "Positions", QKV_BLOCK_INPUT, false},
    {"attention", "Self-attention", QKV_BLOCK_ATTENTION, true},
    {"cross", "Cross-attention", QKV_BLOCK_ATTENTION, false},
    {"ffn", "Feed-forward", QKV_BLOCK_DENSE, false},
    {"forward", "Recurrent, forwards", QKV_BLOCK_ATTENTION, false},
    {"backward", "Recurrent, backwards", QKV_BLOCK_ATTENTION, false},
    {"head", "Output over the vocabulary", QKV_BLOCK_OUTPUT, false},
    {"classes", "Output over the classes", QKV_BLOCK_OUTPUT, false},
};

/* One side of the diagram with the texts that its blocks point to. */
typedef struct side {
    qkv_diagram_block blocks[BLOCKS];
    char title[BLOCKS][TEXT], detail[BLOCKS][TEXT], repeat[32];
    qkv_diagram_stack stack;
} side;

static const struct face *face_of(const char *name) {
    for (size_t i = 0; i < sizeof faces / sizeof *faces; i++)
        if (strcmp(faces[i].name, name) == 0) return &faces[i];
    return NULL;
}

static bool is_norm(const char *name) {
    size_t n = strlen(name);
    return n >= 4 && strcmp(name + n - 4, "norm") == 0;
}

/* "8 heads of 32 · 263,168": the shape that says most, and the parameters. */
static void write_detail(const qkv_describe_part *p, const qkv_config *c, char out[TEXT]) {
    char count[40], shape[TEXT / 2] = "";
    qkv_print_grouped((double)p->parameters, count);
    if (strcmp(p->name, "attention") == 0 || strcmp(p->name, "cross") == 0)
        snprintf(shape, sizeof shape, "%lld heads of %lld · ", (long long)c->heads,
                 (long long)c->d_head);
    else if (strcmp(p->name, "ffn") == 0)
        snprintf(shape, sizeof shape, "%lld → %lld → %lld · ", (long long)c->d_model,
                 (long long)c->d_ff, (long long)c->d_model);
    else if (!is_norm(p->name) && strlen(p->weights) < 20 && p->parameters)
        snprintf(shape, sizeof shape, "%.20s · ", p->weights);
    if (p->parameters)
        snprintf(out, TEXT, "%s%s", shape, count);
    else
        snprintf(out, TEXT, "%.40s", *p->weights || !p->note ? p->weights : p->note);
}

/* Adds a part; of a repeated layer only the first is drawn. */
static void add_part(side *s, const qkv_describe_part *p, const qkv_config *c, bool decoder) {
    if (p->layer > 0 || s->stack.n == BLOCKS) return;
    size_t i = s->stack.n++;
    const struct face *f = face_of(p->name);
    bool norm = is_norm(p->name);
    const char *title = norm ? c->norm_kind == QKV_NORM_RMS ? "RMSNorm" : "LayerNorm"
                        : f  ? f->title
                             : p->name;
    if (f && f->causal && decoder)
        snprintf(s->title[i], TEXT, "Causal self-attention");
    else
        snprintf(s->title[i], TEXT, "%.90s", title);
    write_detail(p, c, s->detail[i]);
    s->blocks[i] = (qkv_diagram_block){.title = s->title[i],
                                       .detail = s->detail[i][0] ? s->detail[i] : NULL,
                                       .kind = norm ? QKV_BLOCK_NORM
                                               : f  ? f->kind
                                                    : QKV_BLOCK_DENSE,
                                       .from_first = strcmp(p->name, "cross") == 0};
    if (p->layer < 0) return;
    if (s->stack.group_to == 0) s->stack.group_from = i;
    s->stack.group_to = i + 1;
}

/* Residual paths around each part of a layer. The description names a part's norm before it; with
 * post-norm it stands behind, after the sum. */
static void add_residuals(side *s, bool pre_norm) {
    for (size_t i = s->stack.group_from; i < s->stack.group_to; i++) {
        if (s->blocks[i].kind == QKV_BLOCK_NORM) continue;
        bool norm_before = i > s->stack.group_from && s->blocks[i - 1].kind == QKV_BLOCK_NORM;
        s->blocks[i].residual = pre_norm && norm_before ? 2 : 1;
        if (pre_norm || !norm_before) continue;
        qkv_diagram_block norm = s->blocks[i - 1];
        s->blocks[i - 1] = s->blocks[i];
        s->blocks[i] = norm;
    }
}

qkv_status qkv_describe_svg(const qkv_description *d, qkv_buf *out) {
    const qkv_config *config = qkv_description_config(d);
    side sides[2] = {0};
    const int64_t layers[2] = {d->encoder.layers, d->decoder.layers};
    const bool both = layers[0] > 0 && layers[1] > 0,
               transformer = config->arch == QKV_ARCH_TRANSFORMER;
    for (size_t i = 0; i < d->n; i++) {
        const qkv_describe_part *p = &d->parts[i];
        /* A head that belongs to no side stands on the last one there is. */
        int at = *p->side ? strcmp(p->side, "decoder") == 0 : layers[1] > 0;
        add_part(&sides[at], p, config, at == 1);
    }
    qkv_diagram_stack stacks[2];
    size_t n = 0;
    for (int i = 0; i < 2; i++) {
        side *s = &sides[i];
        if (s->stack.n == 0) continue;
        if (transformer) add_residuals(s, config->norm == QKV_NORM_PRE);
        snprintf(s->repeat, sizeof s->repeat, "× %lld", (long long)layers[i]);
        s->stack.title = i ? "Decoder" : "Encoder";
        s->stack.input = both ? (i ? "target tokens" : "source tokens") : "tokens";
        s->stack.repeat = layers[i] > 1 ? s->repeat : NULL;
        s->stack.blocks = s->blocks;
        stacks[n++] = s->stack;
    }
    char total[40], title[64];
    qkv_print_grouped((double)d->total, total);
    snprintf(title, sizeof title, "%s parameters", total);
    return qkv_diagram_svg(&(qkv_diagram){.title = title, .stacks = stacks, .n = n}, out);
}
