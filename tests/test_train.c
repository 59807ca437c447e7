/* Training: a small task is learned; accumulated batches are one large batch; a run that is stopped
 * and resumed, at any step and with any number of threads, ends with the bits of one never stopped;
 * bad steps are skipped or end the run. */
#include "harness.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "train/find_lr.h"

#include <ftw.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- a little task: which of two marks occurs in a text of noise? ---- */

enum { VOCAB = 40, EXAMPLES = 400 };

static void make_task(qkv_encoded *e, int64_t n, uint64_t seed) {
    const qkv_rng rng = {seed, 1};
    uint64_t k = 0;
    qkv_encoded_init(e, 1);
    for (int64_t i = 0; i < n; i++) {
        int32_t ids[12];
        const int64_t len = 4 + (int64_t)qkv_rng_below(rng, k++, 9);
        for (int64_t j = 0; j < len; j++) ids[j] = 7 + (int32_t)qkv_rng_below(rng, k++, VOCAB - 7);
        const int32_t label = (int32_t)qkv_rng_below(rng, k++, 2);
        ids[qkv_rng_below(rng, k++, (uint64_t)len)] = 5 + label;
        assert_ok(qkv_encoded_add(e, ids, len));
        assert_ok(qkv_encoded_label(e, label));
    }
}

typedef struct subject {
    qkv_encoded train, valid;
    qkv_model *model;
    qkv_loop loop;
    int64_t stop_at; /* asks to stop at this step; 0: never */
    int64_t n_notes; /* of steps that were passed over */
} subject;

static bool watch(void *user, const qkv_progress *p) {
    subject *s = user;
    s->n_notes += p->kind == QKV_PROGRESS_NOTE && strncmp(p->text, "step ", 5) == 0;
    return !s->stop_at || p->step < s->stop_at;
}

/* A subject with the settings of `assignments`; `run` may be NULL. */
static void make_with(subject *s, double dropout, const char *assignments, const char *run) {
    *s = (subject){0};
    make_task(&s->train, EXAMPLES, 1);
    make_task(&s->valid, 100, 2);
    qkv_config config;
    qkv_config_default(&config);
    const qkv_settings model = qkv_config_settings(&config),
                       train = qkv_train_settings(&s->loop.config);
    assert_ok(
        qkv_settings_assign(&model, 1,
                            "task=classify vocab_size=40 classes=2 max_len=16 d_model=32 layers=1 "
                            "heads=2 d_ff=64"));
    qkv_settings_default(&train);
    assert_ok(qkv_settings_assign(&train, 1, "batch_tokens=256 epochs=4 lr=0.003 seed=3"));
    assert_ok(qkv_settings_assign(&train, 1, assignments));
    config.dropout = dropout;
    assert_ok(qkv_model_build(&config, &s->model));
    assert_ok(qkv_model_allocate(s->model, true));
    qkv_model_initialise(s->model, 3);
    s->loop.model = s->model;
    s->loop.task =
        (qkv_task_spec){.bos = 1, .eos = 2, .mask = 3, .n_special = 4, .vocab_size = VOCAB};
    s->loop.train = &s->train;
    s->loop.valid = &s->valid;
    s->loop.run = run;
    s->loop.progress = watch;
    s->loop.user = s;
}

static void make(subject *s, const char *assignments, const char *run) {
    make_with(s, 0.1, assignments, run);
}

static void drop(subject *s) {
    qkv_loop_free(&s->loop);
    qkv_model_free(s->model);
    qkv_encoded_free(&s->train);
    qkv_encoded_free(&s->valid);
}

static char folder[64];

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place) {
    (void)info, (void)kind, (void)place;
    return remove(path);
}

static const char *new_folder(void) {
    snprintf(folder, sizeof folder, "test_train-%d", (int)getpid());
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return folder;
}

/* ---- tests ---- */

static void learns(void **state) {
    (void)state;
    subject s;
    make(&s, "epochs=12", NULL);
    assert_ok(qkv_loop_init(&s.loop));
    assert_ok(qkv_loop_run(&s.loop));
    qkv_step_result r;
    assert_ok(qkv_loop_measure(&s.loop, &s.loop.valid_batches, &r));
    assert_int_equal(r.n_targets, 100);
    if (r.n_right < 97) fail_msg("only %lld of 100 right", (long long)r.n_right);
    assert_true(s.loop.state.best > 0.96);
    drop(&s);
}

/* Steps after the first take no memory, once the largest batch has been seen. */
static void steps_allocate_nothing(void **state) {
    (void)state;
    subject s;
    make(&s, "epochs=3", NULL);
    assert_ok(qkv_loop_init(&s.loop));
    qkv_batcher_plan(&s.loop.train_batches, 0);
    uint64_t before = 0;
    for (int pass = 0; pass < 3; pass++) {
        if (pass == 2) before = qkv_mem_count().allocations;
        for (int64_t i = 0; i < s.loop.train_batches.n_batches; i++) {
            qkv_step_result r = {0};
            qkv_update u = {.lr = 1e-3, .clip = 1};
            assert_ok(qkv_stepper_accumulate(&s.loop.stepper, &s.loop.train_batches, i, 1, &r));
            assert_ok(qkv_stepper_update(&s.loop.stepper, &u, &r));
        }
    }
    assert_int_equal(qkv_mem_count().allocations, before);
    drop(&s);
}

static void accumulation_is_one_batch(void **state) {
    (void)state;
    subject one, many;
    make_with(&one, 0, "batch_tokens=100000 steps=1", NULL);
    make_with(&many, 0, "batch_tokens=256 accumulate=100 steps=1", NULL);
    assert_ok(qkv_loop_init(&one.loop));
    assert_ok(qkv_loop_init(&many.loop));
    qkv_batcher_plan(&one.loop.train_batches, 0);
    qkv_batcher_plan(&many.loop.train_batches, 0);
    assert_int_equal(one.loop.train_batches.n_batches, 1);
    qkv_step_result a = {0}, b = {0};
    assert_ok(qkv_stepper_accumulate(&one.loop.stepper, &one.loop.train_batches, 0, 1, &a));
    for (int64_t i = 0; i < many.loop.train_batches.n_batches; i++)
        assert_ok(qkv_stepper_accumulate(&many.loop.stepper, &many.loop.train_batches, i, 1, &b));
    assert_int_equal(a.n_targets, b.n_targets);
    assert_int_equal(a.tokens, b.tokens);
    const qkv_params *p = qkv_model_params(one.model), *q = qkv_model_params(many.model);
    assert_close("sum of gradients", q->grads, p->grads, p->length, 1e-5);
    assert_true(fabs(a.loss - b.loss) < 1e-3 * fabs(a.loss));
    drop(&one);
    drop(&many);
}

/* The weights after a run that is stopped at each of `stops` (0 ends the list) and resumed. */
static void run_stopping(const char *assignments, const int64_t *stops, const int *threads,
                         real *out, int64_t *n) {
    const char *run = new_folder();
    for (int i = 0;; i++) {
        subject s;
        qkv_threads_set(threads ? threads[i] : 0);
        make(&s, assignments, run);
        s.stop_at = stops[i];
        assert_ok(qkv_loop_init(&s.loop));
        if (i > 0) assert_int_equal(s.loop.state.step, stops[i - 1]);
        const qkv_status status = qkv_loop_run(&s.loop);
        const qkv_params *p = qkv_model_params(s.model);
        if (stops[i]) {
            assert_int_equal(status, QKV_INTERRUPTED);
        } else {
            assert_ok(status);
            assert_ok(qkv_loop_conclude(&s.loop, true));
            *n = p->length;
            memcpy(out, p->values, (size_t)p->length * sizeof *out);
        }
        drop(&s);
        if (!stops[i]) break;
    }
    qkv_threads_set(0);
    new_folder();
}

static void resumed_is_never_stopped(void **state) {
    (void)state;
    static const char *const settings[] = {
        "r_drop=1", "accumulate=3 optimizer=muon ema=0.9",
        "optimizer=sgd group=4 save_every=7 ema=0.95",
        "save_every=4 average=3 unfreeze=1 layer_decay=0.5 head_rate=20"};
    static const int64_t stops[][5] = {
        {1, 5, 20, 0}, {3, 9, 0, 0}, {12, 13, 0, 0}, {4, 13, 24, 30, 0}};
    enum { LARGEST = 100000 };
    real *whole = test_malloc(LARGEST * sizeof *whole),
         *parts = test_malloc(LARGEST * sizeof *parts);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        int64_t n, m;
        run_stopping(settings[i], (const int64_t[]){0}, NULL, whole, &n);
        assert_true(n < LARGEST);
        run_stopping(settings[i], stops[i], (const int[]){1, 2, 3, 1, 2}, parts, &m);
        assert_int_equal(n, m);
        assert_same_bits(settings[i], parts, whole, n);
    }
    test_free(whole);
    test_free(parts);
}

/* Stopped at each of many steps in turn (50 in the long tests), with other threads every time. */
static void any_stop_is_no_stop(void **state) {
    (void)state;
    enum { LARGEST = 100000 };
    const bool many = getenv("QKV_LONG") != NULL;
    const char *settings = "steps=60 save_every=7 average=2 r_drop=0.5 ema=0";
    real *whole = test_malloc(LARGEST * sizeof *whole),
         *parts = test_malloc(LARGEST * sizeof *parts);
    int64_t n, m;
    run_stopping(settings, (const int64_t[]){0}, NULL, whole, &n);
    for (int64_t stop = many ? 1 : 7; stop <= 50; stop += many ? 1 : 14) {
        run_stopping(settings, (const int64_t[]){stop, 0},
                     (const int[]){1 + (int)(stop % 4), 1 + (int)(stop / 4 % 3)}, parts, &m);
        char name[32];
        snprintf(name, sizeof name, "stopped at %d", (int)stop);
        assert_int_equal(n, m);
        assert_same_bits(name, parts, whole, n);
    }
    test_free(whole);
    test_free(parts);
}

/* What is handed out is the mean of the weights at the last validations. */
static void averages(void **state) {
    (void)state;
    enum { LARGEST = 100000 };
    subject s;
    real *sum = test_calloc(LARGEST, sizeof *sum);
    make(&s, "steps=12 save_every=4 average=2", NULL);
    assert_ok(qkv_loop_init(&s.loop));
    assert_ok(qkv_loop_run(&s.loop));
    const qkv_params *p = qkv_model_params(s.model);
    const qkv_average *a = &s.loop.average;
    assert_int_equal(a->n, 2);
    assert_int_equal(a->kept[0].step, 8);
    assert_int_equal(a->kept[1].step, 12);
    assert_same_bits("the newest snapshot", a->kept[1].values, p->values, p->length);
    for (int64_t i = 0; i < p->length; i++)
        sum[i] = (real)(0.5 * ((double)a->kept[0].values[i] + (double)a->kept[1].values[i]));
    assert_ok(qkv_loop_conclude(&s.loop, true));
    assert_same_bits("the mean", p->values, sum, p->length);
    drop(&s);
    make(&s, "average=2 ema=0.9", NULL);
    assert_fails(qkv_loop_init(&s.loop), QKV_USAGE, "give one of them");
    drop(&s);
    test_free(sum);
}

static void bad_steps(void **state) {
    (void)state;
    subject s;
    make(&s, "on_nan=skip", NULL);
    assert_ok(qkv_loop_init(&s.loop));
    qkv_param *p = qkv_model_params(s.model)->list[0];
    for (int64_t i = 0; i < p->spec.rows * p->spec.cols; i++) p->tensor.data[i] = (real)NAN;
    assert_fails(qkv_loop_run(&s.loop), QKV_NUMERIC, "training stopped at step 3: ");
    assert_int_equal(s.loop.state.skipped, 3);
    assert_int_equal(s.n_notes, 2);
    assert_int_equal(s.loop.stepper.optim.step, 0);
    drop(&s);
    const char *run = new_folder();
    make(&s, "clip=0 on_nan=stop save_every=1", run);
    s.loop.config.lr = 1e30;
    assert_ok(qkv_loop_init(&s.loop));
    qkv_status status = qkv_loop_run(&s.loop);
    assert_int_equal(status, QKV_NUMERIC);
    drop(&s);
    /* What was saved before it went wrong is sound. */
    make(&s, "clip=0 on_nan=stop save_every=1", run);
    s.loop.config.lr = 1e30;
    assert_ok(qkv_loop_init(&s.loop));
    const qkv_params *q = qkv_model_params(s.model);
    assert_int_equal(qkv_kern_get()->first_not_finite(q->values, q->length), -1);
    drop(&s);
    new_folder();
}

/* A gradient far over the usual is passed over once, with a file that names its rows;
 * the weights do not move. */
static void outliers(void **state) {
    (void)state;
    subject s;
    make(&s, "steps=61 outlier=50 clip=0", new_folder());
    assert_ok(qkv_loop_init(&s.loop));
    s.stop_at = 60;
    assert_int_equal(qkv_loop_run(&s.loop), QKV_INTERRUPTED);
    assert_int_equal(s.loop.state.skipped, 0);
    s.stop_at = 0;
    s.loop.state.usual *= 1e-8; /* as if all steps before had been ten thousand times smaller */
    const qkv_params *p = qkv_model_params(s.model);
    real *before = test_malloc((size_t)p->length * sizeof *before);
    memcpy(before, p->values, (size_t)p->length * sizeof *before);
    const double usual = s.loop.state.usual;
    assert_ok(qkv_loop_run(&s.loop));
    assert_int_equal(s.loop.state.skipped, 1);
    assert_int_equal(s.n_notes, 1);
    assert_same_bits("weights", p->values, before, p->length);
    assert_true(s.loop.state.usual > usual && s.loop.state.usual < 100 * usual);
    char path[128], text[512] = "";
    snprintf(path, sizeof path, "%s/incidents/step-00000061.json", folder);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_true(fread(text, 1, sizeof text - 1, f) > 0);
    fclose(f);
    assert_non_null(strstr(text, "over the limit"));
    assert_non_null(strstr(text, "\"rows\""));
    test_free(before);
    drop(&s);
    new_folder();
}

/* Layers learn at rates by their height, and from the pass on at which they are unfrozen. */
static void depth_sets_rates(void **state) {
    (void)state;
    subject s;
    make(&s, "layer_decay=0.5 unfreeze=2 head_rate=8", NULL);
    assert_ok(qkv_loop_init(&s.loop));
    const qkv_params *p = qkv_model_params(s.model);
    const int64_t epochs[] = {0, 1, 2, 3, 4};
    for (int e = 0; e < 5; e++) {
        qkv_rates_set(&s.loop.rates, epochs[e]);
        for (size_t i = 0; i < p->n; i++) {
            const char *name = p->list[i]->name;
            const int height = strstr(name, ".layers.0.")                              ? 1
                               : strstr(name, "embedding") || strstr(name, "position") ? 2
                                                                                       : 0;
            const double head = strncmp(name, "head.", 5) == 0 ? 8 : 1;
            const double want = height > epochs[e] / 2 ? 0 : head * pow(0.5, height);
            if (s.loop.stepper.optim.lr_scale[i] != want)
                fail_msg("%s: %g in pass %d, wanted %g", name, s.loop.stepper.optim.lr_scale[i], e,
                         want);
        }
    }
    drop(&s);
}

static void classes_weigh_the_same(void **state) {
    (void)state;
    subject s;
    make(&s, "class_weights=balanced", NULL);
    for (int64_t i = 0; i < s.train.n; i++) s.train.label[i] = i % 10 == 0;
    assert_ok(qkv_loop_init(&s.loop));
    assert_true(fabs((double)s.loop.class_weights[0] - 400 / (2 * 360.0)) < 1e-6);
    assert_true(fabs((double)s.loop.class_weights[1] - 5) < 1e-6);
    drop(&s);
}

static void one_batch_is_learned(void **state) {
    (void)state;
    subject s;
    make_with(&s, 0, "overfit=true steps=150", NULL);
    s.loop.valid = NULL;
    assert_ok(qkv_loop_init(&s.loop));
    assert_ok(qkv_loop_run(&s.loop));
    qkv_step_result r = {0};
    assert_ok(qkv_stepper_evaluate(&s.loop.stepper, &s.loop.train_batches, 0, &r));
    assert_int_equal(r.n_right, r.n_targets);
    assert_true(r.loss / (double)r.n_targets < 0.02);
    drop(&s);
}

/* A budget in minutes is one in steps from the start:
 * the same bits as with that many steps, stopped or not. */
static void minutes_become_steps(void **state) {
    (void)state;
    subject timed, counted;
    char steps[64];
    make(&timed, "minutes=0.005 save_every=5 ema=0.9", new_folder());
    assert_ok(qkv_loop_init(&timed.loop));
    const int64_t n = timed.loop.state.steps;
    assert_true(n >= 1);
    snprintf(steps, sizeof steps, "steps=%lld save_every=5 ema=0.9", (long long)n);
    make(&counted, steps, NULL);
    assert_ok(qkv_loop_init(&counted.loop));
    const qkv_params *p = qkv_model_params(timed.model), *q = qkv_model_params(counted.model);
    assert_same_bits("after the rehearsal", p->values, q->values, p->length);
    timed.stop_at = 2;
    assert_int_equal(qkv_loop_run(&timed.loop), n > 1 ? QKV_INTERRUPTED : QKV_OK);
    drop(&timed);
    make(&timed, "minutes=0.005 save_every=5 ema=0.9", folder);
    assert_ok(qkv_loop_init(&timed.loop));
    assert_int_equal(timed.loop.state.steps, n);
    assert_ok(qkv_loop_run(&timed.loop));
    assert_ok(qkv_loop_run(&counted.loop));
    p = qkv_model_params(timed.model);
    assert_same_bits("at the end", p->values, q->values, p->length);
    assert_same_bits("average", timed.loop.stepper.optim.ema, counted.loop.stepper.optim.ema,
                     p->length);
    drop(&timed);
    drop(&counted);
    new_folder();
}

/* Seconds that are left, counted in those of steps, validations and fits; and a number of steps that
 * no longer fits into its minutes. */
static void time_is_counted(void **state) {
    (void)state;
    subject s;
    make(&s, "minutes=1 save_every=10", NULL);
    qkv_loop *l = &s.loop;
    assert_ok(qkv_loop_init(l));
    l->pace = (qkv_pace){.step = 1, .validation = 4, .save = 2, .sum = 8, .n = 8};
    l->state.fit_seconds = 3;
    l->state.step = 5;
    /* 20 steps, validations at 10, 20 and 25; at the end another fit, half a validation, a file */
    assert_true(fabs(qkv_loop_left(l, 25) - (20 + 3 * 6 + 3 + 2 + 2)) < 1e-9);
    l->pace.validation = l->pace.save = l->state.fit_seconds = 0;
    l->state.step = 31;
    l->state.steps = 1000;
    l->clock_start = qkv_now() - 30;
    assert_ok(qkv_loop_correct(l));
    assert_in_range(l->state.steps, 31 + 28, 31 + 30);
    assert_int_equal(l->schedule.steps, l->state.steps);
    drop(&s);
}

static void finds_a_rate(void **state) {
    (void)state;
    subject s;
    qkv_lr_trial trials[60];
    int64_t used;
    double best;
    make(&s, "", NULL);
    assert_ok(qkv_loop_init(&s.loop));
    assert_ok(qkv_loop_find_lr(&s.loop, 1e-6, 1, trials, 60, &used, &best));
    assert_true(used > 20);
    assert_true(trials[1].lr > trials[0].lr);
    if (!(best > 1e-5 && best < 0.3)) fail_msg("a rate of %g", best);
    drop(&s);
}

static void patience_ends(void **state) {
    (void)state;
    subject s;
    make(&s, "epochs=1000 patience=2 lr=1e-9", NULL);
    assert_ok(qkv_loop_init(&s.loop));
    assert_ok(qkv_loop_run(&s.loop));
    assert_true(s.loop.state.step < s.loop.state.steps);
    assert_int_equal(s.loop.state.stale, 2);
    drop(&s);
}

static void another_run_is_refused(void **state) {
    (void)state;
    const char *run = new_folder();
    subject s;
    make(&s, "steps=2", run);
    assert_ok(qkv_loop_init(&s.loop));
    assert_ok(qkv_loop_run(&s.loop));
    drop(&s);
    make(&s, "steps=2 seed=9", run);
    assert_fails(qkv_loop_init(&s.loop), QKV_USAGE, "another model or seed");
    drop(&s);
    new_folder();
}

/* The keys of state.json, which programs of before and after read too. What is not known yet is
 * left out. */
static void state_has_its_keys(void **state) {
    (void)state;
    static const char *const keys[] = {
        "step",       "steps",   "updates", "skipped", "skipped_in_a_row", "best_step", "stale",
        "parameters", "seed",    "timed",   "pending", "cpu_seconds",      "usual",     "best",
        "best_right", "earlier", "isa",     "version"};
    for (int judged = 0; judged < 2; judged++) {
        const char *run = new_folder();
        subject s;
        make(&s, "steps=2", run);
        s.stop_at = judged ? 0 : 1;
        assert_ok(qkv_loop_init(&s.loop));
        assert_int_equal(qkv_loop_run(&s.loop), judged ? QKV_OK : QKV_INTERRUPTED);
        drop(&s);
        char path[128], text[2048], key[32];
        qkv_file file;
        snprintf(path, sizeof path, "%s/checkpoints/last/state.json", run);
        assert_ok(qkv_file_open(path, sizeof text - 1, &file));
        snprintf(text, sizeof text, "%.*s", (int)file.size, (const char *)file.data);
        qkv_file_close(&file);
        const char *at = text;
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            const bool later = strcmp(keys[i], "best") == 0 || strcmp(keys[i], "best_right") == 0;
            snprintf(key, sizeof key, "\"%s\":", keys[i]);
            if (later && !judged) {
                assert_null(strstr(text, key));
                continue;
            }
            const char *found = strstr(at, key);
            if (!found) fail_msg("%s is not where it was in %s", key, text);
            at = found + strlen(key);
        }
    }
    new_folder();
}

static void schedules(void **state) {
    (void)state;
    qkv_schedule s = {.kind = QKV_SCHEDULE_LINEAR, .lr = 1, .warmup = 10, .steps = 110};
    assert_true(fabs(qkv_schedule_lr(&s, 1) - 0.1) < 1e-12);
    assert_true(fabs(qkv_schedule_lr(&s, 10) - 1) < 1e-12);
    assert_true(fabs(qkv_schedule_lr(&s, 60) - 0.5) < 1e-12);
    assert_true(fabs(qkv_schedule_lr(&s, 110)) < 1e-12);
    assert_true(fabs(qkv_schedule_lr(&s, 500)) < 1e-12);
    s.floor = 0.1;
    assert_true(fabs(qkv_schedule_lr(&s, 110) - 0.1) < 1e-12);
    s.kind = QKV_SCHEDULE_COSINE;
    assert_true(fabs(qkv_schedule_lr(&s, 60) - 0.55) < 1e-12);
    assert_true(fabs(qkv_schedule_lr(&s, 110) - 0.1) < 1e-12);
    s.kind = QKV_SCHEDULE_INVERSE_SQRT;
    assert_true(fabs(qkv_schedule_lr(&s, 40) - 0.5) < 1e-12);
    s.kind = QKV_SCHEDULE_CONSTANT;
    assert_true(fabs(qkv_schedule_lr(&s, 99) - 1) < 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(learns),
        cmocka_unit_test(steps_allocate_nothing),
        cmocka_unit_test(accumulation_is_one_batch),
        cmocka_unit_test(resumed_is_never_stopped),
        cmocka_unit_test(any_stop_is_no_stop),
        cmocka_unit_test(averages),
        cmocka_unit_test(bad_steps),
        cmocka_unit_test(outliers),
        cmocka_unit_test(depth_sets_rates),
        cmocka_unit_test(classes_weigh_the_same),
        cmocka_unit_test(one_batch_is_learned),
        cmocka_unit_test(minutes_become_steps),
        cmocka_unit_test(time_is_counted),
        cmocka_unit_test(finds_a_rate),
        cmocka_unit_test(patience_ends),
        cmocka_unit_test(another_run_is_refused),
        cmocka_unit_test(state_has_its_keys),
        cmocka_unit_test(schedules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
