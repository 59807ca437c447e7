/* Linear maps and norms as layers, and how their initial weights are drawn. */
#include "nn/dense.h"

#define SCHEME_NAME(id, name) #name,
const char *const qkv_init_names[] = {QKV_INIT_SCHEME_TABLE(SCHEME_NAME) NULL};
const char *const qkv_norm_names[] = {"layer", "rms", NULL};

static const struct {
    qkv_init init;
    double gain;
} scheme_table[] = {
    [QKV_INIT_SCHEME_AUTO] = {QKV_INIT_XAVIER, 1},
    [QKV_INIT_SCHEME_XAVIER] = {QKV_INIT_XAVIER, 1},
    [QKV_INIT_SCHEME_NORMAL] = {QKV_INIT_NORMAL, 0.02},
    [QKV_INIT_SCHEME_KAIMING] = {QKV_INIT_KAIMING, 1},
};

qkv_dense qkv_dense_declare(qkv_params *p, const qkv_dense_spec *spec, const char *name) {
    double gain = spec->gain != 0 ? spec->gain : 1;
    qkv_param_spec weight = {
        .rows = spec->out,
        .cols = spec->in,
        .init = scheme_table[spec->init].init,
        .gain = gain * scheme_table[spec->init].gain,
        .fan_out = spec->out / (spec->parts ? spec->parts : 1),
        .product = true,
        .narrow = true,
    };
    qkv_param_spec bias = {.rows = 1, .cols = spec->out, .vector = true, .no_decay = true};
    qkv_dense d = {.weight = qkv_param_declare(p, &weight, "%s.weight", name)};
    if (spec->bias) d.bias = qkv_param_declare(p, &bias, "%s.bias", name);
    return d;
}

qkv_tensor *qkv_dense_apply(qkv_tape *t, const qkv_dense *d, qkv_tensor *x, qkv_act act) {
    return qkv_linear(t, x, qkv_of(d->weight), qkv_of(d->bias), act);
}

qkv_tensor *qkv_dense_brief(qkv_tape *t, const qkv_dense *d, qkv_tensor *x) {
    return qkv_linear_brief(t, x, qkv_of(d->weight), qkv_of(d->bias));
}

qkv_norm_layer qkv_norm_declare(qkv_params *p, const qkv_norm_shape *shape, const char *name) {
    qkv_param_spec gain = {
        .rows = 1, .cols = shape->width, .vector = true, .init = QKV_INIT_ONE, .no_decay = true};
    qkv_param_spec bias = gain;
    bias.init = QKV_INIT_ZERO;
    qkv_norm_layer n = {
        .kind = shape->kind, .eps = (real)shape->eps, .dropout = (real)shape->dropout};
    n.gain = qkv_param_declare(p, &gain, "%s.weight", name);
    if (shape->kind == QKV_NORM_LAYER && !shape->bare)
        n.bias = qkv_param_declare(p, &bias, "%s.bias", name);
    return n;
}

static qkv_tensor *norm(qkv_tape *t, const qkv_norm_layer *n, qkv_tensor *x, qkv_tensor *residual,
                        qkv_tensor **sum, bool brief) {
    qkv_norm_spec spec = {.kind = n->kind,
                          .eps = n->eps,
                          .residual = residual,
                          .dropout = n->dropout,
                          .last_reader = true,
                          .brief = brief};
    return qkv_norm(t, x, qkv_of(n->gain), qkv_of(n->bias), &spec, sum);
}

qkv_tensor *qkv_norm_apply(qkv_tape *t, const qkv_norm_layer *n, qkv_tensor *x,
                           qkv_tensor *residual, qkv_tensor **sum) {
    return norm(t, n, x, residual, sum, false);
}

qkv_tensor *qkv_norm_brief(qkv_tape *t, const qkv_norm_layer *n, qkv_tensor *x,
                           qkv_tensor *residual, qkv_tensor **sum) {
    return norm(t, n, x, residual, sum, true);
}
