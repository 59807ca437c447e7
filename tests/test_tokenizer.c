/* Tokenizers: small ones written here, whose ids can be checked by hand; hostile files; and, where
 * the data folder is present, the originals' own vectors. */
#include "harness.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "text/pipeline.h"

#include <stdlib.h>

/* ---- helpers ---- */

static qkv_tokenizer *parse(const char *json) {
    qkv_tokenizer *tok = NULL;
    assert_ok(qkv_tokenizer_parse("test", json, strlen(json), &tok));
    return tok;
}

static void assert_ids(const qkv_encoding *e, const int32_t *want, size_t n) {
    if (e->n == n && !memcmp(e->ids, want, n * sizeof *want)) return;
    char got[512];
    size_t at = 0;
    for (size_t i = 0; i < e->n && at < sizeof got - 16; i++)
        at += (size_t)snprintf(got + at, 16, " %d", e->ids[i]);
    fail_msg("%zu ids, wanted %zu:%s", e->n, n, e->n ? got : "");
}

static void assert_encodes(const qkv_tokenizer *tok, const char *text, const int32_t *want,
                           size_t n) {
    qkv_encoding e = {0};
    assert_ok(qkv_tokenizer_encode(tok, text, strlen(text), NULL, 0, NULL, &e));
    assert_ids(&e, want, n);
    qkv_encoding_free(&e);
}
#define ENCODES(tok, text, ...)                                                                    \
    do {                                                                                           \
        const int32_t want_[] = {__VA_ARGS__};                                                     \
        assert_encodes(tok, text, want_, sizeof want_ / sizeof *want_);                            \
    } while (0)

static void assert_decodes(const qkv_tokenizer *tok, const int32_t *ids, size_t n, bool keep,
                           const char *want) {
    qkv_buf out = {0};
    assert_ok(qkv_tokenizer_decode(tok, ids, n, keep, &out));
    assert_string_equal(out.data ? out.data : "", want);
    qkv_buf_free(&out);
}

/* ---- the models, small ---- */

#define WORDPIECE                                                                                  \
    "{\"version\":\"1.0\",\"added_tokens\":[{\"id\":0,\"content\":\"[UNK]\",\"special\":true,"     \
    "\"normalized\":false},"                                                                       \
    "{\"id\":1,\"content\":\"[CLS]\",\"special\":true,\"normalized\":false},{\"id\":2,"            \
    "\"content\":\"[SEP]\","                                                                       \
    "\"special\":true,\"normalized\":false}],\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_" \
    "text\":true,"                                                                                 \
    "\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":true},\"pre_tokenizer\":{" \
    "\"type\":"                                                                                    \
    "\"BertPreTokenizer\"},\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\",2]," \
    "\"cls\":"                                                                                     \
    "[\"[CLS]\",1]},\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true},"      \
    "\"model\":{\"type\":"                                                                         \
    "\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\",\"max_input_"      \
    "chars_per_word\":10,"                                                                         \
    "\"vocab\":{\"[UNK]\":0,\"[CLS]\":1,\"[SEP]\":2,\"play\":3,\"##ing\":4,\"##ed\":5,\"cafe\":6," \
    "\",\":7,"                                                                                     \
    "\"\xE4\xB8\xAD\":8,\"p\":9,\"##l\":10,\".\":11}}}"

static void test_wordpiece(void **state) {
    (void)state;
    qkv_tokenizer *tok = parse(WORDPIECE);
    ENCODES(tok, "Playing, PLAYED", 1, 3, 4, 7, 3, 5, 2);
    ENCODES(tok, "Caf\xC3\xA9 \xE4\xB8\xAD\xE4\xB8\xAD", 1, 6, 8, 8,
            2);                                   /* accents fall away, Chinese stands apart */
    ENCODES(tok, "plx playplayplay", 1, 0, 0, 2); /* no cover; too long */
    ENCODES(tok, "[SEP]play", 1, 2, 3, 2);
    ENCODES(tok, "", 1, 2);
    assert_decodes(tok, (const int32_t[]){1, 3, 4, 7, 3, 5, 11, 2}, 8, false, "playing, played.");
    assert_int_equal(qkv_tokenizer_special(tok, QKV_TOK_CLS), 1);
    assert_int_equal(qkv_tokenizer_size(tok), 12);
    qkv_tokenizer_free(tok);
}

static void test_offsets_pair_and_limit(void **state) {
    (void)state;
    qkv_tokenizer *tok = parse(WORDPIECE);
    qkv_encoding e = {0};
    const char *text = "  Caf\xC3\xA9 playing";
    assert_ok(qkv_tokenizer_encode(tok, text, strlen(text), NULL, 0,
                                   &(qkv_encode_options){.offsets = true}, &e));
    assert_ids(&e, (const int32_t[]){1, 6, 3, 4, 2}, 5);
    const uint32_t begin[] = {0, 2, 8, 12, 0}, end[] = {0, 7, 12, 15, 0}; /* bytes; é has two */
    assert_memory_equal(e.begin, begin, sizeof begin);
    assert_memory_equal(e.end, end, sizeof end);
    assert_null(e.type);
    assert_ok(qkv_tokenizer_encode(tok, "play play play", 14, "cafe", 4,
                                   &(qkv_encode_options){.max_tokens = 6}, &e));
    assert_ids(&e, (const int32_t[]){1, 3, 3, 2, 6, 2}, 6);
    assert_true(e.cut);
    assert_memory_equal(e.type, ((const uint8_t[]){0, 0, 0, 0, 1, 1}), 6);
    assert_ok(qkv_tokenizer_encode(tok, "play play", 9, NULL, 0,
                                   &(qkv_encode_options){.no_special = true}, &e));
    assert_ids(&e, (const int32_t[]){3, 3}, 2);
    assert_false(e.cut);
    qkv_encoding_free(&e);
    qkv_tokenizer_free(tok);
}

#define UNIGRAM                                                                                    \
    "{\"version\":\"1.0\",\"added_tokens\":[],\"normalizer\":null,\"pre_tokenizer\":{\"type\":"    \
    "\"Metaspace\","                                                                               \
    "\"replacement\":\"\xE2\x96\x81\",\"prepend_scheme\":\"always\",\"split\":true},\"post_"       \
    "processor\":null,"                                                                            \
    "\"decoder\":{\"type\":\"Metaspace\",\"replacement\":\"\xE2\x96\x81\",\"prepend_scheme\":"     \
    "\"always\"},\"model\":"                                                                       \
    "{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"\xE2\x96\x81\",-3],[\"a\",-2]" \
    ",[\"b\",-2.5],"                                                                               \
    "[\"ab\",-3],[\"\xE2\x96\x81"                                                                  \
    "ab\",-5.5],[\"abab\",-7]]}}"

static void test_unigram(void **state) {
    (void)state;
    qkv_tokenizer *tok = parse(UNIGRAM);
    ENCODES(tok, "ab", 5);      /* −5.5 beats −3 − 3 */
    ENCODES(tok, "abab", 5, 4); /* −8.5 beats −3 − 7 */
    ENCODES(tok, "a  b", 1, 2, 1, 1, 3);
    ENCODES(tok, "xyab", 1, 0, 4); /* unknown characters in a row are one token */
    assert_decodes(tok, (const int32_t[]){5, 4, 5}, 3, false, "abab ab");
    qkv_encoding a = {0}, b = {0};
    const qkv_encode_options sampled = {.dropout = 0.2, .seed = 7};
    size_t different = 0;
    for (uint64_t i = 0; i < 50;
         i++) { /* the same seed gives the same path, another one sometimes another */
        qkv_encode_options o = sampled;
        o.stream = i;
        assert_ok(qkv_tokenizer_encode(tok, "abababab", 8, NULL, 0, &o, &a));
        assert_ok(qkv_tokenizer_encode(tok, "abababab", 8, NULL, 0, &o, &b));
        assert_ids(&a, b.ids, b.n);
        assert_decodes(tok, a.ids, a.n, false, "abababab");
        different += a.n != 4;
    }
    assert_true(different > 5);
    qkv_encoding_free(&a);
    qkv_encoding_free(&b);
    qkv_tokenizer_free(tok);
}

/* A byte-level BPE with all bytes (ids 0 … 255) and a few merges, built as a trainer would. */
static qkv_tokenizer *byte_tokenizer(void) {
    qkv_tokenizer *tok;
    qkv_buf names[259] = {0};
    qkv_text tokens[259];
    for (int i = 0; i < 256; i++) qkv_byte_level_name((const char[]){(char)i}, 1, &names[i]);
    qkv_byte_level_name("aa", 2, &names[256]);
    qkv_byte_level_name(" a", 2, &names[257]);
    qkv_byte_level_name("aaaa", 4, &names[258]);
    for (int i = 0; i < 259; i++) tokens[i] = (qkv_text){names[i].data, names[i].len};
    const qkv_merge merges[] = {{'a', 'a', 256}, {' ', 'a', 257}, {256, 256, 258}};
    assert_ok(qkv_tokenizer_new(&tok));
    assert_ok(qkv_tokenizer_set_bpe(tok, tokens, 259, merges, 3, &(qkv_bpe_options){0}));
    assert_ok(qkv_tokenizer_set_stage(tok, QKV_STAGE_PRETOKENIZER,
                                      "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"));
    assert_ok(qkv_tokenizer_set_stage(tok, QKV_STAGE_DECODER, "{\"type\":\"ByteLevel\"}"));
    assert_ok(qkv_tokenizer_add_token(
        tok, &(qkv_added){.text = "<end>", .len = 5, .id = 259, .special = true, .lstrip = true}));
    assert_ok(qkv_tokenizer_finish(tok));
    for (int i = 0; i < 259; i++) qkv_buf_free(&names[i]);
    return tok;
}

static void test_bpe(void **state) {
    (void)state;
    qkv_tokenizer *tok = byte_tokenizer();
    ENCODES(tok, "aaaaa a", 258, 'a', 257);
    ENCODES(tok, "b'll 12", 'b', '\'', 'l', 'l', ' ', '1', '2');
    ENCODES(tok, "aa  <end>a", 256, 259, 'a');
    ENCODES(tok, " aa", ' ', 256); /* the lowest rank first, not the leftmost */
    qkv_encoding e = {0};
    assert_ok(
        qkv_tokenizer_encode(tok, "aaaa", 4, NULL, 0, &(qkv_encode_options){.dropout = 1}, &e));
    assert_ids(&e, (const int32_t[]){'a', 'a', 'a', 'a'}, 4);
    qkv_encoding_free(&e);
    qkv_tokenizer_free(tok);
}

/* Any bytes come back exactly, at once and streamed, and a stream never ends inside a character. */
static void test_round_trip(void **state) {
    (void)state;
    qkv_tokenizer *tok = byte_tokenizer();
    const qkv_rng rng = {.seed = 3};
    qkv_encoding e = {0};
    qkv_buf out = {0}, streamed = {0};
    for (uint64_t round = 0; round < 300; round++) {
        char text[80];
        const size_t n = qkv_rng_below(rng, 100 * round, sizeof text);
        static const char *const parts[] = {"\xE4\xBD\xA0", "a",    " ", "\xF0\x9F\x8F\xB3",
                                            "\xFF",         "\xC3", "\n"};
        for (size_t i = 0; i < n; i++) text[i] = (char)qkv_rng_u32(rng, 100 * round + i + 1);
        if (round % 2)
            for (size_t i = 0; i + 4 < n; i += 4) {
                const char *part = parts[qkv_rng_below(rng, 100 * round + i, 7)];
                memset(text + i, 'a', 4);
                memcpy(text + i, part, strlen(part));
            }
        assert_ok(qkv_tokenizer_encode(tok, text, n, NULL, 0, NULL, &e));
        qkv_buf_clear(&out);
        qkv_buf_clear(&streamed);
        assert_ok(qkv_tokenizer_decode(tok, e.ids, e.n, false, &out));
        assert_int_equal(out.len, n);
        if (n) assert_memory_equal(out.data, text, n);
        qkv_decode_stream *s;
        assert_ok(qkv_decode_stream_new(tok, false, &s));
        for (size_t i = 0; i < e.n; i++) assert_ok(qkv_decode_stream_push(s, e.ids[i], &streamed));
        assert_ok(qkv_decode_stream_end(s, &streamed));
        qkv_decode_stream_free(s);
        assert_int_equal(streamed.len, n);
        if (n) assert_memory_equal(streamed.data, text, n);
    }
    qkv_buf_free(&out);
    qkv_buf_free(&streamed);
    qkv_encoding_free(&e);
    qkv_tokenizer_free(tok);
}

/* What is written is read back as the same tokenizer. */
static void test_write(void **state) {
    (void)state;
    static const char *const files[] = {WORDPIECE, UNIGRAM};
    for (size_t i = 0; i < 2; i++) {
        qkv_tokenizer *tok = parse(files[i]), *again = NULL;
        qkv_buf first = {0}, second = {0};
        assert_ok(qkv_tokenizer_json(tok, &first));
        assert_ok(qkv_tokenizer_parse("written", first.data, first.len, &again));
        assert_ok(qkv_tokenizer_json(again, &second));
        assert_string_equal(first.data, second.data);
        qkv_buf_free(&first);
        qkv_buf_free(&second);
        qkv_tokenizer_free(tok);
        qkv_tokenizer_free(again);
    }
}

/* A batch is the texts one by one, whatever the threads; so is what dropout draws. */
static void test_batch(void **state) {
    (void)state;
    qkv_tokenizer *tok = byte_tokenizer();
    enum { N = 100 };
    qkv_text texts[N];
    qkv_encoding one[N] = {0}, two[N] = {0};
    static const char line[] = "aaaaaaaa aaaa";
    for (size_t i = 0; i < N; i++) texts[i] = (qkv_text){&line[i % 8], 13 - i % 8};
    for (int dropout = 0; dropout < 2; dropout++) {
        const qkv_encode_options o = {.dropout = 0.5 * dropout, .seed = 9};
        qkv_threads_set(1);
        assert_ok(qkv_tokenizer_encode_batch(tok, texts, N, &o, one));
        qkv_threads_set(3);
        assert_ok(qkv_tokenizer_encode_batch(tok, texts, N, &o, two));
        for (size_t i = 0; i < N; i++) assert_ids(&two[i], one[i].ids, one[i].n);
    }
    for (size_t i = 0; i < N; i++) {
        qkv_encoding_free(&one[i]);
        qkv_encoding_free(&two[i]);
    }
    qkv_tokenizer_free(tok);
}

/* A mebibyte that is one word: n log n, not its square. */
static void test_long_words(void **state) {
    (void)state;
    qkv_tokenizer *tok = byte_tokenizer();
    const size_t n = 1 << 20;
    char *text = qkv_alloc(n);
    assert_non_null(text);
    qkv_encoding e = {0};
    static const char letters[] = {'a', '_', ' '};
    for (size_t i = 0; i < sizeof letters; i++) {
        memset(text, letters[i], n);
        const double start = qkv_now();
        assert_ok(qkv_tokenizer_encode(tok, text, n, NULL, 0, NULL, &e));
        assert_true(qkv_now() - start < 5); /* the square would take hours */
        assert_int_equal(e.n, letters[i] == 'a' ? n / 4 : n);
    }
    qkv_free(text);
    qkv_encoding_free(&e);
    qkv_tokenizer_free(tok);
}

/* ---- files that are something else ---- */

static void test_wrong_files(void **state) {
    (void)state;
    static const struct {
        const char *data, *words;
    } cases[] = {
        {"<!DOCTYPE html><html></html>", "HTML"},
        {"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "Git LFS"},
        {"\x80\x04\x95", "pickle"},
        {"PK\x03\x04", "ZIP"},
        {"", "empty"},
        {"   \n", "empty"},
        {"hello\nworld\n", "not a tokenizer"},
        {"{\"a\":1}", "model"},
        {"{\"version\":\"2.0\",\"model\":{}}", "version"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a b\"]}}", "second part"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}}", "id"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":4194304},\"merges\":[]}}", "id"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]},\"normalizer\":{\"type\":"
         "\"What\"}}",
         "What"},
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]},\"pre_tokenizer\":{"
         "\"type\":\"Split\","
         "\"pattern\":{\"Regex\":\"(\"},\"behavior\":\"Isolated\"}}",
         "regular expression"},
        {"{\"version\":\"1.0\",\"model\":{\"type\":\"BPE\",\"vo", "a truncated download"},
        {"GGUF\3\0\0", "header"},
        {"YQ== 0\nYg= 1\n", "base64"},
        {"YQ== 99999999\n", "rank"},
        {"YQ== 0\nYg==", "a truncated download"},
        {"\n<HTML><head>", "an HTML page"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkv_tokenizer *tok = NULL;
        const size_t n = i == 15 ? 7 : strlen(cases[i].data);
        assert_fails(qkv_tokenizer_parse("file", cases[i].data, n, &tok), QKV_BAD_FILE,
                     cases[i].words);
        assert_null(tok);
    }
    qkv_tokenizer *tok = parse("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":4194303},\"merges\":["
                               "]}}"); /* the cap itself */
    qkv_tokenizer_free(tok);
    assert_fails(qkv_tokenizer_open("no/such/file", &tok), QKV_FAILED, "no/such/file");
}

/* A pattern that backtracks without end stops at the limit. */
static void test_hostile_regex(void **state) {
    (void)state;
    qkv_tokenizer *tok =
        parse("{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0,\"<unk>\":1},\"unk_token\":\"<"
              "unk>\"},\"pre_tokenizer\":"
              "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(a+)+$\"},\"behavior\":\"Isolated\"}}");
    qkv_encoding e = {0};
    const double start = qkv_now();
    assert_fails(qkv_tokenizer_encode(tok, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", 41, NULL, 0,
                                      NULL, &e),
                 QKV_BAD_FILE, "limit");
    assert_true(qkv_now() - start < 5);
    qkv_encoding_free(&e);
    qkv_tokenizer_free(tok);
}

/* ---- mutations ---- */

/* A SentencePiece model of four pieces, byte by byte. */
static const char spm[] = "\x0A\x0E\x0A\x05<unk>\x15\0\0\0\0\x18\2"
                          "\x0A\x0B\x0A\4\xE2\x96\x81"
                          "a\x15\0\0\x80\xBF"
                          "\x0A\x08\x0A\1a\x15\0\0\0\xC0"
                          "\x0A\x08\x0A\1b\x15\0\0\x40\xC0"
                          "\x12\2\x18\1\x1A\2\x18\1";

static void test_sentencepiece(void **state) {
    (void)state;
    qkv_tokenizer *tok = NULL;
    assert_ok(qkv_tokenizer_parse("spm", spm, sizeof spm - 1, &tok));
    ENCODES(tok, "  ab  a ", 1, 3, 1);
    ENCODES(tok, "bx", 0, 3, 0); /* ▁ alone is no piece */
    assert_decodes(tok, (const int32_t[]){1, 3, 1}, 3, false, "ab a");
    qkv_tokenizer_free(tok);
}

static const char gguf[] =
    "GGUF\3\0\0\0\0\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0"
    "\x14\0\0\0\0\0\0\0tokenizer.ggml.model\x8\0\0\0\5\0\0\0\0\0\0\0llama"
    "\x15\0\0\0\0\0\0\0tokenizer.ggml.tokens\x9\0\0\0\x8\0\0\0\3\0\0\0\0\0\0\0"
    "\3\0\0\0\0\0\0\0\xE2\x96\x81\1\0\0\0\0\0\0\0a\4\0\0\0\0\0\0\0\xE2\x96\x81"
    "a"
    "\x15\0\0\0\0\0\0\0tokenizer.ggml.scores\x9\0\0\0\6\0\0\0\3\0\0\0\0\0\0\0"
    "\0\0\x80\xBF\0\0\0\xC0\0\0\0\0";

static void test_gguf(void **state) {
    (void)state;
    qkv_tokenizer *tok = NULL;
    assert_ok(qkv_tokenizer_parse("gguf", gguf, sizeof gguf - 1, &tok));
    ENCODES(tok, "a a", 2, 2);
    ENCODES(tok, "aa", 2, 1);
    qkv_tokenizer_free(tok);
    for (size_t n = 4; n < sizeof gguf - 1; n++) /* cut anywhere, it is refused */
        assert_fails(qkv_tokenizer_parse("gguf", gguf, n, &tok), QKV_BAD_FILE, "gguf");
    char copy[sizeof gguf];
    for (char type = 0; type < 14; type++) { /* a wrong type is named, not believed */
        memcpy(copy, gguf, sizeof gguf);
        char *at = memmem(copy, sizeof copy, "scores", 6);
        at[10] = type;
        if (type != 6)
            assert_fails(qkv_tokenizer_parse("gguf", copy, sizeof copy - 1, &tok), QKV_BAD_FILE,
                         "gguf");
    }
}

static void try_bytes(const char *data, size_t n) {
    qkv_tokenizer *tok = NULL;
    if (qkv_tokenizer_parse("mutant", data, n, &tok) != QKV_OK) {
        assert_true(qkv_error()[0] != 0);
        return;
    }
    qkv_encoding e = {0};
    qkv_buf out = {0};
    static const char text[] = "a abab \xC3\xA9<end> playing \xFF\n\xE4\xB8\xAD";
    if (qkv_tokenizer_encode(tok, text, sizeof text - 1, NULL, 0,
                             &(qkv_encode_options){.offsets = true}, &e) == QKV_OK)
        qkv_tokenizer_decode(tok, e.ids, e.n, true, &out);
    qkv_encoding_free(&e);
    qkv_buf_free(&out);
    qkv_tokenizer_free(tok);
}

static void test_mutations(void **state) {
    (void)state;
    static const char ranks[] = "YQ== 0\nYg== 1\nYWI= 2\n";
    static const struct {
        const char *data;
        size_t n;
    } seeds[] = {{WORDPIECE, sizeof WORDPIECE - 1},
                 {UNIGRAM, sizeof UNIGRAM - 1},
                 {spm, sizeof spm - 1},
                 {gguf, sizeof gguf - 1},
                 {ranks, sizeof ranks - 1}};
    const qkv_rng rng = {.seed = 11};
    char copy[4096];
    for (uint64_t round = 0; round < 20000; round++) {
        const size_t s = round % 5;
        size_t n = seeds[s].n;
        assert_true(n < sizeof copy);
        memcpy(copy, seeds[s].data, n);
        const uint64_t flips = 1 + qkv_rng_below(rng, 20 * round, 4);
        for (uint64_t f = 0; f < flips; f++) {
            const size_t at = qkv_rng_below(rng, 20 * round + 2 * f + 1, n);
            const uint32_t what = qkv_rng_u32(rng, 20 * round + 2 * f + 2);
            copy[at] = what % 3 == 0   ? (char)(copy[at] ^ (1 << (what >> 8) % 8))
                       : what % 3 == 1 ? (char)(what >> 16)
                                       : copy[(at + 7) % n];
        }
        if (round % 11 == 0) n = qkv_rng_below(rng, 20 * round + 19, n);
        char *exact = qkv_alloc(n + 1); /* so that a step too far is seen */
        memcpy(exact, copy, n);
        try_bytes(exact, n);
        qkv_free(exact);
    }
}

static qkv_status read_and_encode(const void *file) {
    qkv_tokenizer *tok = NULL;
    qkv_encoding e = {0};
    qkv_status status = qkv_tokenizer_parse("test", file, strlen(file), &tok);
    if (status == QKV_OK) status = qkv_tokenizer_encode(tok, "playing abab", 12, NULL, 0, NULL, &e);
    qkv_encoding_free(&e);
    qkv_tokenizer_free(tok);
    return status;
}

static void test_no_memory(void **state) {
    (void)state;
    /* Without a cache of words, each is looked up. */
    assert_fails_cleanly(read_and_encode, WORDPIECE, 1);
    assert_fails_cleanly(read_and_encode, UNIGRAM, 1);
}

/* ---- the originals' vectors ---- */

/* A file of the data folder, unpacked; false when it is not there. */
static bool read_data(const char *name, qkv_buf *out) {
    char path[1024];
    const char *root = getenv("QKV_DATA");
    snprintf(path, sizeof path, "xz -dc '%s/%s.xz' 2>/dev/null", root ? root : "none", name);
    FILE *pipe = popen(path, "r");
    qkv_buf_clear(out);
    char block[65536];
    for (size_t n; pipe && (n = fread(block, 1, sizeof block, pipe));) qkv_buf_add(out, block, n);
    if (pipe) pclose(pipe);
    if (!out->len) print_message("left out: %s is not there\n", name);
    return out->len > 0;
}

static bool open_data(const char *name, qkv_tokenizer **tok) {
    qkv_buf data = {0};
    const bool there = read_data(name, &data);
    if (there) assert_ok(qkv_tokenizer_parse(name, data.data, data.len, tok));
    qkv_buf_free(&data);
    return there;
}

static size_t json_ids(qkv_json_at list, int32_t *out, size_t max) {
    size_t n = 0;
    qkv_json_at at;
    for (bool more = qkv_json_first(list, &at); more && n < max; more = qkv_json_next(list, &at)) {
        int64_t id;
        assert_true(qkv_json_integer(at, 0, INT32_MAX, &id));
        out[n++] = (int32_t)id;
    }
    return n;
}

static const qkv_json_limits no_limits = {.bytes = 1u << 30, .nodes = 1u << 26, .depth = 64};

static void test_squad(void **state) {
    (void)state;
    qkv_tokenizer *tok;
    qkv_buf questions = {0}, ids = {0};
    if (!open_data("tokenizers/bert-base-uncased/tokenizer.json", &tok)) return;
    assert_true(
        read_data("tokenizers/vectors-swift-transformers/question_tokens.json", &questions));
    assert_true(read_data("tokenizers/vectors-swift-transformers/tokenized_questions.json", &ids));
    qkv_json q, a;
    assert_ok(qkv_json_parse(&q, "questions", questions.data, questions.len, no_limits));
    assert_ok(qkv_json_parse(&a, "ids", ids.data, ids.len, no_limits));
    qkv_json_at question, list, text;
    qkv_encoding e = {0};
    size_t n = 0;
    int32_t want[512];
    bool more =
        qkv_json_first(qkv_json_root(&q), &question) && qkv_json_first(qkv_json_root(&a), &list);
    for (; more; more = qkv_json_next(qkv_json_root(&q), &question) &&
                        qkv_json_next(qkv_json_root(&a), &list),
                 n++) {
        const char *data;
        size_t len;
        assert_true(qkv_json_member(question, "original", &text));
        qkv_json_string(text, &data, &len);
        assert_ok(qkv_tokenizer_encode(tok, data, len, NULL, 0,
                                       &(qkv_encode_options){.no_special = true}, &e));
        assert_ids(&e, want, json_ids(list, want, 512));
    }
    assert_int_equal(n, 10570);
    qkv_encoding_free(&e);
    qkv_json_free(&q);
    qkv_json_free(&a);
    qkv_buf_free(&questions);
    qkv_buf_free(&ids);
    qkv_tokenizer_free(tok);
}

static void check_llama_cpp(const char *name) {
    char path[256];
    qkv_tokenizer *tok;
    qkv_buf in = {0}, out = {0};
    snprintf(path, sizeof path, "tokenizers/llama.cpp-vocab/ggml-vocab-%s.gguf", name);
    if (!open_data(path, &tok)) return;
    snprintf(path, sizeof path, "tokenizers/llama.cpp-vocab/ggml-vocab-%s.gguf.inp", name);
    assert_true(read_data(path, &in));
    snprintf(path, sizeof path, "tokenizers/llama.cpp-vocab/ggml-vocab-%s.gguf.out", name);
    assert_true(read_data(path, &out));
    static const char mark[] = "\n__ggml_vocab_test__\n";
    qkv_encoding e = {0};
    const char *text = in.data, *end = in.data + in.len, *line = out.data;
    size_t n = 0;
    while (text < end && *line) {
        const char *stop = memmem(text, (size_t)(end - text), mark, sizeof mark - 1);
        if (!stop) break;
        int32_t want[512];
        size_t k = 0;
        char *at = (char *)line;
        for (; *at && *at != '\n';) {
            want[k++] = (int32_t)strtol(at, &at, 10);
            while (*at == ' ' || *at == '\r') at++;
        }
        assert_ok(qkv_tokenizer_encode(tok, text, (size_t)(stop - text), NULL, 0,
                                       &(qkv_encode_options){.no_special = true}, &e));
        assert_ids(&e, want, k);
        n++;
        text = stop + sizeof mark - 1;
        line = *at ? at + 1 : at;
    }
    assert_true(n >= 40);
    qkv_encoding_free(&e);
    qkv_buf_free(&in);
    qkv_buf_free(&out);
    qkv_tokenizer_free(tok);
}

static void test_llama_cpp(void **state) {
    (void)state;
    static const char *const names[] = {"bert-bge", "gpt-2", "llama-spm", "phi-3"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) check_llama_cpp(names[i]);
}

/* What `transformers` does to a whole text after the decoder. */
static void clean_up(qkv_buf *text) {
    static const char *const pairs[][2] = {
        {" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
        {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const size_t from = strlen(pairs[i][0]), to = strlen(pairs[i][1]);
        for (char *hit = text->data; (hit = strstr(hit, pairs[i][0])); hit += to) {
            memcpy(hit, pairs[i][1], to);
            memmove(hit + to, hit + from, strlen(hit + from) + 1);
        }
    }
    text->len = strlen(text->data);
}

/* The text of these ids must be the string member `key`. */
static void check_decoded(const qkv_tokenizer *tok, const qkv_encoding *e, qkv_json_at test,
                          const char *key, bool keep, bool cleaned) {
    qkv_json_at at;
    const char *text;
    size_t len;
    qkv_buf out = {0};
    assert_true(qkv_json_member(test, key, &at));
    qkv_json_string(at, &text, &len);
    assert_ok(qkv_tokenizer_decode(tok, e->ids, e->n, keep, &out));
    if (cleaned) clean_up(&out);
    if (out.len != len || memcmp(out.data, text, len))
        fail_msg("%s: \"%s\", wanted \"%.*s\"", key, out.data, (int)len, text);
    qkv_buf_free(&out);
}

/* The swift-transformers cases: ids with special tokens, and the text of those ids. The texts were
 * made by `transformers`, which for most models cleans them up once more. */
static void test_swift(void **state) {
    (void)state;
    static const struct {
        const char *key, *file;
        bool cleaned;
    } cases[] = {
        {"google-bert/bert-base-uncased", "tokenizers/bert-base-uncased/tokenizer.json", true},
        {"distilgpt2", "tokenizers/tiktoken/r50k_base.tiktoken", true},
        {"coreml-projects/Llama-2-7b-chat-coreml",
         "tokenizers/llama.cpp-vocab/ggml-vocab-llama-spm.gguf", false},
        {"t5-base", "tokenizers/t5-small/tokenizer.json", true},
        {"openai/whisper-large-v2", "tokenizers/whisper-tiny/tokenizer.json", true}};
    qkv_buf text = {0};
    if (!read_data("tokenizers/vectors-swift-transformers/tokenizer_tests.json", &text)) return;
    qkv_json doc;
    qkv_encoding e = {0};
    assert_ok(qkv_json_parse(&doc, "cases", text.data, text.len, no_limits));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkv_tokenizer *tok;
        qkv_json_at list, at, input, encoded, ids;
        if (!open_data(cases[i].file, &tok)) continue;
        assert_true(qkv_json_member(qkv_json_root(&doc), cases[i].key, &list));
        size_t n = 0;
        for (bool more = qkv_json_first(list, &at); more; more = qkv_json_next(list, &at), n++) {
            const char *data;
            size_t len;
            int32_t want[512];
            assert_true(qkv_json_member(at, "input", &input) &&
                        qkv_json_member(at, "encoded", &encoded));
            assert_true(qkv_json_member(encoded, "input_ids", &ids));
            qkv_json_string(input, &data, &len);
            assert_ok(qkv_tokenizer_encode(tok, data, len, NULL, 0, NULL, &e));
            assert_ids(&e, want, json_ids(ids, want, 512));
            check_decoded(tok, &e, at, "decoded_with_special", true, cases[i].cleaned);
            check_decoded(tok, &e, at, "decoded_without_special", false, cases[i].cleaned);
        }
        assert_int_equal(n, 18);
        qkv_tokenizer_free(tok);
    }
    qkv_encoding_free(&e);
    qkv_json_free(&doc);
    qkv_buf_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wordpiece),     cmocka_unit_test(test_offsets_pair_and_limit),
        cmocka_unit_test(test_unigram),       cmocka_unit_test(test_bpe),
        cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_write),
        cmocka_unit_test(test_batch),         cmocka_unit_test(test_long_words),
        cmocka_unit_test(test_wrong_files),   cmocka_unit_test(test_hostile_regex),
        cmocka_unit_test(test_sentencepiece), cmocka_unit_test(test_gguf),
        cmocka_unit_test(test_mutations),     cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_squad),         cmocka_unit_test(test_llama_cpp),
        cmocka_unit_test(test_swift),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
