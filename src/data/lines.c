#include "data/lines.h"
#include "base/mem.h"
#include "base/unpack.h"
#include "data/foreign.h"

#include <string.h>
#include <unistd.h>

/* "-" is standard input. */
static qkv_status open_file(const char *path, qkv_file *file) {
    const size_t any = SIZE_MAX / 2;
    return strcmp(path, "-") == 0 ? qkv_file_read(STDIN_FILENO, qkv_text_name(path), any, file)
                                  : qkv_file_open(path, any, file);
}

const char *qkv_text_name(const char *path) {
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

qkv_status qkv_text_open(const char *path, qkv_file *file, qkv_text *text) {
    QKV_TRY(open_file(path, file));
    path = qkv_text_name(path);
    QKV_TRY(qkv_file_unpack(path, file));
    const qkv_status status = qkv_text_check(path, file->data, file->size);
    if (status != QKV_OK) {
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
