/* base: arena, random numbers, buffers, errors, threads. */
#include "harness.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/rng.h"
#include "tape/heap.h"

#include <math.h>
#include <stdlib.h>

/* ---- arena ---- */

static void arena_settles_in_one_block(void **state) {
    (void)state;
    qkv_arena a;
    qkv_arena_init(&a);
    for (int step = 0; step < 4; step++) {
        const uint64_t before = qkv_mem_count().allocations;
        for (size_t i = 1; i < 200; i++) {
            char *p = qkv_arena_alloc(&a, i * 37);
            assert_non_null(p);
            assert_int_equal((uintptr_t)p % QKV_ALIGN, 0);
            memset(p, (int)i, i * 37);
        }
        if (step >= 2) assert_int_equal(qkv_mem_count().allocations, before);
        qkv_arena_reset(&a);
    }
    qkv_arena_free(&a);
}

static void arena_rewinds(void **state) {
    (void)state;
    qkv_arena a;
    qkv_arena_init(&a);
    char *kept = qkv_arena_strndup(&a, "kept and more", 4);
    const qkv_arena_mark mark = qkv_arena_here(&a);
    char *first = qkv_arena_alloc(&a, 100);
    for (int i = 0; i < 50; i++) assert_non_null(qkv_arena_alloc(&a, 10000)); /* several blocks */
    qkv_arena_rewind(&a, mark);
    assert_ptr_equal(qkv_arena_alloc(&a, 100), first);
    assert_string_equal(kept, "kept");
    assert_string_equal(qkv_arena_printf(&a, "%d-%s", 7, "x"), "7-x");
    char *zeros = qkv_arena_zalloc(&a, 64);
    for (int i = 0; i < 64; i++) assert_int_equal(zeros[i], 0);
    assert_null(qkv_arena_alloc(&a, SIZE_MAX - 10));
    assert_non_null(strstr(qkv_error(), "out of memory"));
    qkv_arena_free(&a);
}

/* ---- the heap of gradients ---- */

static void heap_reuses_and_joins(void **state) {
    (void)state;
    qkv_heap h = {0};
    for (int round = 0; round < 3; round++) {
        const uint64_t before = qkv_mem_count().allocations;
        char *live[16] = {0};
        size_t size[16] = {0};
        for (uint64_t i = 0; i < 400; i++) {
            const uint64_t k = qkv_rng_below((qkv_rng){1, 1}, i, 16);
            for (size_t j = 0; j < size[k]; j++) assert_int_equal(live[k][j], (char)k);
            qkv_heap_give(live[k]);
            size[k] = 1 + qkv_rng_below((qkv_rng){1, 2}, i, 5000);
            live[k] = qkv_heap_take(&h, size[k]);
            assert_non_null(live[k]);
            assert_int_equal((uintptr_t)live[k] % QKV_ALIGN, 0);
            memset(live[k], (int)k, size[k]); /* overlap with another would be seen there */
        }
        if (round == 2) assert_int_equal(qkv_mem_count().allocations, before);
        for (int k = 0; k < 16; k++) qkv_heap_give(live[k]);
        /* all pieces are one again: the whole can be taken */
        if (round == 2) assert_non_null(qkv_heap_take(&h, h.total - 1024));
        if (round == 2) assert_int_equal(qkv_mem_count().allocations, before);
        qkv_heap_reset(&h);
    }
    assert_null(qkv_heap_take(&h, SIZE_MAX - 5));
    qkv_heap_free(&h);
}

/* ---- random numbers ---- */

/* Known answers of Philox 4×32-10 from its authors' library. */
static void philox_known_answers(void **state) {
    (void)state;
    static const struct {
        qkv_rng key;
        uint64_t index;
        uint32_t want[4];
    } vectors[] = {
        {{0, 0}, 0, {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}},
        {{UINT64_MAX, UINT64_MAX},
         UINT64_MAX,
         {0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}},
        /* counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0: digits of π */
        {{0x299f31d0a4093822u, 0x0370734413198a2eu},
         0x85a308d3243f6a88u,
         {0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        uint32_t got[4];
        qkv_rng_block(vectors[i].key, vectors[i].index, got);
        for (int k = 0; k < 4; k++) assert_int_equal(got[k], vectors[i].want[k]);
    }
}

static void numbers_have_their_moments(void **state) {
    (void)state;
    const qkv_rng key = {.seed = 3, .stream = 4};
    const int n = 200000;
    double mean = 0, square = 0, uniform = 0;
    for (int i = 0; i < n; i++) {
        const double x = qkv_rng_normal(key, (uint64_t)i), u = qkv_rng_uniform(key, (uint64_t)i);
        assert_true(u >= 0 && u < 1 && isfinite(x));
        assert_true(qkv_rng_below(key, (uint64_t)i, 10) < 10);
        mean += x / n, square += x * x / n, uniform += u / n;
    }
    assert_true(fabs(mean) < 0.01 && fabs(square - 1) < 0.02 && fabs(uniform - 0.5) < 0.005);
    uint32_t block[4];
    qkv_rng_block(key, 5, block);
    assert_int_equal(qkv_rng_u32(key, 22), block[2]);
}

static void streams_do_not_repeat(void **state) {
    (void)state;
    const qkv_rng key = {.seed = 3};
    qkv_rng seen[400];
    for (uint64_t i = 0; i < 400; i++) {
        seen[i] = qkv_rng_derive(key, i / 20, i % 20);
        for (uint64_t k = 0; k < i; k++) assert_true(seen[k].stream != seen[i].stream);
    }
}

static void permutation_is_a_bijection(void **state) {
    (void)state;
    static const uint64_t sizes[] = {1, 2, 3, 5, 16, 17, 1000, 4097};
    static bool hit[4097];
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        uint64_t moved = 0;
        memset(hit, 0, sizeof hit);
        for (uint64_t i = 0; i < sizes[k]; i++) {
            const uint64_t image = qkv_rng_permute((qkv_rng){1, 2}, sizes[k], i);
            assert_true(image < sizes[k] && !hit[image]);
            hit[image] = true;
            moved += image != i;
        }
        if (sizes[k] >= 1000) assert_true(moved > sizes[k] * 9 / 10);
    }
}

/* ---- buffers, errors ---- */

static void buffers_grow(void **state) {
    (void)state;
    qkv_buf b = {0};
    for (int i = 0; i < 1000; i++) qkv_buf_printf(&b, "%d,", i);
    assert_int_equal(b.len, 10 * 2 + 90 * 3 + 900 * 4);
    assert_int_equal(strlen(b.data), b.len);
    qkv_buf_clear(&b);
    qkv_buf_puts(&b, "a");
    qkv_buf_putc(&b, 'b');
    qkv_buf_add(&b, "cd", 2);
    assert_string_equal(b.data, "abcd");
    qkv_buf_free(&b);

    qkv_mem_fail(1, false);
    qkv_buf_puts(&b, "lost");
    qkv_mem_fail(0, false);
    qkv_buf_puts(&b, "ignored");
    assert_int_equal(b.status, QKV_FAILED);
    assert_int_equal(b.len, 0);
    qkv_buf_free(&b);

    QKV_VEC(int) v = {0};
    for (int i = 0; i < 100; i++) assert_true(QKV_PUSH(v, i * i));
    assert_int_equal(v.n, 100);
    assert_int_equal(v.at[99], 99 * 99);
    qkv_free(v.at);
}

static void sizes_are_checked(void **state) {
    (void)state;
    size_t n;
    assert_true(qkv_mul_over(SIZE_MAX / 2, 3, &n));
    assert_false(qkv_mul_over(1000, 1000, &n));
    assert_true(qkv_add_over(SIZE_MAX, 1, &n));
    assert_null(qkv_zalloc(SIZE_MAX / 2, 4));
    assert_null(qkv_alloc_aligned(SIZE_MAX - 3));
    char *p = qkv_realloc(NULL, 10);
    assert_non_null(p);
    p = qkv_realloc(p, 1000);
    assert_non_null(p);
    qkv_free(p);
    qkv_free(NULL);
}

static void errors_have_words(void **state) {
    (void)state;
    assert_fails(qkv_fail(QKV_USAGE, "%d apples", 3), QKV_USAGE, "3 apples");
    assert_fails(qkv_fail_in(QKV_FAILED, "in the %s", "garden"), QKV_FAILED,
                 "in the garden: 3 apples");
    assert_fails(qkv_fail(QKV_BAD_FILE, "no \"%s\"", "a\nb\033[1m"), QKV_BAD_FILE,
                 "no \"a?b?[1m\"");
    char large[5000];
    memset(large, 'x', sizeof large);
    large[sizeof large - 1] = 0;
    assert_int_equal(qkv_fail(QKV_FAILED, "%s", large), QKV_FAILED); /* cut, not overrun */
    assert_true(strlen(qkv_error()) < sizeof large);
}

static void nearest_word(void **state) {
    (void)state;
    static const char *const words[] = {"dropout", "d-model", "heads", "layers"};
    assert_string_equal(qkv_nearest("dropuot", words, 4), "dropout");
    assert_string_equal(qkv_nearest("layer", words, 4), "layers");
    assert_null(qkv_nearest("something else", words, 4));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arena_settles_in_one_block),
        cmocka_unit_test(arena_rewinds),
        cmocka_unit_test(heap_reuses_and_joins),
        cmocka_unit_test(philox_known_answers),
        cmocka_unit_test(numbers_have_their_moments),
        cmocka_unit_test(streams_do_not_repeat),
        cmocka_unit_test(permutation_is_a_bijection),
        cmocka_unit_test(buffers_grow),
        cmocka_unit_test(sizes_are_checked),
        cmocka_unit_test(errors_have_words),
        cmocka_unit_test(nearest_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
