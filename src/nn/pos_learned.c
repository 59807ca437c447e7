/* Learned positions: a table max_len × D, added to the embedding. Beyond max_len nothing was
 * learned, so longer sequences are refused. */
#include "nn/position.h"

static void declare(qkv_position *p, qkv_params *params, const char *stack) {
    qkv_param_spec spec = {.rows = p->spec.max_len,
                           .cols = p->spec.d_model,
                           .init = QKV_INIT_NORMAL,
                           .gain = 0.02,
                           .no_decay = true};
    p->table = qkv_param_declare(params, &spec, "%s.position.weight", stack);
}

static void begin(qkv_tape *t, const qkv_position *p, const qkv_place *place,
                  qkv_position_terms *out) {
    if (place->n_positions > p->spec.max_len)
        qkv_tape_fail(t, &qkv_position_op, QKV_USAGE,
                      "a sequence of %lld tokens is longer than the %lld learned positions; cut it "
                      "to max_len, or "
                      "train with position=rope, sinusoidal or alibi, which have no longest length",
                      (long long)place->n_positions, (long long)p->spec.max_len);
    else
        out->table = qkv_of(p->table);
}

const qkv_position_scheme qkv_position_learned = {
    .name = "learned",
    .declare = declare,
    .begin = begin,
};
