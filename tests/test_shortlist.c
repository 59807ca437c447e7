/* Shortlists: learned from pairs where each source token has one translation, read back, refused
 * when damaged, and used by a search. */
#include "harness.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "task/shortlist.h"

enum { SOURCES = 400, TARGETS = 500, PAIRS = 3000 };

static char path[] = "/tmp/qkv-shortlist-XXXXXX";

/* Source token s becomes target 499 − s, in another order; every text has target 7 too. */
static void make_pairs(qkv_encoded *e, int32_t unknown) {
    const qkv_rng rng = {.seed = 1, .stream = 5};
    qkv_encoded_init(e, 2);
    for (uint64_t i = 0, drawn = 0; i < PAIRS; i++) {
        int32_t source[12], target[13];
        const int32_t n = 4 + (int32_t)qkv_rng_below(rng, drawn++, 8);
        for (int32_t k = 0; k < n; k++) {
            source[k] = (int32_t)qkv_rng_below(rng, drawn++, SOURCES - 1);
            target[n - 1 - k] = TARGETS - 1 - source[k];
        }
        target[n] = 7;
        if (unknown) source[0] = target[0] = unknown;
        assert_ok(qkv_encoded_add(e, source, n));
        assert_ok(qkv_encoded_add(e, target, n + 1));
    }
}

static void learned(void **state) {
    (void)state;
    qkv_encoded e;
    qkv_shortlist s;
    make_pairs(&e, 0);
    assert_ok(qkv_shortlist_learn(&e, SOURCES, TARGETS, path));
    assert_ok(qkv_shortlist_open(path, SOURCES, TARGETS, &s));
    for (int32_t id = 0; id < SOURCES; id++) {
        uint8_t mark[TARGETS] = {0};
        int32_t n = 0;
        const int32_t links = s.start[id + 1] - s.start[id];
        assert_true(links <= QKV_SHORTLIST_WIDTH);
        if (id == SOURCES - 1) assert_int_equal(links, 0); /* never seen */
        s.n_frequent = 0;
        qkv_shortlist_mark(&s, &id, 1, mark);
        for (int32_t t = 0; t < TARGETS; t++) n += mark[t];
        assert_int_equal(n, links);
        if (links) assert_int_equal(mark[TARGETS - 1 - id], 1);
    }
    qkv_shortlist_close(&s);
    assert_ok(qkv_shortlist_open(path, SOURCES, TARGETS, &s));
    assert_int_equal(s.n_frequent, QKV_SHORTLIST_FREQUENT);
    uint8_t mark[TARGETS] = {0};
    static const int32_t nowhere[] = {-1, SOURCES, 1 << 30};
    qkv_shortlist_mark(&s, nowhere, 3, mark); /* ids that there are not have no targets */
    assert_int_equal(mark[7], 1);
    qkv_shortlist_close(&s);
    qkv_encoded_free(&e);
}

/* Ids beyond the vocabularies are passed over; one side is no pair. */
static void odd_data(void **state) {
    (void)state;
    qkv_encoded e;
    make_pairs(&e, 1 << 20);
    assert_ok(qkv_shortlist_learn(&e, SOURCES, TARGETS, path));
    qkv_encoded_free(&e);
    qkv_encoded_init(&e, 1);
    assert_fails(qkv_shortlist_learn(&e, SOURCES, TARGETS, path), QKV_USAGE, "pairs");
    qkv_encoded_free(&e);
    qkv_encoded_init(&e, 2);
    assert_ok(qkv_shortlist_learn(&e, 3, 4, path));
    qkv_shortlist s;
    assert_ok(qkv_shortlist_open(path, 3, 4, &s));
    assert_int_equal(s.n_frequent, 0);
    qkv_shortlist_close(&s);
    qkv_encoded_free(&e);
}

/* Lists that do not fit are refused, and nothing is read beyond them. */
static void damaged(void **state) {
    (void)state;
    static const struct {
        int32_t start[4], n_start, targets[2], n_targets, frequent[2], n_frequent;
    } cases[] = {
        {{0, 1, 2, 2}, 4, {1, 3}, 2, {0, 2}, 2}, /* sound */
        {{0, 1, 2, 2}, 3, {1, 3}, 2, {0}, 1},    /* too few beginnings */
        {{1, 1, 2, 2}, 4, {1, 3}, 2, {0}, 1},    /* does not begin at 0 */
        {{0, 2, 1, 2}, 4, {1, 3}, 2, {0}, 1},    /* goes back */
        {{0, 1, 2, 9}, 4, {1, 3}, 2, {0}, 1},    /* ends beyond */
        {{0, 1, 2, 2}, 4, {1, 4}, 2, {0}, 1},    /* no such target */
        {{0, 1, 2, 2}, 4, {1, -1}, 2, {0}, 1},   {{0, 1, 2, 2}, 4, {1, 3}, 2, {4}, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const qkv_to_store tensors[] = {
            {"frequent", QKV_DTYPE_I32, 1, {cases[i].n_frequent}, cases[i].frequent},
            {"start", QKV_DTYPE_I32, 1, {cases[i].n_start}, cases[i].start},
            {"targets", QKV_DTYPE_I32, 1, {cases[i].n_targets}, cases[i].targets}};
        qkv_shortlist s;
        assert_ok(qkv_safetensors_write(path, tensors, 3, NULL));
        if (i == 0) {
            assert_ok(qkv_shortlist_open(path, 3, 4, &s));
            qkv_shortlist_close(&s);
        } else {
            assert_fails(qkv_shortlist_open(path, 3, 4, &s), QKV_BAD_FILE, "lists");
        }
        assert_ok(qkv_safetensors_write(path, tensors, 2, NULL));
        assert_fails(qkv_shortlist_open(path, 3, 4, &s), QKV_BAD_FILE, "targets");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(learned),
        cmocka_unit_test(odd_data),
        cmocka_unit_test(damaged),
    };
    const int fd = mkstemp(path);
    if (fd < 0) return 1;
    close(fd);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
