/* Tokenizer files of every kind (which reader takes the bytes follows from the bytes): what is accepted must encode any text
 * without leaving its bounds, give ids of its own vocabulary only, and write a file that is read again. */
#include "fuzz.h"
#include "base/buf.h"
#include "text/tokenizer.h"

static void use(const qkv_tokenizer *tok) {
    static const char text[] = "a abab \xC3\xA9<s> Playing, \xFF\n\xE4\xB8\xAD 12345 'll  ";
    qkv_encoding e = {0};
    qkv_buf out = {0};
    if (qkv_tokenizer_encode(tok, text, sizeof text - 1, NULL, 0,
                             &(qkv_encode_options){.offsets = true}, &e) == QKV_OK) {
        for (size_t i = 0; i < e.n; i++) {
            assert(e.ids[i] >= 0 && (size_t)e.ids[i] < qkv_tokenizer_size(tok));
            assert(e.begin[i] <= e.end[i] && e.end[i] < sizeof text);
        }
        qkv_tokenizer_decode(tok, e.ids, e.n, true, &out);
    }
    qkv_encoding_free(&e);
    qkv_buf_free(&out);
}

void fuzz_tokenizer(const uint8_t *data, size_t n) {
    qkv_tokenizer *tok = NULL, *again = NULL;
    if (qkv_tokenizer_parse("fuzz", (const char *)data, n, &tok) != QKV_OK) {
        assert(qkv_error()[0]);
        return;
    }
    use(tok);
    qkv_buf json = {0};
    if (qkv_tokenizer_json(tok, &json) == QKV_OK &&
        qkv_tokenizer_parse("again", json.data, json.len, &again) == QKV_OK)
        use(again);
    qkv_buf_free(&json);
    qkv_tokenizer_free(again);
    qkv_tokenizer_free(tok);
}
