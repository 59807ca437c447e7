/* Answers looked at singly: errors, calibration, pairs of classes and intervals against the same
 * counted here from the probabilities; labels that a model does not know; texts longer than the
 * trained length. */
#include "folders.h"
#include "base/file.h"
#include "base/mem.h"
#include "score/resample.h"

#include <math.h>

static char folder[64];

static const char *in_folder(const char *name) {
    static char path[4][128];
    static int next;
    char *to = path[next++ % 4];
    snprintf(to, sizeof path[0], "%s/%s", folder, name);
    return to;
}

static int make_models(void **state) {
    (void)state;
    make_temporary(folder);
    make_model_folder(folder, "classify", (const char *const[]){"position=rope", NULL});
    make_model_folder(folder, "translate", NULL);
    return 0;
}

static int remove_models(void **state) {
    (void)state;
    remove_temporary(folder);
    return 0;
}

/* ---- rows, and what the model says of them ---- */

enum { ROWS = 40, UNKNOWN = 3 };

typedef struct rows {
    char text[ROWS][64];
    int truth[ROWS]; /* 0 falling, 1 rising, −1 a label of its own */
    float p[ROWS][2];
} rows;

/* Labels by no rule, so that some answers are right and some are wrong; the last rows have labels
 * that no row of the training had. */
static const char *const *make_rows(rows *r) {
    static char path[128];
    static const char *const files[] = {path, NULL};
    static const char *const words[] = {"one", "two", "three", "four", "five"};
    qkv_buf out = {0};
    for (int i = 0; i < ROWS; i++) {
        snprintf(r->text[i], sizeof r->text[i], "%s %s and %s", words[i % 5], words[i / 3 % 5],
                 words[i * 7 % 5]);
        r->truth[i] = i >= ROWS - UNKNOWN ? -1 : i * i % 3 > 0;
        qkv_buf_printf(&out, "%s\t%s\n",
                       r->truth[i] < 0 ? "level" : (r->truth[i] ? "rising" : "falling"),
                       r->text[i]);
    }
    snprintf(path, sizeof path, "%s/rows.tsv", folder);
    assert_ok(qkv_file_write(path, out.data, out.len));
    qkv_buf_free(&out);
    return files;
}

static void ask(const qkv_text_model *m, rows *r) {
    qkv_text texts[ROWS];
    for (int i = 0; i < ROWS; i++) texts[i] = (qkv_text){r->text[i], strlen(r->text[i])};
    assert_ok(qkv_classify(m, texts, ROWS, r->p[0]));
}

static int answer_of(const rows *r, int i) {
    return r->p[i][1] > r->p[i][0];
}

static void near(const char *what, double got, double wanted) {
    if (!(fabs(got - wanted) < 1e-6)) fail_msg("%s: %.9f, wanted %.9f", what, got, wanted);
}

/* ---- figures ---- */

static void unknown_labels_are_counted(void **state) {
    (void)state;
    rows r;
    qkv_text_model *m;
    qkv_evaluation e;
    const char *const *files = make_rows(&r);
    assert_ok(qkv_text_model_open(in_folder("classify"), &m));
    ask(m, &r);
    assert_ok(qkv_evaluate(m, files, NULL, &e));
    int right = 0;
    double loss = 0;
    for (int i = 0; i < ROWS - UNKNOWN; i++) {
        right += answer_of(&r, i) == r.truth[i];
        loss -= log((double)r.p[i][r.truth[i]]);
    }
    assert_int_equal(e.unknown, UNKNOWN);
    assert_int_equal(e.n_unknown_labels, 1);
    assert_string_equal(e.unknown_labels[0], "level");
    assert_int_equal(e.targets, ROWS);
    assert_int_equal(e.right, right);
    near("accuracy", e.accuracy, (double)right / ROWS);
    near("loss", e.loss, loss / (ROWS - UNKNOWN));
    assert_true(isnan(e.ece) && e.n_errors == 0 && isnan(e.accuracy_interval.mean));
    qkv_evaluation_free(&e);
    const char strange[] = "level\tone two\n";
    assert_ok(qkv_file_write(in_folder("strange.tsv"), strange, sizeof strange - 1));
    assert_fails(qkv_evaluate(m, (const char *const[]){in_folder("strange.tsv"), NULL}, NULL, &e),
                 QKV_BAD_FILE, "no label of the data (\"level\"");
    qkv_text_model_close(m);
}

static void errors_come_worst_first(void **state) {
    (void)state;
    rows r;
    qkv_text_model *m;
    qkv_evaluation e;
    const char *const *files = make_rows(&r);
    assert_ok(qkv_text_model_open(in_folder("classify"), &m));
    ask(m, &r);
    assert_ok(qkv_evaluate(m, files, &(qkv_evaluate_options){.errors = ROWS}, &e));
    qkv_text_model_close(m);
    size_t wrong = 0;
    for (int i = 0; i < ROWS - UNKNOWN; i++) wrong += answer_of(&r, i) != r.truth[i];
    assert_int_equal(e.n_errors, wrong);
    assert_true(wrong > 3);
    for (size_t k = 0; k < e.n_errors; k++) {
        const qkv_wrong_answer *w = &e.errors[k];
        const int i = (int)w->line - 1;
        assert_string_equal(w->text.data, r.text[i]);
        assert_string_equal(w->file, files[0]);
        assert_string_equal(w->truth, r.truth[i] ? "rising" : "falling");
        assert_string_equal(w->answer, r.truth[i] ? "falling" : "rising");
        near("p_truth", w->p_truth, (double)r.p[i][r.truth[i]]);
        near("p_answer", w->p_answer, (double)r.p[i][!r.truth[i]]);
        assert_true(isnan(w->score) && w->begin == 0 && w->end == w->text.len);
        assert_true(k == 0 || w->p_truth >= e.errors[k - 1].p_truth);
    }
    assert_int_equal(e.n_mistaken, 2);
    assert_true(e.mistaken[0].n >= e.mistaken[1].n);
    assert_int_equal(e.mistaken[0].n + e.mistaken[1].n, wrong);
    qkv_evaluation_free(&e);
}

static void calibration_is_counted_by_bins(void **state) {
    (void)state;
    rows r;
    qkv_text_model *m;
    qkv_evaluation e;
    char *text;
    double said[15] = {0}, right[15] = {0}, n[15] = {0}, ece = 0;
    const char *const *files = make_rows(&r);
    assert_ok(qkv_text_model_open(in_folder("classify"), &m));
    ask(m, &r);
    assert_ok(qkv_evaluate(m, files, &(qkv_evaluate_options){.calibration = true}, &e));
    qkv_text_model_close(m);
    for (int i = 0; i < ROWS - UNKNOWN; i++) {
        const double p = (double)fmaxf(r.p[i][0], r.p[i][1]);
        const int bin = (int)(p * 15);
        n[bin]++, said[bin] += p, right[bin] += answer_of(&r, i) == r.truth[i];
    }
    assert_int_equal(e.n_bins, 15);
    for (int k = 0; k < 15; k++) {
        assert_int_equal(e.bins[k].n, (int)n[k]);
        assert_true(isnan(e.bins[k].accuracy) == (n[k] == 0));
        ece += fabs(said[k] - right[k]) / (ROWS - UNKNOWN);
    }
    near("ece", e.ece, ece);
    assert_ok(qkv_evaluation_show(&e, QKV_SHOW_SVG, &text));
    assert_non_null(strstr(text, "37 answers, calibration error (ECE)"));
    qkv_text_free(text);
    assert_ok(qkv_evaluation_show(&e, QKV_SHOW_TABLE, &text));
    assert_non_null(strstr(text, "█ was right"));
    qkv_text_free(text);
    qkv_evaluation_free(&e);
    assert_fails(qkv_evaluation_show(&e, QKV_SHOW_SVG, &text), QKV_USAGE, "no reliability diagram");
}

/* The accuracies of the same samples, drawn here. */
static void intervals_are_of_samples_of_rows(void **state) {
    (void)state;
    enum { SAMPLES = 120 };
    rows r;
    qkv_text_model *m;
    qkv_evaluation e, again;
    uint32_t drawn[ROWS];
    double accuracy[SAMPLES] = {0};
    qkv_draws d;
    const char *const *files = make_rows(&r);
    const qkv_evaluate_options o = {.samples = SAMPLES, .seed = 7};
    assert_ok(qkv_text_model_open(in_folder("classify"), &m));
    ask(m, &r);
    assert_ok(qkv_evaluate(m, files, &o, &e));
    qkv_threads_set(1);
    assert_ok(qkv_evaluate(m, files, &o, &again));
    qkv_threads_set(0);
    qkv_text_model_close(m);
    qkv_draws_begin(&d, 7);
    for (int s = 0; s < SAMPLES; s++) {
        qkv_draws_fill(&d, ROWS, drawn, ROWS);
        for (int i = 0; i < ROWS; i++)
            accuracy[s] += (answer_of(&r, (int)drawn[i]) == r.truth[drawn[i]]) / (double)ROWS;
    }
    const qkv_interval wanted = qkv_interval_of(accuracy, SAMPLES);
    assert_int_equal(e.samples, SAMPLES);
    near("low", e.accuracy_interval.low, wanted.low);
    near("high", e.accuracy_interval.high, wanted.high);
    near("mean", e.accuracy_interval.mean, wanted.mean);
    assert_true(e.accuracy_interval.low < e.accuracy && e.accuracy < e.accuracy_interval.high);
    assert_true(e.macro_f1_interval.low < e.macro_f1 && e.macro_f1 < e.macro_f1_interval.high);
    assert_memory_equal(&e.macro_f1_interval, &again.macro_f1_interval, sizeof(qkv_interval));
    assert_true(isnan(e.span_f1_interval.mean));
    qkv_evaluation_free(&e);
    qkv_evaluation_free(&again);
}

static void a_translators_errors(void **state) {
    (void)state;
    qkv_text_model *m;
    qkv_evaluation e;
    const char pairs[] = "one two\t1 2\nthree\t3\nfour five\t4 5\n";
    assert_ok(qkv_file_write(in_folder("pairs.tsv"), pairs, sizeof pairs - 1));
    const char *const files[] = {in_folder("pairs.tsv"), NULL};
    assert_ok(qkv_text_model_open(in_folder("translate"), &m));
    assert_ok(qkv_evaluate(m, files, &(qkv_evaluate_options){.errors = 2, .samples = 50}, &e));
    assert_int_equal(e.n_errors, 2);
    assert_true(e.errors[0].score <= e.errors[1].score);
    assert_true(isnan(e.errors[0].p_truth));
    assert_non_null(strstr(pairs, e.errors[0].truth));
    assert_int_equal(e.translation->samples, 50);
    assert_false(isnan(e.translation->ter_interval.low));
    assert_true(e.ter == e.translation->ter);
    qkv_evaluation_free(&e);
    assert_fails(qkv_evaluate(m, files, &(qkv_evaluate_options){.calibration = true}, &e),
                 QKV_USAGE, "probabilities of labels");
    qkv_text_model_close(m);
}

static const qkv_evaluate_options everything = {.errors = 5, .samples = 20, .calibration = true};

static qkv_status show_once(const void *user) {
    char *text;
    const qkv_status status = qkv_evaluation_show(user, QKV_SHOW_TABLE, &text);
    qkv_text_free(text);
    return status;
}

/* What a model keeps for later calls comes and goes, so that what an evaluation leaves behind is the
 * sanitizers' to find. */
static void allocations_fail(void **state) {
    (void)state;
    rows r;
    qkv_text_model *m;
    qkv_evaluation e;
    const char *const *files = make_rows(&r);
    int failed = 0, n = 0;
    assert_ok(qkv_text_model_open(in_folder("classify"), &m));
    qkv_threads_set(1);
    for (bool more = true; more;) {
        const uint64_t before = qkv_mem_count().allocations;
        qkv_mem_fail((uint64_t)++n, false);
        const qkv_status status = qkv_evaluate(m, files, &everything, &e);
        qkv_mem_fail(0, false);
        more = qkv_mem_count().allocations - before >= (uint64_t)n;
        assert_true(status == QKV_OK || (status == QKV_FAILED && more));
        failed += status == QKV_FAILED;
        qkv_evaluation_free(&e);
    }
    assert_true(failed > 20);
    assert_ok(qkv_evaluate(m, files, &everything, &e));
    assert_fails_cleanly(show_once, &e, 0);
    qkv_evaluation_free(&e);
    qkv_threads_set(0);
    qkv_text_model_close(m);
}

/* ---- longer texts ---- */

static qkv_text long_text(void) {
    static char text[400];
    size_t n = 0;
    for (int i = 0; i < 60; i++) n += (size_t)snprintf(text + n, 8, i % 3 ? "one " : "six ");
    return (qkv_text){text, n - 1};
}

static void longer_texts_are_read_where_positions_allow_it(void **state) {
    (void)state;
    const qkv_text text = long_text();
    qkv_text_model *m;
    float cut[2], whole[2], shorter[2];
    assert_ok(qkv_text_model_open(in_folder("classify"), &m));
    assert_int_equal(qkv_text_model_max_len(m), 40);
    assert_ok(qkv_classify(m, &text, 1, cut));
    assert_int_equal(qkv_text_model_cut(m), 1);
    assert_ok(qkv_text_model_set_max_len(m, 200));
    assert_ok(qkv_classify(m, &text, 1, whole));
    assert_int_equal(qkv_text_model_cut(m), 1); /* not once more */
    assert_true(whole[0] != cut[0]);
    assert_ok(qkv_text_model_set_max_len(m, 40));
    assert_ok(qkv_classify(m, &text, 1, shorter));
    assert_true(shorter[0] == cut[0]);
    assert_fails(qkv_text_model_set_max_len(m, 1), QKV_USAGE, "2 to 1048576");
    qkv_text_model_close(m);
}

static void tables_of_positions_have_an_end(void **state) {
    (void)state;
    static const char *const ends[][3] = {{"position=learned", NULL, NULL},
                                          {"attention=linformer", "position=sinusoidal", NULL}};
    static const char *const why[] = {"learned positions end there", "Linformer's projections"};
    for (int k = 0; k < 2; k++) {
        qkv_text_model *m;
        make_model_folder(in_folder("ends"), "classify", ends[k]);
        assert_ok(qkv_text_model_open(in_folder("ends/classify"), &m));
        assert_fails(qkv_text_model_set_max_len(m, 41), QKV_USAGE, why[k]);
        assert_int_equal(qkv_text_model_max_len(m), 40);
        assert_ok(qkv_text_model_set_max_len(m, 10));
        assert_ok(qkv_text_model_set_max_len(m, 40)); /* back to what there is */
        qkv_text_model_close(m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_labels_are_counted),
        cmocka_unit_test(errors_come_worst_first),
        cmocka_unit_test(calibration_is_counted_by_bins),
        cmocka_unit_test(intervals_are_of_samples_of_rows),
        cmocka_unit_test(a_translators_errors),
        cmocka_unit_test(allocations_fail),
        cmocka_unit_test(longer_texts_are_read_where_positions_allow_it),
        cmocka_unit_test(tables_of_positions_have_an_end),
    };
    return cmocka_run_group_tests(tests, make_models, remove_models);
}
