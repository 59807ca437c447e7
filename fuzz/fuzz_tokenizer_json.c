/* Hugging Face's tokenizer.json. */
#include "tokenizer_use.h"

void fuzz_tokenizer_json(const uint8_t *data, size_t n) {
    fuzz_tokenizer_use(qkv_read_tokenizer_json, data, n);
}
