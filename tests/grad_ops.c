/* Every op of the table, every case: backward against central differences, in double. */
#include "harness.h"
#include "base/mem.h"
#include "ops/ops.h"

#include <math.h>

#define BOUND 1e-8

static void every_op_has_cases(void **state) {
    (void)state;
    const qkv_op_row *rows;
    const size_t n = qkv_op_table(&rows);
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++) {
        if (!rows[i].cases[0].name) fail_msg("the op %s has no case", rows[i].op->name);
        if (!rows[i].op->backward) fail_msg("the op %s has no backward", rows[i].op->name);
        const size_t len = strlen(rows[i].op->name);
        for (const qkv_case *c = rows[i].cases; c->name; c++)
            if (strncmp(c->name, rows[i].op->name, len) != 0)
                fail_msg("the case \"%s\" stands in the row of %s", c->name, rows[i].op->name);
    }
}

static void gradients_agree(void **state) {
    (void)state;
    const qkv_op_row *rows;
    const size_t n = qkv_op_table(&rows);
    double overall = 0;
    int cases = 0, failed = 0;
    for (size_t i = 0; i < n; i++)
        for (const qkv_case *c = rows[i].cases; c->name; c++, cases++) {
            double worst;
            if (qkv_check_run(c, BOUND, &worst) != QKV_OK) {
                print_message("%s\n", qkv_error());
                failed++;
            }
            if (worst > overall) overall = worst;
        }
    print_message("%d cases of %zu ops, largest relative error %.1e\n", cases, n, overall);
    assert_int_equal(failed, 0);
}

/* ---- the checker must be able to fail ---- */

/* y = x², with a gradient that is wrong by the share that the variant says, in thousandths of a
 * percent. */
static double wrongness;

static void square_backward(qkv_tape *t, qkv_node *node) {
    qkv_tensor *x = node->in[0];
    const real *dy = qkv_grad_of(t, node->out[0]);
    real *dx = qkv_grad_add(t, x, NULL, 0);
    for (int64_t i = 0; dx && i < x->rows * x->cols; i++)
        dx[i] += (real)(2 + wrongness) * x->data[i] * dy[i];
}

static const qkv_op op_square = {.name = "square", .backward = square_backward};

static qkv_tensor *build_square(qkv_tape *t, qkv_check *c) {
    qkv_tensor *x = qkv_check_input(t, c, 3, 4, 0, 1), *y = qkv_tensor_new(t, 3, 4);
    for (int64_t i = 0; i < 12; i++) y->data[i] = x->data[i] * x->data[i];
    return qkv_tape_record(t, &op_square, QKV_TENSORS(x), QKV_TENSORS(y), NULL);
}

static void a_wrong_gradient_is_seen(void **state) {
    (void)state;
    const qkv_case square = {"square", build_square, 0};
    double worst;
    wrongness = 0;
    assert_ok(qkv_check_run(&square, BOUND, &worst));
    wrongness = 1e-5;
    assert_fails(qkv_check_run(&square, BOUND, &worst), QKV_NUMERIC, "square: input 0, element 0");
    wrongness = NAN;
    assert_fails(qkv_check_run(&square, BOUND, &worst), QKV_NUMERIC, "square");
}

/* A forgotten gradient (0 where there should be one) is seen as well. */
static void forgetful_backward(qkv_tape *t, qkv_node *node) {
    (void)t, (void)node;
}
static const qkv_op op_forgetful = {.name = "forgetful", .backward = forgetful_backward};
static qkv_tensor *build_forgetful(qkv_tape *t, qkv_check *c) {
    qkv_tensor *x = qkv_check_input(t, c, 1, 4, 0, 1), *y = qkv_tensor_new(t, 1, 4);
    memcpy(y->data, x->data, 4 * sizeof(real));
    return qkv_tape_record(t, &op_forgetful, QKV_TENSORS(x), QKV_TENSORS(y), NULL);
}

static void a_missing_gradient_is_seen(void **state) {
    (void)state;
    double worst;
    assert_fails(qkv_check_run(&(qkv_case){"forgetful", build_forgetful, 0}, BOUND, &worst),
                 QKV_NUMERIC, "forgetful");
}

/* ---- parameters: gradients add up over backward passes, and in sparse tables only touched rows
 * are listed ---- */

static void parameters_accumulate(void **state) {
    (void)state;
    real data[12], grad[12] = {0}, twice[12];
    int32_t list[4];
    uint8_t seen[4] = {0};
    qkv_rows touched = {.list = list, .seen = seen};
    fill(data, 12, 1);
    qkv_tensor table = {.rows = 4, .cols = 3, .ld = 3, .data = data, .grad = grad};
    table.wants_grad = true;
    table.life = QKV_LIFE_PARAM;
    table.touched = &touched;
    qkv_tape t;
    assert_ok(qkv_tape_init(&t));
    static const int32_t ids[] = {2, 0, 2}, targets[] = {1, 0, 2};
    for (int pass = 0; pass < 2; pass++) {
        qkv_tape_begin(&t, QKV_TRAIN, 1, 1);
        qkv_tensor *x = qkv_embedding(&t, &table, &(qkv_embedding_spec){.ids = ids, .rows = 3});
        qkv_tensor *loss = qkv_xent(&t, x, NULL, NULL, &(qkv_xent_spec){.targets = targets});
        assert_ok(qkv_tape_backward(&t, &loss, 1));
        if (pass == 0)
            for (int i = 0; i < 12; i++) twice[i] = 2 * grad[i];
    }
    assert_close("two passes", grad, twice, 12, 1e-12);
    assert_int_equal(touched.n, 2);
    assert_int_equal(list[0], 2);
    assert_int_equal(list[1], 0);
    for (int i = 0; i < 3; i++) assert_true(grad[3 + i] == 0 && grad[9 + i] == 0);

    /* a dense use touches every row */
    qkv_tape_begin(&t, QKV_TRAIN, 1, 1);
    qkv_tensor *x = qkv_embedding(&t, &table, &(qkv_embedding_spec){.ids = ids, .rows = 3});
    qkv_tensor *loss = qkv_xent(&t, x, &table, NULL, &(qkv_xent_spec){.targets = targets});
    assert_ok(qkv_tape_backward(&t, &loss, 1));
    assert_int_equal(touched.n, 4);
    qkv_tape_free(&t);
}

int main(void) {
    qkv_threads_set(1); /* the cases are tiny */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_op_has_cases),       cmocka_unit_test(gradients_agree),
        cmocka_unit_test(a_wrong_gradient_is_seen), cmocka_unit_test(a_missing_gradient_is_seen),
        cmocka_unit_test(parameters_accumulate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
