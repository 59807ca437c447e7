/* The trie comes from a file: every step checks that it stays inside the array, every value that it
 * starts inside the block. */
#include "text/charsmap.h"
#include "base/mem.h"

#include <string.h>

static uint32_t offset_of(uint32_t unit) {
    return (unit >> 10) << ((unit & 0x200) >> 6);
}

/* No key is this ASCII character, or begins with it and another ASCII character. */
static bool is_plain(const qkv_charsmap *m, uint8_t c) {
    if (!m->n_units) return true;
    const size_t at = offset_of(m->units[0]) ^ c;
    if (at >= m->n_units || (m->units[at] & 0x800000FF) != c) return true;
    if (m->units[at] & 0x100) return false;
    for (uint32_t d = 0; d < 128; d++) {
        const size_t next = at ^ offset_of(m->units[at]) ^ d;
        if (next < m->n_units && (m->units[next] & 0x800000FF) == d) return false;
    }
    return true;
}

qkv_status qkv_charsmap_read(qkv_charsmap *m, const void *blob, size_t n) {
    *m = (qkv_charsmap){0};
    const uint8_t *bytes = blob;
    uint32_t size = 0;
    if (n) {
        if (n < 4)
            return qkv_fail(QKV_BAD_FILE,
                            "precompiled_charsmap: %zu bytes, too short for its own size", n);
        size = bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
               (uint32_t)bytes[3] << 24;
        if (n > QKV_CHARSMAP_MAX)
            return qkv_fail(QKV_BAD_FILE, "precompiled_charsmap: %zu bytes: at most %u are read", n,
                            QKV_CHARSMAP_MAX);
        if (size % 4 || size > n - 4 || n - 4 == size)
            return qkv_fail(QKV_BAD_FILE,
                            "precompiled_charsmap: a trie of %u bytes in a blob of %zu", size, n);
        if (bytes[n - 1])
            return qkv_fail(QKV_BAD_FILE, "precompiled_charsmap: the last replacement has no end");
    }
    m->n_units = size / 4;
    m->n_values = n ? n - 4 - size : 0;
    QKV_TRY_ALLOC(m->units = qkv_alloc(size + 4));
    QKV_TRY_ALLOC(m->values = qkv_alloc(m->n_values + 1));
    for (size_t i = 0; i < m->n_units; i++) {
        const uint8_t *b = bytes + 4 + 4 * i;
        m->units[i] = b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    }
    if (m->n_values) memcpy(m->values, bytes + 4 + size, m->n_values);
    m->values[m->n_values] = 0;
    for (int c = 0; c < 128; c++) m->plain[c] = is_plain(m, (uint8_t)c);
    return QKV_OK;
}

void qkv_charsmap_free(qkv_charsmap *m) {
    qkv_free(m->units);
    qkv_free(m->values);
    *m = (qkv_charsmap){0};
}

size_t qkv_charsmap_match(const qkv_charsmap *m, const char *text, size_t len, bool longest,
                          const char **value) {
    if (!m->n_units) return 0;
    size_t best = 0, at = offset_of(m->units[0]);
    for (size_t i = 0; i < len; i++) {
        const uint8_t c = (uint8_t)text[i];
        at ^= c;
        if (at >= m->n_units || (m->units[at] & 0x800000FF) != c) break;
        const uint32_t unit = m->units[at];
        at ^= offset_of(unit);
        if (!(unit & 0x100)) continue;
        if (at >= m->n_units) break;
        const uint32_t place = m->units[at] & 0x7FFFFFFF;
        if (place >= m->n_values) break;
        *value = m->values + place;
        best = i + 1;
        if (!longest) break;
    }
    return best;
}

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

qkv_status qkv_base64_decode(const char *text, size_t len, qkv_buf *out) {
    static const uint8_t none = 0xFF;
    uint8_t value[256];
    memset(value, none, sizeof value);
    for (int i = 0; i < 64; i++) value[(uint8_t)alphabet[i]] = (uint8_t)i;
    size_t pad = 0;
    while (pad < 2 && pad < len && text[len - 1 - pad] == '=') pad++;
    uint32_t bits = 0;
    const size_t digits = len - pad;
    uint8_t *at = len % 4 ? NULL : qkv_buf_extend(out, len / 4 * 3 - pad);
    for (size_t i = 0; at && i < digits; i++) {
        const uint8_t v = value[(uint8_t)text[i]];
        if (v == none)
            return qkv_fail(QKV_BAD_FILE, "base64: byte 0x%02X at %zu is no digit",
                            (uint8_t)text[i], i);
        bits = bits << 6 | v;
        if (i % 4 == 1) *at++ = (uint8_t)(bits >> 4);
        if (i % 4 == 2) *at++ = (uint8_t)(bits >> 2);
        if (i % 4 == 3) *at++ = (uint8_t)bits;
    }
    if (len % 4) return qkv_fail(QKV_BAD_FILE, "base64: %zu digits, not a multiple of 4", len);
    return out->status;
}

void qkv_base64_encode(const void *data, size_t n, qkv_buf *out) {
    const uint8_t *b = data;
    for (size_t i = 0; i < n; i += 3) {
        const size_t left = n - i;
        const uint32_t bits = (uint32_t)b[i] << 16 | (left > 1 ? (uint32_t)b[i + 1] << 8 : 0) |
                              (left > 2 ? b[i + 2] : 0);
        const char digits[4] = {alphabet[bits >> 18], alphabet[bits >> 12 & 63],
                                left > 1 ? alphabet[bits >> 6 & 63] : '=',
                                left > 2 ? alphabet[bits & 63] : '='};
        qkv_buf_add(out, digits, 4);
    }
}
