/* Random links: each block of 64 queries sees its own block of keys and `random_links` others,
 * drawn once for all by (layer, block). In a decoder they are drawn from the earlier blocks only,
 * so that they do not depend on the length. */
#include "nn/mask_pattern.h"

int qkv_pattern_links(const qkv_pattern *p, int32_t n_k, int32_t b0, int32_t low, int32_t high,
                      int32_t first[QKV_LINKS_MAX]) {
    const int32_t size = QKV_QUERY_BLOCK;
    int32_t before = low > 0 ? low / size : 0;
    int32_t after0 = (high + size - 1) / size, blocks = (n_k + size - 1) / size;
    int32_t after = !p->causal && blocks > after0 ? blocks - after0 : 0;
    qkv_rng key = qkv_rng_derive((qkv_rng){.seed = p->seed}, (uint64_t)b0, 0);
    int n = 0;
    for (; n < p->random_links && n < before + after; n++) {
        int32_t link = (int32_t)qkv_rng_permute(key, (uint64_t)(before + after), (uint64_t)n);
        int32_t key0 = (link < before ? link : link - before + after0) * size;
        int at = n;
        for (; at > 0 && first[at - 1] > key0; at--) first[at] = first[at - 1];
        first[at] = key0;
    }
    return n;
}

int qkv_spans_random(const void *pattern, int32_t n_k, int32_t q0, int32_t q1, qkv_span *out) {
    const qkv_pattern *p = pattern;
    int32_t b0 = qkv_block_start(q0), b1 = b0 + QKV_QUERY_BLOCK, first[QKV_LINKS_MAX];
    int links = qkv_pattern_links(p, n_k, b0, b0, b1, first), n = 0, i = 0;
    (void)q1;
    for (; i < links && first[i] < b0; i++)
        out[n++] = qkv_span_of(first[i], first[i] + QKV_QUERY_BLOCK, -QKV_SPAN_ANY, QKV_SPAN_ANY);
    out[n++] = qkv_span_of(b0, b1 < n_k ? b1 : n_k, -QKV_SPAN_ANY, p->causal ? 0 : QKV_SPAN_ANY);
    for (; i < links; i++) {
        int32_t end = first[i] + QKV_QUERY_BLOCK;
        out[n++] = qkv_span_of(first[i], end < n_k ? end : n_k, -QKV_SPAN_ANY, QKV_SPAN_ANY);
    }
    return n;
}
