/* The cache of keys and values: after any sequence of passes, selections and cuts every sequence
 * has its own rows, in all layers, though sequences share them. */
#include "harness.h"

#include <string.h>

#include "base/rng.h"
#include "nn/kv.h"

enum { LAYERS = 2, SEQUENCES = 6, CAPACITY = 12, ROUNDS = 4000 };

/* What the cache should hold: a number for each token, never given twice. */
typedef struct expected {
    int32_t n, len[SEQUENCES], token[SEQUENCES][CAPACITY], next;
} expected;

static uint32_t below(uint64_t *drawn, int32_t n) {
    return qkv_rng_u32((qkv_rng){3, 4}, (*drawn)++) % (uint32_t)n;
}

static void compare(const qkv_kv *kv, const expected *e) {
    assert_int_equal(kv->n, e->n);
    assert_true(kv->used <= SEQUENCES * CAPACITY);
    const qkv_layout l = qkv_kv_layout(kv);
    for (int32_t s = 0; s < e->n; s++) {
        assert_int_equal(qkv_layout_len(&l, s), e->len[s]);
        for (int32_t j = 0; j < e->len[s]; j++)
            for (int32_t i = 0; i < LAYERS; i++) {
                const real *row = kv->rows[i] + 2 * qkv_layout_row(&l, s, j);
                assert_int_equal((int32_t)row[0], e->token[s][j] + i);
                assert_int_equal((int32_t)row[1], -e->token[s][j] - i);
            }
    }
}

/* One or two tokens more for every sequence; `kept`: the pass is not undone. */
static void pass(qkv_tape *t, qkv_kv *kv, expected *e, uint64_t *drawn, bool kept) {
    int32_t start[SEQUENCES + 1] = {0};
    for (int32_t s = 0; s < e->n; s++) {
        start[s + 1] = start[s] + 1 + (int32_t)below(drawn, 2);
        if (e->len[s] + 2 > CAPACITY) return;
    }
    const qkv_layout layout = {.n = e->n, .start = start};
    assert_ok(qkv_kv_begin(kv, &layout));
    for (int32_t i = 0; i < LAYERS; i++) {
        qkv_tape_begin(t, QKV_EVAL, 0, 0);
        qkv_tensor *k = qkv_tensor_new(t, start[e->n], 1), *v = qkv_tensor_new(t, start[e->n], 1);
        assert_ok(qkv_tape_status(t));
        for (int32_t r = 0; r < start[e->n]; r++) {
            k->data[r * k->ld] = (real)(e->next + LAYERS * r + i);
            v->data[r * v->ld] = -k->data[r * k->ld];
        }
        qkv_kv_append(t, kv, i, &layout, &k, &v);
        assert_ok(qkv_tape_status(t));
    }
    if (!kept) qkv_kv_undo(kv);
    for (int32_t s = 0; kept && s < e->n; s++)
        for (int32_t r = start[s]; r < start[s + 1]; r++)
            e->token[s][e->len[s]++] = e->next + LAYERS * r;
    e->next += LAYERS * start[e->n];
}

static void select_some(qkv_kv *kv, expected *e, uint64_t *drawn) {
    const expected before = *e;
    int32_t from[SEQUENCES];
    e->n = 1 + (int32_t)below(drawn, SEQUENCES);
    for (int32_t s = 0; s < e->n; s++) {
        from[s] = (int32_t)below(drawn, before.n);
        e->len[s] = before.len[from[s]];
        memcpy(e->token[s], before.token[from[s]], sizeof e->token[s]);
    }
    qkv_kv_select(kv, from, e->n);
}

static void test_any_order(void **state) {
    (void)state;
    qkv_tape t;
    qkv_kv kv;
    uint64_t drawn = 0;
    expected e = {.n = SEQUENCES};
    assert_ok(qkv_tape_init(&t));
    assert_ok(qkv_kv_init(&kv, LAYERS, 1, SEQUENCES, CAPACITY));
    for (int round = 0; round < ROUNDS; round++) {
        const uint32_t what = below(&drawn, 8);
        if (what < 4) {
            pass(&t, &kv, &e, &drawn, what > 0);
        } else if (what < 6) {
            select_some(&kv, &e, &drawn);
        } else if (what == 6) {
            const int32_t s = (int32_t)below(&drawn, e.n);
            e.len[s] = (int32_t)below(&drawn, e.len[s] + 1);
            qkv_kv_truncate(&kv, s, e.len[s]);
        } else if (below(&drawn, 10) == 0) {
            e.n = 1 + (int32_t)below(&drawn, SEQUENCES);
            memset(e.len, 0, sizeof e.len);
            assert_ok(qkv_kv_reset(&kv, e.n));
        }
        compare(&kv, &e);
    }
    qkv_kv_free(&kv);
    qkv_tape_free(&t);
}

/* Where sequences share all but their last tokens, so do their rows: hardly any are used. */
static void test_shared_beginnings(void **state) {
    (void)state;
    static const int32_t from[] = {0, 0, 1, 1, 0, 2}, start[] = {0, 1, 2, 3, 4, 5, 6};
    const qkv_layout layout = {.n = SEQUENCES, .start = start};
    qkv_kv kv;
    assert_ok(qkv_kv_init(&kv, LAYERS, 1, SEQUENCES, CAPACITY));
    for (int step = 0; step < CAPACITY; step++) {
        assert_ok(qkv_kv_begin(&kv, &layout));
        qkv_kv_select(&kv, from, SEQUENCES);
    }
    assert_in_range(kv.used, CAPACITY, 3 * CAPACITY);
    qkv_kv_free(&kv);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_shared_beginnings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
