/* tiktoken's rank files. */
#include "tokenizer_use.h"

void fuzz_tokenizer_ranks(const uint8_t *data, size_t n) {
    fuzz_tokenizer_use(qkv_read_tiktoken, data, n);
}
