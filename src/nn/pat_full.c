/* Full attention: every key or, in a decoder, every key that is not later. */
#include "nn/mask_pattern.h"

int qkv_spans_full(const void *pattern, int32_t n_k, int32_t q0, int32_t q1, qkv_span *out) {
    const qkv_pattern *p = pattern;
    (void)q0, (void)q1;
    out[0] = qkv_span_of(0, n_k, -QKV_SPAN_ANY, p->causal ? 0 : QKV_SPAN_ANY);
    return 1;
}
