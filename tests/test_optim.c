/* Optimisers: ten steps against PyTorch; sparse updates with the bits of dense ones; bits for any
 * number of threads; refusal of gradients that are not finite. */
#include "harness.h"
#include "base/mem.h"
#include "base/rng.h"
#include "train/muon.h"
#include "train/loop.h"
#include "golden/optim_golden.h"

#include <math.h>

/* ---- ten steps against PyTorch: values, gradients and rates of make_optim_golden.py ---- */

enum { N_SHAPES = 3 };
static const int64_t shapes[N_SHAPES][2] = {{5, 7}, {9, 4}, {1, 6}};

static void declare_shapes(qkv_params *params) {
    qkv_params_init(params);
    for (int p = 0; p < N_SHAPES; p++)
        qkv_param_declare(
            params,
            &(qkv_param_spec){
                .rows = shapes[p][0], .cols = shapes[p][1], .vector = p == 2, .no_decay = p == 2},
            "p%d", p);
    assert_ok(qkv_params_allocate(params, true));
}

static void run_golden(const qkv_optim_spec *spec, const float *after1, const float *after10) {
    qkv_params params;
    qkv_optim o;
    declare_shapes(&params);
    for (int p = 0; p < N_SHAPES; p++)
        for (int64_t i = 0; i < shapes[p][0] * shapes[p][1]; i++)
            params.list[p]->tensor.data[i] = (real)((i * 37 + p * 101) % 200 - 100) / 128;
    assert_ok(qkv_optim_init(&o, &params, spec));
    for (int step = 1; step <= 10; step++) {
        for (int p = 0; p < N_SHAPES; p++)
            for (int64_t i = 0; i < shapes[p][0] * shapes[p][1]; i++)
                params.list[p]->tensor.grad[i] =
                    (real)((i * 7919 + p * 131 + step * 104729) % 1000 - 500) / 512;
        qkv_update u = {.lr = 0.01 * (1 + 0.125 * step), .clip = 1};
        assert_ok(qkv_optim_step(&o, &u));
        assert_true(u.norm > 1);
        const float *golden = step == 1 ? after1 : step == 10 ? after10 : NULL;
        for (int p = 0; p < N_SHAPES && golden; p++) {
            int64_t n = shapes[p][0] * shapes[p][1];
            assert_close(params.list[p]->name, params.list[p]->tensor.data, golden, n, 1e-6);
            golden += n;
        }
        for (int64_t i = 0; i < params.length; i++) assert_true(params.grads[i] == 0);
    }
    qkv_optim_free(&o);
    qkv_params_free(&params);
}

static qkv_optim_spec golden_spec(qkv_optim_kind kind, bool nesterov) {
    qkv_optim_spec spec = qkv_optim_defaults(kind);
    spec.beta2 = 0.98, spec.decay = 0.1, spec.nesterov = nesterov;
    return spec;
}

static void matches_pytorch(void **state) {
    (void)state;
    qkv_optim_spec adamw = golden_spec(QKV_OPTIM_ADAMW, false);
    qkv_optim_spec adam = golden_spec(QKV_OPTIM_ADAM, false);
    qkv_optim_spec sgd = golden_spec(QKV_OPTIM_SGD, false);
    qkv_optim_spec nesterov = golden_spec(QKV_OPTIM_SGD, true);
    qkv_optim_spec muon = golden_spec(QKV_OPTIM_MUON, true);
    run_golden(&adamw, golden_adamw_1, golden_adamw_10);
    run_golden(&adam, golden_adam_1, golden_adam_10);
    run_golden(&sgd, golden_sgd_1, golden_sgd_10);
    run_golden(&nesterov, golden_sgd_nesterov_1, golden_sgd_nesterov_10);
    run_golden(&muon, golden_muon_1, golden_muon_10);
}

/* ---- sparse = dense ---- */

enum { ROWS = 300, COLS = 19, OTHER = 1200, MANY = 24000 /* enough to be shared among threads */ };

typedef struct subject {
    qkv_params params;
    qkv_optim optim;
    qkv_param *tables[2], *dense;
    int64_t other; /* elements of `dense` */
} subject;

/* Two tables (one of them decayed) and a matrix beside them, which gives the norm something to sum.
 */
static void make_sized(subject *s, const qkv_optim_spec *spec, bool sparse, int64_t other) {
    s->other = other;
    qkv_params_init(&s->params);
    for (int i = 0; i < 2; i++)
        s->tables[i] = qkv_param_declare(
            &s->params,
            &(qkv_param_spec){.rows = ROWS, .cols = COLS, .no_decay = i == 0, .sparse = sparse},
            "table%d", i);
    s->dense =
        qkv_param_declare(&s->params, &(qkv_param_spec){.rows = other / 120, .cols = 120}, "dense");
    assert_ok(qkv_params_allocate(&s->params, true));
    fill(s->tables[0]->tensor.data, ROWS * COLS, 1);
    fill(s->tables[1]->tensor.data, ROWS * COLS, 2);
    fill(s->dense->tensor.data, other, 3);
    assert_ok(qkv_optim_init(&s->optim, &s->params, spec));
}

static void make_subject(subject *s, const qkv_optim_spec *spec, bool sparse) {
    make_sized(s, spec, sparse, OTHER);
}

static void free_subject(subject *s) {
    qkv_optim_free(&s->optim);
    qkv_params_free(&s->params);
}

/* One step whose gradient depends on the values read, as a model's does: a row that was not brought
 * up to date in time would show. */
static void one_step(subject *s, int step, double clip) {
    qkv_rng rng = {7, (uint64_t)step};
    for (int k = 0; k < 2; k++) {
        qkv_param *table = s->tables[k];
        int32_t ids[12];
        for (int i = 0; i < 12; i++) { /* low rows often, high rows seldom; some ids twice */
            double u = qkv_rng_uniform(rng, (uint64_t)(100 * k + i));
            ids[i] = (int32_t)(u * u * u * ROWS);
        }
        if (table->spec.sparse) {
            table->touched.before_read(table->touched.keeper, ids, 12);
            qkv_rows_touch(&table->touched, ids, 12);
        }
        for (int i = 0; i < 12; i++)
            for (int64_t j = 0; j < COLS; j++) {
                int64_t at = ids[i] * COLS + j;
                table->tensor.grad[at] += table->tensor.data[at] + (real)(0.01 * (i - 6));
            }
    }
    for (int64_t i = 0; i < s->other; i++)
        s->dense->tensor.grad[i] = s->dense->tensor.data[i] * (real)0.1;
    qkv_update u = {.lr = 0.01 * (1 + step % 7), .clip = clip, .grad_scale = 0.25};
    assert_ok(qkv_optim_step(&s->optim, &u));
}

/* Muon's step in bf16 has nearly the direction and length of that in fp32. */
static void muon_in_bf16(void **state) {
    (void)state;
    enum { TALL = 96, WIDE = 64, N = TALL * WIDE };
    const qkv_param_spec shape = {.rows = TALL, .cols = WIDE};
    qkv_params params;
    qkv_params_init(&params);
    qkv_param_declare(&params, &shape, "w");
    qkv_muon *muon;
    assert_ok(qkv_muon_new(&params, &muon));
    real g[N], w[2][N] = {0};
    for (int i = 0; i < N; i++) g[i] = (real)qkv_rng_normal((qkv_rng){.seed = 1}, (uint64_t)i);
    double dot = 0, squares[2] = {0};
    for (int p = 0; p < 2; p++) {
        real m[N] = {0};
        const qkv_muon_step step = {.lr = 0.1,
                                    .lr_scale = 1,
                                    .momentum = 0.9,
                                    .g_scale = 1,
                                    .precision = p ? QKV_BF16 : QKV_F32};
        assert_true(qkv_muon_update(muon, &shape, w[p], g, m, &step));
        for (int i = 0; i < N; i++) squares[p] += (double)w[p][i] * (double)w[p][i];
    }
    for (int i = 0; i < N; i++) dot += (double)w[0][i] * (double)w[1][i];
    assert_true(memcmp(w[0], w[1], sizeof w[0]) != 0);
    assert_true(dot > 0.9995 * sqrt(squares[0] * squares[1]));
    assert_true(fabs(squares[1] / squares[0] - 1) < 0.01);
    qkv_muon_free(muon);
    qkv_params_free(&params);
}

static void sparse_is_dense(void **state) {
    (void)state;
    const qkv_optim_kind kinds[] = {QKV_OPTIM_ADAMW, QKV_OPTIM_ADAM, QKV_OPTIM_SGD, QKV_OPTIM_MUON};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int clipped = 0; clipped < 2; clipped++) {
            qkv_optim_spec spec = qkv_optim_defaults(kinds[k]);
            spec.decay = 0.01;
            spec.ema = clipped ? 0.9 : 0;
            if (kinds[k] == QKV_OPTIM_MUON)
                spec.decay = 0; /* a decayed dense table is a matrix there */
            subject dense, sparse;
            make_subject(&dense, &spec, false);
            make_subject(&sparse, &spec, true);
            if (kinds[k] == QKV_OPTIM_MUON)
                dense.tables[1]->spec.no_decay = sparse.tables[1]->spec.no_decay = true;
            const int steps = kinds[k] == QKV_OPTIM_MUON ? 20 : 200;
            for (int step = 1; step <= steps; step++) {
                one_step(&dense, step, clipped ? 0.5 : 0);
                one_step(&sparse, step, clipped ? 0.5 : 0);
                if (step == steps / 2 + 5) qkv_optim_settle(&sparse.optim);
            }
            assert_memory_not_equal(dense.params.values, sparse.params.values,
                                    (size_t)dense.params.length *
                                        sizeof(real)); /* rows are behind … */
            qkv_optim_settle(&sparse.optim);           /* … and now not */
            const char *name = qkv_optim_name(kinds[k]);
            assert_same_bits(name, sparse.params.values, dense.params.values, dense.params.length);
            assert_same_bits(name, sparse.optim.m, dense.optim.m, dense.params.length);
            if (dense.optim.v)
                assert_same_bits(name, sparse.optim.v, dense.optim.v, dense.params.length);
            if (dense.optim.ema)
                assert_same_bits(name, sparse.optim.ema, dense.optim.ema, dense.params.length);
            free_subject(&dense);
            free_subject(&sparse);
        }
}

/* A fixed parameter has values, and nothing that a step could change them by. */
static void fixed_is_left_alone(void **state) {
    (void)state;
    const qkv_optim_spec spec = qkv_optim_defaults(QKV_OPTIM_ADAMW);
    qkv_params params;
    qkv_optim o;
    qkv_params_init(&params);
    qkv_param *fixed = qkv_param_declare(
        &params, &(qkv_param_spec){.rows = 40, .cols = 3, .init = QKV_INIT_ONE, .fixed = true},
        "fixed");
    qkv_param *other = qkv_param_declare(
        &params, &(qkv_param_spec){.rows = 2, .cols = 2, .init = QKV_INIT_ONE}, "other");
    assert_ok(qkv_params_allocate(&params, true));
    qkv_params_initialise(&params, 1);
    assert_int_equal(params.count, 124);
    assert_int_equal(params.length, 16);
    assert_null(fixed->tensor.grad);
    assert_false(fixed->tensor.wants_grad);
    assert_ok(qkv_optim_init(&o, &params, &spec));
    fill(other->tensor.grad, 4, 3);
    qkv_update u = {.lr = 0.01};
    assert_ok(qkv_optim_step(&o, &u));
    qkv_params_zero_grads(&params);
    for (int i = 0; i < 120; i++) assert_true(fixed->tensor.data[i] == 1);
    for (int i = 0; i < 4; i++) assert_true(other->tensor.data[i] != 1);
    qkv_optim_free(&o);
    qkv_params_free(&params);
}

/* Past the length of the history of rates everything is settled by itself; allocations stay zero.
 */
static void long_history(void **state) {
    (void)state;
    qkv_threads_set(1);
    qkv_optim_spec spec = qkv_optim_defaults(QKV_OPTIM_SGD);
    subject dense, sparse;
    make_subject(&dense, &spec, false);
    make_subject(&sparse, &spec, true);
    uint64_t before = qkv_mem_count().allocations;
    for (int step = 1; step <= 4200; step++) {
        one_step(&dense, step, 1);
        one_step(&sparse, step, 1);
    }
    assert_int_equal(qkv_mem_count().allocations, before);
    assert_true(sparse.optim.history_base >= 4096);
    qkv_optim_settle(&sparse.optim);
    assert_same_bits("sgd", sparse.params.values, dense.params.values, dense.params.length);
    free_subject(&dense);
    free_subject(&sparse);
    qkv_threads_set(0);
}

static void threads_same_bits(void **state) {
    (void)state;
    const int counts[] = {1, 2, 3, 8};
    for (int kind = 0; kind < QKV_OPTIM_COUNT; kind++) {
        subject first, other;
        for (size_t c = 0; c < 4; c++) {
            qkv_optim_spec spec = qkv_optim_defaults((qkv_optim_kind)kind);
            subject *s = c == 0 ? &first : &other;
            qkv_threads_set(counts[c]);
            make_sized(s, &spec, true, MANY);
            for (int step = 1; step <= 10; step++) one_step(s, step, 0.5);
            qkv_optim_settle(&s->optim);
            if (c == 0) continue;
            assert_same_bits(qkv_optim_name((qkv_optim_kind)kind), other.params.values,
                             first.params.values, first.params.length);
            free_subject(&other);
        }
        free_subject(&first);
    }
    qkv_threads_set(0);
}

/* ---- refusals, freezing, names ---- */

static void refuses_not_finite(void **state) {
    (void)state;
    qkv_optim_spec spec = qkv_optim_defaults(QKV_OPTIM_ADAMW);
    subject s;
    make_subject(&s, &spec, true);
    one_step(&s, 1, 1);
    qkv_update u = {.lr = 0.1, .clip = 1};
    real kept[OTHER];
    memcpy(kept, s.dense->tensor.data, sizeof kept);
    for (int64_t i = 0; i < OTHER; i++) s.dense->tensor.grad[i] = 1;
    s.dense->tensor.grad[3 * 120 + 7] = (real)NAN;
    assert_fails(qkv_optim_step(&s.optim, &u), QKV_NUMERIC, "dense is nan at [3, 7]");
    assert_same_bits("unchanged", s.dense->tensor.data, kept, OTHER);
    assert_int_equal(s.optim.step, 1);
    s.dense->tensor.grad[3 * 120 + 7] = 1;
    int32_t id = 42;
    qkv_rows_touch(&s.tables[1]->touched, &id, 1);
    s.tables[1]->tensor.grad[42 * COLS + 5] = -(real)INFINITY;
    assert_fails(qkv_optim_step(&s.optim, &u), QKV_NUMERIC, "table1 is -inf at [42, 5]");
    qkv_params_zero_grads(&s.params);
    assert_ok(qkv_optim_step(&s.optim, &u));
    free_subject(&s);
}

static void frozen_stays(void **state) {
    (void)state;
    qkv_optim_spec spec = qkv_optim_defaults(QKV_OPTIM_ADAMW);
    const double scale[] = {0, 1, 0};
    subject s;
    make_subject(&s, &spec, true);
    s.optim.lr_scale = scale;
    real table[ROWS * COLS], dense[OTHER];
    memcpy(table, s.tables[0]->tensor.data, sizeof table);
    memcpy(dense, s.dense->tensor.data, sizeof dense);
    for (int step = 1; step <= 5; step++) one_step(&s, step, 1);
    qkv_optim_settle(&s.optim);
    assert_same_bits("frozen table", s.tables[0]->tensor.data, table, ROWS * COLS);
    assert_same_bits("frozen matrix", s.dense->tensor.data, dense, OTHER);
    fill(table, ROWS * COLS, 2);
    assert_memory_not_equal(s.tables[1]->tensor.data, table, sizeof table);
    free_subject(&s);
}

static void allocation_failures(void **state) {
    (void)state;
    for (int kind = 0; kind < QKV_OPTIM_COUNT; kind++) {
        qkv_optim_spec spec = qkv_optim_defaults((qkv_optim_kind)kind);
        subject s;
        make_subject(&s, &spec, true);
        qkv_optim_free(&s.optim);
        uint64_t live = qkv_mem_count().live;
        qkv_status status = QKV_FAILED;
        for (uint64_t n = 1; status != QKV_OK && n < 100; n++) {
            qkv_mem_fail(n, false);
            status = qkv_optim_init(&s.optim, &s.params, &spec);
            qkv_mem_fail(0, false);
            if (status != QKV_OK) assert_int_equal(qkv_mem_count().live, live);
        }
        assert_int_equal(status, QKV_OK);
        free_subject(&s);
    }
}

/* The setting's names are the optimisers', in their order, and one that leaves it to us. */
static void names(void **state) {
    (void)state;
    qkv_train_config config;
    const qkv_settings settings = qkv_train_settings(&config);
    qkv_settings_default(&settings);
    assert_int_equal(config.optimizer, QKV_OPTIM_COUNT);
    for (int kind = 0; kind < QKV_OPTIM_COUNT; kind++) {
        const char *name = qkv_optim_name((qkv_optim_kind)kind);
        assert_ok(qkv_settings_set(&settings, 1, "optimizer", name));
        assert_int_equal(config.optimizer, kind);
    }
    assert_ok(qkv_settings_set(&settings, 1, "optimizer", "auto"));
    assert_int_equal(config.optimizer, QKV_OPTIM_COUNT);
    assert_fails(qkv_settings_set(&settings, 1, "optimizer", "adamx"), QKV_USAGE, "adam");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_pytorch),     cmocka_unit_test(muon_in_bf16),
        cmocka_unit_test(sparse_is_dense),     cmocka_unit_test(fixed_is_left_alone),
        cmocka_unit_test(long_history),        cmocka_unit_test(threads_same_bits),
        cmocka_unit_test(refuses_not_finite),  cmocka_unit_test(frozen_stays),
        cmocka_unit_test(allocation_failures), cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
