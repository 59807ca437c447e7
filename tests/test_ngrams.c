/* The n-grams beside a classifier's encoder: their buckets against values from another program, a
 * text's logits whatever stands beside it and on any number of threads, what they add to a model,
 * and that the weights found for them are the best ones. */
#include "tiny.h"

#include <math.h>

#include "base/mem.h"
#include "model/description.h"
#include "task/companion.h"

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

/* The mark and the framed n-grams of 4 9 4 and of 2, each once, hashed by a few lines of Python. */
static void known_buckets(void **state) {
    (void)state;
    static const int32_t lengths[] = {3, 1}, ids[] = {4, 9, 4, 2};
    static const int first[] = {15, 42, 32, 30, 47, 13, 0, 23, 4}, second[] = {15, 38, 25, 8, 48};
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
        const real *w = table + c;
        real sum = 0;
        for (int i = 1; i < 9; i++) sum += w[first[i] * CLASSES];
        expected[c] =
            without[c] + (w[15 * CLASSES] + sum / (real)sqrt(8)) / 2; /* half of the vote */
        sum = 0;
        for (int i = 1; i < 5; i++) sum += w[second[i] * CLASSES];
        expected[CLASSES + c] = without[CLASSES + c] + (w[15 * CLASSES] + sum / 2) / 2;
    }
    assert_close("the n-grams are added", with, expected, 2 * CLASSES, 1e-6);
    qkv_model_free(m);
}

/* Characters beside the tokens 4 9 4 and 2: those of "ab" and "né中", again by Python.
 * They count half. */
static void known_characters(void **state) {
    (void)state;
    static const int32_t ids[] = {4, 9, 4, 2}, chars[] = {'a', 'b', 'n', 0xe9, 0x4e2d};
    static const int first[] = {194, 257, 61}, second[] = {879, 1620, 520, 1478, 704};
    const qkv_config config = {.ngrams = 3, .ngram_chars = 4, .ngram_buckets = 2003};
    const qkv_ngram_text texts[] = {{.ids = ids, .n = 3, .chars = {chars, 2}},
                                    {.ids = ids + 3, .n = 1, .chars = {chars + 2, 3}}};
    static const int64_t tokens[] = {10, 5}, all[] = {13, 10};
    for (int i = 0; i < 2; i++) {
        int32_t rows[64];
        real counts[64];
        assert_true(qkv_ngram_room(&config, &texts[i]) <= 64);
        assert_int_equal(qkv_ngram_rows(&config, &texts[i], NULL, rows, counts), all[i]);
        for (int64_t k = tokens[i]; k < all[i]; k++) {
            assert_int_equal(rows[k], (i ? second : first)[k - tokens[i]]);
            assert_float_equal(counts[k], 0.5 / sqrt((double)(all[i] - tokens[i])), 1e-6);
        }
        assert_float_equal(counts[0], 1, 0);
        assert_float_equal(counts[1], 1 / sqrt((double)(tokens[i] - 1)), 1e-6);
    }
    /* a model that has them wants them */
    static const int32_t length = 3;
    qkv_model *m = tiny_model(SETTINGS " ngram_chars=4", false, 1);
    tiny_batch b;
    tiny_batch_make(&b, &length, 1, 11, CLASSES, 1);
    qkv_tape_begin(&tape, QKV_EVAL, 1, 1);
    qkv_model_classify(&tape, m, &b.tokens);
    assert_fails(qkv_tape_status(&tape), QKV_USAGE, "characters");
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

/* The table is counted, under its own name. */
static void described(void **state) {
    (void)state;
    qkv_model *m;
    qkv_description d;
    assert_ok(tiny_build(SETTINGS, &m));
    assert_ok(qkv_describe_make(m, 2, 16, &d));
    const qkv_describe_part *last = &d.parts[d.n - 1];
    assert_string_equal(last->name, "ngrams");
    assert_int_equal(last->parameters, BUCKETS * CLASSES);
    assert_int_equal(d.total, qkv_model_params(m)->count);
    qkv_description_free(&d);
    qkv_model_free(m);
    assert_fails(tiny_build("task=classify ngrams=2 ngram_buckets=-1", &m), QKV_USAGE,
                 "ngram_buckets");
}

/* ---- the fit ---- */

enum { TEXTS = 60, ROWS = 2003, ROOM = 64 };

/* Texts of six tokens: that of the class, and others by chance;
 * one text in nine has the token of another class. */
static void make_texts(qkv_encoded *e, int from, int to) {
    const qkv_rng rng = {.seed = 5};
    qkv_encoded_init(e, 1);
    for (int i = from; i < to; i++) {
        int32_t ids[6];
        for (int k = 0; k < 6; k++)
            ids[k] = 3 + (int32_t)(8 * qkv_rng_uniform(rng, (uint64_t)(6 * i + k)));
        ids[i % 6] = (i + (i % 9 == 0)) % CLASSES;
        assert_ok(qkv_encoded_add(e, ids, 6));
        assert_ok(qkv_encoded_label(e, i % CLASSES));
    }
}

/* log of how much more often each row stands in texts of class c than in others:
 * the formula of the file, said again. */
static void ratios(const qkv_config *config, const qkv_encoded *e, int c, double prior,
                   const real *idf, double *r) {
    static double in[ROWS], out[ROWS];
    double all_in = 0, all_out = 0;
    memset(in, 0, sizeof in);
    memset(out, 0, sizeof out);
    for (int i = 0; i < TEXTS; i++) {
        int32_t rows[ROOM];
        int64_t len;
        real counts[ROOM];
        const int32_t *ids = qkv_encoded_ids(e, i, 0, &len);
        const qkv_ngram_text text = {.ids = ids, .n = len};
        const int64_t n = qkv_ngram_rows(config, &text, idf, rows, counts);
        for (int64_t k = 0; k < n; k++) (e->label[i] == c ? in : out)[rows[k]]++;
        *(e->label[i] == c ? &all_in : &all_out) += (double)n;
    }
    const double share = all_in / (all_in + all_out);
    for (int row = 0; row < ROWS; row++) {
        const double there = in[row] + out[row], rare = 1 + log((1 + TEXTS) / (1 + there));
        if (row != qkv_ngram_mark(config)) assert_float_equal(idf[row], rare, 1e-5);
        r[row] = rare;
        if (prior > 0)
            r[row] *= log((in[row] + prior * share) / all_in /
                          ((out[row] + prior * (1 - share)) / all_out));
    }
    r[qkv_ngram_mark(config)] = 1;
}

/* At the minimum of ½ |u|² + C Σ max(0, 1 − y u·x)² its gradient u − 2C Σ max(0, …) y x is zero. */
static void is_the_best(qkv_model *m, const qkv_encoded *texts, const real *w, double cost,
                        double prior) {
    const qkv_config *config = qkv_model_config(m);
    const real *idf = qkv_param_find(qkv_model_params(m), "head.ngrams.idf")->tensor.data;
    for (int c = 0; c < CLASSES; c++) {
        static double r[ROWS], gradient[ROWS];
        double size = 0, left = 0;
        ratios(config, texts, c, prior, idf, r);
        for (int row = 0; row < ROWS; row++) {
            const double here = (double)w[row * CLASSES + c];
            gradient[row] = here == 0 ? 0 : here / r[row];
            size += gradient[row] * gradient[row];
        }
        for (int i = 0; i < TEXTS; i++) {
            int32_t rows[ROOM];
            real counts[ROOM];
            const qkv_ngram_text text = {.ids = texts->ids + 6 * i, .n = 6};
            const int64_t n = qkv_ngram_rows(config, &text, idf, rows, counts);
            const double y = texts->label[i] == c ? 1 : -1;
            double score = 0;
            for (int64_t k = 0; k < n; k++)
                score += (double)counts[k] * (double)w[rows[k] * CLASSES + c];
            const double slack = fmax(0, 1 - y * score);
            for (int64_t k = 0; k < n; k++)
                gradient[rows[k]] -= 2 * cost * slack * y * (double)counts[k] * r[rows[k]];
        }
        for (int row = 0; row < ROWS; row++) left += gradient[row] * gradient[row];
        assert_true(size > 1);
        assert_true(left < 1e-3 * size); /* where nothing is learned both are alike */
    }
}

/* Either trust has the best weights of its own problem, and what is kept is their mean. */
static void fit_is_the_best(void **state) {
    (void)state;
    const double cost = 0.7, prior = 1.5;
    qkv_task_spec spec = {.ngram_cost = cost, .ngram_prior = prior, .ngram_passes = 1000};
    qkv_encoded texts;
    make_texts(&texts, 0, TEXTS);
    qkv_fit fit = {.spec = &spec, .train = &texts, .seed = 1};
    fit.model =
        tiny_model("task=classify classes=3 ngrams=2 ngram_idf=true ngram_buckets=2003", true, 1);
    const qkv_config *config = qkv_model_config(fit.model);
    assert_true(qkv_ngram_room(config, &(qkv_ngram_text){.n = 6}) <= ROOM);
    static real by[QKV_TRUST_CLASS + 1][ROWS * CLASSES];
    for (int trust = QKV_TRUST_BOTH; trust <= QKV_TRUST_CLASS; trust++) {
        spec.ngram_trust = trust;
        assert_ok(qkv_companion_ngrams.fit(&fit));
        memcpy(by[trust], table_of(fit.model), sizeof by[trust]);
        if (trust != QKV_TRUST_BOTH)
            is_the_best(fit.model, &texts, by[trust], cost, trust == QKV_TRUST_CLASS ? prior : 0);
    }
    real *const one = by[QKV_TRUST_BOTH];
    for (int i = 0; i < ROWS * CLASSES; i++)
        assert_float_equal(one[i], (by[1][i] + by[2][i]) / 2, 1e-5);
    spec.ngram_trust = QKV_TRUST_BOTH;
    for (int threads = 1; threads <= 3; threads++) {
        qkv_threads_set(threads);
        assert_ok(qkv_companion_ngrams.fit(&fit));
        assert_same_bits("threads", table_of(fit.model), one, ROWS * CLASSES);
    }
    qkv_threads_set(0);
    /* a part held out and put back again */
    qkv_encoded train, held;
    make_texts(&train, 0, 45);
    make_texts(&held, 45, TEXTS);
    fit.train = &train;
    fit.held_out = &held;
    assert_ok(qkv_companion_ngrams.fit(&fit));
    assert_true(memcmp(table_of(fit.model), one, sizeof *by) != 0);
    fit.whole = true;
    assert_ok(qkv_companion_ngrams.fit(&fit));
    assert_same_bits("put back", table_of(fit.model), one, ROWS * CLASSES);
    qkv_model_free(fit.model);
    qkv_encoded_free(&train);
    qkv_encoded_free(&held);
    qkv_encoded_free(&texts);
}

/* Lists of one label each are the labels. */
static void lists_of_one(void **state) {
    (void)state;
    qkv_task_spec spec = {.ngram_cost = 0.7, .ngram_prior = 1.5, .ngram_passes = 20};
    qkv_encoded texts;
    make_texts(&texts, 0, TEXTS);
    static real one[ROWS * CLASSES];
    for (int several = 0; several < 2; several++) {
        for (int i = 0; i < TEXTS && several; i++)
            assert_ok(qkv_encoded_put(&texts, QKV_COLUMN_LABELS, &texts.label[i], 1));
        qkv_fit fit = {.spec = &spec, .train = &texts, .seed = 1};
        fit.model =
            tiny_model(several ? "task=classify classes=3 ngrams=2 ngram_buckets=2003 several=true"
                               : "task=classify classes=3 ngrams=2 ngram_buckets=2003",
                       true, 1);
        assert_ok(qkv_companion_ngrams.fit(&fit));
        if (!several) memcpy(one, table_of(fit.model), sizeof one);
        assert_same_bits("lists", table_of(fit.model), one, ROWS * CLASSES);
        qkv_model_free(fit.model);
    }
    qkv_encoded_free(&texts);
}

/* Of numbers: at the minimum of ½ |u|² + C Σ (t − u·x)², w = r u, the gradient is zero too. */
static void fit_of_numbers_is_the_best(void **state) {
    (void)state;
    enum { FIELD = 6 };
    const double cost = 0.7;
    qkv_task_spec spec = {.ngram_cost = cost, .ngram_passes = 1000};
    qkv_encoded texts;
    make_texts(&texts, 0, TEXTS);
    for (int i = 0; i < TEXTS; i++) { /* the token of the class is worth it, and there is noise */
        const float value = (float)(10 + 3 * texts.label[i] + 0.1 * (i % 7));
        int32_t bits;
        memcpy(&bits, &value, sizeof bits);
        assert_ok(qkv_encoded_put(&texts, QKV_COLUMN_VALUE, &bits, 1));
    }
    qkv_fit fit = {.spec = &spec, .train = &texts, .seed = 1};
    fit.model = tiny_model("task=rate ngrams=2 ngram_buckets=2003 rate_mean=13 rate_deviation=2.5",
                           true, 1);
    const qkv_config *config = qkv_model_config(fit.model);
    assert_ok(qkv_companion_ngrams.fit(&fit));
    const real *w = table_of(fit.model);
    static double here[ROWS], gradient[ROWS];
    double size = 0, left = 0;
    int32_t rows[ROOM];
    real counts[ROOM];
    for (int pass = 0; pass < 2; pass++) {
        for (int row = 0; row < ROWS && pass; row++) { /* u, of w */
            const double r =
                row == qkv_ngram_mark(config) ? 1 : log((1 + TEXTS) / (1 + here[row])) + 1;
            gradient[row] = (double)w[row] / r;
            size += gradient[row] * gradient[row];
        }
        for (int i = 0; i < TEXTS; i++) {
            const qkv_ngram_text text = {.ids = texts.ids + FIELD * i, .n = FIELD};
            const int64_t n = qkv_ngram_rows(config, &text, NULL, rows, counts);
            const double t = (10 + 3 * texts.label[i] + 0.1 * (i % 7) - 13) / 2.5;
            double score = 0;
            for (int64_t k = 0; k < n; k++) score += (double)(counts[k] * w[rows[k]]);
            for (int64_t k = 0; k < n; k++) {
                const double r = rows[k] == qkv_ngram_mark(config)
                                     ? 1
                                     : log((1 + TEXTS) / (1 + here[rows[k]])) + 1;
                if (pass)
                    gradient[rows[k]] -= 2 * cost * (t - score) * (double)counts[k] * r;
                else
                    here[rows[k]]++;
            }
        }
    }
    for (int row = 0; row < ROWS; row++) left += gradient[row] * gradient[row];
    assert_true(size > 1);
    assert_true(left < 1e-3 * size);
    qkv_model_free(fit.model);
    qkv_encoded_free(&texts);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_buckets),
        cmocka_unit_test(known_characters),
        cmocka_unit_test(same_bits),
        cmocka_unit_test(described),
        cmocka_unit_test(fit_is_the_best),
        cmocka_unit_test(lists_of_one),
        cmocka_unit_test(fit_of_numbers_is_the_best),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
