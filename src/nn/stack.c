/* The stack of Transformer layers; see stack.h. */
#include "nn/stack.h"
#include "nn/residual.h"

#include <stdio.h>

#include "base/mem.h"

/* Settings that ask for each other. */
static qkv_status check_settings(const qkv_stack_spec *spec) {
    if (spec->parallel && (spec->cross || !spec->pre_norm || spec->out_norm))
        return qkv_fail(QKV_USAGE, "parallel=true is for norm=pre and no cross-attention");
    if (spec->out_norm && !spec->pre_norm)
        return qkv_fail(QKV_USAGE, "norm_after=true is for norm=pre");
    if (spec->first_bare && (!spec->pre_norm || spec->parallel))
        return qkv_fail(QKV_USAGE, "first_norm=false is for norm=pre, one part after the other");
    if (spec->full_every && spec->full_at >= spec->full_every)
        return qkv_fail(QKV_USAGE, "full_at (%d) must be below full_every (%d)", (int)spec->full_at,
                        (int)spec->full_every);
    if (spec->local_base > 0 && spec->position.kind != QKV_POSITION_ROPE)
        return qkv_fail(QKV_USAGE, "rope_base_local is for position=rope");
    if (spec->biased && qkv_position_has(spec->position.kind, QKV_POSITION_ON_SCORES))
        return qkv_fail(QKV_USAGE,
                        "position_bias=true is for positions that do not act on scores "
                        "themselves, as position=%s does",
                        qkv_position_names[spec->position.kind]);
    if (spec->attention.normed && !spec->attention.projections)
        return qkv_fail(QKV_USAGE, "qk_norm=true needs projections=true");
    return QKV_OK;
}

qkv_status qkv_stack_check(const qkv_stack_spec *spec) {
    const qkv_multihead_spec *a = &spec->attention;
    const qkv_position_kind kind = spec->position.kind;
    const char *position = qkv_position_names[kind];
    QKV_TRY(qkv_position_check(&spec->position));
    QKV_TRY(check_settings(spec));
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

/* A norm of a layer; without one where it has no name. */
static qkv_norm_layer declare_norm(const qkv_stack_spec *spec, qkv_params *p, const char *name) {
    return qkv_norm_declare(p,
                            &(qkv_norm_shape){.kind = spec->norm_kind,
                                              .bare = spec->bare_norm,
                                              .width = spec->attention.d_model,
                                              .eps = spec->norm_eps,
                                              .dropout = spec->dropout},
                            name);
}

static void declare_layer(qkv_stack *s, qkv_params *p, const char *stack, int32_t index) {
    const qkv_stack_spec *spec = &s->spec;
    qkv_layer *layer = &s->layers[index];
    const int named = spec->shared ? 0 : (int)index; /* a name declared again is the same weights */
    char name[QKV_NAME_BYTES];
#define PART(part) (snprintf(name, sizeof name, "%s.layers.%d." part, stack, named), name)
    if (index > 0 || !spec->first_bare)
        layer->self_norm = declare_norm(spec, p, PART("attention_norm"));
    layer->self = qkv_multihead_declare(p, &spec->attention, false, PART("attention"));
    if (spec->cross) {
        layer->cross_norm = declare_norm(spec, p, PART("cross_norm"));
        layer->cross = qkv_multihead_declare(p, &spec->attention, true, PART("cross"));
    }
    layer->ffn_norm = declare_norm(spec, p, PART("ffn_norm"));
    layer->ffn = qkv_ffn_declare(p, &spec->ffn, PART("ffn"));
    if (spec->out_norm) {
        layer->self_out = declare_norm(spec, p, PART("attention_out_norm"));
        if (spec->cross) layer->cross_out = declare_norm(spec, p, PART("cross_out_norm"));
        layer->ffn_out = declare_norm(spec, p, PART("ffn_out_norm"));
    }
#undef PART
    layer->pattern = spec->pattern;
    layer->pattern.seed = (uint64_t)index;
    if (spec->full_every && index % spec->full_every == spec->full_at)
        layer->pattern.kind = QKV_PATTERN_FULL;
}

/* The positions, and those beside them. */
static qkv_status declare_positions(qkv_stack *s, qkv_params *params, const char *name) {
    qkv_position_spec spec = s->spec.position;
    QKV_TRY(qkv_position_declare(&s->position, &spec, params, name));
    if (s->spec.local_base > 0) {
        spec.base = s->spec.local_base;
        spec.scaling.kind = QKV_ROPE_SCALING_NONE;
        QKV_TRY(qkv_position_declare(&s->local, &spec, params, name));
    }
    if (!s->spec.biased) return QKV_OK;
    spec = s->spec.position;
    spec.kind = QKV_POSITION_T5;
    spec.distance = s->spec.bias_distance;
    return qkv_position_declare(&s->bias, &spec, params, name);
}

qkv_status qkv_stack_declare(qkv_stack *s, const qkv_stack_spec *spec, qkv_params *params,
                             const char *name) {
    *s = (qkv_stack){.spec = *spec};
    QKV_TRY(qkv_stack_check(spec));
    QKV_TRY_ALLOC(s->layers = qkv_zalloc((size_t)spec->layers, sizeof *s->layers));
    QKV_TRY(declare_positions(s, params, name));
    for (int32_t i = 0; i < spec->layers; i++) declare_layer(s, params, name, i);
    char norm[QKV_NAME_BYTES];
    snprintf(norm, sizeof norm, "%s.norm", name);
    if (spec->pre_norm) s->final_norm = declare_norm(spec, params, norm);
    return params->status;
}

qkv_status qkv_stack_allocate(qkv_stack *s) {
    QKV_TRY(qkv_position_allocate(&s->position));
    if (s->spec.local_base > 0) QKV_TRY(qkv_position_allocate(&s->local));
    return s->spec.biased ? qkv_position_allocate(&s->bias) : QKV_OK;
}

void qkv_stack_free(qkv_stack *s) {
    qkv_position_free(&s->position);
    qkv_position_free(&s->local);
    qkv_position_free(&s->bias);
    qkv_free(s->layers);
    *s = (qkv_stack){0};
}

/* Is this layer left out of this training step? */
static bool dropped(qkv_tape *t, double chance, int32_t index) {
    if (t->mode != QKV_TRAIN || chance <= 0) return false;
    qkv_rng here = qkv_tape_rng(t, qkv_tape_next_index(t));
    return qkv_rng_uniform(qkv_rng_derive(here, 0x6c61796572u, (uint64_t)index), 0) < chance;
}

/* What a part made, normed where that is asked for. */
static qkv_tensor *made(qkv_tape *t, const qkv_norm_layer *out, qkv_tensor *x) {
    return out->gain ? qkv_norm_brief(t, out, x, NULL, NULL) : x;
}

/* x ← x + attention(norm(x)) + ffn(norm'(x)) */
static void apply_parallel(qkv_tape *t, const qkv_layer *l, int32_t i, const qkv_pass *pass,
                           qkv_residual *x) {
    qkv_tensor *y = qkv_residual_read(x, &l->self_norm);
    qkv_tensor *z = qkv_norm_apply(t, &l->ffn_norm, x->x, NULL, NULL);
    y = qkv_multihead_self(t, &l->self, y, pass, &l->pattern, i);
    qkv_residual_add(x, qkv_add(t, y, qkv_ffn_apply(t, &l->ffn, z), 0));
}

/* x ← x + attention(norm(x));  x ← x + ffn(norm(x)); see residual.h for post-norm. */
static void apply_layer(qkv_tape *t, const qkv_stack *s, int32_t i, const qkv_pass *pass,
                        qkv_residual *x) {
    const qkv_layer *l = &s->layers[i];
    if (s->spec.parallel) {
        apply_parallel(t, l, i, pass, x);
        return;
    }
    qkv_tensor *y = qkv_residual_read(x, &l->self_norm);
    y = qkv_multihead_self(t, &l->self, y, pass, &l->pattern, i);
    qkv_residual_add(x, made(t, &l->self_out, y));
    if (s->spec.cross) {
        y = qkv_residual_read(x, &l->cross_norm);
        y = qkv_multihead_cross(t, &l->cross, y, pass, i);
        qkv_residual_add(x, made(t, &l->cross_out, y));
    }
    y = qkv_residual_read(x, &l->ffn_norm);
    qkv_residual_add(x, made(t, &l->ffn_out, qkv_ffn_apply(t, &l->ffn, y)));
}

void qkv_stack_begin(qkv_tape *t, const qkv_stack *s, qkv_pass *pass, qkv_position_terms *local) {
    pass->terms = qkv_position_begin(t, &s->position, &pass->place);
    if (s->spec.local_base > 0) {
        *local = qkv_position_begin(t, &s->local, &pass->place);
        pass->local = local;
    }
    if (!s->spec.biased) return;
    const qkv_position_terms bias = qkv_position_begin(t, &s->bias, &pass->place);
    pass->terms.relation = bias.relation;
    pass->terms.bias = bias.bias;
}

qkv_tensor *qkv_stack_apply(qkv_tape *t, const qkv_stack *s, qkv_tensor *in, const qkv_pass *pass) {
    qkv_residual x = qkv_residual_begin(t, s->spec.pre_norm, in);
    for (int32_t i = 0; i < s->spec.layers; i++)
        if (!dropped(t, s->spec.layer_drop, i)) apply_layer(t, s, i, pass, &x);
    return qkv_residual_end(&x, &s->final_norm, s->spec.read_once);
}
