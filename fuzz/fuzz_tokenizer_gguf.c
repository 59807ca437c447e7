/* The vocabulary of a GGUF file. The reader is only given what begins with its four letters, so
 * they are put before the bytes. */
#include "tokenizer_use.h"
#include "base/buf.h"

void fuzz_tokenizer_gguf(const uint8_t *data, size_t n) {
    qkv_buf file = {0};
    qkv_buf_add(&file, "GGUF", 4);
    qkv_buf_add(&file, data, n);
    fuzz_tokenizer_use(qkv_read_gguf, (const uint8_t *)file.data, file.len);
    qkv_buf_free(&file);
}
