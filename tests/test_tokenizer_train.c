/* Whole tokenizers trained on built-in text: every kind and split, exact ids of the file for any
 * number of threads, what was learned read back, decode(encode(s)), the errors,
 * and the explanations. */
#include "harness.h"
#include "text/tokenizer.h"

#include <stdlib.h>

/* ---- texts ---- */

typedef struct source {
    const char *const *lines;
    size_t n, at, repeat;
} source;

static bool next_line(void *user, const char **text, size_t *len) {
    source *s = user;
    if (s->at == s->n * s->repeat) return false;
    *text = s->lines[s->at++ % s->n];
    *len = strlen(*text);
    return true;
}

static const char *const english[] = {
    "The quick brown fox jumps over the lazy dog, and the dog does not mind.",
    "A quick answer is not always the best answer; the best answers take longer.",
    "Foxes jump, dogs bark, and the brown bear sleeps through the longest winter.",
    "low lower lowest new newer newest wide wider widest, he said: \"it's 2024!\"",
    "It does not matter how slowly you go as long as you do not stop jumping.",
};
static const char *const chinese[] = {
    "这个酒店的房间很干净，服务也很好。", "酒店的服务很好，房间也很大很干净！",
    "房间不大，但是很干净。早餐很好吃。", "早餐不好吃，服务也不好，下次不会再来这个酒店。",
    "这个酒店离地铁站很近，很方便。",
};

static qkv_status train(const qkv_tok_train *spec, const char *const *lines, size_t n,
                        qkv_tokenizer **out) {
    source s = {lines, n, 0, 3};
    return qkv_tokenizer_train(spec, next_line, &s, out);
}

/* ---- every kind on every split ---- */

typedef struct variant {
    const char *name;
    qkv_tok_kind kind;
    qkv_tok_split split;
    bool exact; /* decoding gives the text back, for text of the training's characters */
} variant;

static const variant variants[] = {
    {"bpe bytes", QKV_TOK_BPE, QKV_SPLIT_BYTE_LEVEL, true},
    {"bpe metaspace", QKV_TOK_BPE, QKV_SPLIT_METASPACE, true},
    {"bpe end of word", QKV_TOK_BPE, QKV_SPLIT_END_OF_WORD, true},
    {"bpe bert", QKV_TOK_BPE, QKV_SPLIT_BERT, false},
    {"unigram metaspace", QKV_TOK_UNIGRAM, QKV_SPLIT_METASPACE, true},
    {"unigram bytes", QKV_TOK_UNIGRAM, QKV_SPLIT_BYTE_LEVEL, true},
    {"wordpiece", QKV_TOK_WORDPIECE, QKV_SPLIT_BERT, false},
    {"char", QKV_TOK_CHAR, QKV_SPLIT_BERT, true},
    {"word end of word", QKV_TOK_WORD, QKV_SPLIT_END_OF_WORD, true},
    {"word metaspace", QKV_TOK_WORD, QKV_SPLIT_METASPACE, true},
    {"word bytes", QKV_TOK_WORD, QKV_SPLIT_BYTE_LEVEL, true},
    {"word bert", QKV_TOK_WORD, QKV_SPLIT_BERT, false},
};
enum { N_VARIANTS = sizeof variants / sizeof *variants };

static qkv_tok_train spec_of(const variant *v, size_t size) {
    static const char *const specials[] = {"<pad>", "<unk>", "<s>", "</s>"};
    return (qkv_tok_train){.kind = v->kind,
                           .split = v->split,
                           .vocab_size = size,
                           .specials = specials,
                           .n_specials = 4,
                           .coverage = 1};
}

static void assert_round_trip(const variant *v, const qkv_tokenizer *tok, const char *text) {
    qkv_encoding e = {0};
    qkv_buf back = {0};
    assert_ok(qkv_tokenizer_encode(tok, text, strlen(text), NULL, 0, NULL, &e));
    assert_true(e.n > 0);
    for (size_t i = 0; i < e.n; i++)
        if (e.ids[i] == qkv_tokenizer_special(tok, QKV_TOK_UNK))
            fail_msg("%s: token %zu of \"%s\" is unknown", v->name, i, text);
    assert_ok(qkv_tokenizer_decode(tok, e.ids, e.n, false, &back));
    if (v->exact && strcmp(back.data, text) != 0)
        fail_msg("%s: \"%s\" came back as \"%s\"", v->name, text, back.data);
    qkv_buf_free(&back);
    qkv_encoding_free(&e);
}

static void every_variant(void **state) {
    (void)state;
    for (size_t i = 0; i < N_VARIANTS; i++) {
        const variant *v = &variants[i];
        for (int language = 0; language < 2; language++) {
            const char *const *lines = language ? chinese : english;
            qkv_tok_train spec = spec_of(v, 400);
            bool capped = false;
            spec.capped = &capped;
            qkv_tokenizer *tok;
            assert_ok(train(&spec, lines, 5, &tok));
            assert_true(qkv_tokenizer_size(tok) <= 400);
            assert_true(capped == (qkv_tokenizer_size(tok) < 400));
            int32_t id;
            assert_true(qkv_tokenizer_id(tok, "</s>", 4, &id) && id == 3);
            for (size_t k = 0; k < 5; k++) assert_round_trip(v, tok, lines[k]);
            qkv_tokenizer_free(tok);
        }
    }
}

/* The file is the same for any number of threads, and reads back as the same tokenizer. */
static void same_file_for_any_threads(void **state) {
    (void)state;
    for (size_t i = 0; i < N_VARIANTS; i++) {
        const qkv_tok_train spec = spec_of(&variants[i], 330);
        qkv_buf first = {0};
        for (int threads = 1; threads <= 8; threads += threads == 3 ? 5 : 1) {
            qkv_threads_set(threads);
            qkv_tokenizer *tok;
            qkv_buf json = {0};
            assert_ok(train(&spec, english, 5, &tok));
            assert_ok(qkv_tokenizer_json(tok, threads == 1 ? &first : &json));
            if (threads > 1) assert_string_equal(json.data, first.data);
            qkv_buf_free(&json);
            qkv_tokenizer_free(tok);
        }
        qkv_tokenizer *read;
        qkv_buf again = {0};
        assert_ok(qkv_tokenizer_parse("trained", first.data, first.len, &read));
        for (size_t k = 0; k < 5; k++) assert_round_trip(&variants[i], read, english[k]);
        assert_ok(qkv_tokenizer_json(read, &again));
        assert_string_equal(again.data, first.data);
        qkv_buf_free(&again);
        qkv_buf_free(&first);
        qkv_tokenizer_free(read);
    }
    qkv_threads_set(0);
}

/* ---- sizes and odd texts ---- */

static void small_and_large(void **state) {
    (void)state;
    static const char *const one[] = {"a"}, *const nothing[] = {"", "   "};
    qkv_tokenizer *tok;
    bool capped;
    for (size_t i = 0; i < N_VARIANTS; i++) {
        const variant *v = &variants[i];
        qkv_tok_train spec = spec_of(v, 100000000);
        spec.capped = &capped;
        assert_ok(train(&spec, one, 1, &tok)); /* one character */
        assert_true(capped);
        assert_round_trip(v, tok, "a");
        qkv_tokenizer_free(tok);
        assert_ok(train(&spec, english, 5, &tok)); /* far more than the text supports */
        assert_true(capped && qkv_tokenizer_size(tok) < 1000);
        qkv_tokenizer_free(tok);
        assert_fails(train(&spec, NULL, 0, &tok), QKV_USAGE, "nothing to train");
        assert_null(tok);
        if (v->split == QKV_SPLIT_BERT && v->kind != QKV_TOK_CHAR)
            assert_fails(train(&spec, nothing, 2, &tok), QKV_USAGE, "no word");
    }
}

/* An alphabet that does not fit: the most frequent characters stay, the rest is unknown. */
static void alphabet_that_does_not_fit(void **state) {
    (void)state;
    for (size_t i = 0; i < N_VARIANTS; i++) {
        const variant *v = &variants[i];
        if (v->split == QKV_SPLIT_BYTE_LEVEL || v->kind == QKV_TOK_WORD) continue;
        qkv_tokenizer *tok;
        const qkv_tok_train spec = spec_of(v, 12);
        assert_ok(train(&spec, chinese, 5, &tok));
        assert_true(qkv_tokenizer_size(tok) <= 12);
        qkv_encoding e = {0};
        assert_ok(qkv_tokenizer_encode(tok, "\xe9\xbe\x99", 3, NULL, 0, NULL, &e));
        assert_true(e.n >= 1 && e.ids[e.n - 1] == qkv_tokenizer_special(tok, QKV_TOK_UNK));
        qkv_encoding_free(&e);
        qkv_tokenizer_free(tok);
    }
}

static void wrong_requests(void **state) {
    (void)state;
    static const char *const twice[] = {"<s>", "<s>"}, *const empty[] = {""};
    static const struct {
        qkv_tok_train spec;
        const char *words;
    } cases[] = {
        {{.kind = QKV_TOK_KINDS, .vocab_size = 300}, "no such kind"},
        {{.split = QKV_SPLITS, .vocab_size = 300}, "no such kind"},
        {{.kind = QKV_TOK_WORDPIECE, .split = QKV_SPLIT_METASPACE, .vocab_size = 300},
         "cannot be trained"},
        {{.kind = QKV_TOK_UNIGRAM, .split = QKV_SPLIT_BERT, .vocab_size = 300},
         "cannot be trained"},
        {{.vocab_size = 0}, "too small"},
        {{.vocab_size = 255}, "256 bytes"},
        {{.vocab_size = 300, .coverage = 1.5}, "share from 0 to 1"},
        {{.vocab_size = 300, .specials = twice, .n_specials = 2}, "given twice"},
        {{.vocab_size = 300, .specials = empty, .n_specials = 1}, "empty"},
        {{.kind = QKV_TOK_UNIGRAM,
          .split = QKV_SPLIT_METASPACE,
          .vocab_size = 300,
          .max_piece = 99},
         "at most 31"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkv_tokenizer *tok;
        assert_fails(train(&cases[i].spec, english, 5, &tok), QKV_USAGE, cases[i].words);
        assert_null(tok);
    }
}

static void hostile_bytes(void **state) {
    (void)state;
    static const char *const lines[] = {"\xff\xfe\x80 ok \xc3",
                                        "\xed\xa0\x80\xf4\x90\x80\x80 <unk> <s>",
                                        "\x01\x02\x7f \xe2\x96\x81 </w> ## \xef\xbf\xbd"};
    for (size_t i = 0; i < N_VARIANTS; i++) {
        qkv_tokenizer *tok;
        const qkv_tok_train spec = spec_of(&variants[i], 300);
        assert_ok(train(&spec, lines, 3, &tok));
        qkv_encoding e = {0};
        for (size_t k = 0; k < 3; k++)
            assert_ok(qkv_tokenizer_encode(tok, lines[k], strlen(lines[k]), NULL, 0, NULL, &e));
        qkv_encoding_free(&e);
        qkv_tokenizer_free(tok);
    }
}

/* ---- options ---- */

static void lowercase_and_sampling(void **state) {
    (void)state;
    qkv_tok_train spec = spec_of(&variants[1], 300);
    spec.lowercase = true;
    qkv_tokenizer *tok;
    assert_ok(train(&spec, english, 5, &tok));
    for (int32_t id = 4; id < (int32_t)qkv_tokenizer_size(tok); id++) {
        size_t len;
        const char *text = qkv_tokenizer_token(tok, id, &len);
        for (size_t i = 0; i < len; i++) assert_false(text[i] >= 'A' && text[i] <= 'Z');
    }
    qkv_tokenizer_free(tok);
    qkv_buf json[3] = {{0}};
    for (int k = 0; k < 3; k++) { /* two with one seed, one with another */
        spec = spec_of(&variants[8], 300);
        spec.sample_lines = 2;
        spec.seed = k == 2 ? 4 : 1;
        assert_ok(train(&spec, english, 5, &tok));
        assert_ok(qkv_tokenizer_json(tok, &json[k]));
        qkv_tokenizer_free(tok);
    }
    assert_string_equal(json[0].data, json[1].data);
    assert_string_not_equal(json[0].data, json[2].data);
    for (int k = 0; k < 3; k++) qkv_buf_free(&json[k]);
}

/* BERT's pieces come with BERT's frame. */
static void bert_template(void **state) {
    (void)state;
    static const char *const specials[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};
    const qkv_tok_train spec = {.kind = QKV_TOK_WORDPIECE,
                                .split = QKV_SPLIT_BERT,
                                .vocab_size = 200,
                                .specials = specials,
                                .n_specials = 5};
    qkv_tokenizer *tok;
    assert_ok(train(&spec, english, 5, &tok));
    qkv_encoding e = {0};
    assert_ok(qkv_tokenizer_encode(tok, "the fox", 7, "dog", 3, NULL, &e));
    assert_int_equal(e.ids[0], 2);
    assert_int_equal(e.ids[e.n - 1], 3);
    assert_int_equal(e.type[e.n - 1], 1);
    qkv_encoding_free(&e);
    qkv_tokenizer_free(tok);
}

/* ---- explanations ---- */

static void explanations(void **state) {
    (void)state;
    static const struct {
        size_t variant;
        const char *lowest, *needed[3];
    } cases[] = {
        {2, "lowest", {"start with", "l o w e s t</w>", "merge 2 "}},
        {4, "lowest", {"log prob.", "best path: ", "\xe2\x96\x81"}},
        {6, "lowestest", {"longest beginning of \"lowestest\"", "tokens:", "##"}},
        {8, "lowest", {"in the vocabulary", "word 1: lowest", "tokens:"}},
        {0, "lowest \xff", {"start with", "\xc4\xa0", "tokens:"}},
        {0, "gr\xc3\xb6\xc3\x9f", {"word 1: gr\xc3\xb6\xc3\x9f", "<C3> <B6>", "tokens:"}},
        {7, "lo", {"start with", "l o", "tokens:"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkv_tokenizer *tok;
        char *text;
        const qkv_tok_train spec = spec_of(&variants[cases[i].variant], 330);
        assert_ok(train(&spec, english, 5, &tok));
        assert_ok(qkv_tokenizer_explain(tok, cases[i].lowest, strlen(cases[i].lowest), &text));
        for (int k = 0; k < 3; k++)
            if (!strstr(text, cases[i].needed[k]))
                fail_msg("the explanation lacks \"%s\":\n%s", cases[i].needed[k], text);
        qkv_text_free(text);
        assert_ok(qkv_tokenizer_explain(tok, "", 0, &text));
        qkv_text_free(text);
        qkv_tokenizer_free(tok);
    }
}

/* ---- no memory ---- */

static qkv_status train_once(const void *spec) {
    static const char *const lines[] = {"low lower newest widest low"};
    qkv_tokenizer *tok;
    const qkv_status status = train(spec, lines, 1, &tok);
    if (tok) qkv_tokenizer_free(tok);
    return status;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    qkv_threads_set(1);
    static const size_t tried[] = {1, 4, 6, 8};
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        const qkv_tok_train spec = spec_of(&variants[tried[i]], 40);
        assert_fails_cleanly(train_once, &spec, 0);
    }
    qkv_threads_set(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_variant),          cmocka_unit_test(same_file_for_any_threads),
        cmocka_unit_test(small_and_large),        cmocka_unit_test(alphabet_that_does_not_fit),
        cmocka_unit_test(wrong_requests),         cmocka_unit_test(hostile_bytes),
        cmocka_unit_test(lowercase_and_sampling), cmocka_unit_test(bert_template),
        cmocka_unit_test(explanations),           cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
