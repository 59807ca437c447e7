#include "report/show.h"

qkv_status qkv_show_end(qkv_status status, qkv_buf *out, char **text) {
    if (status == QKV_OK) status = out->status;
    if (status != QKV_OK) qkv_buf_free(out);
    *text = status == QKV_OK ? out->data : NULL;
    return status;
}

static void put_object(const void *result, const qkv_wording *words, qkv_buf *out) {
    qkv_json_out j = qkv_json_begin(out, 0);
    qkv_json_open(&j, '{');
    words->members(result, &j);
    qkv_json_close(&j, '}');
    qkv_buf_putc(out, '\n');
}

qkv_status qkv_show_result(const void *result, const qkv_wording *words, qkv_show how,
                           char **text) {
    qkv_buf out = {0};
    *text = NULL;
    if (how == QKV_SHOW_JSON)
        put_object(result, words, &out);
    else if (how == QKV_SHOW_TABLE)
        words->table(result, &out);
    else
        return qkv_fail(QKV_USAGE, "this result is shown as a table or as JSON, not as a picture");
    return qkv_show_end(QKV_OK, &out, text);
}

void qkv_put_count(qkv_json_out *j, const char *key, int64_t value) {
    qkv_json_put_key(j, key);
    qkv_json_put_int(j, value);
}

void qkv_put_real(qkv_json_out *j, const char *key, double value, int digits) {
    qkv_json_put_key(j, key);
    qkv_json_put_real(j, value, digits);
}

void qkv_put_text(qkv_json_out *j, const char *key, const char *text) {
    qkv_json_put_key(j, key);
    qkv_json_put_text(j, text);
}
