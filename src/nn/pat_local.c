/* Local attention: keys at most `window` positions away, so the cost grows linearly with the
 * length. */
#include "nn/mask_pattern.h"

int qkv_spans_local(const void *pattern, int32_t n_k, int32_t q0, int32_t q1, qkv_span *out) {
    const qkv_pattern *p = pattern;
    int32_t right = p->causal ? 0 : p->window;
    int32_t k0 = q0 > p->window ? q0 - p->window : 0;
    int32_t k1 = n_k - q1 > right ? q1 + right : n_k;
    out[0] = qkv_span_of(k0, k1, -p->window, right);
    return 1;
}
