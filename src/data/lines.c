#include "data/lines.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <string.h>

static int64_t line_of(const char *data, size_t at) {
    int64_t line = 1;
    for (size_t i = 0; i < at; i++) line += data[i] == '\n';
    return line;
}

qkv_status qkv_text_open(const char *path, qkv_file *file, qkv_text *text) {
    QKV_TRY(qkv_file_open(path, SIZE_MAX / 2, file));
    const size_t valid = qkv_utf8_valid(file->data, file->size);
    if (valid < file->size) {
        const qkv_status status =
            qkv_fail(QKV_BAD_FILE,
                     "%s, line %lld: byte 0x%02X is not UTF-8; convert the file first, for "
                     "example with \"iconv -f latin1 -t utf-8\"",
                     path, (long long)line_of(file->data, valid), (unsigned char)file->data[valid]);
        qkv_file_close(file);
        return status;
    }
    *text = (qkv_text){file->data, file->size};
    if (text->len >= 3 && memcmp(text->data, "\xEF\xBB\xBF", 3) == 0) /* a byte-order mark */
        *text = (qkv_text){text->data + 3, text->len - 3};
    return QKV_OK;
}

bool qkv_text_line(qkv_text *text, qkv_text *line) {
    if (text->len == 0) return false;
    const char *nl = memchr(text->data, '\n', text->len);
    const size_t n = nl ? (size_t)(nl - text->data) : text->len, taken = n + (nl != NULL);
    *line = (qkv_text){text->data, n && text->data[n - 1] == '\r' ? n - 1 : n};
    *text = (qkv_text){text->data + taken, text->len - taken};
    return true;
}

qkv_status qkv_lines_read(qkv_lines *l, const char *path) {
    *l = (qkv_lines){0};
    qkv_text rest, line;
    QKV_TRY(qkv_text_open(path, &l->file, &rest));
    while (qkv_text_line(&rest, &line))
        if (!QKV_PUSH(l->line, line)) {
            qkv_lines_free(l);
            return QKV_FAILED;
        }
    return QKV_OK;
}

void qkv_lines_free(qkv_lines *l) {
    qkv_file_close(&l->file);
    qkv_free(l->line.at);
    *l = (qkv_lines){0};
}
