/* How many threads a step gets: the time of whole trainings on made-up machines, beside that of one
 * thread all along and that of all. */
#include "tiny.h"

#include "train/crew.h"

/* Seconds of `steps` steps that take `all` on all threads and `one` on one; those are exchanged
 * after half of them if `turn`. */
static double train(int steps, double all, double one, bool turn) {
    qkv_crew c;
    double sum = 0;
    qkv_crew_begin(&c);
    for (int i = 0; i < steps; i++) {
        const bool other = turn && i >= steps / 2;
        const double work = 1 + i % 3, /* batches differ */
            seconds = work * (qkv_crew_alone(&c) != other ? one : all);
        sum += seconds;
        qkv_crew_made(&c, work, seconds);
    }
    return sum / (2 * (double)steps);
}

static void is_never_much_slower(void **state) {
    (void)state;
    for (int steps = 120; steps <= 12000; steps *= 10) {
        assert_true(train(steps, 0.5, 1, false) < 0.5 * 1.06);               /* nothing beside it */
        assert_true(train(steps, 0.95, 1, false) < 1);                       /* hardly worth it */
        assert_true(train(steps, 1.3, 1, false) < 1.1);                      /* busy */
        assert_true(train(steps, 3, 1, false) < 1.1);                        /* very busy */
        assert_true(train(steps, 10, 1, false) < (steps > 999 ? 1.2 : 1.8)); /* hopeless */
    }
    assert_true(train(4000, 0.5, 1.5, true) <
                0.5 * 1.4); /* it begins, and ends a while after that */
}

/* A number that somebody said is kept. */
static void keeps_what_was_said(void **state) {
    (void)state;
    qkv_crew c = {0};
    for (int i = 0; i < 100; i++) {
        assert_false(qkv_crew_alone(&c));
        qkv_crew_made(&c, 1, 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(is_never_much_slower),
                                       cmocka_unit_test(keeps_what_was_said)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
