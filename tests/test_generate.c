/* Writing on from a prompt: the samplers, greedy generation against the full pass,
 * the sliding window, limits. */
#include "decode/generate.h"
#include "tiny.h"

#include <math.h>

enum { V = 11 };

static qkv_tape tape;
static const int32_t source[] = {3, 4, 5, 9, 6, 2};

/* ---- samplers ---- */

static const real scores[] = {(real)1.2, (real)-0.5, (real)2.5, (real)0.3, (real)2.4, -INFINITY};
enum { N_SCORES = 6 };

/* Which ids come up in many draws, and how often. */
static void draw_many(const qkv_sampling *how, const int32_t *recent, int64_t n_recent,
                      int *count) {
    qkv_sampler s;
    assert_ok(qkv_sampling_check(how));
    assert_ok(qkv_sampler_init(&s, N_SCORES));
    memset(count, 0, N_SCORES * sizeof *count);
    for (uint64_t i = 0; i < 20000; i++)
        count[qkv_sampler_draw(&s, how, scores, recent, n_recent, i)]++;
    qkv_sampler_free(&s);
}

static void assert_drawn(const qkv_sampling *how, const char *wanted) {
    int count[N_SCORES];
    char got[N_SCORES + 1] = "";
    draw_many(how, NULL, 0, count);
    for (int i = 0, n = 0; i < N_SCORES; i++)
        if (count[i]) got[n++] = (char)('0' + i), got[n] = 0;
    assert_string_equal(got, wanted);
}

static void test_samplers(void **state) {
    (void)state;
    qkv_sampling how = {.seed = 3};
    assert_drawn(&how, "2"); /* temperature 0 */
    how.value[QKV_SAMPLER_temperature] = 1;
    assert_drawn(&how, "01234");
    how.value[QKV_SAMPLER_top_k] = 3;
    assert_drawn(&how, "024");
    how.value[QKV_SAMPLER_top_k] = 0;
    /* probabilities: .122 .022 .447 .050 .404 (before top-p takes .447 + .404 ≥ .8) */
    how.value[QKV_SAMPLER_top_p] = 0.8;
    assert_drawn(&how, "24");
    how.value[QKV_SAMPLER_top_p] = 0.3;
    assert_drawn(&how, "2");
    how.value[QKV_SAMPLER_top_p] = 0;
    how.value[QKV_SAMPLER_min_p] = 0.2; /* at least .089 */
    assert_drawn(&how, "024");
    how.value[QKV_SAMPLER_min_p] = 0;
    /* Entropy 1.17: surprise of 4 is .906, of 2 .806, of 0 2.1; so 4 comes first. */
    how.value[QKV_SAMPLER_typical] = 0.3;
    assert_drawn(&how, "4");
    how.value[QKV_SAMPLER_typical] = 0;

    /* Frequencies are those of the softmax, at temperature 1 and 2. */
    for (int t = 1; t <= 2; t++) {
        int count[N_SCORES];
        double sum = 0;
        how.value[QKV_SAMPLER_temperature] = t;
        draw_many(&how, NULL, 0, count);
        for (int i = 0; i < N_SCORES; i++) sum += exp((double)scores[i] / t);
        for (int i = 0; i < N_SCORES; i++) {
            const double p = exp((double)scores[i] / t) / sum, d = sqrt(20000 * p * (1 - p));
            assert_true(fabs(count[i] - 20000 * p) <= 4 * d);
        }
    }
    /* What occurred becomes less likely: 2 and 4 are halved, to 1.25 and 1.2. */
    how = (qkv_sampling){.value = {[QKV_SAMPLER_repetition] = 2.2}};
    int count[N_SCORES];
    static const int32_t recent[] = {2, 4, 2};
    draw_many(&how, recent, 3, count);
    assert_int_equal(count[0], 20000);

    /* The same seed, the same draws; another seed, others. */
    qkv_sampler s;
    assert_ok(qkv_sampler_init(&s, N_SCORES));
    int same = 0;
    qkv_sampling one = {.value = {[QKV_SAMPLER_temperature] = 1}, .seed = 1}, two = one;
    two.seed = 2;
    for (uint64_t i = 0; i < 200; i++) {
        const int32_t a = qkv_sampler_draw(&s, &one, scores, NULL, 0, i);
        assert_int_equal(a, qkv_sampler_draw(&s, &one, scores, NULL, 0, i));
        same += a == qkv_sampler_draw(&s, &two, scores, NULL, 0, i);
    }
    assert_true(same < 150);
    static const real none[] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY};
    assert_int_equal(qkv_sampler_draw(&s, &one, none, NULL, 0, 0), -1);
    qkv_sampler_free(&s);
    one.value[QKV_SAMPLER_top_p] = 1.5;
    assert_fails(qkv_sampling_check(&one), QKV_USAGE, "top_p");
}

/* ---- generation ---- */

typedef struct written {
    int32_t ids[200], n, stop_at;
} written;

static bool take(void *user, int32_t id, double log_prob) {
    written *w = user;
    assert_true(log_prob <= 0);
    w->ids[w->n++] = id;
    return w->n != w->stop_at;
}

static void generate(qkv_model *m, const qkv_generate_spec *spec, written *w) {
    qkv_session *s;
    bool ended;
    assert_ok(qkv_session_new(m, &s));
    assert_ok(qkv_generate_tokens(s, spec, source, 3, take, w, &ended));
    qkv_session_free(s);
}

/* Greedy generation is the argmax of the full pass, over what the window holds. */
static void test_generate(void **state) {
    (void)state;
    static const char *const models[] = {"task=lm position=learned max_len=16",
                                         "task=lm position=rope", "task=lm arch=gru",
                                         "task=lm position=t5 attention=local"};
    for (size_t f = 0; f < sizeof models / sizeof *models; f++) {
        qkv_model *m = tiny_sharp_model(models[f], 60 + f);
        qkv_generate_spec spec = {.tokens = 12};
        written w = {0};
        generate(m, &spec, &w);
        assert_int_equal(w.n, 12);
        int32_t seen[16];
        memcpy(seen, source, 3 * sizeof *seen);
        memcpy(seen + 3, w.ids, 12 * sizeof *seen);
        for (int32_t i = 0; i < w.n; i++) {
            double p[V];
            int32_t best = 0;
            tiny_next(&tape, m, NULL, 0, seen, 3 + i, V, p);
            for (int32_t id = 1; id < V; id++)
                if (p[id] > p[best]) best = id;
            assert_int_equal(w.ids[i], best);
        }
        qkv_model_free(m);
    }
}

/* A text longer than the window: after the slide the model sees the newer half,
 * as if it were all. */
static void test_slides(void **state) {
    (void)state;
    qkv_model *m = tiny_sharp_model("task=lm position=learned max_len=8", 71);
    qkv_generate_spec spec = {.tokens = 40};
    written w = {0};
    generate(m, &spec, &w);
    assert_int_equal(w.n, 40);
    /* 3 prompt tokens and 5 written fill the window; the next is drawn from the newest 4. */
    int32_t seen[48];
    memcpy(seen, source, 3 * sizeof *seen);
    memcpy(seen + 3, w.ids, 40 * sizeof *seen);
    for (int32_t n = 3, first = 0; n < 43; n++) {
        double p[V];
        if (n - first == 8 + 1) first = n - 4;
        int32_t best = 0;
        tiny_next(&tape, m, NULL, 0, seen + first, n - first, V, p);
        for (int32_t id = 1; id < V; id++)
            if (p[id] > p[best]) best = id;
        if (n < 36) assert_int_equal(seen[n], best); /* near the end less room is left */
    }
    spec.window = 9;
    qkv_session *s;
    bool ended;
    assert_ok(qkv_session_new(m, &s));
    assert_fails(qkv_generate_tokens(s, &spec, source, 3, take, &w, &ended), QKV_USAGE,
                 "learned positions");
    spec.window = 1;
    assert_fails(qkv_generate_tokens(s, &spec, source, 3, take, &w, &ended), QKV_USAGE,
                 "two tokens");
    assert_fails(qkv_generate_tokens(s, &spec, source, 0, take, &w, &ended), QKV_USAGE,
                 "prompt of 0");
    qkv_session_free(s);
    qkv_model_free(m);
    /* Other schemes go beyond the trained length when asked to. */
    m = tiny_sharp_model("task=lm position=rope max_len=8", 72);
    spec = (qkv_generate_spec){.tokens = 40, .window = 64};
    w = (written){0};
    generate(m, &spec, &w);
    assert_int_equal(w.n, 40);
    qkv_model_free(m);
}

static void test_generate_limits(void **state) {
    (void)state;
    qkv_model *m = tiny_sharp_model("task=lm position=rope", 80);
    qkv_generate_spec spec = {.tokens = 30};
    spec.sampling.value[QKV_SAMPLER_temperature] = 1.5;
    written w = {.stop_at = 5}, a = {0}, b = {0};
    generate(m, &spec, &w);
    assert_int_equal(w.n, 5);
    generate(m, &spec, &a);
    generate(m, &spec, &b);
    assert_memory_equal(a.ids, b.ids, sizeof a.ids);
    assert_memory_equal(a.ids, w.ids, 5 * sizeof *w.ids);
    spec.sampling.seed = 9;
    b = (written){0};
    generate(m, &spec, &b);
    assert_true(memcmp(a.ids, b.ids, sizeof a.ids) != 0);

    static const int32_t phrase_start[] = {0, 2};
    const int32_t phrase[] = {a.ids[3], a.ids[4]};
    spec = (qkv_generate_spec){.tokens = 30,
                               .ends = a.ids, /* would end at once */
                               .n_ends = 1,
                               .min_tokens = 6,
                               .forbidden = {.n = 1, .start = phrase_start, .ids = phrase}};
    spec.sampling.value[QKV_SAMPLER_temperature] = 1.5;
    b = (written){0};
    generate(m, &spec, &b);
    assert_true(b.n >= 6);
    for (int32_t i = 0; i < b.n; i++) {
        assert_int_not_equal(b.ids[i], a.ids[0]);
        assert_false(i && b.ids[i - 1] == phrase[0] && b.ids[i] == phrase[1]);
    }
    qkv_model_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samplers),
        cmocka_unit_test(test_generate),
        cmocka_unit_test(test_slides),
        cmocka_unit_test(test_generate_limits),
    };
    qkv_tape_init(&tape);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    qkv_tape_free(&tape);
    return failed;
}
