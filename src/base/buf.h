/* A growable run of bytes: strings being built, files being written, arrays of plain structs. */
#ifndef QKV_BASE_BUF_H
#define QKV_BASE_BUF_H

#include <stdarg.h>
#include "base/error.h"

typedef struct qkv_buf {
    char *data; /* NUL-terminated beyond `len` once anything was added */
    size_t len, cap;
    qkv_status status; /* sticky: after a failed allocation the rest is ignored */
} qkv_buf;

void qkv_buf_free(qkv_buf *b);
void qkv_buf_clear(qkv_buf *b); /* keeps the memory */
void qkv_buf_add(qkv_buf *b, const void *bytes, size_t n);
void qkv_buf_puts(qkv_buf *b, const char *text);
void qkv_buf_putc(qkv_buf *b, char c);
void qkv_buf_printf(qkv_buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Room for n more bytes at the end; returns where they go (len is advanced), NULL on failure. */
void *qkv_buf_extend(qkv_buf *b, size_t n);

/* A typed growable array:
 * `QKV_VEC(int32_t) ids = {0}; if (!QKV_PUSH(ids, 7)) return QKV_FAILED;` */
#define QKV_VEC(type)                                                                              \
    struct {                                                                                       \
        type *at;                                                                                  \
        size_t n, cap;                                                                             \
    }
#define QKV_PUSH(v, value)                                                                         \
    (qkv_vec_grow((void **)&(v).at, (v).n, &(v).cap, sizeof *(v).at) &&                            \
     (((v).at[(v).n++] = (value)), true))
/* Makes room for one more element; false (message set) when there is no memory. */
bool qkv_vec_grow(void **at, size_t n, size_t *cap, size_t size);

#endif
