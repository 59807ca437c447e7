/* Results as numbers: what a C program gets from the functions that find something out, without
 * any words; and that their words hold those numbers. (Scores of translations: test_score.c.) */
#include "folders.h"
#include "base/file.h"
#include "base/mem.h"
#include "text/tokenizer.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

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
    make_model_folder(folder, "classify", NULL);
    make_model_folder(folder, "translate", NULL);
    return 0;
}

static int remove_models(void **state) {
    (void)state;
    remove_temporary(folder);
    return 0;
}

static void assert_has(char *text, const char *words) {
    if (!strstr(text, words)) fail_msg("\"%s\" lacks \"%s\"", text, words);
    qkv_text_free(text);
}

/* ---- tokenizers ---- */

static const char words[] = "<unk>\n</s>\nthe\ncat\nsat\nunderneath\n";

static bool next_line(void *user, const char **text, size_t *len) {
    static const char *const lines[] = {"the cat  sat", "underneath the dog"};
    size_t *at = user;
    if (*at == 2) return false;
    *text = lines[*at];
    *len = strlen(lines[(*at)++]);
    return true;
}

static void a_tokenizer(void **state) {
    (void)state;
    qkv_tokenizer *tok;
    qkv_tokenizer_facts f;
    size_t at = 0;
    char *text;
    assert_ok(qkv_tokenizer_of_words(words, sizeof words - 1, &tok));
    assert_ok(qkv_tokenizer_info(tok, next_line, &at, &f));
    assert_string_equal(f.model, "WordLevel");
    assert_int_equal(f.size, 6);
    assert_int_equal(f.added, 2);
    assert_null(f.normalizer[0]);
    assert_string_equal(f.pretokenizer[0], "WhitespaceSplit");
    assert_null(f.pretokenizer[1]);
    assert_int_equal(f.n_special, 2);
    assert_string_equal(f.special[0].role, "unk");
    assert_int_equal(f.special[0].id, 0);
    assert_string_equal(f.special[1].role, "eos");
    assert_int_equal(f.special[1].id, 1);
    assert_int_equal(f.n_around, 0);
    assert_int_equal(f.n_longest, 5);
    assert_int_equal(f.longest[0].id, 5);
    assert_int_equal(f.longest[0].text.len, 10);
    assert_memory_equal(f.longest[0].text.data, "underneath", 10);
    assert_int_equal(f.lines, 2);
    assert_int_equal(f.bytes, 30);
    assert_int_equal(f.words, 6);
    assert_int_equal(f.tokens, 6);
    assert_int_equal(f.unknown, 1);
    assert_true(f.tokens_per_word == 1 && f.bytes_per_token == 5);
    assert_ok(qkv_tokenizer_facts_show(&f, QKV_SHOW_JSON, &text));
    assert_has(text, "\"tokens\":6,\"unknown\":1,\"tokens_per_word\":1,\"bytes_per_token\":5}");
    qkv_tokenizer_facts_free(&f);
    assert_ok(qkv_tokenizer_info(tok, NULL, NULL, &f));
    assert_true(f.lines == 0 && f.tokens_per_word == 0);
    qkv_tokenizer_facts_free(&f);
    qkv_tokenizer_free(tok);
}

static void a_list_of_words(void **state) {
    (void)state;
    qkv_tokenizer *tok;
    qkv_buf json = {0};
    /* no line end, and a byte that is no UTF-8 */
    assert_ok(qkv_tokenizer_of_words("<unk>\na\xff", 8, &tok));
    assert_ok(qkv_tokenizer_json(tok, &json));
    assert_non_null(strstr(json.data, "\"a\xEF\xBF\xBD\":1"));
    qkv_buf_free(&json);
    qkv_tokenizer_free(tok);
    assert_fails(qkv_tokenizer_of_words("a\n<unk>\na\n", 10, &tok), QKV_BAD_FILE, "\"a\" twice");
    assert_fails(qkv_tokenizer_of_words("a\xff\na\xfe\n", 6, &tok), QKV_BAD_FILE, "twice");
}

static qkv_status info_once(const void *list) {
    qkv_tokenizer *tok = NULL;
    qkv_tokenizer_facts f = {0};
    char *text = NULL;
    size_t at = 0;
    qkv_status status = qkv_tokenizer_of_words(list, sizeof words - 1, &tok);
    if (status == QKV_OK) status = qkv_tokenizer_info(tok, next_line, &at, &f);
    if (status == QKV_OK) status = qkv_tokenizer_facts_show(&f, QKV_SHOW_TABLE, &text);
    qkv_text_free(text);
    qkv_tokenizer_facts_free(&f);
    qkv_tokenizer_free(tok);
    return status;
}

/* ---- this machine ---- */

static void a_machine(void **state) {
    (void)state;
    qkv_diagnosis d;
    char *text, size[32];
    setenv("QKV_ISA", "none-such", 1);
    assert_ok(qkv_doctor(&d));
    assert_string_equal(d.version, qkv_version());
    assert_string_equal(d.real, "float");
    assert_true(d.openmp >= 201107);
    assert_true(d.cores >= 1 && d.threads >= 1);
    bool found = false;
    for (size_t i = 0; d.isas[i]; i++) found = found || strcmp(d.isas[i], d.isa) == 0;
    assert_true(found);
    assert_string_equal(d.isa_ignored, "none-such");
    assert_true(d.memory_bytes >= d.memory_available_bytes);
    assert_true(d.peak_gflops_f32 > 0 && d.memory_bytes_per_s > 0);
    assert_ok(qkv_diagnosis_show(&d, QKV_SHOW_JSON, &text));
    snprintf(size, sizeof size, "\"cores\":%d,", d.cores);
    assert_non_null(strstr(text, size));
    assert_has(text, "\"warning\":\"QKV_ISA=none-such is not one of them and was ignored\"");
    qkv_diagnosis_free(&d);
    unsetenv("QKV_ISA");
}

/* ---- models, described ---- */

static double value(const qkv_description *d, const char *name, const char **text) {
    qkv_key k;
    double number = NAN;
    size_t i = 0;
    while (qkv_key_row(QKV_KEYS_MODEL, i, &k) && strcmp(k.name, name) != 0) i++;
    assert_true(qkv_description_value(d, i, &number, text));
    return number;
}

static void a_description(void **state) {
    (void)state;
    const char *const set[] = {"task=lm", "d_model=64", "layers=3", "position=rope", NULL};
    const char *name;
    char *text;
    qkv_description d;
    assert_ok(qkv_describe(&(qkv_describe_request){.preset = "tiny", .set = set, .batch = 2}, &d));
    assert_int_equal(d.batch, 2);
    assert_true(d.length == value(&d, "max_len", &name) && name == NULL);
    assert_true(value(&d, "d_model", &name) == 64);
    (void)value(&d, "position", &name);
    assert_string_equal(name, "rope");
    assert_int_equal(d.decoder.layers, 3);
    assert_int_equal(d.encoder.parameters, 0);
    assert_int_equal(d.total_in_layers, 3 * d.decoder.layer);
    int64_t sum = 0;
    double macs = 0;
    for (size_t i = 0; i < d.n; i++) sum += d.parts[i].parameters, macs += d.parts[i].macs;
    assert_int_equal(sum, d.total);
    assert_true(fabs(macs - d.macs) <= 1e-9 * d.macs);
    assert_true(d.training_state_bytes == 4 * d.weight_bytes);
    double number;
    assert_false(qkv_description_value(&d, 1000, &number, &name));
    for (int how = QKV_SHOW_TABLE; how <= QKV_SHOW_SVG; how++) {
        assert_ok(qkv_description_show(&d, (qkv_show)how, &text));
        assert_true(strlen(text) > 500);
        qkv_text_free(text);
    }
    assert_fails(qkv_description_show(&d, QKV_SHOW_HTML, &text), QKV_USAGE, "as SVG");
    qkv_description_free(&d);
    assert_fails(qkv_describe(&(qkv_describe_request){.preset = "tiny", .batch = -1}, &d),
                 QKV_USAGE, "batch");
    assert_null(d.memory);
}

/* The place of `what` in a picture: the smaller, the earlier it is drawn, that is, the lower. */
static const char *drawn(const char *svg, const char *what) {
    const char *at = strstr(svg, what);
    if (!at) fail_msg("the picture has no \"%s\"", what);
    return at;
}

/* Shows a model of these settings; the caller frees. */
static char *shown(const char *preset, const char *const *set, qkv_show how) {
    qkv_description d;
    char *text = NULL;
    assert_ok(qkv_describe(&(qkv_describe_request){.preset = preset, .set = set}, &d));
    assert_ok(qkv_description_show(&d, how, &text));
    qkv_description_free(&d);
    return text;
}

/* Every preset as table and as picture: nothing wider than 80 columns; what goes in, what comes
 * out, the positions where a Transformer has some. */
static void presets_shown(void **state) {
    (void)state;
    const char *name, *summary, *assignments;
    for (size_t i = 0; qkv_preset_row(i, &name, &summary, &assignments); i++) {
        char *text = shown(name, NULL, QKV_SHOW_TABLE);
        for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
            if (qkv_text_columns(line, strcspn(line, "\n")) > 80) fail_msg("%s: %.99s", name, line);
        qkv_text_free(text);
        text = shown(name, NULL, QKV_SHOW_SVG);
        (void)drawn(text, ">in: "), (void)drawn(text, ">out: "), (void)drawn(text, ">n × ");
        if (!strstr(assignments, "arch=")) (void)drawn(text, ">Positions: ");
        if (strstr(assignments, "ngrams=")) (void)drawn(text, ">N-grams");
        qkv_text_free(text);
    }
}

/* A norm is drawn and listed where it works; both directions of a layer that reads both ways. */
static void parts_in_order(void **state) {
    (void)state;
    static const char *const post[] = {"norm=post", "segments=2", NULL},
                             *const pre[] = {"norm=pre", NULL},
                             *const gru[] = {"arch=gru", "layers=2", "ngrams=0", NULL},
                             *const pair[] = {"arch=gru", "task=translate", NULL};
    char *text = shown("classic", post, QKV_SHOW_SVG);
    assert_true(drawn(text, "Self-attention") < drawn(text, "LayerNorm"));
    assert_true(drawn(text, "Positions: learned") < drawn(text, "Self-attention"));
    assert_true(drawn(text, ">Segments") < drawn(text, "Self-attention"));
    qkv_text_free(text);
    text = shown("classic", post, QKV_SHOW_TABLE);
    assert_true(drawn(text, " attention ") < drawn(text, "attention_norm"));
    qkv_text_free(text);
    text = shown("classic", pre, QKV_SHOW_SVG);
    assert_true(drawn(text, "LayerNorm") < drawn(text, "Self-attention"));
    qkv_text_free(text);
    text = shown("classic", gru, QKV_SHOW_SVG);
    (void)drawn(text, "GRU, forwards"), (void)drawn(text, "GRU, backwards");
    (void)drawn(text, ">layer 1<"), (void)drawn(text, "Pooling: mean");
    assert_null(strstr(text, "Positions"));
    qkv_text_free(text);
    text = shown("gru", pair, QKV_SHOW_SVG);
    (void)drawn(text, "First state"), (void)drawn(text, "keys, values"), (void)drawn(text, ">m × ");
    qkv_text_free(text);
}

static qkv_status describe_once(const void *request) {
    qkv_description d;
    char *text = NULL;
    qkv_status status = qkv_describe(request, &d);
    if (status == QKV_OK) status = qkv_description_show(&d, QKV_SHOW_JSON, &text);
    qkv_text_free(text);
    text = NULL;
    if (status == QKV_OK) status = qkv_description_show(&d, QKV_SHOW_SVG, &text);
    qkv_text_free(text);
    qkv_description_free(&d);
    return status;
}

/* ---- training ---- */

static void a_learning_rate(void **state) {
    (void)state;
    enum { ROWS = 40 };
    qkv_train_row rows[ROWS];
    for (int i = 0; i < ROWS; i++)
        rows[i] = (qkv_train_row){.label = {i % 2 ? "odd" : "even", i % 2 ? 3 : 4},
                                  .text = {i % 2 ? "one three" : "two four", i % 2 ? 9 : 8}};
    const char *const set[] = {"arch=transformer", "d_model=16",       "layers=1",
                               "heads=2",          "batch_tokens=128", NULL};
    const qkv_train_request request = {
        .task = "classify", .rows = rows, .n_rows = ROWS, .set = set};
    qkv_lr_search s;
    char *text, use[40];
    assert_ok(qkv_find_lr(&request, &s));
    assert_true(s.n >= 10 && s.n <= 100);
    double lowest = INFINITY, at = 0;
    for (size_t i = 0; i < s.n; i++) {
        assert_true(i == 0 || s.trials[i].lr > s.trials[i - 1].lr);
        if (s.trials[i].smooth < lowest) lowest = s.trials[i].smooth, at = s.trials[i].lr;
    }
    assert_true(fabs(s.trials[0].lr - 1e-6) < 1e-12);
    assert_true(s.trials[0].loss == s.trials[0].smooth);
    assert_true(fabs(s.best - at / 10) <= 1e-12 * at);
    assert_ok(qkv_lr_search_show(&s, QKV_SHOW_TABLE, &text));
    snprintf(use, sizeof use, "use --lr %.1e:", s.best);
    assert_has(text, use);
    assert_ok(qkv_lr_search_show(&s, QKV_SHOW_JSON, &text));
    assert_has(text, "{\"best\":");
    qkv_lr_search_free(&s);
    assert_fails(qkv_find_lr(&(qkv_train_request){.task = "nothing"}, &s), QKV_USAGE, "nothing");
    assert_null(s.memory);
}

/* ---- scores ---- */

static const char *const *rows_file(void) {
    static char path[128];
    static const char *const files[] = {path, NULL};
    snprintf(path, sizeof path, "%s/rows.tsv", folder);
    const char rows[] = "rising\tone two\nfalling\ttwo one and one\nrising\tthree five\n";
    assert_ok(qkv_file_write(path, rows, sizeof rows - 1));
    return files;
}

/* The names of the classes are the result's own. */
static void an_evaluation_outlives_its_model(void **state) {
    (void)state;
    qkv_text_model *m;
    qkv_evaluation e;
    const char *const *files = rows_file();
    assert_ok(qkv_text_model_open(in_folder("classify"), &m));
    assert_ok(qkv_evaluate(m, files, NULL, &e));
    qkv_text_model_close(m);
    assert_int_equal(e.n_classes, 2);
    assert_string_equal(e.classes[0].label, "falling");
    assert_string_equal(e.classes[1].label, "rising");
    assert_int_equal(e.classes[0].support, 1);
    assert_int_equal(e.classes[1].support, 2);
    assert_int_equal(e.confusion[0] + e.confusion[3], e.right);
    assert_null(e.translation);
    qkv_evaluation_free(&e);
    assert_ok(qkv_text_model_open(in_folder("translate"), &m));
    assert_fails(qkv_evaluate(m, (const char *const[]){in_folder("none.tsv"), NULL}, NULL, &e),
                 QKV_FAILED, "none.tsv");
    assert_true(e.memory == NULL && e.task == NULL);
    qkv_text_model_close(m);
}

static void a_translators_evaluation(void **state) {
    (void)state;
    qkv_text_model *m;
    qkv_evaluation e;
    const char pairs[] = "one two\t1 2\nthree\t3\n";
    assert_ok(qkv_file_write(in_folder("pairs.tsv"), pairs, sizeof pairs - 1));
    assert_ok(qkv_text_model_open(in_folder("translate"), &m));
    assert_ok(qkv_evaluate(m, (const char *const[]){in_folder("pairs.tsv"), NULL}, NULL, &e));
    qkv_text_model_close(m);
    assert_int_equal(e.translation->lines, 2);
    assert_int_equal(e.translation->ref_len, 3);
    assert_true(e.translation->bleu == e.bleu && e.translation->chrf2 == e.chrf2);
    assert_non_null(strstr(e.translation->bleu_signature, "tok:13a"));
    qkv_evaluation_free(&e);
}

/* ---- quantizing ---- */

static void a_quantized_model(void **state) {
    (void)state;
    qkv_quantization q;
    char *text, bytes[80];
    const char *const *files = rows_file();
    qkv_quantize_request r = {
        .model = in_folder("classify"), .out = in_folder("small"), .to = "int8", .data = files};
    assert_ok(qkv_quantize(&r, &q));
    assert_string_equal(q.weights, "int8");
    qkv_file file;
    assert_ok(qkv_file_open(in_folder("small/model.safetensors"), SIZE_MAX, &file));
    assert_int_equal(q.bytes_after, file.size);
    qkv_file_close(&file);
    assert_true(q.bytes_before > q.bytes_after);
    assert_int_equal(q.before.targets, 3);
    assert_int_equal(q.after.targets, 3);
    assert_string_equal(q.after.classes[1].label, "rising");
    assert_true(fabs(q.before.loss - q.after.loss) < 0.1);
    assert_ok(qkv_quantization_show(&q, QKV_SHOW_JSON, &text));
    snprintf(bytes, sizeof bytes, "{\"weights\":\"int8\",\"bytes\":[%lld,%lld],\"accuracy\":[",
             (long long)q.bytes_before, (long long)q.bytes_after);
    assert_has(text, bytes);
    qkv_quantization_free(&q);
    r.data = NULL;
    assert_fails(qkv_quantize(&r, &q), QKV_USAGE, "--overwrite");
    r.overwrite = true;
    assert_ok(qkv_quantize(&r, &q));
    assert_true(q.before.task == NULL && q.after.task == NULL && q.bytes_after > 0);
    assert_ok(qkv_quantization_show(&q, QKV_SHOW_TABLE, &text));
    assert_null(strstr(text, "accuracy"));
    qkv_text_free(text);
    qkv_quantization_free(&q);
    r.to = "int3";
    assert_fails(qkv_quantize(&r, &q), QKV_USAGE, "int3");
}

/* ---- memory ---- */

static void allocations_fail(void **state) {
    (void)state;
    const char *const set[] = {"d_model=16", "layers=1", NULL};
    assert_fails_cleanly(info_once, words, 1); /* the cache of words can be done without */
    assert_fails_cleanly(describe_once, &(qkv_describe_request){.preset = "tiny", .set = set}, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tokenizer),
        cmocka_unit_test(a_list_of_words),
        cmocka_unit_test(a_machine),
        cmocka_unit_test(a_description),
        cmocka_unit_test(presets_shown),
        cmocka_unit_test(parts_in_order),
        cmocka_unit_test(a_learning_rate),
        cmocka_unit_test(an_evaluation_outlives_its_model),
        cmocka_unit_test(a_translators_evaluation),
        cmocka_unit_test(a_quantized_model),
        cmocka_unit_test(allocations_fail),
    };
    return cmocka_run_group_tests(tests, make_models, remove_models);
}
