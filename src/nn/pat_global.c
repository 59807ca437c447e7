/* Global positions: the first `global_tokens` positions see every key and are seen by every query.
 * The other queries see themselves besides. */
#include <string.h>

#include "nn/mask_pattern.h"

int qkv_pattern_add_global(const qkv_pattern *p, int32_t n_k, int32_t q0, int32_t global,
                           qkv_span *spans, int n) {
    if (q0 >= global) return n;
    for (int i = 0; i < n; i++) spans[i].q0 = global;
    memmove(spans + 1, spans, (size_t)n * sizeof *spans);
    qkv_spans_full(p, n_k, 0, 0, spans);
    spans[0].q1 = global;
    return n + 1;
}

int qkv_spans_global(const void *pattern, int32_t n_k, int32_t q0, int32_t q1, qkv_span *out) {
    const qkv_pattern *p = pattern;
    int32_t global = p->global_tokens < n_k ? p->global_tokens : n_k, n = 0;
    if (global)
        out[n++] = qkv_span_of(0, global, -QKV_SPAN_ANY, QKV_SPAN_ANY); /* all before this query */
    int32_t own = q0 > global ? q0 : global, end = q1 < n_k ? q1 : n_k;
    if (own < end) out[n++] = qkv_span_of(own, end, 0, 0);
    return qkv_pattern_add_global(p, n_k, q0, global, out, n);
}
