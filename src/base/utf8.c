/* UTF-8 by the table of well-formed sequences (Unicode, table 3-7): the second byte's range depends
 * on the first, which rules out overlong forms, surrogates and values over 10FFFF in one
 * comparison. */
#include "base/utf8.h"

#include <string.h>

int qkv_utf8_decode(const char *s, size_t n, int32_t *cp) {
    const unsigned char *u = (const unsigned char *)s;
    unsigned char b = u[0];
    if (b < 0x80) {
        *cp = b;
        return 1;
    }
    *cp = -1;
    int len = b < 0xC2 ? 0 : b < 0xE0 ? 2 : b < 0xF0 ? 3 : b < 0xF5 ? 4 : 0;
    if (len == 0 || n < (size_t)len) return 1;
    unsigned char low = b == 0xE0 ? 0xA0 : b == 0xF0 ? 0x90 : 0x80;
    unsigned char high = b == 0xED ? 0x9F : b == 0xF4 ? 0x8F : 0xBF;
    if (u[1] < low || u[1] > high) return 1;
    int32_t value = b & (0x7F >> len);
    for (int i = 1; i < len; i++) {
        if ((u[i] & 0xC0) != 0x80) return 1;
        value = value << 6 | (u[i] & 0x3F);
    }
    *cp = value;
    return len;
}

int qkv_utf8_encode(int32_t cp, char out[4]) {
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    int len = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (int i = len - 1; i > 0; i--, cp >>= 6) out[i] = (char)(0x80 | (cp & 0x3F));
    out[0] = (char)(0xF0 << (4 - len) | cp);
    return len;
}

/* Bytes at the front of s that are plain ASCII, found eight at a time. */
static size_t ascii_run(const char *s, size_t n) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t word;
        memcpy(&word, s + i, 8);
        if (word & 0x8080808080808080u) break;
    }
    while (i < n && (unsigned char)s[i] < 0x80) i++;
    return i;
}

size_t qkv_utf8_valid(const char *s, size_t n) {
    size_t i = 0;
    while (i < n) {
        i += ascii_run(s + i, n - i);
        while (i < n && (unsigned char)s[i] >= 0x80) {
            int32_t cp;
            int len = qkv_utf8_decode(s + i, n - i, &cp);
            if (cp < 0) return i;
            i += (size_t)len;
        }
    }
    return n;
}

size_t qkv_utf8_count(const char *s, size_t n) {
    size_t count = 0;
    for (size_t i = 0; i < n; count++) {
        int32_t cp;
        i += (size_t)qkv_utf8_decode(s + i, n - i, &cp);
    }
    return count;
}

size_t qkv_utf8_start(const char *s, size_t at) {
    size_t i = at;
    while (i > 0 && at - i < 3 && ((unsigned char)s[i] & 0xC0) == 0x80) i--;
    return i;
}

size_t qkv_utf8_complete(const char *s, size_t n) {
    /* A character is unfinished when its first byte is among the last three and promises more. */
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        unsigned char b = (unsigned char)s[n - back];
        if ((b & 0xC0) == 0x80) continue;
        size_t len = b < 0xC2 ? 1 : b < 0xE0 ? 2 : b < 0xF0 ? 3 : b < 0xF5 ? 4 : 1;
        return len > back ? n - back : n;
    }
    return n;
}
