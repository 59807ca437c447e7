/* Global positions: the first `global_tokens` keys are seen by every query, and the block of
 * queries that holds these positions sees every key. The other queries see themselves besides. */
#include "nn/pattern.h"

int qkv_spans_global(const void *pattern, int32_t n_k, int32_t q0, int32_t q1, qkv_span *out) {
    const qkv_pattern *p = pattern;
    int32_t global = p->global_tokens < n_k ? p->global_tokens : n_k;
    if (qkv_block_start(q0) < global) return qkv_spans_full(pattern, n_k, q0, q1, out);
    int n = 0;
    if (global)
        out[n++] = (qkv_span){0, global, -QKV_SPAN_ANY, QKV_SPAN_ANY}; /* all before this block */
    out[n++] = (qkv_span){q0, q1 < n_k ? q1 : n_k, 0, 0};
    return n;
}
