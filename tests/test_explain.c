/* Why an answer was given: parts sum to what they are parts of, for every kind of encoder; n-grams
 * weigh what the answer loses without them; words are places of the text; a planted word is found
 * by both ways; no text breaks anything. */
#include "folders.h"
#include "tiny.h"
#include "base/mem.h"
#include "model/weights.h"
#include "use/textmodel.h"

#include <math.h>
#include <stdlib.h>

#define SIZES "vocab_size=300 classes=2 max_len=40 d_model=16 layers=2 heads=2 d_ff=24 "

static char folder[64];
static qkv_text_model *model; /* a tokenizer and two labels; the tests change the model in it */

static int make(void **state) {
    (void)state;
    make_temporary(folder);
    qkv_threads_set(1);
    make_model_folder(folder, "classify", NULL);
    char path[128];
    snprintf(path, sizeof path, "%s/classify", folder);
    return qkv_text_model_open(path, &model) != QKV_OK;
}

static int clear(void **state) {
    (void)state;
    qkv_text_model_close(model);
    remove_temporary(folder);
    return 0;
}

static qkv_explanations explain(const char *text, size_t len, qkv_explain_by how) {
    qkv_explanations e;
    assert_ok(qkv_explain(model, &(qkv_text){text, len}, how, &e));
    return e;
}

/* Puts another model in the place of the folder's. */
static qkv_model *exchange(qkv_model *with) {
    qkv_model *before = model->model;
    model->model = with;
    return before;
}

static double sum_of(const qkv_explanation *e, bool ngrams) {
    double sum = 0;
    for (size_t i = 0; i < e->n; i++) sum += ngrams ? e->words[i].ngrams : e->words[i].weight;
    return sum;
}

/* What holds of every explanation by gradients. */
static void check_sums(const char *what, const qkv_explanation *e) {
    const double words = sum_of(e, false), error = fabs(e->rest - e->start),
                 added = e->lead - e->start;
    if (!(fabs(words + e->rest - e->lead) <= 1e-9 * (1 + fabs(e->lead))))
        fail_msg("%s: words %g and rest %g do not sum to the lead, %g", what, words, e->rest,
                 e->lead);
    if (!(error <= 0.01 * fmin(fabs(added), fabs(e->lead)) + 5e-5))
        fail_msg("%s: an error of %g where words add %g to a lead of %g, after %d gradients", what,
                 error, added, e->lead, (int)e->passes);
}

/* ---- the encoder ---- */

static const char *const texts[] = {
    "one two and three",      "seven",          "six five and four six one two",
    "five, five! five? FIVE", "two\nand   two", ""};
enum { TEXTS = sizeof texts / sizeof *texts };

static void check_model(const char *settings) {
    char all[300];
    snprintf(all, sizeof all, SIZES "%s", settings);
    qkv_model *before = exchange(tiny_sharp_model(all, 5));
    for (int i = 0; i < TEXTS; i++) {
        qkv_explanations e = explain(texts[i], strlen(texts[i]), QKV_EXPLAIN_GRADIENTS);
        for (size_t k = 0; k < e.n; k++) check_sums(settings, &e.at[k]);
        qkv_explanations_free(&e);
    }
    qkv_model_free(exchange(before));
}

static void parts_sum_for_every_encoder(void **state) {
    (void)state;
    static const char *const rows[] = {
        "task=classify norm=post",
        "task=classify norm=pre position=rope norm_kind=rms",
        "task=classify norm=pre position=none pool=max",
        "task=classify norm=post position=sinusoidal embedding_scale=true pool=first",
        "task=classify position=relative",
        "task=classify position=alibi pooler=tanh pool=last",
        "task=classify position=t5 heads=2 kv_heads=1 activation=swiglu",
        "task=classify embedding_norm=true segments=2",
        "task=classify dropout=0.5 layer_drop=0.5",
        "task=classify attention=local window=1",
        "task=classify attention=global",
        "task=classify attention=random",
        "task=classify attention=bigbird window=1 activation=relu",
        "task=classify attention=linformer linformer_rank=3",
        "task=classify arch=lstm",
        "task=classify arch=gru pool=max",
        "task=classify arch=gru ngrams=2 ngram_chars=4 ngram_buckets=900 encoder_vote=2",
        "task=rate rate_mean=5 rate_deviation=30 ngrams=2 ngram_chars=3 ngram_buckets=500",
        "task=tag arch=gru",
        "task=tag position=rope",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) check_model(rows[i]);
}

/* Without positions two tokens that are the same weigh the same, and a weight is its word's. */
static void equal_words_weigh_the_same(void **state) {
    (void)state;
    qkv_model *before = exchange(tiny_sharp_model(SIZES "task=classify position=none", 7));
    qkv_explanations e = explain("one two one", 11, QKV_EXPLAIN_GRADIENTS);
    assert_int_equal(e.at[0].n, 3);
    const qkv_explain_word *w = e.at[0].words;
    const double most = fmax(fabs(w[0].weight), fabs(w[1].weight));
    assert_true(most > 1e-3);
    assert_true(fabs(w[0].weight - w[2].weight) <= 1e-5 * most);
    assert_true(fabs(w[0].weight - w[1].weight) >= 1e-2 * most);
    qkv_explanations_free(&e);
    qkv_model_free(exchange(before));
}

/* Weights that are kept in fewer bits: the same weights as reals, and what products with integers
 * round is the rest's. */
static void quantized_models(void **state) {
    (void)state;
    static const char *const to[] = {"bf16", "int8", "int4"};
    char from[100], out[100], path[140];
    snprintf(from, sizeof from, "%s/classify", folder);
    snprintf(path, sizeof path, "%s/model.safetensors", from);
    qkv_model *sharp;
    assert_ok(qkv_model_build(qkv_model_config(model->model), &sharp));
    assert_ok(qkv_model_allocate(sharp, false));
    qkv_model_initialise(sharp, 3);
    qkv_params *p = qkv_model_params(sharp);
    for (int64_t i = 0; i < p->length; i++) p->values[i] *= 3;
    assert_ok(qkv_weights_save(p, path));
    qkv_model_free(sharp);
    for (int i = 0; i < 3; i++) {
        snprintf(out, sizeof out, "%s/%s", folder, to[i]);
        qkv_quantization q;
        const qkv_quantize_request request = {.model = from, .out = out, .to = to[i]};
        assert_ok(qkv_quantize(&request, &q));
        qkv_quantization_free(&q);
        qkv_text_model *m;
        qkv_explanations e;
        assert_ok(qkv_text_model_open(out, &m));
        assert_ok(
            qkv_explain(m, &(qkv_text){texts[2], strlen(texts[2])}, QKV_EXPLAIN_GRADIENTS, &e));
        const qkv_explanation *at = &e.at[0];
        assert_true(fabs(at->rest - at->start) <= 0.05 * (fabs(at->lead - at->start) + 0.1));
        qkv_explanations_free(&e);
        qkv_text_model_close(m);
    }
}

/* ---- n-grams ---- */

#define NGRAMS SIZES "task=classify arch=gru ngrams=2 ngram_chars=4 ngram_buckets=4000 ngram_vote=3"

static real *table_of(qkv_model *m) {
    return qkv_param_find(qkv_model_params(m), "head.ngrams.weight")->tensor.data;
}

/* Each row's vote taken away: the lead loses what the explanation says, word by word and in sum. */
static void ngrams_weigh_what_they_add(void **state) {
    (void)state;
    enum { BUCKETS = 4000 };
    const char *text = texts[0];
    qkv_model *m = tiny_sharp_model(NGRAMS, 5), *before = exchange(m);
    fill(table_of(m), BUCKETS * 2, 9);
    qkv_explanations e = explain(text, strlen(text), QKV_EXPLAIN_GRADIENTS);
    const qkv_explanation *at = &e.at[0];
    const int plus = strcmp(at->label, model->labels.names[1]) == 0;
    assert_true(at->votes && at->n_ngrams == 24);
    double sum = 0, seen[24] = {0};
    for (int64_t row = 0; row < BUCKETS; row++) {
        if (row == qkv_ngram_mark(qkv_model_config(m))) continue;
        real *w = table_of(m) + row * 2, kept[2] = {w[0], w[1]};
        float p[2];
        w[0] = w[1] = 0;
        assert_ok(qkv_classify(model, &at->text, 1, p));
        const double lost = at->lead - log((double)p[plus] / (double)p[!plus]);
        w[0] = kept[0], w[1] = kept[1];
        sum += lost;
        for (size_t i = 0; i < at->n_ngrams; i++)
            if (fabs(at->ngrams[i].weight - lost) < 1e-4 * (1 + fabs(lost))) seen[i] = 1;
    }
    for (size_t i = 0; i < at->n_ngrams; i++) {
        if (seen[i] == 0) fail_msg("no row weighs n-gram %zu's %g", i, at->ngrams[i].weight);
        assert_true(!i || fabs(at->ngrams[i].weight) <= fabs(at->ngrams[i - 1].weight));
    }
    assert_true(fabs(sum_of(at, true) - sum) <= 1e-3 * (1 + fabs(sum)));
    qkv_explanations_free(&e);
    qkv_model_free(exchange(before));
}

typedef struct finding {
    int64_t from, to, row;
    bool chars;
} finding;

static void find_row(void *user, const qkv_ngram_place *p) {
    finding *f = user;
    if (p->from == f->from && p->to == f->to && p->chars == f->chars && !p->begins && !p->ends)
        f->row = p->row;
}

/* One row alone has weights: of the characters "o an" of "two and". */
static void an_ngram_is_shared_to_its_words(void **state) {
    (void)state;
    static const char text[] = "one  two and";
    static const int32_t chars[] = {'o', 'n', 'e', ' ', 't', 'w', 'o', ' ', 'a', 'n', 'd'};
    qkv_model *m = tiny_sharp_model(NGRAMS, 5), *before = exchange(m);
    const qkv_config *c = qkv_model_config(m);
    qkv_encoding ids = {0};
    assert_ok(qkv_tokenizer_encode(model->tokenizer, text, strlen(text), NULL, 0, NULL, &ids));
    const qkv_ngram_text seen = {.ids = ids.ids, .n = (int64_t)ids.n, .chars = {chars, 11}};
    int32_t rows[900];
    real counts[900];
    assert_true(qkv_ngram_room(c, &seen) <= 900);
    qkv_ngram_rows(c, &seen, NULL, rows, counts);
    finding f = {.from = 6, .to = 10, .chars = true};
    qkv_ngram_places(c, &seen, rows, find_row, &f);
    table_of(m)[rows[f.row] * 2] = 40;
    qkv_explanations e = explain(text, strlen(text), QKV_EXPLAIN_GRADIENTS);
    const qkv_explanation *at = &e.at[0];
    assert_int_equal(at->n_ngrams, 1);
    const qkv_explain_ngram *g = &at->ngrams[0];
    assert_true(g->characters && g->begin == 7 && g->end == 11 && g->places == 1);
    assert_true(at->n == 3 && at->words[0].ngrams == 0);
    assert_true(fabs(at->words[1].ngrams - g->weight / 3) < 1e-9); /* "o" of "o", "a", "n" */
    assert_true(fabs(at->words[2].ngrams - g->weight * 2 / 3) < 1e-9);
    qkv_explanations_free(&e);
    e = explain(text, strlen(text), QKV_EXPLAIN_OCCLUSION); /* gone with either word */
    assert_true(fabs(e.at[0].words[1].ngrams - e.at[0].ngrams[0].weight) < 1e-9);
    assert_true(e.at[0].words[0].ngrams == 0);
    qkv_explanations_free(&e);
    qkv_encoding_free(&ids);
    qkv_model_free(exchange(before));
}

/* ---- words ---- */

static void words_are_places_of_the_text(void **state) {
    (void)state;
    static const struct {
        const char *text, *words; /* with | between */
    } rows[] = {
        {"", ""},
        {" \t\r\n ", ""},
        {"one, two!", "one|,|two|!"},
        {"\xe6\x88\x91\xe5\xbe\x88"
         "ok\xe3\x81\xae",
         "\xe6\x88\x91|\xe5\xbe\x88|ok|\xe3\x81\xae"},
        {"\xff\xfe one", "\xff|\xfe|one"},
        {"cafe\xcc\x81 \xe0\xb8\x81\xe0\xb8\xb4\xe0\xb8\x81",
         "cafe\xcc\x81|\xe0\xb8\x81\xe0\xb8\xb4|\xe0\xb8\x81"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char got[200] = "";
        qkv_explanations e = explain(rows[i].text, strlen(rows[i].text), QKV_EXPLAIN_GRADIENTS);
        assert_int_equal(e.n, 1);
        check_sums(rows[i].text, &e.at[0]);
        for (size_t k = 0; k < e.at[0].n; k++) {
            const qkv_explain_word *w = &e.at[0].words[k];
            snprintf(got + strlen(got), sizeof got - strlen(got), "%s%.*s", k ? "|" : "",
                     (int)(w->end - w->begin), rows[i].text + w->begin);
        }
        assert_string_equal(got, rows[i].words);
        qkv_explanations_free(&e);
    }
}

/* Both texts of a pair: words of either, and characters with the line end between. */
static void pairs_are_explained(void **state) {
    (void)state;
    static const char asked[] = "one two\tthree  one";
    static const uint32_t places[][2] = {{0, 3}, {4, 7}, {8, 13}, {15, 18}};
    static qkv_train_row rows[40];
    for (int i = 0; i < 40; i++) {
        const char *second = i % 3 ? "three four" : "one four";
        rows[i] = (qkv_train_row){.label = {i % 3 ? "differ" : "same", i % 3 ? 6 : 4},
                                  .text = {"one two", 7},
                                  .second = {second, strlen(second)}};
    }
    static const char *const set[] = {"arch=transformer",  "d_model=16", "layers=1",
                                      "heads=2",           "d_ff=24",    "max_len=40",
                                      "steps=4",           "ngrams=2",   "vocab_size=300",
                                      "ngram_chars=4",     "dropout=0",  "batch_tokens=256",
                                      "ngram_buckets=900", NULL};
    char out[128];
    snprintf(out, sizeof out, "%s/pairs", folder);
    assert_ok(qkv_train(&(qkv_train_request){
        .task = "classify", .rows = rows, .n_rows = 40, .out = out, .set = set}));
    qkv_text_model *m;
    qkv_explanations e;
    assert_ok(qkv_text_model_open(out, &m));
    assert_ok(qkv_explain(m, &(qkv_text){asked, strlen(asked)}, QKV_EXPLAIN_GRADIENTS, &e));
    check_sums("a pair", &e.at[0]);
    assert_int_equal(e.at[0].n, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(e.at[0].words[i].begin, places[i][0]);
        assert_int_equal(e.at[0].words[i].end, places[i][1]);
        assert_true(e.at[0].words[i].ngrams != 0);
    }
    qkv_explanations_free(&e);
    assert_fails(qkv_explain(m, &(qkv_text){"one", 3}, QKV_EXPLAIN_GRADIENTS, &e), QKV_USAGE,
                 "no TAB");
    qkv_text_model_close(m);
}

/* ---- a model that has learned ---- */

/* Whether a text has the word "good" decides; both ways of explaining find it. */
static void a_planted_word_is_found(void **state) {
    (void)state;
    static const char *const fillers[] = {"the", "film", "was", "seen", "by", "all", "of", "us"};
    static const char *const archs[] = {"arch=transformer", "arch=gru"};
    static char text[120][80];
    static qkv_train_row rows[120];
    for (int i = 0; i < 120; i++) {
        char *at = text[i];
        for (int k = 0; k < 5; k++) {
            const bool here = k == i / 2 % 5;
            at += sprintf(at, "%s%s", k ? " " : "",
                          !here   ? fillers[(i * 5 + k * 3 + i / 8) % 8]
                          : i % 2 ? "good"
                                  : "dull");
        }
        rows[i] = (qkv_train_row){.label = {i % 2 ? "yes" : "no", i % 2 ? 3 : 2},
                                  .text = {text[i], strlen(text[i])}};
    }
    for (int a = 0; a < 2; a++) {
        const char *const set[] = {archs[a],    "d_model=16", "layers=1",         "heads=2",
                                   "d_ff=24",   "max_len=40", "vocab_size=300",   "dropout=0",
                                   "lr=0.01",   "steps=80",   "batch_tokens=256", "ngrams=0",
                                   "pool=mean", NULL};
        char out[128];
        snprintf(out, sizeof out, "%s/planted%d", folder, a);
        assert_ok(qkv_train(&(qkv_train_request){
            .task = "classify", .rows = rows, .n_rows = 120, .out = out, .set = set}));
        qkv_text_model *m;
        assert_ok(qkv_text_model_open(out, &m));
        const qkv_text asked = {"the film was good for us", 24};
        for (int how = QKV_EXPLAIN_GRADIENTS; how <= QKV_EXPLAIN_OCCLUSION; how++) {
            qkv_explanations e;
            assert_ok(qkv_explain(m, &asked, (qkv_explain_by)how, &e));
            const qkv_explanation *at = &e.at[0];
            assert_string_equal(at->label, "yes");
            assert_int_equal(at->n, 6);
            for (size_t i = 0; i < at->n; i++)
                if (i != 3 && !(fabs(at->words[i].weight) < at->words[3].weight))
                    fail_msg("%s, %d: word %zu weighs %g, \"good\" %g", archs[a], how, i,
                             at->words[i].weight, at->words[3].weight);
            qkv_explanations_free(&e);
        }
        qkv_text_model_close(m);
    }
}

/* ---- whatever comes ---- */

static void same_bits_on_any_threads(void **state) {
    (void)state;
    qkv_model *m = tiny_sharp_model(NGRAMS, 5), *before = exchange(m);
    fill(table_of(m), 4000 * 2, 9);
    qkv_explanations e[2];
    for (int i = 0; i < 2; i++) {
        qkv_threads_set(i ? 3 : 1);
        e[i] = explain(texts[2], strlen(texts[2]), QKV_EXPLAIN_GRADIENTS);
    }
    qkv_threads_set(1);
    assert_int_equal(e[0].at[0].n, e[1].at[0].n);
    for (size_t i = 0; i < e[0].at[0].n; i++)
        assert_true(e[0].at[0].words[i].weight == e[1].at[0].words[i].weight);
    assert_true(e[0].at[0].rest == e[1].at[0].rest);
    for (int i = 0; i < 2; i++) qkv_explanations_free(&e[i]);
    qkv_model_free(exchange(before));
}

/* A megabyte: what is behind the part that is read has n-grams of characters only. */
static void a_megabyte(void **state) {
    (void)state;
    enum { N = 1 << 20 };
    char *text = malloc(N);
    assert_non_null(text);
    for (int i = 0; i < N; i++) text[i] = "one two. "[i % 9];
    qkv_model *m = tiny_sharp_model(NGRAMS, 5), *before = exchange(m);
    fill(table_of(m), 4000 * 2, 9);
    qkv_explanations e = explain(text, N, QKV_EXPLAIN_GRADIENTS);
    assert_true(e.at[0].n > 300000);
    check_sums("a megabyte", &e.at[0]);
    char *shown;
    const qkv_explain_style style = {.how = QKV_SHOW_TABLE, .columns = 60};
    assert_ok(qkv_explanations_show(e.at, 1, &style, &shown));
    assert_true(strlen(shown) < 8000);
    assert_non_null(strstr(shown, "more words"));
    qkv_text_free(shown);
    qkv_explanations_free(&e);
    qkv_model_free(exchange(before));
    free(text);
}

/* Widths of lines, text that stays text, no outside request. */
static void hostile_text_is_shown_as_text(void **state) {
    (void)state;
    static const char text[] =
        "</script><b onclick=x>\x1b[31m \x07\xff \xe4\xb8\xad\xe6\x96\x87 "
        "&amp; \"averyveryverylongword_averyveryverylongword\" one\ntwo\ttwo";
    static const qkv_show hows[] = {QKV_SHOW_TABLE, QKV_SHOW_JSON, QKV_SHOW_HTML};
    qkv_explanations e = explain(text, sizeof text - 1, QKV_EXPLAIN_GRADIENTS);
    for (int i = 0; i < 3; i++) {
        char *shown;
        const qkv_explain_style style = {.how = hows[i], .columns = 40};
        assert_ok(qkv_explanations_show(e.at, e.n, &style, &shown));
        for (const char *c = shown; *c; c++) assert_true((unsigned char)*c >= 0x20 || *c == '\n');
        for (char *at = shown, *end; hows[i] == QKV_SHOW_TABLE && *at; at = end + 1) {
            end = strchr(at, '\n');
            assert_non_null(end);
            if (qkv_text_columns(at, (size_t)(end - at)) > 40)
                fail_msg("too wide: %.*s", (int)(end - at), at);
        }
        if (hows[i] == QKV_SHOW_HTML) {
            const char *end = strstr(shown, "</script>");
            assert_non_null(end);
            assert_null(strstr(end + 1, "</script>"));
            assert_null(strstr(shown, "http"));
            assert_null(strstr(shown, "<b onclick"));
        }
        qkv_text_free(shown);
    }
    char *shown;
    const qkv_explain_style picture = {.how = QKV_SHOW_SVG};
    assert_fails(qkv_explanations_show(e.at, e.n, &picture, &shown), QKV_USAGE, "page");
    qkv_explanations_free(&e);
}

static qkv_status explain_once(const void *user) {
    qkv_explanations e;
    const qkv_status status =
        qkv_explain(user, &(qkv_text){"one two", 7}, QKV_EXPLAIN_GRADIENTS, &e);
    qkv_explanations_free(&e);
    return status;
}

static void without_memory(void **state) {
    (void)state;
    assert_ok(explain_once(model)); /* what stays for the next call is there */
    assert_true(assert_fails_cleanly(explain_once, model, 0) > 5);
}

static void others_are_refused(void **state) {
    (void)state;
    qkv_explanations e;
    qkv_model *before = exchange(tiny_sharp_model("vocab_size=300 task=lm", 1));
    assert_fails(qkv_explain(model, &(qkv_text){"one", 3}, QKV_EXPLAIN_GRADIENTS, &e), QKV_USAGE,
                 "only answers of classify, rate and tag");
    qkv_model_free(exchange(before));
    before = exchange(tiny_sharp_model(SIZES "task=classify arch=gru", 1));
    qkv_attention_parts a;
    assert_fails(qkv_attention_of(model, &(qkv_text){"one", 3}, NULL, &a), QKV_USAGE,
                 "`qkv classify DIR --explain`");
    qkv_model_free(exchange(before));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_sum_for_every_encoder),
        cmocka_unit_test(equal_words_weigh_the_same),
        cmocka_unit_test(ngrams_weigh_what_they_add),
        cmocka_unit_test(an_ngram_is_shared_to_its_words),
        cmocka_unit_test(words_are_places_of_the_text),
        cmocka_unit_test(pairs_are_explained),
        cmocka_unit_test(a_planted_word_is_found),
        cmocka_unit_test(same_bits_on_any_threads),
        cmocka_unit_test(a_megabyte),
        cmocka_unit_test(hostile_text_is_shown_as_text),
        cmocka_unit_test(without_memory),
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test(quantized_models),
    };
    return cmocka_run_group_tests(tests, make, clear);
}
