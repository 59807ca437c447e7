/* JSON: what is accepted can be walked, and printing it and reading it again gives
 * the same text. */
#include "fuzz.h"
#include "base/json.h"
#include "base/utf8.h"

#include <string.h>

/* Prints the document; the depth limit bounds the recursion. */
static void print(qkv_json_at at, qkv_json_out *j) {
    const char *text;
    size_t len;
    qkv_json_at child;
    qkv_json_kind kind = qkv_json_kind_of(at);
    switch (kind) {
    case QKV_JSON_NULL:
        qkv_json_put_null(j);
        break;
    case QKV_JSON_FALSE:
    case QKV_JSON_TRUE:
        qkv_json_put_bool(j, kind == QKV_JSON_TRUE);
        break;
    case QKV_JSON_NUMBER:
        qkv_json_put_real(j, qkv_json_number(at), 17);
        break;
    case QKV_JSON_STRING:
        qkv_json_string(at, &text, &len);
        assert(qkv_utf8_valid(text, len) == len);
        qkv_json_put_string(j, text, len);
        break;
    case QKV_JSON_ARRAY:
    case QKV_JSON_OBJECT: {
        size_t count = 0;
        char bracket = kind == QKV_JSON_ARRAY ? '[' : '{';
        qkv_json_open(j, bracket);
        for (bool more = qkv_json_first(at, &child); more;
             more = qkv_json_next(at, &child), count++) {
            assert(qkv_json_line(child) >= 1);
            if (kind == QKV_JSON_OBJECT) {
                qkv_json_key(child, &text, &len);
                if (memchr(text, 0, len)) len = strlen(text);
                char key[64] = "";
                memcpy(key, text,
                       len < 63 ? qkv_utf8_complete(text, len) : qkv_utf8_complete(text, 63));
                qkv_json_put_key(j, key);
            }
            print(child, j);
        }
        assert(count == qkv_json_count(at));
        qkv_json_close(j, bracket);
    }
    }
}

void fuzz_json(const uint8_t *data, size_t n) {
    const qkv_json_limits limits = {.bytes = 1 << 20, .nodes = 1 << 16, .depth = 64};
    qkv_json doc, again;
    qkv_buf first = {0}, second = {0};
    if (qkv_json_parse(&doc, "fuzz", (const char *)data, n, limits) != QKV_OK) {
        assert(strncmp(qkv_error(), "fuzz:", 5) == 0);
        return;
    }
    qkv_json_out j = qkv_json_begin(&first, n % 2 ? 2 : 0);
    print(qkv_json_root(&doc), &j);
    qkv_json_free(&doc);
    /* Keys are cut to fit the writer, so that two may become one;
     * else the copy must be read, and print the same. */
    if (qkv_json_parse(&again, "fuzz", first.data, first.len, limits) == QKV_OK) {
        j = qkv_json_begin(&second, n % 2 ? 2 : 0);
        print(qkv_json_root(&again), &j);
        assert(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
        qkv_json_free(&again);
    } else {
        assert(strstr(qkv_error(), "is there twice"));
    }
    qkv_buf_free(&first);
    qkv_buf_free(&second);
}
