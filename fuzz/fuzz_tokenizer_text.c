/* Any bytes as text, through tokenizers with many steps (the first byte chooses one): the offsets
 * stay inside, a byte-level tokenizer gives the bytes back, and, on every fourth choice since it is
 * slow, a stream decodes as one call does. */
#include "fuzz.h"
#include "base/buf.h"
#include "text/pipeline.h"

#include <string.h>

#define MARK "\xE2\x96\x81"

static const char *const files[] = {
    "{\"added_tokens\":[{\"id\":5,\"content\":\"<s>\",\"special\":true,\"normalized\":true,"
    "\"lstrip\":true,\"rstrip\":true,\"single_word\":true}],\"normalizer\":{\"type\":\"Sequence\","
    "\"normalizers\":[{\"type\":\"NFKC\"},{\"type\":\"BertNormalizer\",\"clean_text\":false,"
    "\"handle_chinese_chars\":true,\"strip_accents\":true,\"lowercase\":true},{\"type\":\"Strip\","
    "\"strip_left\":true,\"strip_right\":true},{\"type\":\"Replace\",\"pattern\":{\"Regex\":"
    "\" {2,}\"},\"content\":\" \"}]},\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":["
    "{\"type\":\"Digits\",\"individual_digits\":true},{\"type\":\"Punctuation\",\"behavior\":"
    "\"Contiguous\"},{\"type\":\"Metaspace\",\"replacement\":\"" MARK "\",\"prepend_scheme\":"
    "\"first\",\"split\":true}]},\"decoder\":{\"type\":\"Metaspace\",\"replacement\":\"" MARK
    "\",\"prepend_scheme\":\"first\"},\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":["
    "[\"<unk>\",0],[\"" MARK "\",-3],[\"a\",-2],[\"b\",-2.5],[\"ab\",-3]]}}",

    "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Nmt\"},{\"type\":"
    "\"StripAccents\"},{\"type\":\"NFD\"},{\"type\":\"Lowercase\"},{\"type\":\"Prepend\","
    "\"prepend\":\"_\"}]},\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":"
    "\"UnicodeScripts\"},{\"type\":\"Whitespace\"},{\"type\":\"Split\",\"pattern\":{\"Regex\":"
    "\"(?:ab|b)c*\"},\"behavior\":\"MergedWithNext\",\"invert\":false},{\"type\":\"FixedLength\","
    "\"length\":9}]},\"post_processor\":{\"type\":\"RobertaProcessing\",\"cls\":[\"a\",3],\"sep\":["
    "\"b\",4],\"trim_offsets\":true,\"add_prefix_space\":false},\"decoder\":{\"type\":"
    "\"WordPiece\","
    "\"prefix\":\"##\",\"cleanup\":true},\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"?\","
    "\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":6,\"vocab\":{\"?\":0,"
    "\"##a\":1,\"##b\":2,\"a\":3,\"b\":4,\"ab\":5}}}",

    NULL, /* byte level: made below */
};

enum { TOKENIZERS = sizeof files / sizeof *files, BYTE_LEVEL = TOKENIZERS - 1 };

/* All bytes are tokens, and three merges. */
static qkv_tokenizer *make_byte_level(void) {
    qkv_tokenizer *tok;
    qkv_text tokens[259];
    char names[256][8];
    const qkv_merge merges[] = {{'a', 'b', 256}, {0xE4, 0xB8, 257}, {256, 'a', 258}};
    for (int b = 0; b < 256; b++) {
        const char byte = (char)b;
        qkv_buf name = {0};
        qkv_byte_level_name(&byte, 1, &name);
        memcpy(names[b], name.data, name.len);
        tokens[b] = (qkv_text){names[b], name.len};
        qkv_buf_free(&name);
    }
    tokens[256] = (qkv_text){"ab", 2};
    tokens[257] = (qkv_text){"\xC3\xA4\xC2\xB8", 4};
    tokens[258] = (qkv_text){"aba", 3};
    assert(qkv_tokenizer_new(&tok) == QKV_OK);
    assert(qkv_tokenizer_set_stage(tok, QKV_STAGE_PRETOKENIZER,
                                   "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}") ==
           QKV_OK);
    assert(qkv_tokenizer_set_stage(tok, QKV_STAGE_DECODER, "{\"type\":\"ByteLevel\"}") == QKV_OK);
    assert(qkv_tokenizer_set_bpe(tok, tokens, 259, merges, 3, &(qkv_bpe_options){0}) == QKV_OK);
    assert(qkv_tokenizer_finish(tok) == QKV_OK);
    return tok;
}

static const qkv_tokenizer *tokenizer(size_t which) {
    static qkv_tokenizer *made[TOKENIZERS];
    if (made[which]) return made[which];
    if (which == BYTE_LEVEL)
        made[which] = make_byte_level();
    else
        assert(qkv_tokenizer_parse("tokenizer", files[which], strlen(files[which]), &made[which]) ==
               QKV_OK);
    return made[which];
}

static bool same(const qkv_buf *a, const void *data, size_t n) {
    return a->len == n && (!n || !memcmp(a->data, data, n));
}

static void check_stream(const qkv_tokenizer *tok, const qkv_encoding *e, const qkv_buf *whole) {
    qkv_decode_stream *stream;
    qkv_buf streamed = {0};
    assert(qkv_decode_stream_new(tok, true, &stream) == QKV_OK);
    for (size_t i = 0; i < e->n; i++)
        assert(qkv_decode_stream_push(stream, e->ids[i], &streamed) == QKV_OK);
    assert(qkv_decode_stream_end(stream, &streamed) == QKV_OK);
    assert(same(whole, streamed.data, streamed.len));
    qkv_decode_stream_free(stream);
    qkv_buf_free(&streamed);
}

void fuzz_tokenizer_text(const uint8_t *data, size_t n) {
    if (!n) return;
    const size_t which = *data % TOKENIZERS;
    const bool streamed = *data / TOKENIZERS % 4 == 0;
    data++, n--;
    const qkv_tokenizer *tok = tokenizer(which);
    qkv_encoding e = {0};
    qkv_buf whole = {0};
    assert(qkv_tokenizer_encode(tok, (const char *)data, n, NULL, 0,
                                &(qkv_encode_options){.offsets = true}, &e) == QKV_OK);
    for (size_t i = 0; i < e.n; i++) assert(e.begin[i] <= e.end[i] && e.end[i] <= n);
    assert(qkv_tokenizer_decode(tok, e.ids, e.n, true, &whole) == QKV_OK);
    if (streamed) check_stream(tok, &e, &whole);
    if (which == BYTE_LEVEL) assert(same(&whole, data, n));
    qkv_encoding_free(&e);
    qkv_buf_free(&whole);
}
