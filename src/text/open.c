/* Opening a tokenizer: which kind of file it is follows from its content. */
#include "text/reader.h"
#include "base/file.h"

#include <string.h>

#define FILE_MAX (256u << 20)

qkv_status qkv_tokenizer_parse(const char *name, const char *data, size_t n, qkv_tokenizer **out) {
    qkv_tokenizer *tok;
    QKV_TRY(qkv_tokenizer_new(&tok));
    const qkv_status status = qkv_read_tokenizer_json(tok, name, data, n);
    if (status != QKV_OK)
        qkv_tokenizer_free(tok);
    else
        *out = tok;
    return status;
}

qkv_status qkv_tokenizer_open(const char *path, qkv_tokenizer **out) {
    qkv_file file;
    QKV_TRY(qkv_file_open(path, FILE_MAX, &file));
    const qkv_status status = qkv_tokenizer_parse(path, file.data, file.size, out);
    qkv_file_close(&file);
    return status;
}
