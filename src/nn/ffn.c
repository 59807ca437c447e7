/* The feed-forward layer; what its kinds are is ffn.def. */
#include "nn/ffn.h"

#include <stdio.h>

#define FFN(id, name, act, gated, help) #name,
const char *const qkv_ffn_names[] = {
#include "nn/ffn.def"
    NULL};
#undef FFN

#define FFN(id, name, act, gated, help) {act, gated},
const qkv_ffn_shape qkv_ffn_shapes[QKV_FFN_COUNT] = {
#include "nn/ffn.def"
};
#undef FFN

qkv_ffn qkv_ffn_declare(qkv_params *p, const qkv_ffn_spec *spec, const char *name) {
    int64_t halves = qkv_ffn_shapes[spec->kind].gated ? 2 : 1;
    qkv_dense_spec in = {.in = spec->d_model,
                         .out = halves * spec->d_ff,
                         .parts = halves,
                         .bias = spec->bias,
                         .init = spec->init};
    qkv_dense_spec out = {.in = spec->d_ff,
                          .out = spec->d_model,
                          .bias = spec->bias,
                          .init = spec->init,
                          .gain = spec->out_gain};
    char part[QKV_NAME_BYTES];
    qkv_ffn f = {.kind = spec->kind};
    snprintf(part, sizeof part, "%s.in", name);
    f.in = qkv_dense_declare(p, &in, part);
    snprintf(part, sizeof part, "%s.out", name);
    f.out = qkv_dense_declare(p, &out, part);
    return f;
}

qkv_tensor *qkv_ffn_apply(qkv_tape *t, const qkv_ffn *f, qkv_tensor *x) {
    const qkv_ffn_shape shape = qkv_ffn_shapes[f->kind];
    return qkv_feed_forward(t, x,
                            &(qkv_feed_forward_spec){.w_in = qkv_of(f->in.weight),
                                                     .b_in = qkv_of(f->in.bias),
                                                     .w_out = qkv_of(f->out.weight),
                                                     .b_out = qkv_of(f->out.bias),
                                                     .act = shape.act,
                                                     .gated = shape.gated});
}
