/* What training does to rows: over-long ones cut, split or skipped; rows of two sets found;
 * whole words hidden together. */
#include "harness.h"

#include "data/duplicates.h"
#include "data/tokenise.h"
#include "task/task.h"

#include <string.h>
#include <unistd.h>

static const char *const lines[] = {"a b c d e f g\n", "a b\n", "b c d e f\n", "g\n"};
enum { LINES = 4 };

static bool next_line(void *user, const char **text, size_t *len) {
    size_t *at = user;
    if (*at == LINES) return false;
    *text = lines[*at];
    *len = strlen(lines[(*at)++]);
    return true;
}

static qkv_tokenizer *word_tokenizer(void) {
    size_t at = 0;
    qkv_tokenizer *tok;
    const qkv_tok_train spec = {
        .kind = QKV_TOK_WORD, .vocab_size = 50, .split = QKV_SPLIT_END_OF_WORD};
    assert_ok(qkv_tokenizer_train(&spec, next_line, &at, &tok));
    return tok;
}

/* The lines, each with the label of its number's parity. */
static void make_corpus(qkv_corpus *c, qkv_row *rows) {
    *c = (qkv_corpus){.rows = rows, .n = LINES};
    for (int i = 0; i < LINES; i++)
        rows[i] =
            (qkv_row){.text = {lines[i], strlen(lines[i]) - 1}, .label = i % 2, .line = 10 + i};
}

static void over_long_rows(void **state) {
    (void)state;
    static const struct {
        qkv_too_long how;
        int64_t examples, tokens;
        int64_t lengths[5];
    } cases[] = {{QKV_TOO_LONG_CUT, 4, 9, {3, 2, 3, 1}},
                 {QKV_TOO_LONG_SPLIT, 7, 15, {3, 3, 1, 2, 3}},
                 {QKV_TOO_LONG_SKIP, 2, 3, {2, 1}}};
    qkv_tokenizer *tok = word_tokenizer();
    qkv_row rows[LINES];
    qkv_corpus corpus;
    make_corpus(&corpus, rows);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const qkv_tokenise_spec spec = {
            .sides = 1, .no_special = true, .max_tokens = 3, .too_long = cases[i].how};
        qkv_tokenise_counts counts;
        qkv_encoded e;
        qkv_encoded_init(&e, 1);
        assert_ok(qkv_tokenise(tok, &corpus, NULL, &spec, &e, &counts));
        assert_int_equal(counts.n_cut, 2);
        assert_int_equal(e.n, cases[i].examples);
        assert_int_equal(qkv_encoded_tokens(&e), cases[i].tokens);
        for (int64_t k = 0; k < 5 && k < e.n; k++) {
            int64_t n;
            qkv_encoded_ids(&e, k, 0, &n);
            assert_int_equal(n, cases[i].lengths[k]);
        }
        if (cases[i].how == QKV_TOO_LONG_SPLIT) /* all pieces of a row have its label */
            assert_true(e.label[0] == 0 && e.label[2] == 0 && e.label[3] == 1 && e.label[4] == 0);
        qkv_encoded_free(&e);
    }
    qkv_tokenizer_free(tok);
}

/* The characters that an example keeps, all of them ASCII. */
static void assert_chars(const qkv_encoded *e, int64_t example, const char *expected) {
    const qkv_cells chars = qkv_encoded_cells(e, QKV_COLUMN_CHARS, example);
    assert_int_equal(chars.n, strlen(expected));
    for (int64_t i = 0; i < chars.n; i++) assert_int_equal(chars.at[i], expected[i]);
}

/* As written: cases kept, white space as one blank, nothing at the ends. */
static void characters(void **state) {
    (void)state;
    static const char text[] = " Wie\t\n geht\xc2\xa0\xe4\xb8\xad? ";
    static const int32_t expected[] = {'W', 'i', 'e', ' ', 'g', 'e', 'h', 't', ' ', 0x4e2d, '?'};
    int32_t chars[sizeof text];
    int64_t n;
    const qkv_encoding none = {0};
    const qkv_column_source source = {.text = {text, sizeof text - 1}, .e = &none};
    assert_true(qkv_column_room(QKV_COLUMN_CHARS, &source) <= (int64_t)sizeof text);
    assert_ok(qkv_column_make(QKV_COLUMN_CHARS, &source, chars, &n));
    assert_int_equal(n, sizeof expected / sizeof *expected);
    assert_memory_equal(chars, expected, sizeof expected);
    /* each example has those of its row, a pair's two on two lines */
    qkv_tokenizer *tok = word_tokenizer();
    qkv_row rows[] = {{.text = {"a b", 3}}, {.text = {"c", 1}, .second = {"d", 1}}};
    const qkv_corpus corpus = {.rows = rows, .n = 2};
    const qkv_tokenise_spec spec = {
        .sides = 1, .no_special = true, .columns = qkv_column_bit(QKV_COLUMN_CHARS)};
    qkv_tokenise_counts counts;
    qkv_encoded e;
    qkv_encoded_init(&e, 1);
    assert_ok(qkv_tokenise(tok, &corpus, NULL, &spec, &e, &counts));
    assert_chars(&e, 0, "a b");
    assert_chars(&e, 1, "c\nd");
    qkv_encoded_free(&e);
    qkv_tokenizer_free(tok);
}

/* A piece of a row that was split has its own characters, whatever the tokenizer adds around a
 * text; one of a pair has those of both texts. */
static void characters_of_pieces(void **state) {
    (void)state;
    static const char marks[] = "{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"?\","
                                "\"vocab\":{\"?\":0,\"<s>\":1,\"</s>\":2}},"
                                "\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"},"
                                "\"post_processor\":{\"type\":\"BertProcessing\","
                                "\"cls\":[\"<s>\",1],\"sep\":[\"</s>\",2]}}";
    qkv_tokenizer *tok;
    assert_ok(qkv_tokenizer_parse("marks", marks, sizeof marks - 1, &tok));
    qkv_row rows[] = {{.text = {" ab  c de f ", 12}}, {.text = {"gh", 2}}, {.text = {"i j", 3}}};
    qkv_row pair = {.text = {"a b", 3}, .second = {"c", 1}};
    const qkv_tokenise_spec spec = {.sides = 1,
                                    .max_tokens = 3,
                                    .too_long = QKV_TOO_LONG_SPLIT,
                                    .columns = qkv_column_bit(QKV_COLUMN_CHARS)};
    qkv_tokenise_counts counts;
    qkv_encoded e;
    qkv_encoded_init(&e, 1);
    assert_ok(qkv_tokenise(tok, &(qkv_corpus){.rows = rows, .n = 3}, NULL, &spec, &e, &counts));
    assert_ok(qkv_tokenise(tok, &(qkv_corpus){.rows = &pair, .n = 1}, NULL, &spec, &e, &counts));
    assert_int_equal(e.n, 7);
    assert_chars(&e, 0, "ab c"); /* <s> ab c */
    assert_chars(&e, 1, "de f"); /* de f </s> */
    assert_chars(&e, 2, "gh");   /* <s> gh </s>: not split */
    assert_chars(&e, 3, "i j");  /* <s> i j */
    assert_chars(&e, 4, "");     /* </s> */
    assert_chars(&e, 5, "a b\nc");
    assert_chars(&e, 6, "a b\nc");
    qkv_encoded_free(&e);
    qkv_tokenizer_free(tok);
}

static void rows_in_two_sets(void **state) {
    (void)state;
    qkv_row a[LINES], b[LINES];
    qkv_corpus first, second;
    int64_t n, line;
    make_corpus(&first, a);
    make_corpus(&second, b);
    b[0].text = (qkv_text){"new", 3};
    b[1].second = (qkv_text){"x", 1}; /* a pair is not its first text */
    assert_ok(qkv_corpus_duplicates(&first, NULL, &second, NULL, &n, &line));
    assert_int_equal(n, 2);
    assert_int_equal(line, 12);
    const bool train[LINES] = {true, true, false, false}, valid[LINES] = {false, false, true, true};
    assert_ok(qkv_corpus_duplicates(&first, train, &first, valid, &n, &line));
    assert_int_equal(n, 0);
    assert_ok(qkv_corpus_duplicates(&first, NULL, &first, valid, &n, &line));
    assert_int_equal(n, 2);
}

/* Ids 10 … 19 go on with a word: all tokens of a word are guessed, or none;
 * about the asked share of words is. */
static void whole_words(void **state) {
    (void)state;
    enum { VOCAB = 20, N = 400, LENGTH = 20 };
    bool continues[VOCAB] = {0};
    for (int i = 10; i < VOCAB; i++) continues[i] = true;
    qkv_encoded e;
    qkv_encoded_init(&e, 1);
    for (int64_t i = 0; i < N; i++) {
        int32_t ids[LENGTH];
        for (int k = 0; k < LENGTH; k++)
            ids[k] = 4 + (int32_t)qkv_rng_below((qkv_rng){1, 2}, (uint64_t)(i * LENGTH + k), 16);
        assert_ok(qkv_encoded_add(&e, ids, LENGTH));
    }
    qkv_batcher b = {.data = &e, .budget = N * LENGTH};
    assert_ok(qkv_batcher_init(&b));
    qkv_batcher_plan(&b, 0);
    qkv_tape t;
    assert_ok(qkv_tape_init(&t));
    qkv_tape_begin(&t, QKV_TRAIN, 1, 1);
    const qkv_task_spec spec = {
        .mask = 3, .vocab_size = VOCAB, .n_special = 4, .continues = continues};
    int64_t n, words = 0, hidden = 0;
    const int64_t *examples = qkv_batcher_get(&b, 0, &n);
    qkv_batch batch = {.n_sequences = n};
    qkv_task_at(QKV_TASK_MLM)->assemble(&t, &spec, &b, examples, n, &batch);
    assert_ok(qkv_tape_status(&t));
    static int32_t by_row[N * LENGTH];
    assert_int_equal(batch.src.rows, N * LENGTH);
    memset(by_row, 0xff, sizeof by_row);
    for (int64_t i = 0; i < batch.n_targets; i++) {
        assert_true(i == 0 || batch.target_rows[i] > batch.target_rows[i - 1]);
        by_row[batch.target_rows[i]] = batch.targets[i];
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t length;
        const int32_t *ids = qkv_batcher_ids(&b, examples[i], 0, &length);
        const int32_t *targets = by_row + batch.src.layout.start[i];
        const int32_t *shown = batch.src.ids + batch.src.layout.start[i];
        for (int64_t k = 0; k < length; k++) {
            assert_int_equal(targets[k] >= 0 ? targets[k] : shown[k], ids[k]);
            if (k > 0 && continues[ids[k]])
                assert_int_equal(targets[k] >= 0, targets[k - 1] >= 0);
            else
                words++, hidden += targets[k] >= 0;
        }
    }
    assert_true(words > 1000);
    if (hidden * 100 < words * 12 || hidden * 100 > words * 18)
        fail_msg("%lld of %lld words are hidden", (long long)hidden, (long long)words);
    qkv_tape_free(&t);
    qkv_batcher_free(&b);
    qkv_encoded_free(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(over_long_rows),       cmocka_unit_test(characters),
        cmocka_unit_test(characters_of_pieces), cmocka_unit_test(rows_in_two_sets),
        cmocka_unit_test(whole_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
