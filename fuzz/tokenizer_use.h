#ifndef QKV_FUZZ_TOKENIZER_USE_H
#define QKV_FUZZ_TOKENIZER_USE_H

#include "fuzz.h"
#include "text/reader.h"

typedef qkv_status qkv_reader(qkv_tokenizer *tok, const char *name, const char *data, size_t n);

/* Reads the bytes as one kind of tokenizer file and uses what comes of it. */
void fuzz_tokenizer_use(qkv_reader *read, const uint8_t *data, size_t n);

#endif
