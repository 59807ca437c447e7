/* Numbers of texts: figures of agreement against closed forms, units, pairs, the vote of the
 * n-grams, and that training goes on where it stopped. */
#include "folders.h"
#include "base/file.h"
#include "base/mem.h"
#include "data/row_truth.h"
#include "score/agreement.h"
#include "task/companion.h"
#include "use/textmodel.h"

#include <math.h>

static char folder[64];

enum { ROWS = 80 };
static char text[ROWS][64], number[ROWS][24];
static qkv_train_row rows[ROWS];
static qkv_text texts[ROWS], lines[ROWS];
static char line[ROWS][96];

/* Each of a text's four words has a worth; numbers are far from zero, and in steps of a thousand. */
static int set_up(void **state) {
    (void)state;
    static const char *const word[] = {"awful", "dull", "fair", "fine", "superb"};
    make_temporary(folder);
    for (int i = 0; i < ROWS; i++) {
        const int w[] = {i % 5, i / 5 % 5, i * 3 % 5, i * 7 / 3 % 5};
        int sum = 0;
        for (int k = 0; k < 4; k++) sum += w[k];
        snprintf(text[i], sizeof *text, "%s %s %s %s", word[w[0]], word[w[1]], word[w[2]],
                 word[w[3]]);
        snprintf(number[i], sizeof *number, i % 2 ? " %d.0" : "%de3", i % 2 ? 1000 * sum : sum);
        snprintf(line[i], sizeof *line, "%.80s\t%s", text[i], i % 3 ? "x" : "y");
        texts[i] = (qkv_text){text[i], strlen(text[i])};
        lines[i] = (qkv_text){line[i], strlen(line[i])};
        rows[i] = (qkv_train_row){.label = {number[i], strlen(number[i])},
                                  .text = texts[i],
                                  .second = {lines[i].data + texts[i].len + 1, 1}};
    }
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    remove_temporary(folder);
    return 0;
}

static bool stop_at_ten(void *user, const qkv_progress *p) {
    (void)user;
    return p->kind != QKV_PROGRESS_STEP || p->step < 10;
}

/* Trains a small model of the rows, pairs or not; stops at step ten if asked to. */
static qkv_status train(const char *name, bool pairs, bool stop, const char *extra) {
    const char *set[] = {"arch=transformer", "d_model=16",       "layers=1",  "heads=2",
                         "max_len=16",       "seed=1",           "steps=60",  "save_every=30",
                         "lr=0.01",          "batch_tokens=200", "dropout=0", "tokenizer=word",
                         "vocab_size=60",    "valid_share=0.2",  extra,       NULL};
    qkv_train_row own[ROWS];
    char out[128];
    memcpy(own, rows, sizeof own);
    for (int i = 0; i < ROWS && !pairs; i++) own[i].second = (qkv_text){0};
    snprintf(out, sizeof out, "%s/%s", folder, name);
    return qkv_train(&(qkv_train_request){.task = "rate",
                                          .rows = own,
                                          .n_rows = ROWS,
                                          .out = out,
                                          .set = set,
                                          .progress = stop ? stop_at_ten : NULL});
}

static qkv_text_model *open_model(const char *name) {
    qkv_text_model *m;
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_ok(qkv_text_model_open(path, &m));
    return m;
}

/* ---- agreement ---- */

static void agreement(void **state) {
    (void)state;
    static const struct {
        double truth[4], answer[4];
        size_t n;
        qkv_agreement want;
    } cases[] = {
        {{1, 2, 3, 4}, {1, 3, 2, 4}, 4, {0.5, 0.5, 0.8, 0.8}},
        {{1, 2, 3, 4}, {-1, -8, -27, -64}, 4, {1407, 27.5, -0.9513699, -1}},
        {{1, 1, 2}, {3, 4, 5}, 3, {22.0 / 3, 8.0 / 3, 0.8660254, 0.8660254}}, /* two share a rank */
        {{5, 5, 9}, {9, 5, 5}, 3, {32.0 / 3, 8.0 / 3, -0.5, -0.5}},
        {{1, 2}, {3, 3}, 2, {2.5, 1.5, NAN, NAN}}, /* nothing varies */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkv_agreement got;
        assert_ok(qkv_agreement_of(cases[i].truth, cases[i].answer, cases[i].n, &got));
        const double g[] = {got.mse, got.mae, got.pearson, got.spearman},
                     w[] = {cases[i].want.mse, cases[i].want.mae, cases[i].want.pearson,
                            cases[i].want.spearman};
        for (int k = 0; k < 4; k++)
            if (isnan(w[k]) ? !isnan(g[k]) : !(fabs(g[k] - w[k]) < 1e-6))
                fail_msg("case %zu, figure %d: %.9g, wanted %.9g", i, k, g[k], w[k]);
    }
}

/* ---- models ---- */

/* What a model finds stands in the units of the data, whichever way it is asked. */
static void units(void **state) {
    (void)state;
    float all[ROWS], alone;
    double off = 0;
    assert_ok(train("single", false, false, "ngrams=0"));
    qkv_text_model *m = open_model("single");
    assert_string_equal(qkv_text_model_task(m), "rate");
    assert_null(qkv_text_model_label(m, 0));
    const qkv_config *c = qkv_model_config(m->model);
    assert_int_equal(c->classes, 1);
    assert_true(c->rate_mean > 6000 && c->rate_mean < 10000);
    assert_true(c->rate_deviation > 1000 && c->rate_deviation < 5000);
    assert_ok(qkv_rate(m, texts, ROWS, all));
    for (int i = 0; i < ROWS; i++) {
        float want;
        assert_true(qkv_row_number(rows[i].label, &want));
        off += pow((double)(all[i] - want), 2) / ROWS;
        if (i % 9) continue;
        assert_ok(qkv_rate(m, &texts[i], 1, &alone));
        assert_memory_equal(&alone, &all[i], sizeof alone);
    }
    assert_true(off < 0.1 * c->rate_deviation * c->rate_deviation);
    float two[2];
    assert_fails(qkv_classify(m, texts, 1, two), QKV_USAGE, "trained to rate");
    qkv_text_model_close(m);
}

/* eval counts what qkv_rate answers, and says it in both forms. */
static void evaluated(void **state) {
    (void)state;
    qkv_buf file = {0};
    char path[128], *shown;
    float all[ROWS];
    double truth[ROWS], answer[ROWS];
    for (int i = 0; i < ROWS; i++) qkv_buf_printf(&file, "%s\t%s\n", number[i], text[i]);
    snprintf(path, sizeof path, "%s/rows.tsv", folder);
    assert_ok(qkv_file_write(path, file.data, file.len));
    qkv_buf_free(&file);
    qkv_text_model *m = open_model("single");
    qkv_evaluation e;
    assert_ok(qkv_evaluate(m, (const char *const[]){path, NULL}, NULL, &e));
    assert_ok(qkv_rate(m, texts, ROWS, all));
    qkv_agreement want;
    for (int i = 0; i < ROWS; i++) {
        float x;
        assert_true(qkv_row_number(rows[i].label, &x));
        truth[i] = (double)x, answer[i] = (double)all[i];
    }
    assert_ok(qkv_agreement_of(truth, answer, ROWS, &want));
    assert_float_equal(e.mse / want.mse, 1, 1e-4);
    assert_float_equal(e.mae / want.mae, 1, 1e-4);
    assert_float_equal(e.pearson, want.pearson, 1e-5);
    assert_float_equal(e.spearman, want.spearman, 2e-3);
    const double d = qkv_model_config(m->model)->rate_deviation;
    assert_float_equal(e.loss, e.mse / d / d, 1e-4);
    assert_true(isnan(e.accuracy) && isnan(e.macro_f1) && e.n_classes == 0);
    assert_ok(qkv_evaluation_show(&e, QKV_SHOW_TABLE, &shown));
    assert_non_null(strstr(shown, "pearson 0.9"));
    qkv_text_free(shown);
    assert_ok(qkv_evaluation_show(&e, QKV_SHOW_JSON, &shown));
    assert_true(strstr(shown, "\"mse\":") && strstr(shown, "\"spearman\":0.9"));
    assert_null(strstr(shown, "accuracy"));
    qkv_text_free(shown);
    qkv_evaluation_free(&e);
    qkv_text_model_close(m);
}

static void pairs(void **state) {
    (void)state;
    float out[2];
    assert_ok(train("pairs", true, false, "ngrams=1"));
    qkv_text_model *m = open_model("pairs");
    assert_true(qkv_text_model_pairs(m));
    assert_ok(qkv_rate(m, lines, 2, out));
    assert_fails(qkv_rate(m, texts, 1, out), QKV_USAGE, "first<TAB>second");
    qkv_text_model_close(m);
}

/* Stopped and gone on with is as never stopped; n-grams and the numbers' mean come back too. */
static void resumed(void **state) {
    (void)state;
    char path[2][160];
    qkv_file f[2];
    assert_int_equal(train("parts", false, true, "ngrams=2"), QKV_INTERRUPTED);
    assert_ok(train("parts", false, false, "ngrams=2"));
    assert_ok(train("whole", false, false, "ngrams=2"));
    static const char *const same[] = {"model.safetensors", "config.json"};
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 2; i++) {
            snprintf(path[i], sizeof path[i], "%s/%s/%s", folder, i ? "parts" : "whole", same[k]);
            assert_ok(qkv_file_open(path[i], 1 << 28, &f[i]));
        }
        assert_int_equal(f[0].size, f[1].size);
        assert_memory_equal(f[0].data, f[1].data, f[0].size);
        for (int i = 0; i < 2; i++) qkv_file_close(&f[i]);
    }
}

/* ---- the vote ---- */

/* Held-out numbers that are 3 n-grams + 0.5 encoder, whatever either says: found to the digit. */
static void vote(void **state) {
    (void)state;
    qkv_text_model *m = open_model("whole");
    const qkv_config *c = qkv_model_config(m->model);
    assert_true(qkv_companion_has(c, &qkv_companion_ngrams));
    qkv_encoded data;
    qkv_tape t;
    assert_ok(qkv_tape_init(&t));
    qkv_encoded_init(&data, 1);
    for (int i = 0; i < ROWS; i++) {
        qkv_encoding e = {0};
        assert_ok(qkv_tokenizer_encode(m->tokenizer, text[i], strlen(text[i]), NULL, 0, NULL, &e));
        assert_ok(qkv_encoded_add(&data, e.ids, (int64_t)e.n));
        int32_t chars[64], n = (int32_t)strlen(text[i]);
        for (int32_t k = 0; k < n; k++) chars[k] = text[i][k];
        assert_ok(qkv_encoded_put(&data, QKV_COLUMN_CHARS, chars, n));
        const int32_t start[] = {0, (int32_t)e.n};
        const qkv_cells cells = {chars, n};
        qkv_tokens src = {.layout = {.n = 1, .start = start}, .ids = e.ids, .rows = start[1]};
        src.column[QKV_COLUMN_CHARS] = &cells;
        qkv_tape_begin(&t, QKV_EVAL, 0, 0);
        const double x = (double)qkv_model_encoder_logits(&t, m->model, &src)->data[0],
                     y = (double)qkv_model_ngram_logits(&t, m->model, &src)->data[0];
        const float value = (float)((0.5 * x + 3 * y) * c->rate_deviation + c->rate_mean);
        int32_t bits;
        memcpy(&bits, &value, sizeof bits);
        assert_ok(qkv_encoded_put(&data, QKV_COLUMN_VALUE, &bits, 1));
        qkv_encoding_free(&e);
    }
    qkv_batcher b = {.data = &data, .budget = 100};
    assert_ok(qkv_batcher_init(&b));
    qkv_batcher_plan(&b, 0);
    const qkv_fit fit = {.model = m->model, .tape = &t, .spec = &m->spec, .valid = &b};
    assert_ok(qkv_votes_weigh(&fit));
    assert_float_equal(c->encoder_vote, 1, 1e-2);
    assert_float_equal(c->ngram_vote, 6, 1e-2);
    qkv_batcher_free(&b);
    qkv_encoded_free(&data);
    qkv_tape_free(&t);
    qkv_text_model_close(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agreement), cmocka_unit_test(units),   cmocka_unit_test(evaluated),
        cmocka_unit_test(pairs),     cmocka_unit_test(resumed), cmocka_unit_test(vote),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
