/* Attention patterns: which keys a query sees, as ranges. A new one is one file and one row of
 * pattern.def.
 *
 * The kernel asks for QKV_QUERY_BLOCK queries at once, so what is not a distance (random links, who
 * sees everything) is decided by block of queries. It must depend on the block's place only, never
 * on which part of it is asked for: that is why step-by-step decoding equals the full pass. */
#ifndef QKV_NN_PATTERN_H
#define QKV_NN_PATTERN_H

#include "base/error.h"
#include "kern/kern.h"

typedef enum qkv_pattern_kind {
#define PATTERN(id, name, help) QKV_PATTERN_##id,
#include "nn/pattern.def"
#undef PATTERN
    QKV_PATTERN_COUNT
} qkv_pattern_kind;
extern const char *const qkv_pattern_names[];

typedef struct qkv_pattern {
    qkv_pattern_kind kind;
    bool causal;           /* key j ≤ query i only */
    int32_t window;        /* positions seen to each side */
    int32_t global_tokens; /* positions at the start */
    int32_t random_links;  /* blocks of keys for each block of queries; at most QKV_LINKS_MAX */
    int32_t rank;          /* Linformer: rows that stand for the keys */
    uint64_t seed;         /* of the links: the layer, so that layers see different ones */
} qkv_pattern;
#define QKV_LINKS_MAX 16

/* The pattern's spans function for qkv_attend; NULL: every key. */
qkv_spans_fn qkv_pattern_spans(const qkv_pattern *p);

/* How many (query, key) pairs a sequence of n tokens has: what attention costs. */
double qkv_pattern_pairs(const qkv_pattern *p, int64_t n);

/* The pattern's own functions, as qkv_spans_fn. */
#define PATTERN(id, name, help)                                                                    \
    int qkv_spans_##name(const void *pattern, int32_t n_k, int32_t q0, int32_t q1, qkv_span *out);
#include "nn/pattern.def"
#undef PATTERN

/* For patterns: first query of the block that holds query q. */
static inline int32_t qkv_block_start(int32_t q) {
    return q / QKV_QUERY_BLOCK * QKV_QUERY_BLOCK;
}
/* For patterns: takes the spans of a block's ordinary queries and makes those before position
 * `global` see everything; returns how many spans there are then. */
int qkv_pattern_add_global(const qkv_pattern *p, int32_t n_k, int32_t q0, int32_t global,
                           qkv_span *spans, int n);
/* For patterns: random blocks for the block that starts at b0, all of them before key `low` or from
 * key `high` on, as first keys in ascending order; returns how many. */
int qkv_pattern_links(const qkv_pattern *p, int32_t n_k, int32_t b0, int32_t low, int32_t high,
                      int32_t first[QKV_LINKS_MAX]);

#endif
