/* Bad arguments at the level of ops: an error that names the op, the shapes and the first offending
 * element; the tape stays usable, and nothing is computed after the first error. */
#include "harness.h"
#include "ops/ops.h"

#include <math.h>

static qkv_tape tape;
static real numbers[4096];

/* A tensor of small numbers; all share memory. */
static qkv_tensor *tensor(int64_t rows, int64_t cols) {
    return qkv_tensor_wrap(&tape, numbers, rows, cols);
}

static void begin(qkv_mode mode) {
    qkv_tape_begin(&tape, mode, 1, 1);
}

/* The last op must have failed with these words; ops after it do nothing; the next step works
 * again. */
#define assert_refused(call, words)                                                                \
    do {                                                                                           \
        begin(QKV_TRAIN);                                                                          \
        assert_true(qkv_is_void(call));                                                            \
        assert_fails(qkv_tape_status(&tape), QKV_USAGE, words);                                    \
        assert_true(qkv_is_void(qkv_scale(&tape, &tape.nothing, 2)));                              \
        assert_fails(qkv_tape_status(&tape), QKV_USAGE, words);                                    \
        begin(QKV_TRAIN);                                                                          \
        assert_ok(qkv_tape_status(&tape));                                                         \
    } while (0)

static void shapes(void **state) {
    (void)state;
    qkv_tape *t = &tape;
    assert_refused(qkv_linear(t, tensor(3, 4), tensor(5, 6), NULL, 0), "linear: x is 3×4, w 5×6");
    assert_refused(qkv_linear(t, tensor(3, 4), tensor(5, 4), tensor(1, 4), 0), "b 1×4");
#define FEED(...) qkv_feed_forward(t, tensor(3, 4), &(qkv_feed_forward_spec){__VA_ARGS__})
    assert_refused(FEED(.w_in = tensor(5, 4), .w_out = tensor(4, 2), .gated = true),
                   "feed_forward: x is 3×4, w_in 5×4, b_in 0×0, w_out 4×2");
    assert_refused(FEED(.w_in = tensor(5, 4), .w_out = tensor(4, 5), .b_out = tensor(1, 5)),
                   "b_out 1×5");
    assert_refused(FEED(.w_in = tensor(5, 3), .w_out = tensor(4, 5)), "w_in 5×3");
#undef FEED
    assert_refused(qkv_add(t, tensor(3, 4), tensor(4, 3), 0), "add: shapes differ: 3×4 and 4×3");
    assert_refused(qkv_mul(t, tensor(3, 4), tensor(3, 3)), "mul: shapes differ: 3×4 and 3×3");
    assert_refused(qkv_norm(t, tensor(3, 4), tensor(1, 3), NULL, &(qkv_norm_spec){0}, NULL),
                   "norm: gain is 1×3");
    assert_refused(qkv_norm(t, tensor(3, 4), tensor(1, 4), NULL,
                            &(qkv_norm_spec){.residual = tensor(2, 4)}, NULL),
                   "norm: residual is 2×4");
    assert_refused(qkv_concat(t, QKV_TENSORS(tensor(3, 4), tensor(2, 4))),
                   "concat: part 1 has 2 rows, part 0 has 3");
    assert_refused(qkv_concat(t, NULL, 0), "concat: 0 parts");
    assert_refused(qkv_tensor_new(t, 0, 4), "a tensor cannot be 0×4");
    assert_refused(qkv_tensor_new(t, INT64_MAX / 2, 400), "a tensor cannot be");
    assert_refused(qkv_tensor_columns(t, tensor(3, 4), 2, 3), "columns 2 to 5 of a 3×4 tensor");
    assert_refused(qkv_tensor_rows(t, tensor(3, 4), 3, 1), "rows 3 to 4 of a 3×4 tensor");
    assert_refused(qkv_tensor_reshape(t, tensor(3, 4), 5, 2), "cannot be read as 5×2");
    assert_refused(qkv_scale(t, qkv_tensor_columns(t, tensor(3, 4), 0, 2), 2),
                   "scale: x (3×2) is a view");
    assert_refused(qkv_dropout(t, tensor(3, 4), 1), "dropout: a dropout rate of 1");
    assert_refused(qkv_dropout(t, tensor(3, 4), NAN), "dropout: a dropout rate of nan");
    assert_refused(qkv_add(t, tensor(3, 4), tensor(3, 4), -1), "add: a dropout rate of -1");
}

static void ids(void **state) {
    (void)state;
    qkv_tape *t = &tape;
    static const int32_t good[] = {0, 1, 2}, high[] = {0, 9, 12}, low[] = {1, 0, -1};
    assert_refused(qkv_embedding(t, tensor(9, 4), &(qkv_embedding_spec){.ids = high, .rows = 3}),
                   "embedding: ids[1] is 9; it must be at least 0 and below 9");
    assert_refused(qkv_embedding(t, tensor(9, 4), &(qkv_embedding_spec){.ids = low, .rows = 3}),
                   "ids[2] is -1");
    assert_refused(
        qkv_embedding(
            t, tensor(9, 4),
            &(qkv_embedding_spec){.ids = good, .rows = 3, .position = tensor(2, 4), .pos = good}),
        "pos[2] is 2");
    assert_refused(qkv_embedding(t, tensor(9, 4), &(qkv_embedding_spec){.ids = good, .rows = 0}),
                   "cannot be 0×4");
    static const int32_t bags[] = {0, 2, 1}, fine[] = {0, 2, 3};
    assert_refused(
        qkv_embedding_bag(t, tensor(9, 4), &(qkv_bag_spec){.ids = good, .bags = 2, .start = bags}),
        "embedding_bag: bag 1 of 2 goes from id 2 to 1");
    assert_refused(
        qkv_embedding_bag(t, tensor(2, 4), &(qkv_bag_spec){.ids = good, .bags = 2, .start = fine}),
        "ids[2] is 2");
    assert_refused(qkv_xent(t, tensor(3, 4), tensor(9, 4), NULL, &(qkv_xent_spec){.targets = high}),
                   "targets[1] is 9");
    assert_refused(qkv_xent(t, tensor(3, 4), tensor(9, 5), NULL, &(qkv_xent_spec){.targets = good}),
                   "xent: w is 9×5");
    assert_refused(
        qkv_xent(t, tensor(3, 4), NULL, NULL, &(qkv_xent_spec){.targets = good, .smoothing = 1}),
        "smoothing of 1");
    assert_refused(
        qkv_rope(t, tensor(3, 8), &(qkv_rope_spec){.heads = 2, .pos = good, .positions = 2}),
        "rope: pos[2] is 2");
    assert_refused(
        qkv_rope(t, tensor(3, 6), &(qkv_rope_spec){.heads = 2, .pos = good, .positions = 9}),
        "rope: x is 3×6");
}

static void layouts(void **state) {
    (void)state;
    qkv_tape *t = &tape;
    static const int32_t empty[] = {0, 2, 2, 5}, back[] = {0, 3, 2, 5}, late[] = {1, 5},
                         shorter[] = {0, 2, 4};
    assert_refused(qkv_pool(t, tensor(5, 4), (qkv_layout){.n = 3, .start = empty}, 0),
                   "pool: layout: sequence 1 of 3 starts at row 2 and has 0 rows");
    assert_refused(qkv_pool(t, tensor(5, 4), (qkv_layout){.n = 3, .start = back}, 0),
                   "sequence 1 of 3");
    assert_refused(qkv_pool(t, tensor(5, 4), (qkv_layout){.n = 1, .start = late}, 0),
                   "sequence 0 of 1 starts at row 1");
    assert_refused(qkv_pool(t, tensor(5, 4), (qkv_layout){.n = 2, .start = shorter}, 0),
                   "covers 4 rows of 5");
    assert_refused(qkv_pool(t, tensor(5, 4), (qkv_layout){0}, 0), "has no sequences");
    static const int32_t starts[] = {0, 4}, lens[] = {2, 3};
    assert_refused(qkv_pool(t, tensor(9, 4), (qkv_layout){.n = 2, .start = starts, .len = lens}, 0),
                   "has gaps");
    static const int32_t whole[] = {0, 5};
    const qkv_layout one = {.n = 1, .start = whole};
    qkv_layout out;
    assert_refused(qkv_sequence_linear(t, tensor(5, 4), tensor(2, 4), one, 1, &out),
                   "sequence 0 has 5 rows; e (2×4)");
    assert_refused(qkv_sequence_linear(t, tensor(5, 4), tensor(2, 8), one, 3, &out), "3 groups");
    qkv_tensor *last;
    const qkv_recurrent_spec spec = {.layout = one}, ask = {.layout = one, .h_last = &last};
    assert_refused(qkv_lstm(t, tensor(5, 4), tensor(8, 4), tensor(12, 3), NULL, &spec),
                   "lstm: w_x is 8×4");
    assert_refused(qkv_lstm(t, tensor(5, 4), tensor(12, 4), tensor(12, 3), NULL, &ask),
                   "EVAL only");
    assert_refused(qkv_gru(t, tensor(5, 4), tensor(9, 4), tensor(9, 3), NULL, tensor(1, 6), &spec),
                   "gru: b_h is 1×6");
    assert_refused(qkv_gru(t, tensor(5, 4), tensor(9, 4), tensor(9, 3), NULL, NULL, &ask),
                   "EVAL only");
}

static void attention(void **state) {
    (void)state;
    qkv_tape *t = &tape;
    static const int32_t starts[] = {0, 2, 5};
    static const uint8_t matrix[] = {0, 1, 2, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0};
    static const int64_t matrix_starts[] = {0, 4};
    qkv_attention_spec s = {.heads = 2, .q_layout = {.n = 2, .start = starts}};
    assert_refused(qkv_attend(t, tensor(5, 4), tensor(5, 6), tensor(5, 4), &s),
                   "attention: q is 5×4, k 5×6, v 5×4");
    assert_refused(qkv_attend(t, tensor(5, 4), tensor(5, 4), tensor(4, 4), &s), "v 4×4");
    s.kv_heads = 3;
    assert_refused(qkv_attend(t, tensor(5, 4), tensor(5, 4), tensor(5, 4), &s),
                   "2 heads and 3 key heads");
    s.kv_heads = 0;
    assert_refused(qkv_attend(t, tensor(6, 4), tensor(6, 4), tensor(6, 4), &s),
                   "q_layout covers 5 rows of 6");
    assert_refused(qkv_attend(t, tensor(5, 4), tensor(6, 4), tensor(6, 4), &s),
                   "k_layout covers 5 rows of 6");
    s.k_layout = (qkv_layout){.n = 1, .start = (const int32_t[]){0, 5}};
    assert_refused(qkv_attend(t, tensor(5, 4), tensor(5, 4), tensor(5, 4), &s),
                   "queries of 2 sequences, keys of 1");
    s.k_layout = (qkv_layout){.n = 2,
                              .start = (const int32_t[]){0, 1},
                              .len = (const int32_t[]){1, 2},
                              .rows = (const int32_t[]){4, 0, 5}};
    assert_refused(qkv_attend(t, tensor(5, 4), tensor(5, 4), tensor(5, 4), &s),
                   "k_layout: row 1 of sequence 1 is row 5 of 5");
    s.k_layout.n = 0;
    s.q_pos = (const int32_t[]){0, -3};
    assert_refused(qkv_attend(t, tensor(5, 4), tensor(5, 4), tensor(5, 4), &s), "q_pos[1] is -3");
    s.q_pos = NULL;
    s.bias = tensor(2, 3);
    assert_refused(qkv_attend(t, tensor(5, 4), tensor(5, 4), tensor(5, 4), &s),
                   "bias is given, but no relation");
    s.relation = (qkv_relation){
        .kind = QKV_REL_MATRIX, .n = 3, .matrix = matrix, .matrix_start = matrix_starts};
    assert_refused(
        (s.bias = tensor(3, 3), qkv_attend(t, tensor(5, 4), tensor(5, 4), tensor(5, 4), &s)),
        "bias is 3×3; the other arguments ask for 2×3");
    assert_refused(
        (s.bias = tensor(2, 3), qkv_attend(t, tensor(5, 4), tensor(5, 4), tensor(5, 4), &s)),
        "the relation of query 1 to key 0 of sequence 1 is 3; there are 3 relations");
}

/* ---- backward ---- */

static void losses(void **state) {
    (void)state;
    static const int32_t targets[] = {0, 1, 2};
    begin(QKV_TRAIN);
    qkv_tensor *x = tensor(3, 4);
    assert_fails(qkv_tape_backward(&tape, &x, 1), QKV_USAGE, "a loss must be 1×1; loss 0 is 3×4");
    begin(QKV_TRAIN);
    x = tensor(1, 1);
    assert_fails(qkv_tape_backward(&tape, &x, 1), QKV_USAGE, "loss 0 depends on nothing");

    /* gradients of a root are made for an upstream of 1: anything else must be refused, not
     * wrong */
    const qkv_xent_spec spec = {.targets = targets};
    for (int wrong = 0; wrong < 3; wrong++) {
        begin(QKV_TRAIN);
        x = tensor(3, 4);
        x->wants_grad = true;
        qkv_tensor *first = qkv_xent(&tape, x, NULL, NULL, &spec),
                   *second = qkv_xent(&tape, x, NULL, NULL, &spec);
        qkv_tensor *scaled = qkv_scale(&tape, first, 2);
        if (wrong == 0)
            assert_fails(qkv_tape_backward(&tape, &scaled, 1), QKV_USAGE,
                         "xent: must be one of the losses");
        if (wrong == 1)
            assert_fails(qkv_tape_backward(&tape, &first, 1), QKV_USAGE,
                         "xent: must be one of the losses");
        qkv_tensor *const thrice[] = {first, second, first};
        if (wrong == 2)
            assert_fails(qkv_tape_backward(&tape, thrice, 3), QKV_USAGE,
                         "xent: must be one of the losses");
    }
}

static void not_finite(void **state) {
    (void)state;
    static const int32_t targets[] = {0, 1, 2};
    static real bad[12], weights[20];
    tape.check_finite = true;
    fill(bad, 12, 1);
    fill(weights, 20, 2);
    bad[6] = INFINITY; /* row 1: every output of it */
    begin(QKV_TRAIN);
    qkv_tensor *x = qkv_tensor_wrap(&tape, bad, 3, 4), *w = qkv_tensor_wrap(&tape, weights, 5, 4);
    w->wants_grad = true;
    assert_true(qkv_is_void(qkv_linear(&tape, x, w, NULL, QKV_ACT_NONE)));
    assert_fails(qkv_tape_status(&tape), QKV_NUMERIC, "linear: output (3×5) of op 0");
    assert_non_null(strstr(qkv_error(), "at row 1, column 0"));

    /* values stay finite, but the gradient of x is 10⁴⁰ times that of z */
    for (int i = 0; i < 12; i++) bad[i] = (real)(i % 4) * (real)1e-40;
    begin(QKV_TRAIN);
    x = qkv_tensor_wrap(&tape, bad, 3, 4);
    x->wants_grad = true;
    qkv_tensor *z = qkv_scale(&tape, qkv_scale(&tape, x, (real)1e20), (real)1e20);
    qkv_tensor *loss = qkv_xent(&tape, z, NULL, NULL, &(qkv_xent_spec){.targets = targets});
    assert_fails(qkv_tape_backward(&tape, &loss, 1), QKV_NUMERIC,
                 "scale: the gradient of input 0, input (3×4), is ");
    assert_non_null(strstr(qkv_error(), "inf at row 0, column 0"));
    tape.check_finite = false;
}

static int setup(void **state) {
    (void)state;
    fill(numbers, 4096, 1);
    return qkv_tape_init(&tape);
}

static int teardown(void **state) {
    (void)state;
    qkv_tape_free(&tape);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),    cmocka_unit_test(ids),    cmocka_unit_test(layouts),
        cmocka_unit_test(attention), cmocka_unit_test(losses), cmocka_unit_test(not_finite),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
