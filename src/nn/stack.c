/* The stack of Transformer layers; see stack.h. */
#include "nn/stack.h"
#include "nn/residual.h"

#include <stdio.h>

#include "base/mem.h"

qkv_status qkv_stack_check(const qkv_stack_spec *spec) {
    const qkv_multihead_spec *a = &spec->attention;
    const qkv_position_kind kind = spec->position.kind;
    const char *position = qkv_position_names[kind];
    QKV_TRY(qkv_position_check(&spec->position));
    if (spec->pattern.kind == QKV_PATTERN_LINFORMER && spec->pattern.causal)
        return qkv_fail(
            QKV_USAGE,
            "attention=linformer mixes all positions, so a decoder would see what it is to "
            "predict; use attention=local or bigbird in decoders (of an encoder-decoder: "
            "decoder_attention)");
    if (spec->pattern.kind == QKV_PATTERN_LINFORMER &&
        qkv_position_has(kind, QKV_POSITION_ON_SCORES))
        return qkv_fail(QKV_USAGE,
                        "position=%s scores pairs of positions, but Linformer's keys are mixtures "
                        "of positions; use "
                        "position=learned, sinusoidal or rope with it, or another attention",
                        position);
    if (a->projections) return QKV_OK;
    if (spec->cross || a->linformer_rank)
        return qkv_fail(
            QKV_USAGE,
            "projections=false is basic self-attention: no cross-attention and no Linformer; "
            "use projections=true");
    if (a->heads != a->kv_heads || a->heads * a->d_head != a->d_model)
        return qkv_fail(
            QKV_USAGE,
            "projections=false: the input is cut into heads, so heads·d_head must be d_model "
            "and kv_heads must be heads");
    if (qkv_position_has(kind, QKV_POSITION_ROTATES))
        return qkv_fail(
            QKV_USAGE,
            "position=%s turns queries and keys, which basic attention (projections=false) "
            "does not have; use position=sinusoidal or learned",
            position);
    return QKV_OK;
}

static void declare_layer(qkv_stack *s, qkv_params *p, const char *stack, int32_t index) {
    const qkv_stack_spec *spec = &s->spec;
    qkv_layer *layer = &s->layers[index];
    char name[QKV_NAME_BYTES];
#define PART(part) (snprintf(name, sizeof name, "%s.layers.%d." part, stack, (int)index), name)
#define NORM(part)                                                                                 \
    qkv_norm_declare(p, spec->norm_kind, spec->attention.d_model, spec->norm_eps, spec->dropout,   \
                     PART(part))
    layer->self_norm = NORM("attention_norm");
    layer->self = qkv_multihead_declare(p, &spec->attention, false, PART("attention"));
    if (spec->cross) {
        layer->cross_norm = NORM("cross_norm");
        layer->cross = qkv_multihead_declare(p, &spec->attention, true, PART("cross"));
    }
    layer->ffn_norm = NORM("ffn_norm");
    layer->ffn = qkv_ffn_declare(p, &spec->ffn, PART("ffn"));
#undef NORM
#undef PART
    layer->pattern = spec->pattern;
    layer->pattern.seed = (uint64_t)index;
}

qkv_status qkv_stack_declare(qkv_stack *s, const qkv_stack_spec *spec, qkv_params *params,
                             const char *name) {
    *s = (qkv_stack){.spec = *spec};
    QKV_TRY(qkv_stack_check(spec));
    QKV_TRY_ALLOC(s->layers = qkv_zalloc((size_t)spec->layers, sizeof *s->layers));
    QKV_TRY(qkv_position_declare(&s->position, &spec->position, params, name));
    for (int32_t i = 0; i < spec->layers; i++) declare_layer(s, params, name, i);
    char norm[QKV_NAME_BYTES];
    snprintf(norm, sizeof norm, "%s.norm", name);
    if (spec->pre_norm)
        s->final_norm = qkv_norm_declare(params, spec->norm_kind, spec->attention.d_model,
                                         spec->norm_eps, spec->dropout, norm);
    return params->status;
}

qkv_status qkv_stack_allocate(qkv_stack *s) {
    return qkv_position_allocate(&s->position);
}

void qkv_stack_free(qkv_stack *s) {
    qkv_position_free(&s->position);
    qkv_free(s->layers);
    *s = (qkv_stack){0};
}

/* Is this layer left out of this training step? */
static bool dropped(qkv_tape *t, double chance, int32_t index) {
    if (t->mode != QKV_TRAIN || chance <= 0) return false;
    qkv_rng here = qkv_tape_rng(t, qkv_tape_next_index(t));
    return qkv_rng_uniform(qkv_rng_derive(here, 0x6c61796572u, (uint64_t)index), 0) < chance;
}

/* x ← x + attention(norm(x));  x ← x + ffn(norm(x)); see residual.h for post-norm. */
static void apply_layer(qkv_tape *t, const qkv_stack *s, int32_t i, const qkv_pass *pass,
                        qkv_residual *x) {
    const qkv_layer *l = &s->layers[i];
    qkv_tensor *y = qkv_residual_read(x, &l->self_norm);
    qkv_residual_add(x, qkv_multihead_self(t, &l->self, y, pass, &l->pattern, i));
    if (s->spec.cross) {
        y = qkv_residual_read(x, &l->cross_norm);
        qkv_residual_add(x, qkv_multihead_cross(t, &l->cross, y, pass, i));
    }
    y = qkv_residual_read(x, &l->ffn_norm);
    qkv_residual_add(x, qkv_ffn_apply(t, &l->ffn, y));
}

qkv_tensor *qkv_stack_apply(qkv_tape *t, const qkv_stack *s, qkv_tensor *in, const qkv_pass *pass) {
    qkv_residual x = qkv_residual_begin(t, s->spec.pre_norm, in);
    for (int32_t i = 0; i < s->spec.layers; i++)
        if (!dropped(t, s->spec.layer_drop, i)) apply_layer(t, s, i, pass, &x);
    return qkv_residual_end(&x, &s->final_norm, s->spec.read_once);
}
