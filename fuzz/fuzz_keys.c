/* config.json and model.safetensors.index.json of other programs' folders: any text is a configuration
 * or an error. An input is the text of config.json; one that begins with 'i' is an index, whose shards
 * are not there. */
#include "fuzz.h"
#include "foreign/container.h"
#include "foreign/family.h"

#include <string.h>

static void look_at_keys(const qkv_json *doc) {
    const qkv_json_at root = qkv_json_root(doc);
    qkv_config config;
    qkv_family_facts facts;
    if (qkv_json_kind_of(root) != QKV_JSON_OBJECT) return;
    for (size_t i = 0; qkv_family_at(i); i++)
        if (qkv_family_configure(qkv_family_at(i), root, false, &config, &facts) == QKV_OK)
            assert(config.d_model >= 1 && facts.skip >= 0);
}

static qkv_status no_shard(const char *path, qkv_container *c) {
    (void)c;
    assert(!strstr(path, "/../"));
    return QKV_OK;
}

void fuzz_keys(const uint8_t *data, size_t n) {
    qkv_json doc;
    if (n && data[0] == 'i') {
        qkv_container c = {0};
        qkv_arena_init(&c.names);
        (void)!qkv_container_shards(fuzz_as_file(data + 1, n - 1), &c, no_shard);
        qkv_container_close(&c);
        return;
    }
    const qkv_json_limits limits = {.bytes = 1 << 20, .nodes = 1 << 16, .depth = 32};
    if (qkv_json_parse(&doc, "keys", (const char *)data, n, limits) != QKV_OK) return;
    look_at_keys(&doc);
    qkv_json_free(&doc);
}
