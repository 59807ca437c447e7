/* What the targets that read tokenizer files share: what is accepted must encode any text without
 * leaving its bounds, give ids of its own vocabulary only, and write a file that is read again. */
#include "tokenizer_use.h"
#include "base/buf.h"

static void use(const qkv_tokenizer *tok) {
    static const char text[] = "a abab \xC3\xA9<s> Playing, \xFF\n\xE4\xB8\xAD 12345 'll  ";
    const size_t n = sizeof text - 1;
    const qkv_encode_options options[] = {
        {.offsets = true}, {.characters = true, .pad = true}, {.dropout = 0.5, .max_tokens = 3}};
    qkv_encoding e = {0};
    qkv_buf out = {0};
    for (size_t o = 0; o < sizeof options / sizeof *options; o++) {
        if (qkv_tokenizer_encode(tok, text, n, o == 2 ? "b a" : NULL, 3, &options[o], &e) != QKV_OK)
            continue;
        for (size_t i = 0; i < e.n; i++) {
            assert(e.ids[i] >= 0 && (size_t)e.ids[i] < qkv_tokenizer_size(tok));
            if (e.begin) assert(e.begin[i] <= e.end[i] && e.end[i] <= n);
        }
        qkv_buf_clear(&out);
        qkv_tokenizer_decode(tok, e.ids, e.n, true, &out);
    }
    qkv_encoding_free(&e);
    qkv_buf_free(&out);
}

void fuzz_tokenizer_use(qkv_reader *read, const uint8_t *data, size_t n) {
    qkv_tokenizer *tok = NULL, *again = NULL;
    assert(qkv_tokenizer_new(&tok) == QKV_OK);
    if (read(tok, "fuzz", (const char *)data, n) == QKV_OK) {
        use(tok);
        qkv_buf json = {0};
        if (qkv_tokenizer_json(tok, &json) == QKV_OK &&
            qkv_tokenizer_parse("again", json.data, json.len, &again) == QKV_OK)
            use(again);
        qkv_buf_free(&json);
    } else {
        assert(qkv_error()[0]);
    }
    qkv_tokenizer_free(again);
    qkv_tokenizer_free(tok);
}
