#include "draw/page_fill.h"

#include <string.h>

static const char hole[] = "/*DATA*/null";

/* JSON inside a script must not hold "</script"; '<' written as an escape is the same string. */
static void put_script_safe(const qkv_buf *json, qkv_buf *out) {
    for (size_t i = 0; i < json->len; i++)
        if (json->data[i] == '<')
            qkv_buf_puts(out, "\\u003c");
        else
            qkv_buf_putc(out, json->data[i]);
}

qkv_status qkv_page_fill(const char *page, qkv_buf *json, qkv_buf *out) {
    const char *at = strstr(page, hole);
    qkv_buf_add(out, page, (size_t)(at - page));
    put_script_safe(json, out);
    qkv_buf_puts(out, at + sizeof hole - 1);
    const qkv_status status = json->status;
    qkv_buf_free(json);
    return status != QKV_OK ? status : out->status;
}
