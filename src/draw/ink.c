#include "draw/ink.h"
#include "base/utf8.h"

#include <string.h>
#include <utf8proc.h>

/* Columns of one decoded character. A control character or a malformed byte is shown
 * as one mark. */
static int char_width(int32_t cp) {
    if (cp < 0x20) return 1;
    int width = utf8proc_charwidth(cp);
    return width < 0 ? 1 : width;
}

int qkv_text_width(const char *text, size_t len) {
    int width = 0;
    for (size_t i = 0; i < len;) {
        int32_t cp;
        i += (size_t)qkv_utf8_decode(text + i, len - i, &cp);
        width += char_width(cp);
    }
    return width;
}

/* Appends the characters that fit into `columns`, with control characters shown as pictures;
 * returns the columns used. */
static int put_clean(qkv_buf *out, const char *text, size_t len, int columns) {
    int used = 0;
    for (size_t i = 0; i < len;) {
        int32_t cp;
        int n = qkv_utf8_decode(text + i, len - i, &cp), width = char_width(cp);
        if (used + width > columns) break;
        if (cp < 0)
            qkv_buf_puts(out, "\xEF\xBF\xBD");
        else if (cp < 0x20)
            qkv_buf_add(out, (char[]){(char)0xE2, (char)0x90, (char)(0x80 + cp)}, 3); /* U+2400 … */
        else
            qkv_buf_add(out, text + i, (size_t)n);
        used += width;
        i += (size_t)n;
    }
    return used;
}

static void blanks(qkv_buf *out, int n) {
    char *place = n > 0 ? qkv_buf_extend(out, (size_t)n) : NULL;
    if (place) memset(place, ' ', (size_t)n);
}

void qkv_text_fit(qkv_buf *out, const char *text, size_t len, int columns, bool right) {
    if (columns <= 0) return;
    int width = qkv_text_width(text, len);
    if (width <= columns) {
        if (right) blanks(out, columns - width);
        put_clean(out, text, len, columns);
        if (!right) blanks(out, columns - width);
        return;
    }
    int used = put_clean(out, text, len, columns - 1);
    qkv_buf_puts(out, "…");
    blanks(out, columns - 1 - used);
}
