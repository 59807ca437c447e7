/* What several families say alike of positions: how RoPE turns, in the form of version 5
 * (rope_parameters) and of version 4 (rope_theta, rope_scaling), and which keys a layer sees
 * (sliding_window, layer_types). */
#include "foreign/family.h"

#include <stdio.h>
#include <string.h>

const qkv_key_rule qkv_keys_rope[] = {KEY("rope_parameters", NULL),
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

/* A key of a scaling: one that another kind has, or nobody, would be a promise that is not kept. */
static const struct {
    const char *type, *keys;
} kinds[] = {
    {"none", " rope_theta partial_rotary_factor "},
    {"linear", " rope_theta partial_rotary_factor factor "},
    {"dynamic", " rope_theta partial_rotary_factor factor original_max_position_embeddings "},
    {"llama3", " rope_theta partial_rotary_factor factor original_max_position_embeddings "
               "low_freq_factor high_freq_factor "},
    {"yarn", " rope_theta partial_rotary_factor factor original_max_position_embeddings beta_fast "
             "beta_slow attention_factor "},
};
enum { N_TYPES = sizeof kinds / sizeof *kinds };

static qkv_status check_scaling_keys(qkv_json_at scaling, int type) {
    qkv_json_at at;
    for (bool more = qkv_json_first(scaling, &at); more; more = qkv_json_next(scaling, &at)) {
        const char *key;
        char padded[80];
        size_t len;
        qkv_json_key(at, &key, &len);
        snprintf(padded, sizeof padded, " %.*s ", (int)(len < 60 ? len : 60), key);
        if (qkv_json_kind_of(at) == QKV_JSON_NULL || !strcmp(padded, " rope_type ") ||
            !strcmp(padded, " type ") || strstr(kinds[type].keys, padded))
            continue;
        return qkv_fail(QKV_BAD_FILE, "line %zu: \"%.*s\" is not known for RoPE of the type %s",
                        qkv_json_line(at), (int)(len < 60 ? len : 60), key, kinds[type].type);
    }
    return QKV_OK;
}

static qkv_status read_scaling(qkv_json_at scaling, qkv_config *config) {
    qkv_json_at named = {0};
    const char *name = "default";
    size_t len = 7;
    int type = 0;
    if (has(scaling, "rope_type", &named) || has(scaling, "type", &named))
        qkv_json_string(named, &name, &len);
    if (len != 7 || memcmp(name, "default", len) != 0)
        for (type = 1; type < N_TYPES; type++)
            if (is_text(named, kinds[type].type)) break;
    if (type == N_TYPES)
        return qkv_fail(QKV_BAD_FILE, "RoPE of the type \"%.*s\" is not implemented",
                        (int)(len < 40 ? len : 40), name);
    QKV_TRY(check_scaling_keys(scaling, type));
    if (!type) return QKV_OK;
    config->rope_length = config->max_len;
    QKV_TRY(qkv_json_get_int(scaling, "original_max_position_embeddings", false, 1, 1 << 20,
                             &config->rope_length));
    QKV_TRY(qkv_json_get_real(scaling, "factor", true, 1, 1e6, &config->rope_factor));
    QKV_TRY(qkv_json_get_real(scaling, "low_freq_factor", false, 0, 1e6, &config->rope_low));
    QKV_TRY(qkv_json_get_real(scaling, "high_freq_factor", false, 0, 1e6, &config->rope_high));
    qkv_json_at at;
    if (has(scaling, "beta_fast", &at))
        QKV_TRY(qkv_json_get_real(scaling, "beta_fast", true, 0, 1e6, &config->rope_fast));
    if (has(scaling, "beta_slow", &at))
        QKV_TRY(qkv_json_get_real(scaling, "beta_slow", true, 0, 1e6, &config->rope_slow));
    if (has(scaling, "attention_factor", &at))
        QKV_TRY(
            qkv_json_get_real(scaling, "attention_factor", true, 0, 1e6, &config->rope_attention));
    return qkv_config_set(config, "rope_scaling", kinds[type].type);
}

/* Base, turned part and scaling of one kind of layers. */
static qkv_status read_rope(qkv_json_at from, qkv_config *config) {
    double share = 0;
    QKV_TRY(read_base(from, &config->rope_base));
    QKV_TRY(qkv_json_get_real(from, "partial_rotary_factor", false, 0, 1, &share));
    const int64_t head = config->d_head ? config->d_head : config->d_model / config->heads;
    if (share > 0) config->rope_width = (int64_t)((double)head * share);
    return QKV_OK;
}

qkv_status qkv_family_rope(qkv_json_at keys, qkv_config *config) {
    qkv_json_at at, all, some;
    QKV_TRY(read_rope(keys, config));
    if (has(keys, "rope_scaling", &at)) QKV_TRY(read_scaling(at, config));
    if (!has(keys, "rope_parameters", &at)) return QKV_OK;
    const bool by_type = has(at, "full_attention", &all);
    if (by_type && has(at, "sliding_attention", &some)) {
        qkv_config local = *config;
        QKV_TRY(read_rope(some, &local));
        QKV_TRY(read_scaling(some, &local));
        if (local.rope_scaling != QKV_ROPE_SCALING_NONE || local.rope_width != config->rope_width)
            return qkv_fail(
                QKV_BAD_FILE,
                "RoPE of sliding_attention that is scaled or partial is not implemented");
        config->rope_base_local = local.rope_base;
    }
    QKV_TRY(read_rope(by_type ? all : at, config));
    return read_scaling(by_type ? all : at, config);
}

/* ---- which keys are seen ---- */

/* The distance between the first two layers that see all; the list must go on like that. */
static qkv_status find_turns(qkv_json_at list, qkv_config *config, int64_t *full) {
    qkv_json_at at;
    int64_t i = 0, first = -1, every = 0;
    const int64_t n = (int64_t)qkv_json_count(list);
    bool regular = true;
    *full = 0;
    for (bool more = qkv_json_first(list, &at); more; more = qkv_json_next(list, &at), i++) {
        const bool sees_all = is_text(at, "full_attention");
        if (!sees_all && !is_text(at, "sliding_attention"))
            return qkv_fail(QKV_BAD_FILE, "line %zu: a layer type that is not implemented",
                            qkv_json_line(at));
        *full += sees_all;
        if (sees_all && first >= 0 && !every) every = i - first;
        if (sees_all && first < 0) first = i;
        if (every) regular &= sees_all == ((i - first) % every == 0);
    }
    if (!every) every = n;
    if (*full && *full < n && (!regular || first >= every || n != config->layers))
        return qkv_fail(QKV_BAD_FILE, "layer_types in this order are not implemented");
    config->full_every = *full ? every : 0;
    config->full_at = *full ? first : 0;
    return QKV_OK;
}

qkv_status qkv_family_layer_types(qkv_json_at keys, qkv_config *config) {
    qkv_json_at types;
    int64_t full;
    if (!has(keys, "layer_types", &types)) return QKV_OK;
    QKV_TRY(find_turns(types, config, &full));
    if (full < (int64_t)qkv_json_count(types)) return QKV_OK;
    config->full_every = config->full_at = 0;
    return qkv_config_set(config, "attention", "full");
}

/* A window of W keys has the query's own among them; ours counts those before it. */
qkv_status qkv_family_window(qkv_json_at keys, qkv_config *config) {
    qkv_json_at at;
    int64_t width = 0;
    bool used = true;
    if (has(keys, "sliding_window", &at))
        QKV_TRY(qkv_json_get_int(keys, "sliding_window", true, 1, 1 << 20, &width));
    QKV_TRY(qkv_json_get_bool(keys, "use_sliding_window", false, &used));
    if (!width || !used) return QKV_OK;
    config->window = width - 1;
    QKV_TRY(qkv_config_set(config, "attention", "local"));
    return qkv_family_layer_types(keys, config);
}
