/* Several labels a text: what training makes of lists, the threshold, the figures of eval against a
 * count of our own. */
#include "folders.h"
#include "base/file.h"
#include "base/mem.h"
#include "task/companion.h"
#include "use/textmodel.h"

#include <math.h>

static char folder[64];

enum { ROWS = 120, LABELS = 3 };
static const char *const label[LABELS] = {"animal", "colour", "place"};
static char text[ROWS][80], list[ROWS][40];
static bool has[ROWS][LABELS];
static qkv_train_row rows[ROWS];
static qkv_text texts[ROWS];

/* A text speaks of any of three things; each is a label of it. */
static int set_up(void **state) {
    (void)state;
    static const char *const words[LABELS][3] = {
        {"dog", "cat", "horse"}, {"red", "green", "blue"}, {"Paris", "Rome", "Oslo"}};
    make_temporary(folder);
    for (int i = 0; i < ROWS; i++) {
        snprintf(text[i], sizeof *text, "it was");
        for (int c = 0; c < LABELS; c++) {
            has[i][c] = i >> c & 1;
            if (!has[i][c]) continue;
            sprintf(text[i] + strlen(text[i]), " %s", words[c][i / 8 % 3]);
            sprintf(list[i] + strlen(list[i]), "%s%s", *list[i] ? "; " : "", label[c]);
        }
        texts[i] = (qkv_text){text[i], strlen(text[i])};
        rows[i] = (qkv_train_row){.label = {list[i], strlen(list[i])}, .text = texts[i]};
    }
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    remove_temporary(folder);
    return 0;
}

static qkv_status train(const char *name, const char *extra) {
    const char *set[] = {"arch=transformer",
                         "d_model=16",
                         "layers=1",
                         "heads=2",
                         "max_len=16",
                         "seed=1",
                         "steps=60",
                         "save_every=30",
                         "lr=0.01",
                         "batch_tokens=200",
                         "tokenizer=word",
                         "vocab_size=60",
                         "labels_separator=;",
                         "valid_share=0.2",
                         extra,
                         NULL};
    char out[128];
    snprintf(out, sizeof out, "%s/%s", folder, name);
    return qkv_train(&(qkv_train_request){
        .task = "classify", .rows = rows, .n_rows = ROWS, .out = out, .set = set});
}

static qkv_text_model *open_model(const char *name) {
    qkv_text_model *m;
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_ok(qkv_text_model_open(path, &m));
    return m;
}

/* Each label is told by itself: probabilities do not sum to one. */
static void learned(void **state) {
    (void)state;
    static const char *const kinds[] = {"ngrams=0", "ngrams=2"};
    for (int k = 0; k < 2; k++) {
        float p[LABELS * ROWS];
        int wrong = 0;
        assert_ok(train(kinds[k], kinds[k]));
        qkv_text_model *m = open_model(kinds[k]);
        assert_true(qkv_text_model_several(m));
        const double threshold = qkv_text_model_threshold(m);
        assert_true(threshold > 0 && threshold < 1);
        for (size_t c = 0; c < LABELS; c++)
            assert_string_equal(qkv_text_model_label(m, c), label[c]);
        assert_ok(qkv_classify(m, texts, ROWS, p));
        for (int i = 0; i < ROWS; i++)
            for (int c = 0; c < LABELS; c++)
                wrong += ((double)p[LABELS * i + c] >= threshold) != has[i][c];
        assert_true(wrong < ROWS * LABELS / 20);
        qkv_text_model_close(m);
    }
    assert_fails(train("weighted", "class_weights=balanced"), QKV_USAGE, "not for several");
}

static void evaluated(void **state) {
    (void)state;
    qkv_buf file = {0};
    char path[128], *shown;
    float p[LABELS * ROWS];
    for (int i = 0; i < ROWS; i++) qkv_buf_printf(&file, "%s,%s\n", text[i], list[i]);
    snprintf(path, sizeof path, "%s/rows.csv", folder);
    assert_ok(qkv_file_write(path, file.data, file.len));
    qkv_buf_free(&file);
    qkv_text_model *m = open_model("ngrams=2");
    qkv_evaluation e;
    const qkv_evaluate_options how = {.text = "1", .label = "2", .labels_separator = ";"};
    assert_ok(qkv_evaluate(m, (const char *const[]){path, NULL}, &how, &e));
    assert_ok(qkv_classify(m, texts, ROWS, p));
    int count[LABELS + 1][3] = {{0}}, right = 0;
    double loss = 0, macro = 0;
    for (int i = 0; i < ROWS; i++) {
        bool same = true;
        for (int c = 0; c < LABELS; c++) {
            const double q = (double)p[LABELS * i + c];
            const bool given = q >= qkv_text_model_threshold(m), truth = has[i][c];
            const int one[] = {truth, given, truth && given};
            for (int k = 0; k < 3; k++) count[c][k] += one[k], count[LABELS][k] += one[k];
            loss -= log(truth ? q : 1 - q);
            same &= given == truth;
        }
        right += same;
    }
    for (int c = 0; c < LABELS; c++)
        macro += 2.0 * count[c][2] / (count[c][0] + count[c][1]) / LABELS;
    const int *all = count[LABELS];
    assert_true(e.several && e.confusion == NULL && e.n_classes == LABELS);
    assert_int_equal(e.right, right);
    assert_int_equal(e.targets, ROWS);
    assert_float_equal(e.micro_f1, 2.0 * all[2] / (all[0] + all[1]), 1e-9);
    assert_float_equal(e.micro_precision, (double)all[2] / all[1], 1e-9);
    assert_float_equal(e.micro_recall, (double)all[2] / all[0], 1e-9);
    assert_float_equal(e.macro_f1, macro, 1e-9);
    assert_float_equal(e.loss, loss / ROWS, 1e-3);
    assert_ok(qkv_evaluation_show(&e, QKV_SHOW_JSON, &shown));
    assert_true(strstr(shown, "\"micro_f1\":") && strstr(shown, "\"exact_match\":"));
    assert_null(strstr(shown, "confusion"));
    qkv_text_free(shown);
    assert_ok(qkv_evaluation_show(&e, QKV_SHOW_TABLE, &shown));
    assert_true(strstr(shown, "micro F1") && strstr(shown, "exact match"));
    qkv_text_free(shown);
    qkv_evaluation_free(&e);
    qkv_text_model_close(m);
}

/* No threshold of those tried has a higher F1 on the rows that it was found on. */
static void threshold(void **state) {
    (void)state;
    qkv_text_model *m = open_model("ngrams=0");
    qkv_encoded data;
    qkv_tape t;
    float p[LABELS * ROWS];
    assert_ok(qkv_tape_init(&t));
    qkv_encoded_init(&data, 1);
    for (int i = 0; i < ROWS;
         i++) { /* other labels than it learned, so that it is wrong at times */
        int32_t own[LABELS], n = 0;
        qkv_encoding e = {0};
        assert_ok(qkv_tokenizer_encode(m->tokenizer, text[i], strlen(text[i]), NULL, 0, NULL, &e));
        assert_ok(qkv_encoded_add(&data, e.ids, (int64_t)e.n));
        for (int32_t c = 0; c < LABELS; c++)
            if (has[i][c] != (i % 7 == 0)) own[n++] = c;
        assert_ok(qkv_encoded_put(&data, QKV_COLUMN_LABELS, own, n));
        qkv_encoding_free(&e);
    }
    qkv_batcher b = {.data = &data, .budget = 100};
    assert_ok(qkv_batcher_init(&b));
    qkv_batcher_plan(&b, 0);
    const qkv_fit fit = {.model = m->model, .tape = &t, .spec = &m->spec, .valid = &b};
    assert_ok(qkv_companion_threshold.weigh(&fit));
    assert_ok(qkv_classify(m, texts, ROWS, p));
    double best = 0, found = 0;
    for (int k = 0; k < 200; k++) {
        const double at = k ? k / 200.0 : qkv_text_model_threshold(m);
        double truth = 0, given = 0, both = 0;
        for (int i = 0; i < ROWS * LABELS; i++) {
            const bool is = has[i / LABELS][i % LABELS] != (i / LABELS % 7 == 0),
                       says = (double)p[i] >= at;
            truth += is, given += says, both += is && says;
        }
        const double f1 = 2 * both / (truth + given);
        if (k == 0) found = f1;
        best = fmax(best, f1);
    }
    assert_float_equal(found, best, 1e-9);
    assert_true(best > 0.5 && best < 1);
    qkv_batcher_free(&b);
    qkv_encoded_free(&data);
    qkv_tape_free(&t);
    qkv_text_model_close(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(learned), cmocka_unit_test(evaluated),
                                       cmocka_unit_test(threshold)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
