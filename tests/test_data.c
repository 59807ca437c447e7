/* Data: batches are a keyed, exact cover of the examples within the token budget. */
#include "harness.h"
#include "base/mem.h"
#include "base/rng.h"
#include "data/batcher.h"

/* n examples of 1 … 40 ids (two sides when asked); example i is full of i's. */
static void make_encoded(qkv_encoded *e, int64_t n, int sides) {
    qkv_encoded_init(e, sides);
    int32_t ids[40];
    for (int64_t i = 0; i < n; i++) {
        for (int k = 0; k < 40; k++) ids[k] = (int32_t)i;
        for (int side = 0; side < sides; side++)
            assert_ok(qkv_encoded_add(
                e, ids, 1 + (int64_t)qkv_rng_below((qkv_rng){5, (uint64_t)side}, (uint64_t)i, 40)));
        assert_ok(qkv_encoded_label(e, (int32_t)(i % 3)));
    }
    assert_int_equal(e->n, n);
}

/* Every example once; no batch over the budget unless it is a single example. */
static void check_cover(const qkv_batcher *b) {
    char *seen = test_calloc((size_t)b->n_examples, 1);
    int64_t total = 0;
    for (int64_t i = 0; i < b->n_batches; i++) {
        int64_t n, filled = 0;
        const int64_t *examples = qkv_batcher_get(b, i, &n);
        assert_true(n > 0);
        for (int64_t k = 0; k < n; k++) {
            assert_in_range(examples[k], 0, b->n_examples - 1);
            assert_false(seen[examples[k]]++);
            for (int side = 0; side < b->data->sides; side++) {
                int64_t len;
                const int32_t *ids = qkv_batcher_ids(b, examples[k], side, &len);
                filled += b->window ? b->window : len;
                if (!b->window) assert_int_equal(ids[len - 1], examples[k]);
            }
        }
        assert_true(filled <= b->budget || n == 1);
        total += n;
    }
    assert_int_equal(total, b->n_examples);
    test_free(seen);
}

static void batches_cover(void **state) {
    (void)state;
    for (int sides = 1; sides <= 2; sides++)
        for (int64_t pool = 0; pool <= 20; pool += 20) {
            qkv_encoded e;
            make_encoded(&e, 1000, sides);
            for (int64_t i = 0; i < e.n; i++) assert_int_equal(e.label[i], i % 3);
            qkv_batcher b = {.data = &e, .budget = 100, .seed = 3, .pool = pool, .shuffle = true};
            assert_ok(qkv_batcher_init(&b));
            uint64_t before = qkv_mem_count().allocations;
            int64_t first[2] = {0};
            for (int64_t epoch = 0; epoch < 2; epoch++) {
                qkv_batcher_plan(&b, epoch);
                assert_int_equal(b.n_examples, 1000);
                check_cover(&b);
                first[epoch] = b.order[0] * 1000 + b.order[1];
            }
            assert_true(first[0] != first[1]);
            qkv_batcher_plan(&b, 0); /* the same epoch again is the same plan */
            assert_int_equal(b.order[0] * 1000 + b.order[1], first[0]);
            assert_int_equal(qkv_mem_count().allocations, before);
            qkv_batcher_free(&b);
            qkv_encoded_free(&e);
        }
}

static void grouping_is_by_length(void **state) {
    (void)state;
    qkv_encoded e;
    make_encoded(&e, 2000, 1);
    double spread[2];
    for (int grouped = 0; grouped < 2; grouped++) {
        qkv_batcher b = {.data = &e, .budget = 200, .pool = grouped ? 50 : 0, .shuffle = true};
        assert_ok(qkv_batcher_init(&b));
        qkv_batcher_plan(&b, 0);
        int64_t sum = 0;
        for (int64_t i = 0; i < b.n_batches; i++) {
            int64_t n, least = 99, most = 0;
            const int64_t *examples = qkv_batcher_get(&b, i, &n);
            for (int64_t k = 0; k < n; k++) {
                int64_t len = e.start[examples[k] + 1] - e.start[examples[k]];
                if (len < least) least = len;
                if (len > most) most = len;
            }
            sum += most - least;
        }
        spread[grouped] = (double)sum / (double)b.n_batches;
        qkv_batcher_free(&b);
    }
    assert_true(spread[1] < spread[0] / 4);
    qkv_encoded_free(&e);
}

static void windows_of_a_stream(void **state) {
    (void)state;
    int32_t ids[1000];
    for (int i = 0; i < 1000; i++) ids[i] = i;
    qkv_encoded e;
    qkv_encoded_init(&e, 1);
    assert_ok(qkv_encoded_add(&e, ids, 1000));
    qkv_batcher b = {.data = &e, .budget = 128, .window = 32, .seed = 1, .shuffle = true};
    assert_ok(qkv_batcher_init(&b));
    int64_t shifts = 0;
    for (int64_t epoch = 0; epoch < 20; epoch++) {
        qkv_batcher_plan(&b, epoch);
        check_cover(&b);
        assert_true(b.n_examples >= 30);
        for (int64_t w = 0; w < b.n_examples; w++) {
            int64_t n;
            const int32_t *at = qkv_batcher_ids(&b, w, 0, &n);
            assert_int_equal(n, 33);
            assert_int_equal(at[0], b.shift + 32 * w);
            assert_true(at[32] < 1000);
        }
        shifts += b.shift;
    }
    assert_true(shifts > 0);
    qkv_batcher_free(&b);
    b = (qkv_batcher){.data = &e, .budget = 128, .window = 5000}; /* longer than the stream */
    assert_ok(qkv_batcher_init(&b));
    qkv_batcher_plan(&b, 0);
    assert_int_equal(b.n_batches, 1);
    assert_int_equal(b.window, 999);
    qkv_batcher_free(&b);
    qkv_encoded_free(&e);
}

static void refusals(void **state) {
    (void)state;
    qkv_encoded e;
    qkv_encoded_init(&e, 1);
    qkv_batcher b = {.data = &e, .budget = 10};
    assert_fails(qkv_batcher_init(&b), QKV_BAD_FILE, "no examples");
    int32_t id = 1;
    assert_ok(qkv_encoded_add(&e, &id, 1));
    b = (qkv_batcher){.data = &e, .budget = 0};
    assert_fails(qkv_batcher_init(&b), QKV_USAGE, "batch_tokens");
    b = (qkv_batcher){.data = &e, .budget = 10, .window = 4};
    assert_fails(qkv_batcher_init(&b), QKV_BAD_FILE, "no examples");
    qkv_encoded_free(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_cover),
        cmocka_unit_test(grouping_is_by_length),
        cmocka_unit_test(windows_of_a_stream),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
