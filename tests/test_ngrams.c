/* The n-grams beside a classifier's encoder: their buckets against values from another program, a
 * text's logits whatever stands beside it and on any number of threads, what they add to a model. */
#include "tiny.h"

#include "base/mem.h"
#include "model/describe.h"

static qkv_tape tape;

static int set_up(void **state) {
    (void)state;
    return qkv_tape_init(&tape) != QKV_OK;
}

static int tear_down(void **state) {
    (void)state;
    qkv_tape_free(&tape);
    return 0;
}

#define SETTINGS "task=classify classes=3 ngrams=3 ngram_buckets=50"
enum { CLASSES = 3, BUCKETS = 50 };

static void logits(qkv_model *m, const tiny_batch *b, real *out) {
    qkv_tape_begin(&tape, QKV_EVAL, 1, 1);
    const qkv_tensor *y = qkv_model_classify(&tape, m, &b->tokens);
    assert_ok(qkv_tape_status(&tape));
    memcpy(out, y->data, (size_t)(y->rows * y->cols) * sizeof *out);
}

static real *table_of(qkv_model *m) {
    return qkv_param_find(qkv_model_params(m), "head.ngrams.weight")->tensor.data;
}

/* Framed n-grams of 4 9 4 and of 2, hashed by a few lines of Python. */
static void known_buckets(void **state) {
    (void)state;
    static const int32_t lengths[] = {3, 1}, ids[] = {4, 9, 4, 2};
    static const int first[] = {42, 32, 30, 47, 13, 0, 23, 4, 30, 42}, second[] = {38, 25, 8, 48};
    qkv_model *m = tiny_model(SETTINGS, false, 1);
    tiny_batch b;
    tiny_batch_make(&b, lengths, 2, 11, CLASSES, 1);
    memcpy(b.ids, ids, sizeof ids);
    real without[2 * CLASSES], with[2 * CLASSES], expected[2 * CLASSES];
    logits(m, &b, without); /* the weights of n-grams begin at zero */
    real *table = table_of(m);
    fill(table, BUCKETS * CLASSES, 9);
    logits(m, &b, with);
    for (int c = 0; c < CLASSES; c++) {
        real sum = 0;
        for (int i = 0; i < 10; i++) sum += table[first[i] * CLASSES + c];
        expected[c] = without[c] + sum / 20; /* half of the vote */
        sum = 0;
        for (int i = 0; i < 4; i++) sum += table[second[i] * CLASSES + c];
        expected[CLASSES + c] = without[CLASSES + c] + sum / 8;
    }
    assert_close("the mean over the n-grams is added", with, expected, 2 * CLASSES, 1e-6);
    qkv_model_free(m);
}

/* Alone and in company, on one thread and on many: the same bits. */
static void same_bits(void **state) {
    (void)state;
    static const int32_t lengths[] = {9, 1, 5, 7};
    qkv_model *m = tiny_model(SETTINGS, false, 3);
    fill(table_of(m), BUCKETS * CLASSES, 4);
    tiny_batch all, one;
    tiny_batch_make(&all, lengths, 4, 11, CLASSES, 1);
    real together[4 * CLASSES], other[4 * CLASSES];
    logits(m, &all, together);
    for (int32_t s = 0; s < 4; s++) {
        tiny_batch_make(&one, &lengths[s], 1, 11, CLASSES, 1);
        memcpy(one.ids, all.ids + all.start[s], (size_t)lengths[s] * sizeof *one.ids);
        logits(m, &one, other);
        assert_same_bits("alone", other, together + s * CLASSES, CLASSES);
    }
    for (int threads = 1; threads <= 8; threads *= 2) {
        qkv_threads_set(threads);
        logits(m, &all, other);
        assert_same_bits("threads", other, together, 4 * CLASSES);
    }
    qkv_threads_set(0);
    qkv_model_free(m);
}

/* The table is counted, under its own name; n-grams left out while training change the loss. */
static void described_and_dropped(void **state) {
    (void)state;
    static const int32_t length = 12;
    qkv_model *m;
    qkv_description d;
    assert_ok(tiny_build(SETTINGS " ngram_dropout=0.5", &m));
    assert_ok(qkv_describe_make(m, 2, 16, &d));
    const qkv_describe_part *last = &d.parts[d.n - 1];
    assert_string_equal(last->name, "ngrams");
    assert_int_equal(last->parameters, BUCKETS * CLASSES);
    assert_int_equal(d.total, qkv_model_params(m)->count);
    qkv_describe_free(&d);
    assert_ok(qkv_model_allocate(m, true));
    qkv_model_initialise(m, 1);
    fill(table_of(m), BUCKETS * CLASSES, 4);
    tiny_batch b;
    tiny_batch_make(&b, &length, 1, 11, CLASSES, 1);
    real loss[3];
    for (int i = 0; i < 3; i++) {
        qkv_tape_begin(&tape, QKV_TRAIN, 1, i < 2 ? 1 : 2);
        loss[i] = tiny_loss(&tape, m, &b, NULL)->data[0];
        assert_ok(qkv_tape_status(&tape));
    }
    assert_true(loss[0] == loss[1]); /* drawn by the step, not anew */
    assert_true(loss[0] != loss[2]);
    qkv_model_free(m);
    assert_fails(tiny_build("task=classify ngrams=2 ngram_buckets=-1", &m), QKV_USAGE,
                 "ngram_buckets");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_buckets),
        cmocka_unit_test(same_bits),
        cmocka_unit_test(described_and_dropped),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
