/* Text that the library hands out. */
#include "base/mem.h"
#include "qkv.h"

void qkv_text_free(char *text) {
    qkv_free(text);
}
