/* What several families say alike of positions: how RoPE turns, in the form of version 5
 * (rope_parameters) and of version 4 (rope_theta, rope_scaling), and which keys a layer sees
 * (sliding_window, layer_types). */
#include "foreign/family.h"

#include <stdio.h>
#include <string.h>

const qkv_key_rule qkv_keys_rope[] = {
    KEY("rope_parameters", NULL),
    KEY("rope_theta", NULL),
    KEY("rope_scaling", NULL),
    KEY("partial_rotary_factor", NULL),
    KEY("original_max_position_embeddings", NULL),
    KEY("sliding_window", NULL),
    KEY("use_sliding_window", NULL),
    KEY("max_window_layers", NULL),
    KEY("layer_types", NULL),
    {0}};

static bool is_text(qkv_json_at at, const char *word) {
    const char *text;
    size_t len;
    qkv_json_string(at, &text, &len);
    return len == strlen(word) && !memcmp(text, word, len);
}

/* A member that is there and not null. */
static bool has(qkv_json_at object, const char *key, qkv_json_at *out) {
    return qkv_json_member(object, key, out) && qkv_json_kind_of(*out) != QKV_JSON_NULL;
}

/* ---- RoPE ---- */

static qkv_status read_base(qkv_json_at from, double *base) {
    qkv_json_at at;
    return has(from, "rope_theta", &at) ? qkv_json_get_real(from, "rope_theta", true, 1, 1e12, base)
                                        : QKV_OK;
}

static qkv_status read_scaling(qkv_json_at scaling, qkv_config *config) {
    qkv_json_at type;
    (void)config;
    if (!has(scaling, "rope_type", &type) && !has(scaling, "type", &type)) return QKV_OK;
    if (is_text(type, "default")) return QKV_OK;
    const char *name;
    size_t len;
    qkv_json_string(type, &name, &len);
    return qkv_fail(QKV_BAD_FILE, "the RoPE of the type \"%.*s\" is not implemented",
                    (int)(len < 40 ? len : 40), name);
}

qkv_status qkv_family_rope(qkv_json_at keys, qkv_config *config) {
    qkv_json_at at;
    double share = 1;
    QKV_TRY(read_base(keys, &config->rope_base));
    QKV_TRY(qkv_json_get_real(keys, "partial_rotary_factor", false, 0, 1, &share));
    if (has(keys, "rope_scaling", &at)) QKV_TRY(read_scaling(at, config));
    if (has(keys, "rope_parameters", &at)) {
        QKV_TRY(read_base(at, &config->rope_base));
        QKV_TRY(qkv_json_get_real(at, "partial_rotary_factor", false, 0, 1, &share));
        QKV_TRY(read_scaling(at, config));
    }
    if (share != 1)
        return qkv_fail(QKV_BAD_FILE, "partial_rotary_factor %g is not implemented", share);
    return QKV_OK;
}

/* ---- which keys are seen ---- */

/* How many layers of the list are full; −1: it has a type that is not known. */
static qkv_status count_full(qkv_json_at list, int64_t *full) {
    qkv_json_at at;
    *full = 0;
    for (bool more = qkv_json_first(list, &at); more; more = qkv_json_next(list, &at)) {
        if (is_text(at, "full_attention"))
            ++*full;
        else if (!is_text(at, "sliding_attention"))
            return qkv_fail(QKV_BAD_FILE, "line %zu: a layer type that is not implemented",
                            qkv_json_line(at));
    }
    return QKV_OK;
}

/* A window of W keys has the query's own among them; ours counts those before it. */
qkv_status qkv_family_window(qkv_json_at keys, qkv_config *config) {
    qkv_json_at at, types;
    int64_t width = 0, full = 0;
    bool used = true;
    if (has(keys, "sliding_window", &at))
        QKV_TRY(qkv_json_get_int(keys, "sliding_window", true, 1, 1 << 20, &width));
    QKV_TRY(qkv_json_get_bool(keys, "use_sliding_window", false, &used));
    const bool listed = has(keys, "layer_types", &types);
    if (listed) {
        QKV_TRY(count_full(types, &full));
        if (full == (int64_t)qkv_json_count(types)) used = false;
        if (full && used)
            return qkv_fail(QKV_BAD_FILE, "layers of several types are not implemented");
    }
    if (!width || !used) return QKV_OK;
    config->window = width - 1;
    return qkv_config_set(config, "attention", "local");
}
