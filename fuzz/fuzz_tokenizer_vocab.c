/* BERT's vocab.txt. */
#include "tokenizer_use.h"

void fuzz_tokenizer_vocab(const uint8_t *data, size_t n) {
    fuzz_tokenizer_use(qkv_read_vocab_txt, data, n);
}
