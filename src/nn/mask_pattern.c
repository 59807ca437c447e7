/* The table of attention patterns, and what they cost. */
#include "nn/mask_pattern.h"

#define PATTERN(id, name, help) #name,
const char *const qkv_pattern_names[] = {
#include "nn/pattern.def"
    NULL};
#undef PATTERN

#define PATTERN(id, name, help) [QKV_PATTERN_##id] = qkv_spans_##name,
static const qkv_spans_fn spans_table[] = {
#include "nn/pattern.def"
};
#undef PATTERN

qkv_spans_fn qkv_pattern_spans(const qkv_pattern *p) {
    bool every_key =
        p->kind == QKV_PATTERN_LINFORMER || (p->kind == QKV_PATTERN_FULL && !p->causal);
    return every_key ? NULL : spans_table[p->kind];
}

/* Keys of one span that the query at position i sees. */
static int64_t seen(const qkv_span *s, int64_t i) {
    if (i < s->q0 || i >= s->q1) return 0;
    int64_t from = i + s->lo > s->k0 ? i + s->lo : s->k0;
    int64_t to = i + s->hi + 1 < s->k1 ? i + s->hi + 1 : s->k1;
    return from < to ? to - from : 0;
}

double qkv_pattern_pairs(const qkv_pattern *p, int64_t n) {
    if (p->kind == QKV_PATTERN_LINFORMER) return (double)n * (double)(n < p->rank ? n : p->rank);
    if (p->kind == QKV_PATTERN_FULL)
        return p->causal ? 0.5 * (double)n * (double)(n + 1) : (double)n * (double)n;
    double pairs = 0;
    for (int64_t q0 = 0; q0 < n; q0 += QKV_QUERY_BLOCK) {
        int64_t q1 = q0 + QKV_QUERY_BLOCK < n ? q0 + QKV_QUERY_BLOCK : n;
        qkv_span spans[QKV_SPANS_MAX];
        int count = spans_table[p->kind](p, (int32_t)n, (int32_t)q0, (int32_t)q1, spans);
        for (int k = 0; k < count; k++)
            for (int64_t i = q0; i < q1; i++) pairs += (double)seen(&spans[k], i);
    }
    return pairs;
}
