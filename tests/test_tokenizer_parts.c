/* Tokenizers, part by part: lengths (truncation, padding), pre-tokenizers and decoders that need
 * few lines, SentencePiece's piece types, and the caps on what is read, each from both sides. */
#include "folders.h"
#include "harness.h"
#include "base/file.h"
#include "base/mem.h"
#include "text/trie.h"
#include "text/charsmap.h"
#include "text/merge_list.h"
#include "text/pipeline.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static qkv_tokenizer *parse(const char *json) {
    qkv_tokenizer *tok = NULL;
    assert_ok(qkv_tokenizer_parse("test", json, strlen(json), &tok));
    return tok;
}

static void check_ids(const qkv_encoding *e, const int32_t *want, size_t n) {
    assert_int_equal(e->n, n);
    assert_memory_equal(e->ids, want, n * sizeof *want);
}
#define IDS(e, ...)                                                                                \
    check_ids(e, (const int32_t[]){__VA_ARGS__}, sizeof(int32_t[]){__VA_ARGS__} / sizeof(int32_t))

/* ---- lengths ---- */

/* Words a … f are 1 … 6; [P] pads, [S] stands around a text. */
static qkv_tokenizer *with_limits(const char *truncation, const char *padding) {
    char json[2048];
    snprintf(json, sizeof json,
             "{\"version\":\"1.0\",\"truncation\":%s,\"padding\":%s,\"added_tokens\":[],"
             "\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"},"
             "\"post_processor\":{\"type\":\"BertProcessing\",\"cls\":[\"[S]\",8],\"sep\":[\"[S]\","
             "8]},\"decoder\":null,\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"[U]\","
             "\"vocab\":{\"[U]\":0,\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"[P]\":7,"
             "\"[S]\":8}}}",
             truncation, padding);
    return parse(json);
}

static void truncation(void **state) {
    (void)state;
    qkv_encoding e = {0};
    qkv_tokenizer *tok = with_limits("{\"direction\":\"Left\",\"max_length\":5,\"strategy\":"
                                     "\"LongestFirst\",\"stride\":0}",
                                     "null");
    assert_ok(qkv_tokenizer_encode(tok, "a b c d", 7, NULL, 0,
                                   &(qkv_encode_options){.offsets = true}, &e));
    IDS(&e, 8, 2, 3, 4, 8);
    assert_int_equal(e.begin[1], 2);
    assert_true(e.cut);
    assert_ok(qkv_tokenizer_encode(tok, "a b c", 5, NULL, 0, NULL, &e));
    IDS(&e, 8, 1, 2, 3, 8);
    assert_false(e.cut);
    assert_null(e.begin);
    qkv_tokenizer_free(tok);

    tok = with_limits("{\"max_length\":6,\"strategy\":\"OnlySecond\"}", "null");
    assert_ok(qkv_tokenizer_encode(tok, "a", 1, "b c d e", 7, NULL, &e));
    IDS(&e, 8, 1, 8, 2, 3, 8);
    assert_fails(qkv_tokenizer_encode(tok, "a b c d e", 9, NULL, 0, NULL, &e), QKV_USAGE, "second");
    assert_fails(qkv_tokenizer_encode(tok, "a b c", 5, "d", 1, NULL, &e), QKV_USAGE, "second");
    qkv_tokenizer_free(tok);

    tok = with_limits("{\"max_length\":6,\"strategy\":\"OnlyFirst\"}", "null");
    assert_ok(qkv_tokenizer_encode(tok, "a b c d", 7, "e", 1, NULL, &e));
    IDS(&e, 8, 1, 2, 8, 5, 8);
    qkv_tokenizer_free(tok);

    tok = with_limits("{\"max_length\":0}", "null");
    assert_ok(qkv_tokenizer_encode(tok, "a b", 3, NULL, 0,
                                   &(qkv_encode_options){.no_special = true}, &e));
    assert_int_equal(e.n, 0);
    qkv_tokenizer_free(tok);
    qkv_encoding_free(&e);

    const char *wrong =
        "{\"version\":\"1.0\",\"truncation\":{\"max_length\":1,\"strategy\":\"No\"},"
        "\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0},\"unk_token\":\"a\"}}";
    assert_fails(qkv_tokenizer_parse("test", wrong, strlen(wrong), &tok), QKV_BAD_FILE, "strategy");
}

static void padding(void **state) {
    (void)state;
    qkv_encoding e[3] = {0};
    const qkv_text texts[3] = {{"a b c", 5}, {"d", 1}, {"", 0}};
    const qkv_encode_options pad = {.pad = true, .no_special = true, .offsets = true};
    qkv_tokenizer *tok =
        with_limits("null", "{\"strategy\":\"BatchLongest\",\"direction\":\"Right\","
                            "\"pad_to_multiple_of\":null,\"pad_id\":7,"
                            "\"pad_type_id\":0,\"pad_token\":\"[P]\"}");
    assert_ok(qkv_tokenizer_encode_batch(tok, texts, 3, &pad, e));
    IDS(&e[0], 1, 2, 3);
    IDS(&e[1], 4, 7, 7);
    IDS(&e[2], 7, 7, 7);
    assert_memory_equal(e[0].mask, ((const uint8_t[]){1, 1, 1}), 3);
    assert_memory_equal(e[1].mask, ((const uint8_t[]){1, 0, 0}), 3);
    assert_memory_equal(e[2].mask, ((const uint8_t[]){0, 0, 0}), 3);
    assert_int_equal(e[1].end[0], 1);
    assert_int_equal(e[1].end[1], 0);
    assert_ok(qkv_tokenizer_encode_batch(tok, texts, 3, NULL, e)); /* only when asked for */
    IDS(&e[1], 8, 4, 8);
    assert_null(e[1].mask);
    qkv_tokenizer_free(tok);

    tok = with_limits("null", "{\"strategy\":{\"Fixed\":4},\"direction\":\"Left\","
                              "\"pad_to_multiple_of\":3,\"pad_id\":7,\"pad_type_id\":1}");
    assert_ok(qkv_tokenizer_encode_batch(tok, texts, 2, &pad, e));
    IDS(&e[0], 7, 7, 7, 1, 2, 3);
    assert_memory_equal(e[0].mask, ((const uint8_t[]){0, 0, 0, 1, 1, 1}), 6);
    assert_int_equal(e[0].begin[4], 2);
    assert_ok(qkv_tokenizer_encode(tok, "a", 1, "b", 1, &pad, &e[0])); /* a pair has segments */
    IDS(&e[0], 7, 7, 7, 7, 1, 2);
    assert_memory_equal(e[0].type, ((const uint8_t[]){1, 1, 1, 1, 0, 1}), 6);
    assert_ok(
        qkv_tokenizer_encode(tok, "a", 1, NULL, 0, &(qkv_encode_options){.pad_to = 5}, &e[0]));
    IDS(&e[0], 7, 7, 8, 1, 8);
    qkv_tokenizer_free(tok);

    tok = with_limits("null", "null");
    assert_fails(qkv_tokenizer_encode(tok, "a", 1, NULL, 0, &pad, &e[0]), QKV_USAGE, "padding");
    qkv_tokenizer_free(tok);
    for (int i = 0; i < 3; i++) qkv_encoding_free(&e[i]);
}

/* ---- offsets ---- */

static void characters(void **state) {
    (void)state;
    qkv_tokenizer *tok = with_limits("null", "null");
    qkv_encoding e = {0};
    const char *text = "\xC3\xA9\xC3\xA9 a \xE4\xB8\xAD\xFF b";
    assert_ok(qkv_tokenizer_encode(tok, text, strlen(text), NULL, 0,
                                   &(qkv_encode_options){.characters = true}, &e));
    IDS(&e, 8, 0, 1, 0, 2, 8);
    assert_memory_equal(e.begin, ((const uint32_t[]){0, 0, 3, 5, 8, 0}), 6 * sizeof(uint32_t));
    assert_memory_equal(e.end, ((const uint32_t[]){0, 2, 4, 7, 9, 0}), 6 * sizeof(uint32_t));
    qkv_encoding_free(&e);
    qkv_tokenizer_free(tok);
}

/* The blanks that an added token takes are not in its offsets where the post-processor trims. */
static void trimmed_added_token(void **state) {
    (void)state;
    qkv_tokenizer *tok = parse(
        "{\"version\":\"1.0\",\"added_tokens\":[{\"id\":1,\"content\":\"<m>\",\"lstrip\":true,"
        "\"rstrip\":true,\"special\":true,\"normalized\":false}],\"post_processor\":{\"type\":"
        "\"ByteLevel\",\"trim_offsets\":true},\"model\":{\"type\":\"WordLevel\",\"vocab\":{"
        "\"x\":0,\"<m>\":1},\"unk_token\":\"x\"}}");
    qkv_encoding e = {0};
    assert_ok(qkv_tokenizer_encode(tok, "x\t\xC2\xA0<m>\xE2\x80\x83 x", 12, NULL, 0,
                                   &(qkv_encode_options){.offsets = true}, &e));
    IDS(&e, 0, 1, 0);
    assert_int_equal(e.begin[1], 4);
    assert_int_equal(e.end[1], 7);
    assert_int_equal(e.begin[2], 11);
    qkv_encoding_free(&e);
    qkv_tokenizer_free(tok);
}

/* ---- pre-tokenizers ---- */

/* Cuts where the script changes; what has none (the blank) goes with what is before it,
 * and kana with Chinese. */
static void unicode_scripts(void **state) {
    (void)state;
    qkv_tokenizer *tok =
        parse("{\"version\":\"1.0\",\"pre_tokenizer\":{\"type\":\"UnicodeScripts\"},\"model\":{"
              "\"type\":\"WordLevel\",\"vocab\":{\"x\":0},\"unk_token\":\"x\"}}");
    qkv_encoding e = {0};
    const char *text = " ab \xD0\xB1 \xE4\xB8\xAD\xE3\x81\x82.1";
    assert_ok(qkv_tokenizer_encode(tok, text, strlen(text), NULL, 0,
                                   &(qkv_encode_options){.offsets = true}, &e));
    assert_int_equal(e.n, 4);
    assert_memory_equal(e.begin, ((const uint32_t[]){1, 4, 7, 13}), 4 * sizeof(uint32_t));
    assert_memory_equal(e.end, ((const uint32_t[]){4, 7, 13, 15}), 4 * sizeof(uint32_t));
    qkv_encoding_free(&e);
    qkv_tokenizer_free(tok);
}

/* ---- SentencePiece ---- */

/* Appends a piece: its text, its score as bits, its type. */
static void add_piece(qkv_buf *out, const char *text, size_t len, float score, uint8_t type) {
    const size_t body = (len < 128 ? 2 : len < 16384 ? 3 : 4) + len + 5 + 2;
    const struct {
        char tag;
        size_t value;
    } heads[2] = {{0x0A, body}, {0x0A, len}};
    for (int i = 0; i < 2; i++) {
        qkv_buf_putc(out, heads[i].tag);
        size_t v = heads[i].value;
        for (; v > 127; v >>= 7) qkv_buf_putc(out, (char)(v & 127) | (char)128);
        qkv_buf_putc(out, (char)v);
    }
    qkv_buf_add(out, text, len);
    qkv_buf_putc(out, 0x15);
    qkv_buf_add(out, &score, 4);
    qkv_buf_putc(out, 0x18);
    qkv_buf_putc(out, (char)type);
}

#define MARK "\xE2\x96\x81"

/* ab is only a step to abc: where no c follows it falls apart again. */
static void unused_pieces(void **state) {
    (void)state;
    static const struct {
        const char *text;
        float score;
        uint8_t type;
    } pieces[] = {{"<unk>", 0, 2}, {MARK, -9, 1}, {"a", -9, 1},  {"b", -9, 1},
                  {"c", -9, 1},    {"ab", -1, 5}, {"abc", -2, 1}};
    qkv_buf model = {0};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        add_piece(&model, pieces[i].text, strlen(pieces[i].text), pieces[i].score, pieces[i].type);
    qkv_buf_add(&model, "\x12\2\x18\2\x1A\2\x18\1", 8); /* BPE, with a dummy prefix */
    qkv_tokenizer *tok = NULL;
    qkv_encoding e = {0};
    assert_ok(qkv_tokenizer_parse("spm", model.data, model.len, &tok));
    assert_ok(qkv_tokenizer_encode(tok, "abc aab", 7, NULL, 0, NULL, &e));
    IDS(&e, 1, 6, 1, 2, 2, 3);
    assert_ok(
        qkv_tokenizer_encode(tok, "ab", 2, NULL, 0, &(qkv_encode_options){.offsets = true}, &e));
    IDS(&e, 1, 2, 3);
    assert_int_equal(e.begin[2], 1);
    assert_int_equal(e.end[2], 2);
    qkv_encoding_free(&e);
    qkv_tokenizer_free(tok);
    qkv_buf_free(&model);
}

/* A user-defined piece wins over better-scored ways to cut it;
 * the unknown piece is decoded as its surface. */
static void user_defined_and_unknown(void **state) {
    (void)state;
    qkv_buf model = {0}, text = {0};
    add_piece(&model, "<unk>", 5, 0, 2);
    add_piece(&model, MARK, 3, -1, 1);
    add_piece(&model, "a", 1, -0.001f, 1);
    add_piece(&model, "aa", 2, -9, 4);
    qkv_buf_add(&model, "\x12\2\x18\1\x1A\2\x18\1", 8);
    qkv_tokenizer *tok = NULL;
    qkv_encoding e = {0};
    assert_ok(qkv_tokenizer_parse("spm", model.data, model.len, &tok));
    assert_ok(qkv_tokenizer_encode(tok, "aaax", 4, NULL, 0, NULL, &e));
    IDS(&e, 1, 3, 2, 0);
    assert_ok(qkv_tokenizer_decode(tok, e.ids, e.n, false, &text));
    assert_string_equal(text.data, "aaa \xE2\x81\x87 ");
    qkv_buf_free(&text);
    qkv_encoding_free(&e);
    qkv_tokenizer_free(tok);
    qkv_buf_free(&model);
}

/* What SentencePiece gives for the same pieces: one ▁ off the first piece that begins with it; with
 * extra blanks removed, off every piece until there is text; never a blank that is no ▁.
 * A stream gives the same. */
static void leading_marks(void **state) {
    (void)state;
    static const int32_t ids[][12] = {
        {1, 1, 4, 1, 2}, {4, 1, 2}, {0, 2}, {3, 2}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2}};
    static const struct {
        char prefix, squeeze;
        const char *texts[5];
    } models[] = {
        {1, 1, {" a a", " a a", " \xE2\x81\x87 a", " a", "a"}},
        {1, 0, {"   a a", " a a", " \xE2\x81\x87 a", " a", "          a"}},
        {0, 0, {"    a a", "  a a", " \xE2\x81\x87 a", " a", "           a"}},
        {0, 1, {" a a", " a a", " \xE2\x81\x87 a", " a", "a"}},
    };
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        qkv_buf model = {0};
        add_piece(&model, "<unk>", 5, 0, 2);
        add_piece(&model, MARK, 3, -1, 1);
        add_piece(&model, "a", 1, -1, 1);
        add_piece(&model, "<0x20>", 6, -1, 6);
        add_piece(&model, MARK MARK "a", 7, -1, 1);
        const char parts[] = {
            0x12, 2, 0x18, 1, 0x1A, 4, 0x18, models[m].prefix, 0x20, models[m].squeeze};
        qkv_buf_add(&model, parts, sizeof parts);
        qkv_tokenizer *tok = NULL;
        assert_ok(qkv_tokenizer_parse("spm", model.data, model.len, &tok));
        for (size_t i = 0; i < 5; i++) {
            size_t n = 12;
            while (n > 1 && !ids[i][n - 1]) n--;
            qkv_buf text = {0}, streamed = {0};
            qkv_decode_stream *stream;
            assert_ok(qkv_tokenizer_decode(tok, ids[i], n, false, &text));
            assert_string_equal(text.data, models[m].texts[i]);
            assert_ok(qkv_decode_stream_new(tok, false, &stream));
            for (size_t k = 0; k < n; k++)
                assert_ok(qkv_decode_stream_push(stream, ids[i][k], &streamed));
            assert_ok(qkv_decode_stream_end(stream, &streamed));
            assert_string_equal(streamed.data, models[m].texts[i]);
            qkv_decode_stream_free(stream);
            qkv_buf_free(&text);
            qkv_buf_free(&streamed);
        }
        qkv_tokenizer_free(tok);
        qkv_buf_free(&model);
    }
}

/* ---- caps, from both sides ---- */

static void expect(const qkv_buf *file, const char *refused) {
    qkv_tokenizer *tok = NULL;
    if (refused)
        assert_fails(qkv_tokenizer_parse("file", file->data, file->len, &tok), QKV_BAD_FILE,
                     refused);
    else
        assert_ok(qkv_tokenizer_parse("file", file->data, file->len, &tok));
    qkv_tokenizer_free(tok);
}

static void fill_buf(qkv_buf *out, char c, size_t n) {
    char *at = qkv_buf_extend(out, n);
    assert_non_null(at);
    memset(at, c, n);
}

static void json_caps(void **state) {
    (void)state;
    for (size_t over = 0; over < 2; over++) {
        qkv_buf f = {0};
        qkv_buf_puts(
            &f, "{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"a\",\"vocab\":{\"a\":0,\"");
        fill_buf(&f, 'b', QKV_TOKEN_MAX + over); /* bytes of a token */
        qkv_buf_puts(&f, "\":1}}}");
        expect(&f, over ? "at most 65536" : NULL);

        qkv_buf_clear(&f);
        qkv_buf_puts(&f, "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\",-1],[\"");
        fill_buf(&f, 'b', QKV_TRIE_DEPTH + over); /* bytes of a piece that is searched for */
        qkv_buf_puts(&f, "\",-2]]}}");
        expect(&f, over ? "at most 1024" : NULL);

        qkv_buf_clear(&f);
        qkv_buf_puts(&f, "{\"added_tokens\":[");
        for (size_t i = 0; i < QKV_ADDED_MAX + over; i++)
            qkv_buf_printf(&f, "%s{\"id\":%zu,\"content\":\"t%zu\"}", i ? "," : "", i + 1, i);
        qkv_buf_puts(
            &f, "],\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"a\",\"vocab\":{\"a\":0}}}");
        expect(&f, over ? "at most 65536" : NULL);

        qkv_buf_clear(&f);
        qkv_buf_puts(&f,
                     "{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"a\",\"vocab\":{\"a\":0}},"
                     "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[");
        for (size_t i = 0; i < QKV_STEPS_MAX + over; i++)
            qkv_buf_printf(&f, "%s{\"type\":\"Digits\"}", i ? "," : "");
        qkv_buf_puts(&f, "]}}");
        expect(&f, over ? "more than 64" : NULL);
        qkv_buf_free(&f);
    }
}

/* Steps that multiply a text, each a little: refused when it is used, before it takes memory. */
static void growth_is_bounded(void **state) {
    (void)state;
    qkv_buf f = {0};
    qkv_tokenizer *tok;
    qkv_buf_puts(&f, "{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"a\",\"vocab\":{\"a\":0}},"
                     "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
    for (int i = 0; i < 20; i++)
        qkv_buf_printf(&f,
                       "%s{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},"
                       "\"content\":\"aaaaaaaa\"}",
                       i ? "," : "");
    qkv_buf_puts(&f, "]}}");
    assert_ok(qkv_tokenizer_parse("file", f.data, f.len, &tok));
    const qkv_text one = {"a", 1};
    qkv_encoding e = {0};
    const uint64_t before = qkv_peak_rss();
    assert_fails(
        qkv_tokenizer_encode(tok, one.data, one.len, NULL, 0, &(qkv_encode_options){0}, &e),
        QKV_BAD_FILE, "64 for each");
    assert_true(qkv_peak_rss() - before < 16 << 20);
    qkv_encoding_free(&e);
    qkv_tokenizer_free(tok);
    qkv_buf_free(&f);
}

/* A tokenizer.json that ends in blanks up to `n` bytes: one page of blanks, mapped again and again,
 * so that it needs no memory. */
static char *padded_json(const char *json, size_t n, size_t *mapped) {
    const size_t block = (size_t)1 << 20, len = strlen(json);
    *mapped = (n + block - 1) / block * block;
    const int fd = memfd_create("blanks", 0);
    char *blanks = qkv_alloc(block);
    assert_true(fd >= 0 && blanks);
    memset(blanks, ' ', block);
    assert_int_equal(write(fd, blanks, block), block);
    char *all = mmap(NULL, *mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(all != MAP_FAILED);
    for (size_t at = 0; at < *mapped; at += block)
        assert_ptr_equal(
            mmap(all + at, block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0),
            all + at);
    memcpy(all, json, len);
    close(fd);
    qkv_free(blanks);
    return all;
}

static void json_size_and_depth(void **state) {
    (void)state;
    static const char json[] =
        "{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"a\",\"vocab\":{\"a\":0}}";
    const size_t most = (size_t)256 << 20;
    size_t mapped;
    char *all = padded_json(json, most + 1, &mapped);
    all[sizeof json - 1] = '}';
    qkv_tokenizer *tok = NULL;
    assert_fails(qkv_tokenizer_parse("file", all, most + 1, &tok), QKV_BAD_FILE,
                 "the limit of 268435456");
    assert_ok(qkv_tokenizer_parse("file", all, most, &tok));
    qkv_tokenizer_free(tok);
    munmap(all, mapped);
    for (size_t over = 0; over < 2; over++) {
        qkv_buf f = {0};
        qkv_buf_printf(&f, "%s,\"x\":", json);
        fill_buf(&f, '[', 63 + over); /* and the object around them */
        fill_buf(&f, ']', 63 + over);
        qkv_buf_puts(&f, "}");
        expect(&f, over ? "nested deeper than 64" : NULL);
        qkv_buf_clear(&f);
        qkv_buf_printf(&f,
                       "{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"a\",\"vocab\":{\"a\":0,"
                       "\"b\":%zu}}}",
                       QKV_VOCAB_MAX - 1 + over);
        expect(&f, over ? "0 … 4194303" : NULL);
        qkv_buf_clear(&f);
        qkv_buf_printf(&f, "YQ== 0\nYg== %zu\n", QKV_VOCAB_MAX - 1 + over); /* tiktoken */
        expect(&f, over ? "0 … 4194303" : NULL);
        qkv_buf_free(&f);
    }
}

/* Lists that are too long for a test's file: the counters stand one short of the end. */
static void list_caps(void **state) {
    (void)state;
    qkv_tokenizer *tok;
    assert_ok(qkv_tokenizer_new(&tok));
    assert_fails(
        qkv_tokenizer_set_bpe(tok, NULL, 0, NULL, QKV_MERGES_MAX + 1, &(qkv_bpe_options){0}),
        QKV_BAD_FILE, "at most 8388608");
    assert_ok(qkv_vocab_put(&tok->vocab, "a", 1, 0));
    assert_ok(qkv_vocab_put(&tok->vocab, "aa", 2, 1));
    qkv_merge_list list = {.tok = tok};
    list.merges.n = QKV_MERGES_MAX - 1;
    list.merges.cap = QKV_MERGES_MAX;
    list.merges.at =
        qkv_alloc(QKV_MERGES_MAX * sizeof *list.merges.at); /* only its end is touched */
    assert_non_null(list.merges.at);
    const qkv_text a = {"a", 1};
    assert_ok(qkv_merge_list_add(&list, a, a));
    assert_fails(qkv_merge_list_add(&list, a, a), QKV_BAD_FILE, "more than 8388608 merges");
    assert_ok(qkv_merge_list_end(&list));
    assert_int_equal(list.merges.n, QKV_MERGES_MAX);
    qkv_merge_list_free(&list);
    qkv_tokenizer_free(tok);

    qkv_vocab v = {0};
    assert_ok(qkv_vocab_reserve(&v, QKV_VOCAB_MAX, 0));
    assert_fails(qkv_vocab_reserve(&v, QKV_VOCAB_MAX + 1, 0), QKV_BAD_FILE, "4194304");
    qkv_vocab_free(&v);

    qkv_charsmap map;
    char *blob = qkv_zalloc(QKV_CHARSMAP_MAX + 1, 1); /* an empty trie, and empty replacements */
    assert_non_null(blob);
    assert_ok(qkv_charsmap_read(&map, blob, QKV_CHARSMAP_MAX));
    qkv_charsmap_free(&map);
    assert_fails(qkv_charsmap_read(&map, blob, QKV_CHARSMAP_MAX + 1), QKV_BAD_FILE,
                 "at most 16777216");
    qkv_charsmap_free(&map);
    qkv_free(blob);
}

static void sentencepiece_caps(void **state) {
    (void)state;
    for (size_t over = 0; over < 2; over++) {
        qkv_buf f = {0}, text = {0};
        fill_buf(&text, 'a', QKV_TRIE_DEPTH + over);
        add_piece(&f, "<unk>", 5, 0, 2);
        add_piece(&f, text.data, text.len, -1, 1);
        expect(&f, over ? "at most 1024" : NULL);
        qkv_buf_clear(&f);
        add_piece(&f, "<unk>", 5, 0, 2);
        add_piece(&f, "a", 1, -1, 1);
        const size_t rest = (64u << 20) + over - f.len - 5; /* an unknown field to the end */
        qkv_buf_putc(&f, 0x7A);
        for (int i = 0; i < 4; i++)
            qkv_buf_putc(&f, (char)((rest >> 7 * i & 127) | (i < 3 ? 128 : 0)));
        fill_buf(&f, 0, rest);
        assert_int_equal(f.len, (64u << 20) + over);
        expect(&f, over ? "up to 67108864" : NULL);
        qkv_buf_free(&f);
        qkv_buf_free(&text);
    }
    qkv_buf many = {0};
    add_piece(&many, "<unk>", 5, 0, 2);
    for (size_t i = 0; i < QKV_VOCAB_MAX; i++) qkv_buf_add(&many, "\x0A\0", 2); /* empty pieces */
    expect(&many, "more than 4194304 pieces");
    qkv_buf_free(&many);
}

static void put_number(qkv_buf *out, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; i++) qkv_buf_putc(out, (char)(value >> 8 * i));
}

static void put_name(qkv_buf *out, const char *name) {
    put_number(out, strlen(name), 8);
    qkv_buf_puts(out, name);
}

/* A small BERT vocabulary behind `entries` − 2 entries more, which the caller puts. */
static void begin_gguf(qkv_buf *out, uint64_t entries) {
    qkv_buf_clear(out);
    qkv_buf_puts(out, "GGUF");
    put_number(out, 3, 4);
    put_number(out, 0, 8);
    put_number(out, entries, 8);
    put_name(out, "tokenizer.ggml.model");
    put_number(out, 8, 4);
    put_name(out, "bert");
    put_name(out, "tokenizer.ggml.tokens");
    put_number(out, 9, 4);
    put_number(out, 8, 4);
    put_number(out, 1, 8);
    put_name(out, "[UNK]");
}

static void gguf_caps(void **state) {
    (void)state;
    for (size_t over = 0; over < 2; over++) {
        qkv_buf f = {0};
        begin_gguf(&f, 100000 + over);
        for (size_t i = 2; i < 100000 + over; i++) {
            char name[24];
            snprintf(name, sizeof name, "x%zu", i);
            put_name(&f, name);
            put_number(&f, 0, 4);
            put_number(&f, 0, 1);
        }
        expect(&f, over ? "at most 100000" : NULL);
        const size_t name = 65535 + over, string = (64u << 20) + over, array = (16u << 20) + over;
        begin_gguf(&f, 3);
        put_number(&f, name, 8);
        fill_buf(&f, 'n', name);
        put_number(&f, 0, 4);
        put_number(&f, 0, 1);
        expect(&f, over ? "(?): a string is longer" : NULL);
        begin_gguf(&f, 3);
        put_name(&f, "s");
        put_number(&f, 8, 4);
        put_number(&f, string, 8);
        fill_buf(&f, 's', string);
        expect(&f, over ? "(s): a string is longer" : NULL);
        begin_gguf(&f, 3);
        put_name(&f, "a");
        put_number(&f, 9, 4);
        put_number(&f, 0, 4);
        put_number(&f, array, 8);
        fill_buf(&f, 0, array);
        expect(&f, over ? "(a): an array is longer" : NULL);
        f.len -= over ? 0 : 1;
        if (!over) expect(&f, "(a): the file ends within it");
        begin_gguf(&f, 3);
        put_name(&f, "n");
        put_number(&f, 9, 4);
        put_number(&f, over ? 9 : 10, 4); /* of arrays, or of numbers */
        put_number(&f, 0, 8);
        expect(&f, over ? "(n): an array of arrays" : NULL);
        qkv_buf_free(&f);
    }
}

/* A GGUF file may be a whole model of any size; other tokenizers have at most 256 MiB.
 * The files are holes. */
static void file_sizes(void **state) {
    (void)state;
    char folder[64], path[80];
    make_temporary(folder);
    snprintf(path, sizeof path, "%s/file", folder);
    for (int json = 0; json < 2; json++) {
        qkv_buf f = {0};
        begin_gguf(&f, 2);
        assert_ok(qkv_file_write(path, json ? "{" : f.data, json ? 1 : f.len));
        assert_int_equal(truncate(path, json ? (off_t)(256 << 20) + 1 : (off_t)5 << 30), 0);
        qkv_tokenizer *tok = NULL;
        if (json)
            assert_fails(qkv_tokenizer_open(path, &tok), QKV_BAD_FILE, "read up to 268435456");
        else
            assert_ok(qkv_tokenizer_open(path, &tok));
        qkv_tokenizer_free(tok);
        qkv_buf_free(&f);
    }
    remove_temporary(folder);
}

/* A file that is not there in full is refused with a reason, wherever it ends. */
static void truncated_files(void **state) {
    (void)state;
    qkv_buf f = {0};
    add_piece(&f, "<unk>", 5, 0, 2);
    add_piece(&f, "ab", 2, -1, 1);
    for (size_t n = 4; n < f.len; n++) {
        qkv_buf part = {0};
        qkv_buf_add(&part, f.data, n);
        qkv_tokenizer *tok = NULL;
        if (qkv_tokenizer_parse("file", part.data, n, &tok) != QKV_OK)
            assert_non_null(strstr(qkv_error(), n > 4 ? "file" : ""));
        qkv_tokenizer_free(tok);
        qkv_buf_free(&part);
    }
    f.len -= 3;
    expect(&f, "truncated");
    qkv_buf_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(truncation),
        cmocka_unit_test(padding),
        cmocka_unit_test(characters),
        cmocka_unit_test(trimmed_added_token),
        cmocka_unit_test(unicode_scripts),
        cmocka_unit_test(unused_pieces),
        cmocka_unit_test(user_defined_and_unknown),
        cmocka_unit_test(leading_marks),
        cmocka_unit_test(json_caps),
        cmocka_unit_test(growth_is_bounded),
        cmocka_unit_test(json_size_and_depth),
        cmocka_unit_test(list_caps),
        cmocka_unit_test(sentencepiece_caps),
        cmocka_unit_test(gguf_caps),
        cmocka_unit_test(file_sizes),
        cmocka_unit_test(truncated_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
