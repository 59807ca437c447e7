/* What every `_show` of a result does: a table or a JSON object, as one text of the caller's. */
#ifndef QKV_REPORT_SHOW_H
#define QKV_REPORT_SHOW_H

#include "base/json.h"

typedef struct qkv_wording {
    void (*table)(const void *result, qkv_buf *out);
    void (*members)(const void *result, qkv_json_out *j); /* into an object that is open */
} qkv_wording;

/* QKV_SHOW_TABLE and QKV_SHOW_JSON; other forms are refused. */
qkv_status qkv_show_result(const void *result, const qkv_wording *words, qkv_show how, char **text);

/* The buffer's text becomes the caller's; after a failure it is freed and *text NULL. */
qkv_status qkv_show_end(qkv_status status, qkv_buf *out, char **text);

/* Members of an object. */
void qkv_put_count(qkv_json_out *j, const char *key, int64_t value);
void qkv_put_real(qkv_json_out *j, const char *key, double value, int digits);
void qkv_put_text(qkv_json_out *j, const char *key, const char *text);

#endif
