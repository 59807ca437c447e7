/* JSON writer: appends to a buffer; numbers never follow the locale of the program we live in. */
#include "base/json.h"
#include "base/number.h"
#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

qkv_json_out qkv_json_begin(qkv_buf *buf, int indent) {
    return (qkv_json_out){.buf = buf, .indent = indent, .first = true};
}

static void new_line(qkv_json_out *j) {
    if (!j->indent) return;
    char *place = qkv_buf_extend(j->buf, 1 + (size_t)j->depth * (size_t)j->indent);
    if (!place) return;
    place[0] = '\n';
    memset(place + 1, ' ', (size_t)j->depth * (size_t)j->indent);
}

/* What stands before a value or key: a comma unless it is the first, a line of its own in a
 * container. */
static void before(qkv_json_out *j) {
    if (j->after_key) {
        j->after_key = false;
        return;
    }
    if (!j->first) qkv_buf_putc(j->buf, ',');
    if (j->depth > 0) new_line(j);
    j->first = false;
}

void qkv_json_open(qkv_json_out *j, char bracket) {
    before(j);
    qkv_buf_putc(j->buf, bracket);
    j->depth++;
    j->first = true;
}

void qkv_json_close(qkv_json_out *j, char bracket) {
    j->depth--;
    if (!j->first) new_line(j); /* an empty container stays on its line */
    qkv_buf_putc(j->buf, bracket == '{' ? '}' : bracket == '[' ? ']' : bracket);
    j->first = false;
}

static void put_escaped(qkv_buf *b, unsigned char c) {
    static const char letters[] = "\bb\ff\nn\rr\tt\"\"\\\\";
    for (const char *p = letters; *p; p += 2)
        if ((unsigned char)*p == c) {
            qkv_buf_add(b, (char[]){'\\', p[1]}, 2);
            return;
        }
    qkv_buf_printf(b, "\\u%04x", c);
}

static void put_quoted(qkv_buf *b, const char *text, size_t len) {
    qkv_buf_putc(b, '"');
    size_t done = 0; /* bytes of `text` already written */
    for (size_t i = 0; i < len;) {
        unsigned char c = (unsigned char)text[i];
        int32_t cp = c;
        int n = c < 0x80 ? 1 : qkv_utf8_decode(text + i, len - i, &cp);
        if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7f && cp >= 0) {
            i += (size_t)n;
            continue;
        }
        qkv_buf_add(b, text + done, i - done);
        if (cp < 0)
            qkv_buf_puts(b, "\xEF\xBF\xBD");
        else
            put_escaped(b, c);
        i += (size_t)n;
        done = i;
    }
    qkv_buf_add(b, text + done, len - done);
    qkv_buf_putc(b, '"');
}

void qkv_json_put_key(qkv_json_out *j, const char *key) {
    qkv_json_put_key_n(j, key, strlen(key));
}

void qkv_json_put_key_n(qkv_json_out *j, const char *key, size_t len) {
    before(j);
    put_quoted(j->buf, key, len);
    qkv_buf_puts(j->buf, j->indent ? ": " : ":");
    j->after_key = true;
}

void qkv_json_put_raw(qkv_json_out *j, const char *json) {
    before(j);
    qkv_buf_puts(j->buf, json);
}

void qkv_json_put_string(qkv_json_out *j, const char *text, size_t len) {
    before(j);
    put_quoted(j->buf, text, len);
}

void qkv_json_put_text(qkv_json_out *j, const char *text) {
    qkv_json_put_string(j, text, strlen(text));
}

void qkv_json_put_int(qkv_json_out *j, int64_t value) {
    before(j);
    qkv_buf_printf(j->buf, "%lld", (long long)value);
}

void qkv_json_put_real(qkv_json_out *j, double value, int digits) {
    char text[QKV_NUMBER_TEXT];
    before(j);
    if (!isfinite(value)) {
        qkv_buf_puts(j->buf, "null");
        return;
    }
    qkv_number_print(value, digits, text);
    qkv_buf_puts(j->buf, text);
}

void qkv_json_put_bool(qkv_json_out *j, bool value) {
    before(j);
    qkv_buf_puts(j->buf, value ? "true" : "false");
}

void qkv_json_put_null(qkv_json_out *j) {
    before(j);
    qkv_buf_puts(j->buf, "null");
}
