/* Gradients of whole models in double: every position, pattern, norm, activation, pooling and
 * architecture, from the tables; all parameters of each. */
#include "tiny.h"
#include "nn/ffn.h"

#define BOUND 1e-6

static char assignments[512];
static tiny_batch source, target;
static qkv_model *model;

/* Larger weights than training would start from: every term must matter. */
static void spread_weights(qkv_model *m) {
    qkv_params *p = qkv_model_params(m);
    for (size_t i = 0; i < p->n; i++) {
        qkv_tensor *x = &p->list[i]->tensor;
        for (int64_t k = 0; k < x->rows * x->cols; k++)
            x->data[k] += (real)(0.3 * qkv_rng_normal((qkv_rng){17, i}, (uint64_t)k));
    }
}

static qkv_tensor *build(qkv_tape *t, qkv_check *c) {
    qkv_params *p = qkv_model_params(model);
    for (size_t i = 0; i < p->n; i++) /* weights that are solved for have no gradient */
        if (p->list[i]->tensor.grad) qkv_check_param(t, c, &p->list[i]->tensor);
    return tiny_loss(t, model, &source, &target);
}

static void check(const char *settings) {
    static const int32_t lengths[] = {4, 1, 5};
    snprintf(assignments, sizeof assignments,
             "d_model=8 layers=1 heads=2 d_ff=6 vocab_size=5 max_len=6 activation=gelu %s",
             settings);
    tiny_batch_make(&source, lengths, 3, 5, 3, 1);
    tiny_batch_make(&target, lengths, 3, 5, 3, 2);
    assert_ok(tiny_build(assignments, &model));
    assert_ok(qkv_model_allocate(model, true));
    qkv_model_initialise(model, 5);
    spread_weights(model);
    double worst;
    qkv_case test = {.name = assignments, .build = build};
    qkv_status status = qkv_check_run(&test, BOUND, &worst);
    if (status != QKV_OK) fail_msg("%s: %s", assignments, qkv_error());
    qkv_model_free(model);
}

static const char *const tasks[] = {"classify", "translate", "lm"};

/* Combinations that make no sense are refused (tests/test_model.c says which);
 * others are checked. */
static void check_if_allowed(const char *settings) {
    qkv_model *m;
    if (tiny_build(settings, &m) == QKV_OK) {
        qkv_model_free(m);
        check(settings);
    }
}

static void test_positions(void **state) {
    (void)state;
    char s[200];
    for (int p = 0; qkv_position_names[p]; p++)
        for (size_t k = 0; k < sizeof tasks / sizeof *tasks; k++) {
            snprintf(s, sizeof s, "task=%s position=%s", tasks[k], qkv_position_names[p]);
            check_if_allowed(s);
        }
    check("task=translate position=structural decoder_position=relative");
}

static void test_patterns(void **state) {
    (void)state;
    char s[200];
    for (int p = 0; qkv_pattern_names[p]; p++)
        for (size_t k = 0; k < sizeof tasks / sizeof *tasks; k++) {
            snprintf(s, sizeof s, "task=%s attention=%s window=2", tasks[k], qkv_pattern_names[p]);
            check_if_allowed(s);
        }
    check("task=classify attention=linformer linformer_per_head=true");
    check("task=translate attention=linformer decoder_attention=local window=2");
}

static void test_blocks(void **state) {
    (void)state;
    char s[200];
    for (int f = 0; qkv_ffn_names[f]; f++) {
        snprintf(s, sizeof s, "task=lm activation=%s norm=%s norm_kind=%s", qkv_ffn_names[f],
                 f % 2 ? "pre" : "post", qkv_norm_names[f / 2 % 2]);
        check(s);
    }
    check("task=lm kv_heads=1 heads=4 d_head=6 qkv_bias=false out_bias=false ffn_bias=false");
    check("task=classify projections=false attention_scale=none position=sinusoidal");
    check("task=lm attention_scale=full tie=false head_bias=true embedding_scale=true");
    check("task=mlm head_transform=true embedding_norm=true head_scale=0.5");
    check("task=lm position=rope rope_pairing=halves");
    check("task=translate norm=pre share_embeddings=false target_vocab_size=5 tie=false");
    check("task=classify layers=3 layer_drop=0.5 norm=pre");
    check("task=classify segments=3 position=learned embedding_norm=true norm=post");
    check("task=classify segments=2 arch=gru");
    check("task=classify several=true");
    check("task=rate arch=lstm");
}

static void test_heads(void **state) {
    static const char *const pools[] = {"mean", "max", "first", "last"};
    char s[200];
    (void)state;
    for (int p = 0; p < 4; p++) {
        snprintf(s, sizeof s, "task=classify pool=%s pooler=%s", pools[p], p % 2 ? "tanh" : "none");
        check(s);
    }
    check("task=classify ngrams=3 ngram_buckets=7");
    check("task=classify ngrams=2 ngram_buckets=9 arch=gru");
}

/* What models of other programs ask for. */
static void test_foreign_settings(void **state) {
    static const char *const settings[] = {
        "task=lm norm_after=true norm_kind=rms logit_cap=2",
        "task=lm layers=2 parallel=true position=rope rope_width=2 rope_pairing=halves",
        "task=lm qk_norm=true kv_heads=1 position=rope score_scale=0.4",
        "task=lm layers=3 position=rope attention=local window=1 full_every=3 full_at=1 "
        "rope_base_local=100",
        "task=classify layers=2 first_norm=false norm_bias=false",
        "task=classify layers=2 norm=post share_layers=true d_embedding=6 embedding_norm=true "
        "segments=2",
        "task=classify position=learned position_bias=true t5_buckets=8 t5_distance=4 pooler=gelu",
        "task=mlm d_embedding=4 head_transform=true head_bias=true",
        "task=translate norm_after=true",
    };
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) check(settings[i]);
}

static void test_recurrent(void **state) {
    static const char *const kinds[] = {"lstm", "gru"};
    char s[200];
    (void)state;
    for (int k = 0; k < 2; k++) {
        snprintf(s, sizeof s, "task=classify arch=%s bidirectional=true d_state=5 layers=2",
                 kinds[k]);
        check(s);
        snprintf(s, sizeof s, "task=classify arch=%s bidirectional=false pool=last", kinds[k]);
        check(s);
        snprintf(s, sizeof s, "task=lm arch=%s layers=2", kinds[k]);
        check(s);
        snprintf(s, sizeof s, "task=translate arch=%s d_state=5 layers=2", kinds[k]);
        check(s);
    }
}

int main(void) {
    qkv_threads_set(1); /* the models are too small to share out */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_positions), cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_blocks),    cmocka_unit_test(test_heads),
        cmocka_unit_test(test_recurrent), cmocka_unit_test(test_foreign_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
