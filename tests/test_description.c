/* Models described from their declarations: counts that are known, what a walk and a forward pass
 * agree on, what a training step keeps; presets, and config.json there and back. */
#include "task/task.h"
#include "tiny.h"

#include <math.h>

#include "base/mem.h"
#include "report/describe_print.h"

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

static qkv_description describe(const char *preset, const char *settings) {
    qkv_config config;
    qkv_model *m;
    qkv_description d;
    qkv_config_default(&config);
    assert_ok(qkv_config_preset(&config, preset));
    qkv_settings s = qkv_config_settings(&config);
    assert_ok(qkv_settings_assign(&s, 1, settings));
    assert_ok(qkv_model_build(&config, &m));
    assert_ok(qkv_describe_make(m, 32, 2048, &d));
    qkv_model_free(m);
    return d;
}

static void test_reference_counts(void **state) {
    (void)state;
    qkv_description d = describe("reference", "");
    assert_int_equal(d.attention, 3146752);
    assert_int_equal(d.encoder.layer, 4200960);
    assert_int_equal(d.decoder.layer, 7349760);
    assert_int_equal(d.encoder.parameters, 81131520);
    assert_int_equal(d.decoder.parameters, 120268080);
    assert_int_equal(d.total, 201399600);
    for (size_t i = 0; i < d.n; i++) { /* every activation between layers is 32 × 2048 × 1024 */
        if (d.parts[i].layer >= 0) assert_int_equal(d.parts[i].width, 1024);
        if (strcmp(d.parts[i].name, "ffn") == 0) assert_int_equal(d.parts[i].inside, 512);
        if (strcmp(d.parts[i].name, "head") == 0) assert_int_equal(d.parts[i].width, 30000);
    }
    assert_true(d.attention_dense == 2048.0 * 1024 * 2048 * 1024);
    qkv_description_free(&d);
    d = describe("reference", "qkv_bias=true");
    assert_int_equal(d.attention, 3149056);
    assert_int_equal(d.encoder.layer, 4203264);
    assert_int_equal(d.decoder.layer, 7354368);
    assert_int_equal(d.encoder.in_layers, 50439168);
    assert_int_equal(d.decoder.in_layers, 58834944);
    assert_int_equal(d.total_in_layers, 109274112);
    qkv_description_free(&d);
}

/* Public models, by the numbers their authors give. */
static void test_known_counts(void **state) {
    static const struct {
        const char *preset;
        int64_t total;
    } known[] = {{"gpt-like", 124439808}, {"llama-like", 6738415616}, {"t5-like", 60506624}};
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        qkv_description d = describe(known[i].preset, "");
        assert_true(d.total == known[i].total);
        qkv_description_free(&d);
    }
}

/* The description counts what a model declares, for every preset; and it prints. */
static void test_describe_agrees(void **state) {
    const qkv_preset *presets;
    size_t n = qkv_preset_table(&presets);
    (void)state;
    for (size_t i = 0; i < n; i++)
        for (int task = 0; task < QKV_TASK_COUNT; task++) {
            qkv_config config;
            qkv_model *m;
            qkv_description d;
            qkv_config_default(&config);
            assert_ok(qkv_config_preset(&config, presets[i].name));
            config.task = task;
            config.tie = config.tie && config.arch == QKV_ARCH_TRANSFORMER;
            assert_ok(qkv_model_build(&config, &m));
            assert_ok(qkv_describe_make(m, 2, 16, &d));
            assert_true(d.total == qkv_model_params(m)->count);
            const int32_t start[] = {0, 16, 32};
            qkv_layout layout = {.n = 2, .start = start};
            assert_true(fabs(d.macs - qkv_model_macs(m, &layout, &layout, 0)) <= 1e-9 * d.macs);
            qkv_buf out = {0};
            assert_ok(qkv_describe_text(&d, &out));
            qkv_describe_json(&d, &out);
            assert_true(out.status == QKV_OK && out.len > 500);
            qkv_buf_free(&out);
            qkv_description_free(&d);
            qkv_model_free(m);
        }
}

/* Whatever the data's size there is a preset, for the task that is trained and, if that is asked
 * for, with attention; more data never gets a smaller one. */
static void test_presets_by_size(void **state) {
    (void)state;
    for (int task = 0; task < QKV_TASK_COUNT; task++)
        for (int attention = 0; attention < 2; attention++)
            for (int64_t tokens = 0, width = 0; tokens <= INT64_MAX / 8; tokens = 8 * tokens + 1) {
                const char *name = qkv_choice_for(task == QKV_TASK_CLASSIFY ? QKV_PRESETS_LABELS
                                                                            : QKV_PRESETS_TEXT,
                                                  tokens, attention)
                                       ->preset;
                qkv_config config;
                qkv_config_default(&config);
                config.task = task;
                assert_ok(qkv_config_preset(&config, name));
                assert_int_equal(config.task, task);
                if (attention) assert_int_equal(config.arch, QKV_ARCH_TRANSFORMER);
                assert_true(config.d_model >= width);
                width = config.d_model;
            }
    assert_string_equal(qkv_choice_for(QKV_PRESETS_LABELS, 199999, false)->preset,
                        "classifier-small");
    assert_string_equal(qkv_choice_for(QKV_PRESETS_LABELS, 199999, true)->preset, "classifier");
    assert_string_equal(qkv_choice_for(QKV_PRESETS_LABELS, 200000, false)->preset, "classifier");
    assert_string_equal(qkv_choice_for(QKV_PRESETS_LABELS, 80000000, false)->preset,
                        "classifier-large");
    assert_string_equal(qkv_choice_for(QKV_PRESETS_TEXT, 199999, false)->preset, "tiny");
    assert_string_equal(qkv_choice_for(QKV_PRESETS_TEXT, 4999999, true)->preset, "small");
    assert_string_equal(qkv_choice_for(QKV_PRESETS_TEXT, 49999999, false)->preset, "medium");
    assert_string_equal(qkv_choice_for(QKV_PRESETS_TEXT, 50000000, false)->preset, "base");
}

/* What a description says a training step keeps is what the tape keeps. */
static void test_activation_memory(void **state) {
    static const char *const settings[] = {
        "task=classify",  "task=lm norm=post activation=gelu", "task=lm activation=swiglu",
        "task=translate", "task=classify arch=lstm",           "task=lm arch=gru",
    };
    static const int32_t even[] = {64, 64, 64, 64};
    (void)state;
    tiny_batch b;
    tiny_batch_make(&b, even, 4, 11, 3, 1);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        char all[200];
        qkv_description d;
        snprintf(all, sizeof all, "d_model=64 layers=4 heads=4 d_ff=256 dropout=0.1 %s",
                 settings[i]);
        qkv_model *m = tiny_model(all, true, 1);
        assert_ok(qkv_describe_make(m, 4, 64, &d));
        qkv_tape_begin(&tape, QKV_TRAIN, 1, 1);
        tiny_loss(&tape, m, &b, &b);
        assert_ok(qkv_tape_status(&tape));
        const double kept = (double)(tape.arena.used + qkv_heap_used(&tape.kept)) / sizeof(real);
        const double ratio = kept * 4 / d.activation_bytes;
        if (!(ratio > 0.95 && ratio < 1.05))
            fail_msg("%s: the tape holds %.2f of what is described", settings[i], ratio);
        qkv_description_free(&d);
        qkv_model_free(m);
    }
}

/* config.json reads back as it was written. */
static void test_config_round_trip(void **state) {
    (void)state;
    qkv_config a, b;
    qkv_config_default(&a);
    assert_ok(qkv_config_preset(&a, "t5-like"));
    a.dropout = 0.1 + 0.2;
    qkv_buf out = {0};
    qkv_json_out j = qkv_json_begin(&out, 2);
    qkv_json_open(&j, '{');
    qkv_json_put_key(&j, "model_type");
    qkv_json_put_text(&j, "qkv");
    qkv_config_write(&a, &j);
    qkv_json_close(&j, '}');
    qkv_json doc;
    qkv_json_limits limits = {.bytes = 1 << 20, .nodes = 1000, .depth = 8};
    assert_ok(qkv_json_parse(&doc, "config.json", out.data, out.len, limits));
    assert_ok(qkv_config_read(&b, qkv_json_root(&doc)));
    assert_memory_equal(&a, &b, sizeof a);
    qkv_json_free(&doc);
    qkv_buf_free(&out);
    const char *bad[] = {"{\"d_model\": \"8\"}", "{\"heads\": 0}", "{\"dmodel\": 8}", "[1]",
                         "{\"tie\": 1}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_ok(qkv_json_parse(&doc, "config.json", bad[i], strlen(bad[i]), limits));
        assert_fails(qkv_config_read(&b, qkv_json_root(&doc)), QKV_BAD_FILE, "config.json");
        qkv_json_free(&doc);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference_counts),  cmocka_unit_test(test_known_counts),
        cmocka_unit_test(test_describe_agrees),   cmocka_unit_test(test_presets_by_size),
        cmocka_unit_test(test_activation_memory), cmocka_unit_test(test_config_round_trip),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
