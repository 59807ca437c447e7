/* ALiBi (Press et al. 2022): −m_h·|i − j| is added to each score, with slopes m_h = 2^(−8h/H) for
 * heads h = 1 … H. In a decoder j ≤ i, so that is the paper's −m·(i − j); an encoder gets the
 * symmetric form. */
#include "nn/position.h"

#include <math.h>

static void begin(qkv_tape *t, const qkv_position *p, const qkv_place *place, qkv_moments *out) {
    int32_t longest = (int32_t)place->n_positions;
    int32_t n = p->spec.causal ? longest : 2 * longest - 1;
    qkv_tensor *bias = qkv_tensor_new(t, p->spec.heads, n);
    if (qkv_tape_stopped(t)) return;
    for (int32_t h = 0; h < p->spec.heads; h++) {
        double slope = exp2(-8.0 * (h + 1) / p->spec.heads);
        for (int32_t r = 0; r < n; r++)
            bias->data[h * bias->ld + r] = (real)(-slope * fabs((double)(r - (longest - 1))));
    }
    out->relation = (qkv_relation){.kind = QKV_REL_DISTANCE, .n = n, .zero = longest - 1};
    out->bias = bias;
}

const qkv_position_scheme qkv_position_alibi = {.name = "alibi", .begin = begin};
