/* Attention patterns as sets of keys: asked by block and one by one they agree, nothing is seen
 * twice, decoders see no future and do not depend on the length, and each is what its name says. */
#include "harness.h"
#include "nn/mask_pattern.h"

#define LONGEST 520

static const int32_t lengths[] = {1, 5, 63, 64, 65, 130, 300, 519};
#define N_LENGTHS (sizeof lengths / sizeof *lengths)

/* Marks the keys that query i sees when q0 … q1−1 are asked for together;
 * fails on a key seen twice. */
static void see(const qkv_pattern *p, int32_t n, int32_t i, int32_t q0, int32_t q1, bool *seen) {
    qkv_span spans[QKV_SPANS_MAX];
    qkv_spans_fn ask = qkv_pattern_spans(p);
    int count = 1;
    spans[0] = qkv_span_of(0, n, -QKV_SPAN_ANY, QKV_SPAN_ANY);
    if (ask) count = ask(p, n, q0, q1, spans);
    assert_true(count >= 0 && count <= QKV_SPANS_MAX);
    memset(seen, 0, LONGEST);
    int32_t last = -1;
    for (int s = 0; s < count; s++) {
        assert_true(spans[s].k0 >= 0 && spans[s].k1 <= n && spans[s].k0 <= spans[s].k1);
        for (int32_t j = spans[s].k0; j < spans[s].k1; j++) {
            if (i < spans[s].q0 || i >= spans[s].q1) continue;
            if (j < i + spans[s].lo || j > i + spans[s].hi) continue;
            assert_true(j > last); /* sorted, and none twice */
            seen[last = j] = true;
        }
    }
}

static qkv_pattern pattern_of(int kind, bool causal) {
    return (qkv_pattern){.kind = (qkv_pattern_kind)kind,
                         .causal = causal,
                         .window = 7,
                         .global_tokens = 3,
                         .random_links = 2,
                         .rank = 16,
                         .seed = 5};
}

static void check_pattern(const qkv_pattern *p, int32_t n) {
    bool block[LONGEST], alone[LONGEST], longer[LONGEST];
    double pairs = 0;
    for (int32_t i = 0; i < n; i++) {
        int32_t q0 = qkv_block_start(i), q1 = q0 + QKV_QUERY_BLOCK < n ? q0 + QKV_QUERY_BLOCK : n;
        see(p, n, i, q0, q1, block);
        see(p, n, i, i, i + 1, alone);
        assert_memory_equal(block, alone, (size_t)n);
        assert_true(block[i]); /* everyone sees itself */
        for (int32_t j = 0; j < n; j++) {
            pairs += block[j];
            if (p->causal) assert_true(j <= i || !block[j]);
        }
        if (!p->causal || n == 519) continue;
        see(p, 519, i, i, i + 1, longer); /* what comes later changes nothing */
        assert_memory_equal(block, longer, (size_t)n);
    }
    if (p->kind != QKV_PATTERN_LINFORMER) assert_true(pairs == qkv_pattern_pairs(p, n));
}

static void test_every_pattern(void **state) {
    (void)state;
    for (int kind = 0; kind < QKV_PATTERN_COUNT; kind++)
        for (int causal = 0; causal < 2; causal++) {
            if (kind == QKV_PATTERN_LINFORMER && causal) continue;
            qkv_pattern p = pattern_of(kind, causal);
            for (size_t k = 0; k < N_LENGTHS; k++) check_pattern(&p, lengths[k]);
        }
}

static int count_seen(const bool *seen, int32_t n) {
    int count = 0;
    for (int32_t j = 0; j < n; j++) count += seen[j];
    return count;
}

static void test_what_they_see(void **state) {
    bool seen[LONGEST];
    const int32_t n = 519, i = 260; /* a query in the middle of a middle block */
    (void)state;
    qkv_pattern p = pattern_of(QKV_PATTERN_LOCAL, false);
    see(&p, n, i, i, i + 1, seen);
    assert_true(seen[i - 7] && seen[i + 7] && !seen[i - 8] && !seen[i + 8]);
    assert_int_equal(count_seen(seen, n), 15);

    p = pattern_of(QKV_PATTERN_GLOBAL, false);
    see(&p, n, i, i, i + 1, seen);
    assert_true(seen[0] && seen[2] && !seen[3]);
    assert_int_equal(count_seen(seen, n), 4);
    see(&p, n, 1, 1, 2, seen);
    assert_int_equal(count_seen(seen, n), n);
    see(&p, n, 3, 0, 64, seen); /* its neighbour in the block is not global */
    assert_int_equal(count_seen(seen, n), 4);

    p = pattern_of(QKV_PATTERN_RANDOM, false);
    see(&p, n, i, i, i + 1, seen);
    int linked = count_seen(seen, n);
    assert_true(linked > 2 * 64 && linked <= 3 * 64); /* the last block of keys is short */

    p = pattern_of(QKV_PATTERN_BIGBIRD, false);
    see(&p, n, i, i, i + 1, seen);
    for (int32_t j = i - 7; j <= i + 7; j++) assert_true(seen[j]);
    assert_true(seen[0] && seen[1] && seen[2]);
    int all = count_seen(seen, n);
    assert_true(all >= 15 + 3 + 64 && all <= 15 + 3 + 2 * 64);
}

/* Layers draw different links, and the same layer always the same. */
static void test_links(void **state) {
    int32_t first[QKV_LINKS_MAX], again[QKV_LINKS_MAX];
    qkv_pattern p = pattern_of(QKV_PATTERN_RANDOM, false);
    bool differ = false;
    (void)state;
    for (int32_t b0 = 0; b0 < 4096; b0 += 64) {
        int n = qkv_pattern_links(&p, 4096, b0, b0, b0 + 64, first);
        assert_int_equal(n, 2);
        assert_true(first[0] < first[1] && first[0] != b0 && first[1] != b0);
        qkv_pattern other = p;
        other.seed = 6;
        assert_int_equal(qkv_pattern_links(&other, 4096, b0, b0, b0 + 64, again), 2);
        differ = differ || first[0] != again[0] || first[1] != again[1];
        assert_int_equal(qkv_pattern_links(&p, 4096, b0, b0, b0 + 64, again), 2);
        assert_memory_equal(first, again, 2 * sizeof *first);
    }
    assert_true(differ);
}

/* At a fixed window and number of links the pairs grow linearly with the length. */
static void test_linear_cost(void **state) {
    static const qkv_pattern_kind linear[] = {QKV_PATTERN_LOCAL, QKV_PATTERN_GLOBAL,
                                              QKV_PATTERN_RANDOM, QKV_PATTERN_BIGBIRD,
                                              QKV_PATTERN_LINFORMER};
    (void)state;
    for (size_t k = 0; k < sizeof linear / sizeof *linear; k++) {
        qkv_pattern p = pattern_of((int)linear[k], false);
        double ratio = qkv_pattern_pairs(&p, 16384) / qkv_pattern_pairs(&p, 1024) / 16;
        assert_true(ratio > 0.9 && ratio < 1.1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_pattern),
        cmocka_unit_test(test_what_they_see),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_linear_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
