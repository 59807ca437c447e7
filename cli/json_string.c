/* A text as a JSON string: quotes, escapes, and U+FFFD for bytes that are no UTF-8. */
#include "command.h"

/* Bytes of the character at s (n > 0 left), 0 when it is malformed:
 * overlong, a surrogate, too large. */
static size_t character(const unsigned char *s, size_t n) {
    if (s[0] < 0x80) return 1;
    const size_t len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || n < len) return 0;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    const unsigned second = s[1];
    if ((s[0] == 0xe0 && second < 0xa0) || (s[0] == 0xed && second > 0x9f)) return 0;
    if ((s[0] == 0xf0 && second < 0x90) || (s[0] == 0xf4 && second > 0x8f)) return 0;
    return len;
}

void cli_json_string(FILE *out, const char *text, size_t len) {
    const unsigned char *s = (const unsigned char *)text;
    putc('"', out);
    for (size_t i = 0, n; i < len; i += n) {
        n = character(s + i, len - i);
        if (n == 0) {
            fputs("\\ufffd", out);
            n = 1;
        } else if (s[i] == '"' || s[i] == '\\') {
            fprintf(out, "\\%c", s[i]);
        } else if (s[i] < 0x20) {
            fprintf(out, "\\u%04x", s[i]);
        } else {
            fwrite(s + i, 1, n, out);
        }
    }
    putc('"', out);
}
