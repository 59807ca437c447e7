/* Text that the library hands out. */
#include "base/mem.h"
#include "draw/ink.h"
#include "qkv.h"

void qkv_text_free(char *text) {
    qkv_free(text);
}

int qkv_text_columns(const char *text, size_t len) {
    return qkv_text_width(text, len);
}
