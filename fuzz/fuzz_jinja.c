/* Chat templates: any bytes are a template, run on a small conversation. */
#include "fuzz.h"
#include "chat/jinja.h"

#include <string.h>

static const char context[] =
    "{\"messages\":[{\"role\":\"system\",\"content\":\"be\"},{\"role\":\"user\",\"content\":\" hi "
    "\"},{\"role\":\"assistant\",\"content\":\"<think>x</think>yes\",\"tool_calls\":[{\"function\":"
    "{\"name\":\"f\",\"arguments\":{\"a\":[1,2.5,null,true]}}}]}],\"bos_token\":\"<s>\","
    "\"eos_token\":\"</s>\",\"add_generation_prompt\":true,\"tools\":[]}";

void fuzz_jinja(const uint8_t *data, size_t n) {
    qkv_jinja *t;
    if (qkv_jinja_parse((const char *)data, n, &t) != QKV_OK) return;
    qkv_json doc;
    qkv_jinja_value value;
    qkv_buf out = {0};
    qkv_arena arena;
    qkv_arena_init(&arena);
    const qkv_json_limits limits = {.bytes = 1 << 16, .nodes = 1 << 10, .depth = 16};
    qkv_status status = qkv_json_parse(&doc, "context", context, sizeof context - 1, limits);
    assert(status == QKV_OK);
    status = qkv_jinja_of_json(&arena, qkv_json_root(&doc), &value);
    assert(status == QKV_OK);
    (void)qkv_jinja_run(t, value.dict, &out);
    assert(out.len <= 64u << 20);
    qkv_buf_free(&out);
    qkv_arena_free(&arena);
    qkv_json_free(&doc);
    qkv_jinja_free(t);
}
