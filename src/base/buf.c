#include "base/buf.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

void qkv_buf_free(qkv_buf *b) {
    qkv_free(b->data);
    *b = (qkv_buf){0};
}

void qkv_buf_clear(qkv_buf *b) {
    b->len = 0;
    b->status = QKV_OK;
    if (b->data) b->data[0] = 0;
}

void *qkv_buf_extend(qkv_buf *b, size_t n) {
    size_t need;
    if (b->status != QKV_OK) return NULL;
    if (qkv_add_over(b->len, n, &need) || qkv_add_over(need, 1, &need)) {
        b->status = qkv_fail(QKV_FAILED, "out of memory: a buffer of %zu + %zu bytes", b->len, n);
        return NULL;
    }
    if (need > b->cap) {
        size_t cap = b->cap < 64 ? 64 : b->cap + b->cap / 2;
        if (cap < need) cap = need;
        char *grown = qkv_realloc(b->data, cap);
        if (!grown) {
            b->status = QKV_FAILED;
            return NULL;
        }
        b->data = grown;
        b->cap = cap;
    }
    char *place = b->data + b->len;
    b->len += n;
    b->data[b->len] = 0;
    return place;
}

void qkv_buf_add(qkv_buf *b, const void *bytes, size_t n) {
    void *place = qkv_buf_extend(b, n);
    if (place && n) memcpy(place, bytes, n);
}

void qkv_buf_puts(qkv_buf *b, const char *text) {
    qkv_buf_add(b, text, strlen(text));
}

void qkv_buf_putc(qkv_buf *b, char c) {
    qkv_buf_add(b, &c, 1);
}

void qkv_buf_printf(qkv_buf *b, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *place = n > 0 ? qkv_buf_extend(b, (size_t)n) : NULL;
    if (!place) return;
    va_start(args, format);
    vsnprintf(place, (size_t)n + 1, format, args);
    va_end(args);
}

bool qkv_vec_grow(void **at, size_t n, size_t *cap, size_t size) {
    if (n < *cap) return true;
    size_t wanted = *cap ? *cap + *cap / 2 + 1 : 8, bytes;
    void *grown = qkv_mul_over(wanted, size, &bytes) ? NULL : qkv_realloc(*at, bytes);
    if (!grown) return false;
    *at = grown;
    *cap = wanted;
    return true;
}
