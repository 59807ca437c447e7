/* Multi-head attention on a tape; see multihead.h. */
#include "nn/multihead.h"
#include "nn/watch.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

const char *const qkv_scale_names[] = {"head", "full", "none", NULL};

static const qkv_op multihead_op = {.name = "attention"};

/* Linformer's projections E and F along the sequence. */
static void declare_linformer(qkv_multihead *m, qkv_params *p, const char *name) {
    const qkv_multihead_spec *s = &m->spec;
    int64_t blocks = s->linformer_per_head ? s->kv_heads : 1;
    qkv_param_spec along = {.rows = blocks * s->linformer_rank,
                            .cols = s->max_len,
                            .init = QKV_INIT_XAVIER,
                            .fan_out = s->linformer_rank};
    m->along_k = qkv_param_declare(p, &along, "%s.along_k", name);
    m->along_v = qkv_param_declare(p, &along, "%s.along_v", name);
}

static qkv_dense projection(qkv_params *p, const qkv_multihead_spec *s, int64_t heads,
                            const char *name, const char *part) {
    char full[QKV_NAME_BYTES];
    snprintf(full, sizeof full, "%s.%s", name, part);
    /* In a stack of Q, K and V each is its own matrix as far as initial weights go. */
    int64_t parts = heads > s->heads ? (heads + s->heads - 1) / s->heads : 1;
    return qkv_dense_declare(p,
                             &(qkv_dense_spec){.in = s->d_model,
                                               .out = heads * s->d_head,
                                               .parts = parts,
                                               .bias = s->qkv_bias,
                                               .init = s->init},
                             full);
}

qkv_multihead qkv_multihead_declare(qkv_params *p, const qkv_multihead_spec *spec, bool cross,
                                    const char *name) {
    qkv_multihead m = {.spec = *spec};
    if (cross) m.spec.linformer_rank = 0;
    if (!spec->projections) return m;
    if (cross) {
        m.q = projection(p, spec, spec->heads, name, "q");
        m.kv = projection(p, spec, 2 * spec->kv_heads, name, "kv");
    } else {
        m.qkv = projection(p, spec, spec->heads + 2 * spec->kv_heads, name, "qkv");
    }
    char full[QKV_NAME_BYTES];
    snprintf(full, sizeof full, "%s.out", name);
    m.out = qkv_dense_declare(p,
                              &(qkv_dense_spec){.in = spec->heads * spec->d_head,
                                                .out = spec->d_model,
                                                .bias = spec->out_bias,
                                                .init = spec->init,
                                                .gain = spec->out_gain},
                              full);
    if (m.spec.linformer_rank) declare_linformer(&m, p, name);
    return m;
}

static real score_scale(const qkv_multihead_spec *s) {
    switch (s->scale) {
    case QKV_SCALE_HEAD:
        return (real)(1 / sqrt((double)s->d_head));
    case QKV_SCALE_FULL:
        return (real)(1 / sqrt((double)s->d_model));
    case QKV_SCALE_NONE:
        break;
    }
    return 1;
}

/* With weights that we quantized, queries, keys and values are rounded too; with those of other
 * programs nothing is rounded that they do not round. */
static bool is_rounded(const qkv_multihead *m) {
    const qkv_weight *w = m->out.weight ? qkv_of(m->out.weight)->weight : NULL;
    return w && qkv_weight_can_pack(w) && !w->exact;
}

static qkv_attention_spec attention_spec(const qkv_multihead *m, const qkv_pass *pass) {
    return (qkv_attention_spec){.heads = m->spec.heads,
                                .kv_heads = m->spec.kv_heads,
                                .scale = score_scale(&m->spec),
                                .q_layout = pass->place.layout,
                                .k_layout = pass->place.layout,
                                .q_pos = pass->place.first,
                                .dropout = (real)m->spec.dropout,
                                .rounded = is_rounded(m)};
}

/* Rotates the queries and keys, which lie side by side, when the positions ask for it. */
static qkv_tensor *rotate(qkv_tape *t, const qkv_multihead *m, qkv_tensor *qk,
                          const qkv_pass *pass) {
    const qkv_position_terms *at = &pass->terms;
    if (!at->cos) return qk;
    return qkv_rope(t, qk,
                    &(qkv_rope_spec){.heads = m->spec.heads + m->spec.kv_heads,
                                     .pos = pass->place.pos,
                                     .cos = at->cos,
                                     .sin = at->sin,
                                     .positions = at->rotations,
                                     .half_split = at->half_split});
}

/* Linformer: each sequence's keys and values become at most `rank` rows. */
static void project_along(qkv_tape *t, const qkv_multihead *m, qkv_tensor **k, qkv_tensor **v,
                          qkv_attention_spec *spec) {
    int32_t groups = m->spec.linformer_per_head ? m->spec.kv_heads : 1;
    *k = qkv_sequence_linear(t, *k, qkv_of(m->along_k), spec->q_layout, groups, &spec->k_layout);
    *v = qkv_sequence_linear(t, *v, qkv_of(m->along_v), spec->q_layout, groups, &spec->k_layout);
}

qkv_tensor *qkv_multihead_self(qkv_tape *t, const qkv_multihead *m, qkv_tensor *x,
                               const qkv_pass *pass, const qkv_pattern *pattern, int32_t layer) {
    const qkv_position_terms *at = &pass->terms;
    int64_t q_width = m->spec.heads * m->spec.d_head, k_width = m->spec.kv_heads * m->spec.d_head;
    qkv_attention_spec spec = attention_spec(m, pass);
    spec.spans = qkv_pattern_spans(pattern);
    spec.pattern = pattern;
    spec.relation = at->relation;
    spec.bias = at->bias;
    if (at->rel_k) {
        spec.rel_k = qkv_of(at->rel_k[layer]);
        spec.rel_v = qkv_of(at->rel_v[layer]);
    }
    if (!m->spec.projections) return qkv_attend(t, x, x, x, &spec); /* softmax(X Xᵀ) X */

    qkv_tensor *qkv = m->spec.linformer_rank /* (R, (H + 2G)·K) */
                          ? qkv_dense_apply(t, &m->qkv, x, QKV_ACT_NONE)
                          : qkv_dense_brief(t, &m->qkv, x);
    qkv_tensor *v = qkv_tensor_columns(t, qkv, q_width + k_width, k_width);
    qkv_tensor *qk = rotate(t, m, qkv_tensor_columns(t, qkv, 0, q_width + k_width), pass);
    qkv_tensor *q = qkv_tensor_columns(t, qk, 0, q_width);
    qkv_tensor *k = qkv_tensor_columns(t, qk, q_width, k_width);
    if (m->spec.linformer_rank) project_along(t, m, &k, &v, &spec);
    if (pass->kv) {
        qkv_kv_append(t, pass->kv, layer, &pass->place.layout, &k, &v);
        spec.k_layout = qkv_kv_layout(pass->kv);
    }
    qkv_tensor *heads = qkv_attend(t, q, k, v, &spec);       /* (R, H·K) */
    return qkv_dense_apply(t, &m->out, heads, QKV_ACT_NONE); /* (R, D) */
}

/* Keys and values of the encoder's output, side by side; while decoding they are computed by the
 * first pass and kept. */
static qkv_tensor *cross_keys_values(qkv_tape *t, const qkv_multihead *m, const qkv_pass *pass,
                                     int32_t layer) {
    qkv_kv *kv = pass->kv;
    if (kv && kv->cross_rows)
        return qkv_tensor_wrap(t, kv->cross[layer], kv->cross_rows, 2 * kv->width);
    assert(pass->encoder_out);
    qkv_tensor *made = qkv_dense_brief(t, &m->kv, pass->encoder_out); /* (S, 2G·K) */
    if (kv && !qkv_tape_stopped(t) && qkv_kv_keep_cross(kv, layer, made) != QKV_OK)
        return qkv_tape_fail_below(t, &multihead_op);
    return made;
}

qkv_tensor *qkv_multihead_cross(qkv_tape *t, const qkv_multihead *m, qkv_tensor *x,
                                const qkv_pass *pass, int32_t layer) {
    int64_t k_width = m->spec.kv_heads * m->spec.d_head;
    qkv_attention_spec spec = attention_spec(m, pass);
    spec.k_layout = pass->encoder_layout;
    spec.q_pos = NULL; /* positions of two different texts are not compared */
    qkv_tensor *q = qkv_dense_brief(t, &m->q, x); /* (R, H·K) */
    qkv_tensor *kv = cross_keys_values(t, m, pass, layer);
    qkv_tensor *k = qkv_tensor_columns(t, kv, 0, k_width);
    qkv_tensor *v = qkv_tensor_columns(t, kv, k_width, k_width);
    qkv_watch(t, pass->kv, layer, q, k, &spec);
    qkv_tensor *heads = qkv_attend(t, q, k, v, &spec);
    return qkv_dense_apply(t, &m->out, heads, QKV_ACT_NONE);
}
