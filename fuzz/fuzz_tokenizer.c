/* A tokenizer file of any kind: which reader takes the bytes follows from the bytes. */
#include "fuzz.h"
#include "text/tokenizer.h"

void fuzz_tokenizer(const uint8_t *data, size_t n) {
    qkv_tokenizer *tok = NULL;
    if (qkv_tokenizer_parse("fuzz", (const char *)data, n, &tok) != QKV_OK) assert(qkv_error()[0]);
    qkv_tokenizer_free(tok);
}
