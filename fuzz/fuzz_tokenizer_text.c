/* Any bytes as text, through a tokenizer with many steps: the offsets stay inside, a stream decodes as one call does. */
#include "fuzz.h"
#include "base/buf.h"
#include "text/tokenizer.h"

#include <string.h>

static const char file[] = "{\"version\":\"1.0\",\"added_tokens\":[{\"id\":5,\"content\":\"<s>\","
                           "\"special\":true,\"normalized\":true,\"lstrip\":true,"
                           "\"rstrip\":true,\"single_word\":true}],\"normalizer\":{\"type\":"
                           "\"Sequence\",\"normalizers\":[{\"type\":\"NFKC\"},{\"type\":"
                           "\"BertNormalizer\",\"clean_text\":false,\"handle_chinese_chars\":true,"
                           "\"strip_accents\":true,\"lowercase\":true},{\"type\":"
                           "\"Strip\",\"strip_left\":true,\"strip_right\":true},{\"type\":"
                           "\"Replace\",\"pattern\":{\"Regex\":\" {2,}\"},\"content\":\" "
                           "\"}]},\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{"
                           "\"type\":\"Digits\",\"individual_digits\":true},{"
                           "\"type\":\"Punctuation\",\"behavior\":\"Contiguous\"},{\"type\":"
                           "\"Metaspace\",\"replacement\":\"\xE2\x96\x81\","
                           "\"prepend_scheme\":\"first\",\"split\":true}]},\"post_processor\":null,"
                           "\"decoder\":{\"type\":\"Metaspace\",\"replacement\":"
                           "\"\xE2\x96\x81\",\"prepend_scheme\":\"first\"},\"model\":{\"type\":"
                           "\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],["
                           "\"\xE2\x96\x81\",-3],[\"a\",-2],[\"b\",-2.5],[\"ab\",-3]]}}";

void fuzz_tokenizer_text(const uint8_t *data, size_t n) {
    static qkv_tokenizer *tok;
    if (!tok) assert(qkv_tokenizer_parse("tokenizer", file, sizeof file - 1, &tok) == QKV_OK);
    qkv_encoding e = {0};
    qkv_buf whole = {0}, streamed = {0};
    qkv_decode_stream *stream;
    assert(qkv_tokenizer_encode(tok, (const char *)data, n, NULL, 0,
                                &(qkv_encode_options){.offsets = true}, &e) == QKV_OK);
    for (size_t i = 0; i < e.n; i++) assert(e.begin[i] <= e.end[i] && e.end[i] <= n);
    assert(qkv_tokenizer_decode(tok, e.ids, e.n, true, &whole) == QKV_OK);
    assert(qkv_decode_stream_new(tok, true, &stream) == QKV_OK);
    for (size_t i = 0; i < e.n; i++)
        assert(qkv_decode_stream_push(stream, e.ids[i], &streamed) == QKV_OK);
    assert(qkv_decode_stream_end(stream, &streamed) == QKV_OK);
    assert(whole.len == streamed.len &&
           (!whole.len || !memcmp(whole.data, streamed.data, whole.len)));
    qkv_decode_stream_free(stream);
    qkv_encoding_free(&e);
    qkv_buf_free(&whole);
    qkv_buf_free(&streamed);
}
