/* A two-layer model of every architecture, task and position learns one batch of eight sequences
 * by heart. */
#include "tiny.h"

#include "train/optim.h"

#define ENOUGH    0.05
#define MAX_STEPS 1000

static qkv_tape tape;
static tiny_batch source, target;

static int set_up(void **state) {
    static const int32_t lengths[] = {4, 3, 6, 2, 5, 3, 4, 5};
    (void)state;
    qkv_threads_set(1); /* the models are too small to share out */
    tiny_batch_make(&source, lengths, 8, 11, 3, 1);
    tiny_batch_make(&target, lengths, 8, 11, 3, 2);
    for (int32_t s = 0; s < 8;
         s++) /* the first token tells which sequence it is, so nothing is left to chance */
        source.ids[source.start[s]] = target.ids[target.start[s]] = s;
    return qkv_tape_init(&tape) != QKV_OK;
}

static int tear_down(void **state) {
    (void)state;
    qkv_tape_free(&tape);
    return 0;
}

/* Steps until the loss is low enough; fails when it never is. */
static void overfit(const char *settings) {
    char all[300];
    snprintf(all, sizeof all, "d_model=24 layers=2 heads=2 d_ff=48 init=xavier %s", settings);
    qkv_model *m = tiny_model(all, true, 11);
    qkv_optim o;
    qkv_optim_spec spec = qkv_optim_defaults(QKV_OPTIM_ADAMW);
    spec.decay = 0;
    assert_ok(qkv_optim_init(&o, qkv_model_params(m), &spec));
    double loss = 1e9;
    int step = 0;
    for (; step < MAX_STEPS && loss >= ENOUGH; step++) {
        qkv_tape_begin(&tape, QKV_TRAIN, 1, (uint64_t)step);
        qkv_tensor *root = tiny_loss(&tape, m, &source, &target);
        assert_ok(qkv_tape_status(&tape));
        loss = (double)root->data[0];
        assert_ok(qkv_tape_backward(&tape, &root, 1));
        qkv_update u = {.lr = step < 20 ? 0.0005 * (step + 1) : 0.01, .clip = 1};
        assert_ok(qkv_optim_step(&o, &u));
    }
    if (!(loss < ENOUGH)) fail_msg("%s: loss %.3f after %d steps", settings, loss, step);
    qkv_optim_free(&o);
    qkv_model_free(m);
}

static const char *const tasks[] = {"classify", "lm", "translate"};
#define N_TASKS (sizeof tasks / sizeof *tasks)

static void test_transformers(void **state) {
    char settings[120];
    (void)state;
    for (size_t k = 0; k < N_TASKS; k++)
        for (int p = 0; qkv_position_names[p]; p++) {
            if (qkv_position_has((qkv_position_kind)p, QKV_POSITION_WANTS_TREES) &&
                strcmp(tasks[k], "lm") == 0)
                continue;
            snprintf(settings, sizeof settings, "task=%s position=%s norm=%s %s", tasks[k],
                     qkv_position_names[p], p % 2 ? "post" : "pre",
                     qkv_position_has((qkv_position_kind)p, QKV_POSITION_WANTS_TREES)
                         ? "decoder_position=relative"
                         : "");
            overfit(settings);
        }
}

static void test_patterns(void **state) {
    char settings[120];
    (void)state;
    for (int p = 0; qkv_pattern_names[p]; p++) {
        snprintf(settings, sizeof settings, "task=classify attention=%s", qkv_pattern_names[p]);
        overfit(settings);
    }
}

static void test_recurrent(void **state) {
    static const char *const archs[] = {"lstm", "gru"};
    char settings[120];
    (void)state;
    for (int a = 0; a < 2; a++)
        for (size_t k = 0; k < N_TASKS; k++) {
            snprintf(settings, sizeof settings, "task=%s arch=%s", tasks[k], archs[a]);
            overfit(settings);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transformers),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_recurrent),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
