/* Relative positions (Shaw et al. 2018): learned vectors a^K and a^V for the distance j − i clipped
 * to [−k, k], added to the keys inside the score and to the values inside the sum. One pair of
 * tables per layer, shared by its heads. */
#include "nn/position.h"

static void declare(qkv_position *p, qkv_params *params, const char *stack) {
    qkv_position_declare_relative(p, params, stack, 2 * (int64_t)p->spec.distance + 1);
}

static void begin(qkv_tape *t, const qkv_position *p, const qkv_place *place,
                  qkv_position_terms *out) {
    (void)t, (void)place;
    out->relation = (qkv_relation){
        .kind = QKV_REL_DISTANCE, .n = 2 * p->spec.distance + 1, .zero = p->spec.distance};
    out->rel_k = p->rel_k;
    out->rel_v = p->rel_v;
}

const qkv_position_scheme qkv_position_relative = {
    .name = "relative",
    .declare = declare,
    .begin = begin,
};
