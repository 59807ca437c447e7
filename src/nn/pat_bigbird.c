/* BigBird (Zaheer et al. 2020): local, global and random together. Spans must not overlap for any
 * query, so random blocks are drawn from beyond the window's reach of the whole block, and all
 * parts leave out the global keys. */
#include "nn/mask_pattern.h"

/* Adds keys [k0, k1) without the first `global` ones. */
static int add(qkv_span *out, int n, qkv_span span, int32_t global) {
    if (span.k0 < global) span.k0 = global;
    if (span.k0 >= span.k1) return n;
    out[n] = span;
    return n + 1;
}

int qkv_spans_bigbird(const void *pattern, int32_t n_k, int32_t q0, int32_t q1, qkv_span *out) {
    const qkv_pattern *p = pattern;
    int32_t global = p->global_tokens < n_k ? p->global_tokens : n_k;
    int32_t b0 = qkv_block_start(q0), b1 = b0 + QKV_QUERY_BLOCK;
    int n = 0, i = 0;
    if (global) out[n++] = qkv_span_of(0, global, -QKV_SPAN_ANY, QKV_SPAN_ANY);
    int32_t first[QKV_LINKS_MAX];
    int links = qkv_pattern_links(p, n_k, b0, b0 - p->window, b1 + p->window, first);
    for (; i < links && first[i] < b0; i++)
        n = add(out, n,
                qkv_span_of(first[i], first[i] + QKV_QUERY_BLOCK, -QKV_SPAN_ANY, QKV_SPAN_ANY),
                global);
    qkv_span local;
    qkv_spans_local(pattern, n_k, q0, q1, &local);
    n = add(out, n, local, global);
    for (; i < links; i++) {
        int32_t end = first[i] + QKV_QUERY_BLOCK;
        n = add(out, n, qkv_span_of(first[i], end < n_k ? end : n_k, -QKV_SPAN_ANY, QKV_SPAN_ANY),
                global);
    }
    return qkv_pattern_add_global(p, n_k, q0, global, out, n);
}
