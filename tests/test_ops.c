/* The ops in fp32: the same bits for any number of threads, packed = alone, all instruction sets
 * agree, and bad arguments get an error that says what is wrong. (Gradients are checked in the
 * double build: grad_ops.c.) */
#include "small_step.h"
#include "base/mem.h"
#include "golden/xent_golden.h"

#include <math.h>

/* ---- cases large enough that kernels use their threads ---- */

static small_model model;
static small_batch batch;

static qkv_tensor *build_step(qkv_tape *t, qkv_check *c) {
    for (int i = 0; i < SMALL_PARAMS; i++) qkv_check_param(t, c, &model.param[i]);
    return small_loss(t, &model, &batch, (real)0.1);
}

static qkv_tensor *build_recurrent(qkv_tape *t, qkv_check *c) {
    const int64_t d = SMALL_D, gates = qkv_check_variant(c) ? 3 : 4;
    const qkv_recurrent_spec spec = {.layout = {.n = batch.n, .start = batch.start},
                                     .reverse = true};
    qkv_tensor *x = qkv_check_input(t, c, batch.rows, d, 0, 1),
               *w_x = qkv_check_input(t, c, gates * d, d, 0, 0.3);
    qkv_tensor *w_h = qkv_check_input(t, c, gates * d, d, 0, 0.3),
               *b = qkv_check_input(t, c, 1, gates * d, 0, 1);
    qkv_tensor *y =
        gates == 4 ? qkv_lstm(t, x, w_x, w_h, b, &spec) : qkv_gru(t, x, w_x, w_h, b, b, &spec);
    return qkv_pool(t, y, spec.layout, QKV_POOL_MEAN);
}

static int causal(const void *pattern, int32_t n_k, int32_t q0, int32_t q1, qkv_span *out) {
    (void)pattern, (void)q0;
    out[0] = qkv_span_of(0, q1 < n_k ? q1 : n_k, -QKV_SPAN_ANY, 0);
    return 1;
}

/* Two long sequences: several blocks of queries and keys each. */
static qkv_tensor *build_attention(qkv_tape *t, qkv_check *c) {
    static const int32_t starts[] = {0, 150, 500};
    qkv_tensor *q = qkv_check_input(t, c, 500, 64, 0, 1), *k = qkv_check_input(t, c, 500, 32, 0, 1);
    qkv_attention_spec spec = {
        .heads = 4, .kv_heads = 2, .q_layout = {.n = 2, .start = starts}, .dropout = (real)0.1};
    if (qkv_check_variant(c)) {
        spec.spans = causal;
        spec.relation = (qkv_relation){.kind = QKV_REL_DISTANCE, .n = 20, .zero = 15};
        spec.bias = qkv_check_input(t, c, 4, 20, 0, 1);
        spec.rel_k = qkv_check_input(t, c, 20, 16, 0, 0.3);
        spec.rel_v = qkv_check_input(t, c, 20, 16, 0, 0.3);
    }
    return qkv_attend(t, q, k, qkv_check_input(t, c, 500, 32, 0, 1), &spec);
}

static const qkv_case large[] = {
    {"a training step", build_step, 0},
    {"lstm over a batch", build_recurrent, 0},
    {"gru over a batch", build_recurrent, 1},
    {"attention over long sequences", build_attention, 0},
    {"causal attention with relations over long sequences", build_attention, 1},
    {0}};

/* Calls `check` for every case of the table and the large ones. */
static void for_every_case(void (*check)(const qkv_case *)) {
    const qkv_op_row *rows;
    const size_t n = qkv_op_table(&rows);
    small_init(&model);
    small_batch_make(&batch, 48, 38, 1);
    for (size_t i = 0; i < n; i++)
        for (const qkv_case *c = rows[i].cases; c->name; c++) check(c);
    for (const qkv_case *c = large; c->name; c++) check(c);
}

static real *collect(const qkv_case *c, int precision, int64_t *n) {
    real *values = NULL;
    assert_ok(qkv_check_collect(c, precision, &values, n));
    return values;
}

static void check_threads(const qkv_case *c) {
    static const int threads[] = {1, 2, 3, 8};
    int64_t n, n_first;
    real *first = NULL;
    for (int i = 0; i < 4; i++) {
        qkv_threads_set(threads[i]);
        real *values = collect(c, QKV_F32, &n);
        if (i == 0) {
            first = values, n_first = n;
            continue;
        }
        assert_int_equal(n, n_first);
        assert_same_bits(c->name, values, first, n);
        qkv_free(values);
    }
    qkv_free(first);
    qkv_threads_set(0);
}

static void threads_give_the_same_bits(void **state) {
    (void)state;
    for_every_case(check_threads);
}

static void check_sets(const qkv_case *c) {
    const qkv_kern *const *sets;
    const size_t n_sets = qkv_kern_list(&sets);
    int64_t n;
    assert_true(qkv_kern_choose("plain"));
    real *plain = collect(c, QKV_F32, &n);
    for (size_t i = 0; i < n_sets; i++) {
        assert_true(qkv_kern_choose(sets[i]->name));
        real *values = collect(c, QKV_F32, &n);
        for (int64_t k = 0; k < n; k++) assert_true(isfinite((double)values[k]));
        assert_close(c->name, values, plain, n, 1e-5);
        qkv_free(values);
    }
    qkv_free(plain);
    assert_true(qkv_kern_choose(sets[0]->name));
}

static void instruction_sets_agree(void **state) {
    (void)state;
    for_every_case(check_sets);
}

/* bf16 products round their operands to 8 bits (2⁻⁹ each at most); sums of many average that out.
 */
static void check_bf16(const qkv_case *c) {
    int64_t n;
    real *full = collect(c, QKV_F32, &n), *half = collect(c, QKV_BF16, &n);
    double error = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        error += pow((double)(full[i] - half[i]), 2);
        size += pow((double)full[i], 2);
    }
    if (!(error <= size * 0.02 * 0.02))
        fail_msg("%s: bf16 is off by %.3g of the whole", c->name, sqrt(error / size));
    qkv_free(full);
    qkv_free(half);
}

static void bf16_is_near(void **state) {
    (void)state;
    for_every_case(check_bf16);
}

/* ---- packed = alone: the rest of the batch changes no bit of output or gradient ---- */

typedef struct alone_case {
    const char *name;
    qkv_tensor *(*apply)(qkv_tape *t, qkv_tensor *x, qkv_layout layout, qkv_tensor *w);
    int64_t w_rows, w_cols;
    bool pooled; /* one row per sequence */
} alone_case;

static qkv_tensor *apply_linear(qkv_tape *t, qkv_tensor *x, qkv_layout l, qkv_tensor *w) {
    (void)l;
    return qkv_linear(t, x, w, NULL, QKV_ACT_GELU);
}
static qkv_tensor *apply_feed_forward(qkv_tape *t, qkv_tensor *x, qkv_layout l, qkv_tensor *w) {
    (void)l;
    return qkv_feed_forward(
        t, x,
        &(qkv_feed_forward_spec){
            .w_in = w, .w_out = qkv_tensor_reshape(t, w, x->cols, w->rows), .act = QKV_ACT_SILU});
}
static qkv_tensor *apply_norm(qkv_tape *t, qkv_tensor *x, qkv_layout l, qkv_tensor *w) {
    (void)l;
    return qkv_norm(t, x, w, NULL, &(qkv_norm_spec){.kind = QKV_NORM_LAYER, .residual = x}, NULL);
}
static qkv_tensor *apply_attention(qkv_tape *t, qkv_tensor *x, qkv_layout l, qkv_tensor *w) {
    qkv_tensor *p = qkv_linear(t, x, w, NULL, QKV_ACT_NONE);
    const int64_t d = x->cols;
    return qkv_attend(t, qkv_tensor_columns(t, p, 0, d), qkv_tensor_columns(t, p, d, d),
                      qkv_tensor_columns(t, p, 2 * d, d),
                      &(qkv_attention_spec){.heads = 4, .q_layout = l, .spans = causal});
}
static qkv_tensor *apply_mean(qkv_tape *t, qkv_tensor *x, qkv_layout l, qkv_tensor *w) {
    (void)w;
    return qkv_pool(t, x, l, QKV_POOL_MEAN);
}
static qkv_tensor *apply_max(qkv_tape *t, qkv_tensor *x, qkv_layout l, qkv_tensor *w) {
    (void)w;
    return qkv_pool(t, x, l, QKV_POOL_MAX);
}
static qkv_tensor *apply_lstm(qkv_tape *t, qkv_tensor *x, qkv_layout l, qkv_tensor *w) {
    return qkv_lstm(t, x, w, w, NULL, &(qkv_recurrent_spec){.layout = l});
}
static qkv_tensor *apply_gru(qkv_tape *t, qkv_tensor *x, qkv_layout l, qkv_tensor *w) {
    return qkv_gru(t, x, w, w, NULL, NULL, &(qkv_recurrent_spec){.layout = l, .reverse = true});
}

static const alone_case alone_cases[] = {
    {"linear", apply_linear, 48, 32, false}, {"feed_forward", apply_feed_forward, 96, 32, false},
    {"norm", apply_norm, 1, 32, false},      {"attention", apply_attention, 96, 32, false},
    {"pool: mean", apply_mean, 1, 32, true}, {"pool: max", apply_max, 1, 32, true},
    {"lstm", apply_lstm, 128, 32, false},    {"gru", apply_gru, 96, 32, false},
};

/* Runs the case on rows of x; copies the output and x's gradient (loss: cross-entropy of each row,
 * so rows stay apart). */
static void run_alone(const alone_case *c, real *x, int32_t rows, qkv_layout layout, real *w,
                      real *y, real *dx) {
    static const int32_t targets[2048]; /* class 0 for all */
    qkv_tape t;
    assert_ok(qkv_tape_init(&t));
    qkv_tape_begin(&t, QKV_TRAIN, 1, 1);
    qkv_tensor *in = qkv_tensor_wrap(&t, x, rows, 32);
    in->wants_grad = true;
    qkv_tensor *out = c->apply(&t, in, layout, qkv_tensor_wrap(&t, w, c->w_rows, c->w_cols));
    qkv_tensor *loss =
        qkv_xent(&t, out, NULL, NULL, &(qkv_xent_spec){.targets = targets, .scale = 1});
    assert_ok(qkv_tape_backward(&t, &loss, 1));
    memcpy(y, out->data, (size_t)(out->rows * out->cols) * sizeof *y);
    memcpy(dx, in->grad, (size_t)(rows * 32) * sizeof *dx);
    qkv_tape_free(&t);
}

static void packed_is_alone(void **state) {
    (void)state;
    static real x[2048 * 32], w[128 * 32], y[2048 * 48], dx[2048 * 32], y1[2048 * 48],
        dx1[2048 * 32];
    small_batch_make(&batch, 40, 38, 11);
    fill(x, batch.rows * 32, 1);
    fill(w, 128 * 32, 2);
    for (size_t i = 0; i < sizeof alone_cases / sizeof *alone_cases; i++) {
        const alone_case *c = &alone_cases[i];
        run_alone(c, x, batch.rows, (qkv_layout){.n = batch.n, .start = batch.start}, w, y, dx);
        const int64_t width = c->apply == apply_linear ? 48 : 32;
        for (int32_t s = 0; s < batch.n; s++) {
            const int32_t first = batch.start[s], rows = batch.start[s + 1] - first,
                          one[] = {0, rows};
            run_alone(c, x + first * 32, rows, (qkv_layout){.n = 1, .start = one}, w, y1, dx1);
            assert_same_bits(c->name, y + (c->pooled ? s : first) * width, y1,
                             (c->pooled ? 1 : rows) * width);
            assert_same_bits(c->name, dx + first * 32, dx1, rows * 32);
        }
    }
}

/* ---- modes ---- */

/* EVAL records nothing, drops nothing, and can run layer after layer in the same memory. */
static void eval_is_light(void **state) {
    (void)state;
    qkv_tape t;
    real loss_train, memory[64];
    small_init(&model);
    small_batch_make(&batch, 6, 20, 3);
    assert_ok(qkv_tape_init(&t));
    qkv_tape_begin(&t, QKV_TRAIN, 5, 1);
    loss_train = small_loss(&t, &model, &batch, 0)->data[0];
    assert_true(t.n_nodes > 5);
    qkv_tape_begin(&t, QKV_EVAL, 5, 1);
    const qkv_arena_mark mark = qkv_tape_here(&t);
    const real loss = small_loss(&t, &model, &batch, (real)0.5)->data[0];
    assert_ok(qkv_tape_status(&t));
    assert_int_equal(t.n_nodes, 0);
    assert_true(loss == loss_train);
    qkv_tape_rewind(&t, mark);
    assert_int_equal(t.arena.used, mark.used);
    qkv_tensor *x = qkv_tensor_wrap(&t, memory, 8, 8);
    assert_ptr_equal(qkv_dropout(&t, x, (real)0.5), x);
    qkv_tape_free(&t);
}

/* ---- pairs that should agree, against PyTorch ---- */

static void xent_pairs(void **state) {
    (void)state;
    enum { N = 2 * XENT_PAIRS * XENT_V };
    real z[N];
    for (int i = 0; i < N; i++) z[i] = (real)((i * 37) % 101 - 50) / 16;
    qkv_tape t;
    assert_ok(qkv_tape_init(&t));
    qkv_tape_begin(&t, QKV_TRAIN, 1, 1);
    qkv_tensor *x = qkv_tensor_wrap(&t, z, 2 * XENT_PAIRS, XENT_V);
    x->wants_grad = true;
    qkv_xent_spec spec = {.targets = xent_targets,
                          .smoothing = (real)xent_smoothing,
                          .agree = (real)xent_agree,
                          .scale = 1};
    qkv_tensor *loss = qkv_xent(&t, x, NULL, NULL, &spec);
    assert_ok(qkv_tape_status(&t));
    if (fabs((double)loss->data[0] - xent_loss) > 1e-5)
        fail_msg("loss %.8g, wanted %.8g", (double)loss->data[0], xent_loss);
    assert_ok(qkv_tape_backward(&t, &loss, 1));
    assert_close("gradient", x->grad, xent_grad, N, 2e-6);
    qkv_tape_begin(&t, QKV_TRAIN, 1, 2);
    const int32_t other[] = {3, 0, 6, 3, 1, 6};
    spec.targets = other;
    qkv_xent(&t, qkv_tensor_wrap(&t, z, 2 * XENT_PAIRS, XENT_V), NULL, NULL, &spec);
    assert_fails(qkv_tape_status(&t), QKV_USAGE, "two views of each row");
    qkv_tape_free(&t);
}

/* ---- counts and row losses of xent, over several chunks ---- */

static void xent_counts(void **state) {
    (void)state;
    enum { R = 300, V = 20000 };
    static real z[R * V], row_loss[R];
    static int32_t targets[R];
    fill(z, (int64_t)R * V, 5);
    int64_t want_right = 0, n_right, n_targets;
    for (int64_t r = 0; r < R; r++) {
        targets[r] = r % 5 == 4 ? -1 : (int32_t)(r * 37 % V);
        if (r % 3) z[r * V + r * 37 % V] = 2;
        want_right += r % 3 && targets[r] >= 0;
    }
    z[2 * V + 5] = 2; /* as large as the target, but before it: row 2 is wrong */
    want_right--;
    qkv_tape t;
    assert_ok(qkv_tape_init(&t));
    qkv_tape_begin(&t, QKV_EVAL, 1, 1);
    const qkv_xent_spec spec = {
        .targets = targets, .n_right = &n_right, .n_targets = &n_targets, .row_loss = row_loss};
    const real loss = qkv_xent(&t, qkv_tensor_wrap(&t, z, R, V), NULL, NULL, &spec)->data[0];
    assert_ok(qkv_tape_status(&t));
    assert_int_equal(n_targets, R * 4 / 5);
    assert_int_equal(n_right, want_right);
    double mean = 0;
    for (int64_t r = 0; r < R; r++) {
        double sum = 0;
        for (int64_t j = 0; j < V; j++) sum += exp((double)z[r * V + j]);
        const double nll = targets[r] < 0 ? 0 : log(sum) - (double)z[r * V + targets[r]];
        assert_true(fabs(nll - (double)row_loss[r]) < 1e-5);
        mean += nll / (double)n_targets;
    }
    assert_true(fabs(mean - (double)loss) < 1e-5);
    qkv_tape_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_give_the_same_bits),
        cmocka_unit_test(instruction_sets_agree),
        cmocka_unit_test(bf16_is_near),
        cmocka_unit_test(packed_is_alone),
        cmocka_unit_test(eval_is_light),
        cmocka_unit_test(xent_pairs),
        cmocka_unit_test(xent_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
