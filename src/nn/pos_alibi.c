/* ALiBi (Press et al. 2022): −m_h·|i − j| is added to each score, with slopes m_h = 2^(−8h/H) for
 * heads h = 1 … H when H is a power of two. Else, as in the authors' code, the first P heads (P the
 * power of two below H) take the slopes of P heads and the others every second one of 2P heads,
 * which lie between those. In a decoder j ≤ i, so that is the paper's −m·(i − j); an encoder gets
 * the symmetric form. */
#include "nn/position.h"

#include <math.h>

static double slope_of(int32_t head, int32_t heads) {
    int32_t power = 1;
    while (2 * power <= heads) power *= 2;
    return head < power ? exp2(-8.0 * (head + 1) / power)
                        : exp2(-8.0 * (2 * (head - power) + 1) / (2 * power));
}

static void begin(qkv_tape *t, const qkv_position *p, const qkv_place *place,
                  qkv_position_terms *out) {
    int32_t longest = (int32_t)place->n_positions;
    int32_t n = p->spec.causal ? longest : 2 * longest - 1;
    qkv_tensor *bias = qkv_tensor_new(t, p->spec.heads, n);
    if (qkv_tape_stopped(t)) return;
    for (int32_t h = 0; h < p->spec.heads; h++) {
        double slope = slope_of(h, p->spec.heads);
        for (int32_t r = 0; r < n; r++)
            bias->data[h * bias->ld + r] = (real)(-slope * fabs((double)(r - (longest - 1))));
    }
    out->relation = (qkv_relation){.kind = QKV_REL_DISTANCE, .n = n, .zero = longest - 1};
    out->bias = bias;
}

const qkv_position_scheme qkv_position_alibi = {.name = "alibi", .begin = begin};
