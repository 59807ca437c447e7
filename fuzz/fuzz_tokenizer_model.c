/* SentencePiece's .model. */
#include "tokenizer_use.h"

void fuzz_tokenizer_model(const uint8_t *data, size_t n) {
    fuzz_tokenizer_use(qkv_read_sentencepiece, data, n);
}
