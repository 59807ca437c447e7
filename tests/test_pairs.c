/* Pairs of texts: one framing in training and in use, segments, the longer text cut first, what a
 * model of pairs does with a line that is none, and fine-tuning that keeps its segments. */
#include "folders.h"
#include "base/file.h"
#include "base/mem.h"
#include "data/corpus.h"
#include "use/predict.h"

#include <math.h>
#include <stdlib.h>

static char folder[64];

/* ---- tokenizers ---- */

#define WORDS "\"?\":0,\"<s>\":1,\"</s>\":2,\"a\":3,\"b\":4,\"c\":5"
#define MODEL "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"?\",\"vocab\":{" WORDS "}},"
#define PLAIN "{" MODEL "\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"}"

/* The ids of the pair "a b", "c" with their types, as "3/0 …". */
static void spell(const qkv_tokenizer *tok, char *out) {
    qkv_encoding e = {0};
    assert_ok(qkv_tokenizer_encode(tok, "a b", 3, "c", 1, NULL, &e));
    *out = 0;
    for (size_t i = 0; i < e.n; i++)
        sprintf(out + strlen(out), "%s%d/%d", i ? " " : "", (int)e.ids[i], (int)e.type[i]);
    qkv_encoding_free(&e);
}

/* A separator where the file says nothing of pairs, and only there. */
static void framings(void **state) {
    (void)state;
    static const struct {
        const char *json, *wanted;
        int32_t types;
    } rows[] = {
        {PLAIN "}", "3/0 4/0 2/0 5/1", 2},
        {PLAIN ",\"post_processor\":{\"type\":\"ByteLevel\",\"trim_offsets\":false}}",
         "3/0 4/0 2/0 5/1", 2},
        {PLAIN ",\"post_processor\":{\"type\":\"BertProcessing\",\"cls\":[\"<s>\",1],"
               "\"sep\":[\"</s>\",2]}}",
         "1/0 3/0 4/0 2/0 5/1 2/1", 2},
        {PLAIN ",\"post_processor\":{\"type\":\"RobertaProcessing\",\"cls\":[\"<s>\",1],"
               "\"sep\":[\"</s>\",2]}}",
         "1/0 3/0 4/0 2/0 2/0 5/0 2/0", 1},
        /* no mark to put between */
        {"{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"?\",\"vocab\":{\"?\":0,\"x\":1,\"y\":"
         "2,"
         "\"a\":3,\"b\":4,\"c\":5}},\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"}}",
         "3/0 4/0 5/1", 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        qkv_tokenizer *tok, *again;
        qkv_buf json = {0};
        char got[200];
        assert_ok(qkv_tokenizer_parse("t", rows[i].json, strlen(rows[i].json), &tok));
        assert_ok(qkv_tokenizer_separate(tok));
        assert_ok(qkv_tokenizer_separate(tok)); /* it has one now */
        spell(tok, got);
        assert_string_equal(got, rows[i].wanted);
        assert_int_equal(qkv_tokenizer_types(tok), rows[i].types);
        /* The file has it too; a text alone is what it was. */
        assert_ok(qkv_tokenizer_json(tok, &json));
        assert_ok(qkv_tokenizer_parse("u", json.data, json.len, &again));
        spell(again, got);
        assert_string_equal(got, rows[i].wanted);
        qkv_buf_free(&json);
        qkv_tokenizer_free(again);
        qkv_tokenizer_free(tok);
    }
}

/* Of a pair the longer text gives way first; offsets are places in "first<TAB>second". */
static void longer_first(void **state) {
    (void)state;
    qkv_tokenizer *tok;
    assert_ok(qkv_tokenizer_parse("t", PLAIN "}", strlen(PLAIN "}"), &tok));
    assert_ok(qkv_tokenizer_separate(tok));
    const qkv_text first = {"a b c a b c", 11}, second = {"c b", 3};
    const qkv_encode_options how = {.offsets = true, .max_tokens = 6};
    qkv_encoding e = {0};
    assert_ok(qkv_encode_rows(tok, &first, &second, 1, &how, &e));
    const int32_t ids[] = {3, 4, 5, 2, 5, 4};
    const uint32_t begin[] = {0, 2, 4, 0, 12, 14};
    assert_true(e.cut);
    assert_int_equal(e.n, 6);
    assert_memory_equal(e.ids, ids, sizeof ids);
    assert_memory_equal(e.begin, begin, sizeof begin);
    assert_int_equal(e.end[5], 15);
    qkv_encoding_free(&e);
    qkv_tokenizer_free(tok);
}

/* ---- columns ---- */

/* How a file is read: "label: first | second; …". */
static qkv_status read_file(const char *content, const char *pair, qkv_second second,
                            qkv_buf *out) {
    char path[128];
    const char *const paths[] = {path};
    qkv_corpus c;
    snprintf(path, sizeof path, "%s/rows.tsv", folder);
    assert_ok(qkv_file_write(path, content, strlen(content)));
    QKV_TRY(qkv_corpus_read(&c, &(qkv_corpus_spec){.paths = paths,
                                                   .n_paths = 1,
                                                   .second = second,
                                                   .column = {[QKV_ROLE_PAIR] = pair}}));
    qkv_buf_clear(out);
    for (size_t i = 0; i < c.n; i++) {
        const qkv_row *row = &c.rows[i];
        qkv_buf_printf(out, "%s%s: %.*s", i ? "; " : "", c.labels.names[row->label],
                       (int)row->text.len, row->text.data);
        if (row->second.data)
            qkv_buf_printf(out, " | %.*s", (int)row->second.len, row->second.data);
    }
    qkv_corpus_free(&c);
    return out->status;
}

static void columns_of_pairs(void **state) {
    (void)state;
    static const char plain[] = "x\ta b\tc\ny\tb\ta\n",
                      named[] = "label\tsentence1\tsentence2\nx\ta b\tc\ny\tb\ta\n",
                      first[] = "c\tx\ta b\na\ty\tb\n";
    qkv_buf got = {0};
    assert_ok(read_file(plain, NULL, QKV_SECOND_MAY, &got));
    assert_string_equal(got.data, "x: a b\tc; y: b\ta"); /* the TAB is text, as ever */
    assert_ok(read_file(plain, "3", QKV_SECOND_MAY, &got));
    assert_string_equal(got.data, "x: a b | c; y: b | a");
    assert_ok(read_file(first, "1", QKV_SECOND_MAY, &got));
    assert_string_equal(got.data, "x: a b | c; y: b | a");
    assert_ok(read_file(plain, NULL, QKV_SECOND_MUST, &got));
    assert_string_equal(got.data, "x: a b | c; y: b | a");
    assert_ok(read_file(named, NULL, QKV_SECOND_MAY, &got));
    assert_string_equal(got.data, "x: a b | c; y: b | a");
    assert_ok(read_file(named, NULL, QKV_SECOND_NOT, &got));
    assert_string_equal(got.data, "x: a b; y: b");
    assert_fails(read_file("x\ta\ny\tb\n", NULL, QKV_SECOND_MUST, &got), QKV_BAD_FILE, "--pair");
    qkv_buf_free(&got);
}

/* ---- models ---- */

enum { ROWS = 60 };
static char first_text[ROWS][80], second_text[ROWS][40], both[ROWS][128];
static qkv_train_row rows[ROWS];
static qkv_text lines[ROWS];

static void make_rows(void) {
    static const char *const words[] = {"red", "blue", "green", "white", "dark"};
    for (int i = 0; i < ROWS; i++) {
        snprintf(first_text[i], sizeof *first_text, "%s %s  %s", words[i % 5], words[i / 5 % 5],
                 words[i * 3 % 5]);
        snprintf(second_text[i], sizeof *second_text, "%s", words[i * 7 % 5]);
        snprintf(both[i], sizeof *both, "%.60s\t%.60s", first_text[i], second_text[i]);
        rows[i] = (qkv_train_row){
            .label = {i % 5 == i * 7 % 5 ? "same" : "other", i % 5 == i * 7 % 5 ? 4 : 5},
            .text = {first_text[i], strlen(first_text[i])},
            .second = {second_text[i], strlen(second_text[i])}};
        lines[i] = (qkv_text){both[i], strlen(both[i])};
    }
}

static char notes[4096];

static bool listen(void *user, const qkv_progress *p) {
    (void)user;
    if (p->kind == QKV_PROGRESS_NOTE && strlen(notes) + strlen(p->text) + 2 < sizeof notes)
        strcat(strcat(notes, p->text), "\n");
    return true;
}

/* Trains in folder/name; `pairs` false: on the first texts alone. */
static qkv_status train(const char *name, const char *init, bool pairs, const char *setting) {
    static qkv_train_row own[ROWS];
    char out[128], from[128];
    const char *const set[] = {init ? "seed=1" : "arch=transformer",
                               init ? "seed=1" : "d_model=16",
                               init ? "seed=1" : "layers=1",
                               init ? "seed=1" : "heads=2",
                               init ? "seed=1" : "dropout=0",
                               "steps=3",
                               "batch_tokens=256",
                               "lr=0.01",
                               init ? "seed=1" : "max_len=12",
                               setting,
                               NULL};
    for (int i = 0; i < ROWS; i++) {
        own[i] = rows[i];
        if (!pairs) own[i].second = (qkv_text){0};
    }
    snprintf(out, sizeof out, "%s/%s", folder, name);
    snprintf(from, sizeof from, "%s/%s", folder, init ? init : "");
    *notes = 0;
    return qkv_train(&(qkv_train_request){.task = "classify",
                                          .rows = own,
                                          .n_rows = ROWS,
                                          .out = out,
                                          .init = init ? from : NULL,
                                          .set = set,
                                          .overwrite = true,
                                          .progress = listen});
}

static qkv_text_model *open_model(const char *name) {
    qkv_text_model *m;
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_ok(qkv_text_model_open(path, &m));
    return m;
}

/* Ids and columns of every row, made as training makes them and as use does. */
static void same_in_use(const qkv_text_model *m) {
    qkv_row own[ROWS];
    for (int i = 0; i < ROWS; i++)
        own[i] = (qkv_row){.text = rows[i].text, .second = rows[i].second, .label = -1};
    const qkv_tokenise_spec spec = qkv_tokenise_spec_of(qkv_model_config(m->model));
    assert_true(spec.columns >> QKV_COLUMN_SEGMENTS & 1);
    assert_true(spec.columns >> QKV_COLUMN_CHARS & 1);
    qkv_tokenise_counts counts;
    qkv_encoded e;
    qkv_encoded_init(&e, 1);
    const qkv_corpus corpus = {.rows = own, .n = ROWS};
    assert_ok(qkv_tokenise(m->tokenizer, &corpus, NULL, &spec, &e, &counts));
    qkv_tape *t;
    assert_ok(qkv_text_model_take_tape(m, &t));
    qkv_tape_begin(t, QKV_EVAL, 0, 0);
    for (int i = 0; i < ROWS; i++) {
        int64_t n;
        qkv_encoding used = {0};
        const int32_t *ids = qkv_encoded_ids(&e, i, 0, &n), start[] = {0, (int32_t)n};
        qkv_tokens src = {.layout = {.n = 1, .start = start}, .rows = n};
        assert_ok(qkv_texts_encode(m, &lines[i], 1, true, &used));
        assert_int_equal(used.n, n);
        assert_memory_equal(used.ids, ids, (size_t)n * sizeof *ids);
        assert_ok(qkv_texts_columns(t, m, (qkv_use_texts){&lines[i], NULL}, &used, &src));
        for (qkv_column c = 0; c < QKV_COLUMNS; c++) {
            if (!(spec.columns >> c & 1)) continue;
            const qkv_cells want = qkv_encoded_cells(&e, c, i), got = *src.column[c];
            assert_int_equal(got.n, want.n);
            assert_memory_equal(got.at, want.at, (size_t)want.n * sizeof *want.at);
        }
        qkv_encoding_free(&used);
    }
    qkv_text_model_give_tape(m, t);
    qkv_encoded_free(&e);
}

static void one_framing(void **state) {
    (void)state;
    assert_ok(train("pairs", NULL, true, "ngrams=2"));
    qkv_text_model *m = open_model("pairs");
    const qkv_config *c = qkv_model_config(m->model);
    assert_true(c->pairs && c->segments == 2 && qkv_text_model_pairs(m));
    same_in_use(m);
    /* A pair has the same answer alone and in a batch. */
    float all[2 * ROWS], alone[2], turned[2];
    assert_ok(qkv_classify(m, lines, ROWS, all));
    for (int i = 0; i < ROWS; i += 7) {
        assert_ok(qkv_classify(m, &lines[i], 1, alone));
        assert_memory_equal(alone, all + 2 * i, sizeof alone);
    }
    const qkv_text ab = {"red\tblue", 8}, ba = {"blue\tred", 8}, none = {"red blue", 8};
    assert_ok(qkv_classify(m, &ab, 1, alone));
    assert_ok(qkv_classify(m, &ba, 1, turned));
    assert_true(alone[0] != turned[0]);
    assert_fails(qkv_classify(m, &none, 1, alone), QKV_USAGE, "first<TAB>second");
    const qkv_text some[] = {ab, none};
    assert_fails(qkv_classify(m, some, 2, all), QKV_USAGE, "text 2 of 2: no TAB");
    const qkv_text empty = {"\t", 1};
    assert_ok(qkv_classify(m, &empty, 1, alone));
    /* Offsets name the tokens of both texts. */
    qkv_attention_parts parts;
    const qkv_text seen = {"dark red\tgreen", 14};
    assert_ok(qkv_attention_of(m, &seen, NULL, &parts));
    static const char *const names[] = {"dark", "red", "</s>", "green"};
    assert_int_equal(parts.at[0].keys, 4);
    for (int i = 0; i < 4; i++) assert_string_equal(parts.at[0].key_names[i], names[i]);
    qkv_attention_free(&parts);
    qkv_text_model_close(m);
}

/* What a model of single texts does with a TAB is what it did; it can be told to read pairs. */
static void single_texts(void **state) {
    (void)state;
    float tab[2], blank[2];
    assert_ok(train("single", NULL, false, "ngrams=1"));
    qkv_text_model *m = open_model("single");
    const qkv_config *c = qkv_model_config(m->model);
    assert_true(!c->pairs && c->segments == 0 && !qkv_text_model_pairs(m));
    const qkv_text with[] = {{"red\tblue", 8}, {"red blue", 8}};
    assert_ok(qkv_classify(m, &with[0], 1, tab));
    assert_ok(qkv_classify(m, &with[1], 1, blank));
    assert_memory_equal(tab, blank, sizeof tab);
    assert_ok(qkv_text_model_read_pairs(m));
    assert_true(qkv_text_model_pairs(m));
    assert_fails(qkv_classify(m, &with[1], 1, blank), QKV_USAGE, "no TAB");
    qkv_text_model_close(m);
}

static const real *segments_of(const qkv_text_model *m) {
    const qkv_param *p =
        qkv_param_find(qkv_model_params(m->model), "encoder.segment_embedding.weight");
    assert_non_null(p);
    return p->tensor.data;
}

/* Segments that are there stay; a model without begins with zeros, so as it was. */
static void fine_tuning(void **state) {
    (void)state;
    assert_ok(train("pairs", NULL, true, "ngrams=0"));
    assert_ok(train("tuned", "pairs", true, "lr=1e-20"));
    assert_null(strstr(notes, "segment_embedding"));
    qkv_text_model *a = open_model("pairs"), *b = open_model("tuned");
    double sum = 0;
    for (int i = 0; i < 32; i++) sum += (double)(segments_of(a)[i] * segments_of(a)[i]);
    assert_true(sum > 0); /* they have learned something */
    assert_same_bits("segments", segments_of(b), segments_of(a), 32);
    qkv_text_model_close(a);
    qkv_text_model_close(b);
    /* On single texts the segments stay too, all of the first kind. */
    assert_ok(train("alone", "pairs", false, "lr=1e-20"));
    a = open_model("alone");
    assert_true(!qkv_text_model_pairs(a) && qkv_model_config(a->model)->segments == 2);
    qkv_text_model_close(a);
    assert_ok(train("single", NULL, false, "ngrams=0"));
    assert_ok(train("more", "single", true, "lr=1e-20"));
    assert_non_null(strstr(notes, "new: encoder.segment_embedding.weight"));
    a = open_model("more");
    for (int i = 0; i < 32; i++) assert_true(fabs((double)segments_of(a)[i]) < 1e-12);
    qkv_text_model_close(a);
    /* A wish for none is kept. */
    assert_ok(train("none", NULL, true, "segments=0"));
    a = open_model("none");
    assert_true(qkv_text_model_pairs(a) && qkv_model_config(a->model)->segments == 0);
    qkv_text_model_close(a);
}

static void refusals(void **state) {
    (void)state;
    assert_fails(train("bad", NULL, true, "too_long=split"), QKV_USAGE, "cannot be split");
    assert_fails(train("bad", NULL, true, "segments=1"), QKV_USAGE, "2 segments apart");
    assert_ok(train("long", NULL, true, "max_len=4"));
    assert_non_null(strstr(notes, "over 4 tokens cut, the longer text first"));
}

static int begin(void **state) {
    (void)state;
    make_temporary(folder);
    make_rows();
    return 0;
}

static int end(void **state) {
    (void)state;
    remove_temporary(folder);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(framings),         cmocka_unit_test(longer_first),
        cmocka_unit_test(columns_of_pairs), cmocka_unit_test(one_framing),
        cmocka_unit_test(single_texts),     cmocka_unit_test(fine_tuning),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
