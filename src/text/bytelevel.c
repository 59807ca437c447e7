/* Bytes 33–126, 161–172 and 174–255 are their own characters; the other 68 take U+0100 … in order.
 */
#include "text/bytelevel.h"
#include "text/pipeline.h"
#include "base/utf8.h"

static bool is_own(int b) {
    return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
}

/* The place of byte b among those that are not their own: 0–32, 127–160, 173. */
static int foreign_place(int b) {
    return b < 33 ? b : b < 161 ? b - 127 + 33 : 67;
}

int qkv_byte_level_char(uint8_t byte, char out[4]) {
    return qkv_utf8_encode(is_own(byte) ? byte : 0x100 + foreign_place(byte), out);
}

int qkv_byte_level_byte(int32_t cp) {
    if (cp >= 0 && cp < 256) return is_own(cp) ? cp : -1;
    if (cp < 0x100 || cp > 0x143) return -1;
    const int place = cp - 0x100;
    return place < 33 ? place : place < 67 ? place - 33 + 127 : 173;
}

void qkv_byte_level_name(const char *bytes, size_t n, qkv_buf *out) {
    for (size_t i = 0; i < n; i++) {
        char name[4];
        qkv_buf_add(out, name, (size_t)qkv_byte_level_char((uint8_t)bytes[i], name));
    }
}

bool qkv_byte_level_bytes(const char *name, size_t n, qkv_buf *out) {
    for (size_t i = 0; i < n;) {
        int32_t cp;
        i += (size_t)qkv_utf8_decode(name + i, n - i, &cp);
        const int byte = qkv_byte_level_byte(cp);
        if (byte < 0) return false;
        qkv_buf_putc(out, (char)byte);
    }
    return true;
}
