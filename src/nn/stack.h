/* A stack of Transformer layers: an encoder, or a decoder with or without cross-attention.
 *
 *     pre-norm:   x ← x + f(norm(x))      and a last norm at the end
 *     post-norm:  x ← norm(x + f(x))
 *     both:       x ← x + norm(f(norm(x)))
 *     parallel:   x ← x + f(norm(x)) + g(norm'(x))
 *
 * with f self-attention, then (decoders of an encoder-decoder) cross-attention, then the
 * feed-forward layer. */
#ifndef QKV_NN_STACK_H
#define QKV_NN_STACK_H

#include "nn/ffn.h"
#include "nn/multihead.h"

typedef struct qkv_stack_spec {
    int32_t layers;
    bool cross, pre_norm;
    bool out_norm;               /* pre-norm: what a part makes is normed too, before it is added */
    bool parallel;               /* attention and feed-forward layer read the same rows */
    bool shared;                 /* all layers have the weights of the first */
    bool bare_norm;              /* LayerNorm without bias */
    bool first_bare;             /* the first layer's attention has no norm before it */
    int32_t full_every, full_at; /* layer full_at, and every full_every-th from there, sees all */
    bool read_once;              /* what comes out has one reader */
    qkv_norm_kind norm_kind;
    double norm_eps;
    double dropout;               /* of what each part adds */
    double layer_drop;            /* chance of a layer to be left out of a training step */
    qkv_multihead_spec attention; /* cross-attention is the same, without Linformer */
    qkv_ffn_spec ffn;
    qkv_pattern pattern;
    qkv_position_spec position;
    double local_base; /* of RoPE in layers that do not see all; 0: as the others */
    bool biased;       /* T5's bias beside the positions, whose last bucket begins there */
    int32_t bias_distance;
} qkv_stack_spec;

typedef struct qkv_layer {
    qkv_multihead self, cross;
    qkv_ffn ffn;
    qkv_norm_layer self_norm, cross_norm, ffn_norm;
    qkv_norm_layer self_out, cross_out, ffn_out; /* where what they make is normed */
    qkv_pattern pattern;
} qkv_layer;

typedef struct qkv_stack {
    qkv_stack_spec spec;
    qkv_layer *layers;
    qkv_norm_layer final_norm; /* pre-norm only */
    qkv_position position;
    qkv_position local, bias; /* of layers that do not see all; beside the positions. Or zeros */
} qkv_stack;

/* Refuses positions and patterns that make no sense together or in this stack. */
qkv_status qkv_stack_check(const qkv_stack_spec *spec);
qkv_status qkv_stack_declare(qkv_stack *s, const qkv_stack_spec *spec, qkv_params *params,
                             const char *name);
qkv_status qkv_stack_allocate(qkv_stack *s); /* constants of its positions */
void qkv_stack_free(qkv_stack *s);

/* What positions give to a pass over these rows: *local is filled where layers that do not see all
 * have something else, and pass->local points there. */
void qkv_stack_begin(qkv_tape *t, const qkv_stack *s, qkv_pass *pass, qkv_position_terms *local);

/* in (R, D): embedded rows → (R, D). */
qkv_tensor *qkv_stack_apply(qkv_tape *t, const qkv_stack *s, qkv_tensor *in, const qkv_pass *pass);

#endif
