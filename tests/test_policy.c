/* Policy: what is chosen at the edges of its ranges, which have decided what models people have. */
#include "harness.h"
#include "model/config.h"
#include "policy/recipe.h"

#include <math.h>
#include <string.h>

/* Every preset that may be chosen is one. */
static void choices_are_presets(void **state) {
    (void)state;
    for (int kind = 0; kind <= QKV_PRESETS_WORDS; kind++)
        for (int64_t tokens = 1; tokens < INT64_MAX / 2; tokens *= 2) {
            const qkv_choice *choice = qkv_choice_for((qkv_preset_kind)kind, tokens, false);
            qkv_config config;
            assert_non_null(choice);
            qkv_config_default(&config);
            assert_ok(qkv_config_preset(&config, choice->preset));
            const char *other = strstr(choice->instead, "--preset ");
            char name[32];
            assert_non_null(other);
            assert_int_equal(sscanf(other, "--preset %31s", name), 1);
            assert_ok(qkv_config_preset(&config, name));
        }
}

static void held_out(void **state) {
    (void)state;
    const struct {
        int64_t n, rows, block;
    } cases[] = {{19, 0, 1},      {20, 1, 1},        {1599, 80, 1},       {1600, 80, 2},
                 {8000, 400, 10}, {25600, 1280, 32}, {1000000, 50000, 32}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const qkv_held_out got = qkv_recipe_held_out(cases[i].n, 0.05);
        assert_int_equal(got.rows, cases[i].rows);
        assert_int_equal(got.block, cases[i].block);
    }
    assert_int_equal(qkv_recipe_held_out_end(4095, 0.05), 0);
    assert_int_equal(qkv_recipe_held_out_end(100000, 0.05), 5000);
}

static void training(void **state) {
    (void)state;
    const qkv_recipe *labels = &qkv_recipe_labels, *pairs = &qkv_recipe_pairs;
    assert_int_equal(qkv_recipe_passes(labels, 199999, false), 10);
    assert_int_equal(qkv_recipe_passes(labels, 200000, false), 8);
    assert_int_equal(qkv_recipe_passes(labels, 2000000, false), 5);
    assert_int_equal(qkv_recipe_passes(labels, 2000000, true), 3);
    assert_int_equal(qkv_recipe_warmup(9), 0);
    assert_int_equal(qkv_recipe_warmup(9999), 999);
    assert_int_equal(qkv_recipe_warmup(1000000), 1000);
    assert_int_equal(qkv_recipe_batch(1), 512);
    assert_int_equal(qkv_recipe_batch(60000), 1000);
    assert_int_equal(qkv_recipe_batch(1000000), 4096);
    const qkv_tuning *tuning = labels->tuning;
    assert_int_equal(qkv_tuning_passes(tuning, 199999), 3);
    assert_int_equal(qkv_tuning_passes(tuning, 2000000), 1);
    assert_int_equal(qkv_tuning_batch(tuning, 60000, 5000), 512);     /* 12 tokens a text */
    assert_int_equal(qkv_tuning_batch(tuning, 500000, 10000), 1600);  /* 50 */
    assert_int_equal(qkv_tuning_batch(tuning, 6000000, 20000), 4096); /* 300 */
    assert_true(fabs(qkv_tuning_rate(tuning, 768) - 5e-5) < 1e-12);
    assert_true(qkv_recipe_adamw(labels, true, false));
    assert_false(qkv_recipe_adamw(labels, false, false));
    assert_false(qkv_recipe_adamw(labels, true, true));
    assert_false(qkv_recipe_adamw(pairs, true, false));
    assert_true(qkv_recipe_smoothing(labels, false) == 0.1);
    assert_true(qkv_recipe_smoothing(labels, true) == 0);
    assert_true(qkv_recipe_smoothing(pairs, true) == 0.1);
    assert_true(qkv_recipe_rate(false, 64, false) == 1e-3);
    assert_true(qkv_recipe_rate(true, 64, true) == 0.01 * 0.3);
}

static void ngrams(void **state) {
    (void)state;
    int64_t chars = -1, rows = 0;
    qkv_recipe_ngrams((1 << 23) - 1, 2, &chars, &rows);
    assert_int_equal(chars, 5);
    assert_int_equal(rows, 1 << 21);
    chars = -1, rows = 0;
    qkv_recipe_ngrams(1 << 23, 1000, &chars, &rows);
    assert_int_equal(chars, 0);
    assert_int_equal(rows, 1 << 16);
    chars = 3, rows = 100; /* given: left alone */
    qkv_recipe_ngrams(1 << 23, 2, &chars, &rows);
    assert_int_equal(chars, 3);
    assert_int_equal(rows, 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(choices_are_presets),
                                       cmocka_unit_test(held_out), cmocka_unit_test(training),
                                       cmocka_unit_test(ngrams)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
