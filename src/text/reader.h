/* The readers of tokenizer files. Each fills a new tokenizer from memory, finished and ready; the
 * caller frees it on failure. */
#ifndef QKV_TEXT_READER_H
#define QKV_TEXT_READER_H

#include "text/pipeline.h"

qkv_status qkv_read_tokenizer_json(qkv_tokenizer *tok, const char *name, const char *data,
                                   size_t n);

#endif
