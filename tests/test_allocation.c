/* Memory: a step allocates nothing once it has run, and fails cleanly when any allocation is
 * refused. */
#include "small_step.h"
#include "base/mem.h"

static small_model model;
static small_batch batch;

/* After the largest batch, steps of any shape ask the system for nothing. */
static void steps_allocate_nothing(void **state) {
    (void)state;
    qkv_tape t;
    qkv_threads_set(1); /* with more, which of them first gets a kernel's largest item is chance */
    small_init(&model);
    assert_ok(qkv_tape_init(&t));
    small_batch_make(&batch, 48, 38, 1);
    for (int i = 0; i < 3; i++) assert_ok(small_step(&t, &model, &batch, 1, NULL));
    const uint64_t before = qkv_mem_count().allocations;
    for (uint64_t seed = 2; seed < 30; seed++) {
        small_batch_make(&batch, 1 + (int32_t)(seed * 7 % 40), 1 + (int32_t)(seed * 5 % 30), seed);
        assert_ok(small_step(&t, &model, &batch, seed, NULL));
    }
    assert_int_equal(qkv_mem_count().allocations - before, 0);
    qkv_tape_free(&t);
    qkv_threads_set(0);
}

/* A step from nothing to nothing: tape, forward, backward, scratch memory. */
static qkv_status life(void) {
    qkv_tape t;
    qkv_status status = qkv_tape_init(&t);
    if (status == QKV_OK) status = small_step(&t, &model, &batch, 1, NULL);
    if (status == QKV_OK) status = small_step(&t, &model, &batch, 2, NULL);
    qkv_tape_free(&t);
    qkv_kern_scratch_free();
    return status;
}

/* With one thread the number of allocations is always the same; with several it depends on which of
 * them takes what. */
static void sweep(int threads, bool forever) {
    qkv_threads_set(threads);
    qkv_kern_scratch_free();
    /* Threads, and what they keep for ever, exist from here on: on a busy machine one of them may
     * get no work at first. */
    for (int i = 0; i < 50; i++) assert_ok(life());
    const uint64_t live = qkv_mem_count().live, before = qkv_mem_count().allocations;
    assert_ok(life());
    const uint64_t needed = qkv_mem_count().allocations - before;
    assert_true(needed >= 5);
    assert_int_equal(qkv_mem_count().live, live);
    int failed = 0;
    for (uint64_t n = 1; n <= needed; n++) {
        qkv_mem_fail(n, forever);
        const qkv_status status = life();
        qkv_mem_fail(0, false);
        if (status != QKV_OK) {
            failed++;
            assert_int_equal(status, QKV_FAILED);
            assert_non_null(strstr(qkv_error(), "out of memory"));
        }
        assert_int_equal(qkv_mem_count().live, live);
    }
    /* joining blocks into one is the only thing that may be refused without harm, and only once */
    if (threads == 1) assert_true(failed >= (forever ? (int)needed : (int)needed - 3));
    assert_ok(life());
    qkv_threads_set(0);
}

static void one_refusal_fails_cleanly(void **state) {
    (void)state;
    small_init(&model);
    small_batch_make(&batch, 24, 30, 4);
    sweep(1, false);
    sweep(2, false);
}

static void refusals_for_ever_fail_cleanly(void **state) {
    (void)state;
    small_init(&model);
    small_batch_make(&batch, 24, 30, 4);
    sweep(1, true);
    sweep(2, true);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_allocate_nothing),
                                       cmocka_unit_test(one_refusal_fails_cleanly),
                                       cmocka_unit_test(refusals_for_ever_fail_cleanly)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
