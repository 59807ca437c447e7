/* Gradient checks of attention: every feature alone and some together. */
#include "ops/ops.h"

enum {
    CAUSAL = 1,
    WINDOW = 2,
    CROSS = 4,
    GROUPED = 8,
    DISTANCE = 16,
    MATRIX = 32,
    REL_K = 64,
    REL_V = 128,
    WIDE_VALUES = 256,
    DROPOUT = 512,
    ONE_PRODUCT = 1024, /* q, k and v are views of one tensor */
    LATER = 2048,       /* queries are the last rows of their keys' sequence */
    SAME = 4096,        /* q, k and v are one tensor */
    BRIEF = 8192,       /* what q, k and v are views of is brief */
    TURNED = 16384      /* v, k, q instead of q, k, v in the one product */
};

static const int32_t q_starts[] = {0, 3, 4, 9}, k_starts[] = {0, 2, 7, 12},
                     q_positions[] = {2, 4, 0};
static const int64_t matrix_starts[] = {0, 9, 10};
static const uint8_t matrix[35] = {0, 1, 2, 3, 0, 1, 2, 3, 0, 3, 2, 1, 0, 2, 2, 1, 1, 0,
                                   3, 3, 2, 0, 1, 1, 2, 3, 0, 2, 1, 3, 1, 0, 0, 2, 1};

static int causal(const void *pattern, int32_t n_k, int32_t q0, int32_t q1, qkv_span *out) {
    (void)pattern, (void)q0;
    out[0] = qkv_span_of(0, q1 < n_k ? q1 : n_k, -QKV_SPAN_ANY, 0);
    return 1;
}

static int window(const void *pattern, int32_t n_k, int32_t q0, int32_t q1, qkv_span *out) {
    (void)pattern;
    out[0] = qkv_span_of(q0 - 1 > 0 ? q0 - 1 : 0, q1 + 1 < n_k ? q1 + 1 : n_k, -1, 1);
    return out[0].k0 < out[0].k1;
}

static void add_relations(qkv_tape *t, qkv_check *c, qkv_attention_spec *s, int64_t d_value) {
    const int f = qkv_check_variant(c);
    s->relation = (qkv_relation){.kind = f & MATRIX ? QKV_REL_MATRIX : QKV_REL_DISTANCE,
                                 .n = 4,
                                 .zero = 2,
                                 .matrix = matrix,
                                 .matrix_start = matrix_starts};
    if (f & (DISTANCE | MATRIX)) s->bias = qkv_check_input(t, c, s->heads, 4, 0, 1);
    if (f & REL_K) s->rel_k = qkv_check_input(t, c, 4, 3, 0, 1);
    if (f & REL_V) s->rel_v = qkv_check_input(t, c, 4, d_value, 0, 1);
}

static qkv_tensor *build(qkv_tape *t, qkv_check *c) {
    const int f = qkv_check_variant(c);
    const int32_t heads = f & GROUPED ? 4 : 2, kv = 2;
    const int64_t d_value = f & WIDE_VALUES ? 5 : 3, rows_k = f & (CROSS | LATER) ? 12 : 9;
    qkv_attention_spec s = {
        .heads = heads, .kv_heads = kv, .q_layout = {.n = 3, .start = q_starts}};
    if (f & (CROSS | LATER)) s.k_layout = (qkv_layout){.n = 3, .start = k_starts};
    if (f & LATER) s.q_pos = q_positions;
    if (f & (CAUSAL | WINDOW)) s.spans = f & CAUSAL ? causal : window;
    if (f & DROPOUT) s.dropout = (real)0.3;
    if (f & (DISTANCE | MATRIX | REL_K | REL_V)) add_relations(t, c, &s, d_value);
    if (f & ONE_PRODUCT) {
        qkv_tensor *x = qkv_check_input(t, c, 9, 4, 0, 1), *w = qkv_check_input(t, c, 18, 4, 0, 1);
        qkv_tensor *p =
            f & BRIEF ? qkv_linear_brief(t, x, w, NULL) : qkv_linear(t, x, w, NULL, QKV_ACT_NONE);
        return qkv_attend(t, qkv_tensor_columns(t, p, f & TURNED ? 12 : 0, 6),
                          qkv_tensor_columns(t, p, 6, 6),
                          qkv_tensor_columns(t, p, f & TURNED ? 0 : 12, 6), &s);
    }
    qkv_tensor *q = qkv_check_input(t, c, 9, heads * 3, 0, 1);
    if (f & BRIEF)
        q = qkv_linear_brief(t, q, qkv_check_input(t, c, heads * 3, heads * 3, 0, 1), NULL);
    if (f & SAME) return qkv_attend(t, q, q, q, &s);
    qkv_tensor *k = qkv_check_input(t, c, rows_k, kv * 3, 0, 1);
    if (f & BRIEF) { /* keys and values side by side */
        qkv_tensor *w = qkv_check_input(t, c, 2 * kv * 3, kv * 3, 0, 1);
        qkv_tensor *both = qkv_linear_brief(t, k, w, NULL);
        return qkv_attend(t, q, qkv_tensor_columns(t, both, 0, kv * 3),
                          qkv_tensor_columns(t, both, kv * 3, kv * 3), &s);
    }
    return qkv_attend(t, q, k, qkv_check_input(t, c, rows_k, kv * d_value, 0, 1), &s);
}

extern const qkv_case qkv_cases_attention[];
const qkv_case qkv_cases_attention[] = {
    {"attention: full", build, 0},
    {"attention: causal", build, CAUSAL},
    {"attention: window", build, WINDOW},
    {"attention: cross", build, CROSS},
    {"attention: cross, values of another width", build, CROSS | WIDE_VALUES},
    {"attention: grouped key heads, causal", build, GROUPED | CAUSAL},
    {"attention: bias by distance", build, DISTANCE},
    {"attention: bias by distance, causal", build, DISTANCE | CAUSAL},
    {"attention: bias by matrix", build, MATRIX},
    {"attention: relative keys", build, REL_K},
    {"attention: relative keys and values, causal", build, REL_K | REL_V | CAUSAL},
    {"attention: all relations, wide values, groups", build,
     MATRIX | REL_K | REL_V | WIDE_VALUES | GROUPED},
    {"attention: dropout", build, DROPOUT},
    {"attention: dropout, causal, all relations", build,
     DROPOUT | CAUSAL | DISTANCE | REL_K | REL_V},
    {"attention: q, k, v from one product", build, ONE_PRODUCT | CAUSAL},
    {"attention: q, k, v one tensor", build, SAME},
    {"attention: queries at the end of their keys", build, LATER | CAUSAL},
    {"attention: one brief product", build, ONE_PRODUCT | BRIEF | CAUSAL},
    {"attention: one brief product, turned", build, ONE_PRODUCT | BRIEF | TURNED},
    {"attention: one brief product, all relations", build,
     ONE_PRODUCT | BRIEF | DISTANCE | REL_K | REL_V},
    {"attention: brief queries, and keys beside values", build, CROSS | BRIEF | DROPOUT},
    {"attention: one brief tensor", build, SAME | BRIEF},
    {0}};
