/* GPT-Neo (TinyStories): GPT-2's layers with scores that are not scaled, no biases before attention, and a
 * window in every other layer. */
#include "foreign/family.h"

#include <string.h>

static const qkv_tensor_rule tensors[] = {
    TENSOR("~wte", "decoder.embedding"),
    TENSOR("~wpe", "decoder.position"),
    TENSOR("~h.%d.ln_1", "decoder.layers.%d.attention_norm"),
    TENSOR("~h.%d.attn.attention.q_proj", "decoder.layers.%d.attention.qkv", .slice = QKV_SLICE_Q),
    TENSOR("~h.%d.attn.attention.k_proj", "decoder.layers.%d.attention.qkv", .slice = QKV_SLICE_K),
    TENSOR("~h.%d.attn.attention.v_proj", "decoder.layers.%d.attention.qkv", .slice = QKV_SLICE_V),
    TENSOR("~h.%d.attn.attention.out_proj", "decoder.layers.%d.attention.out"),
    TENSOR("~h.%d.ln_2", "decoder.layers.%d.ffn_norm"),
    TENSOR("~h.%d.mlp.c_fc", "decoder.layers.%d.ffn.in"),
    TENSOR("~h.%d.mlp.c_proj", "decoder.layers.%d.ffn.out"),
    TENSOR("~ln_f", "decoder.norm"),
    TENSOR("lm_head.weight", "head.weight", .how = QKV_TENSOR_HEAD | QKV_TENSOR_BARE),
    TENSOR("~h.%d.attn.attention.bias", NULL, .how = QKV_TENSOR_BARE),
    TENSOR("~h.%d.attn.attention.masked_bias", NULL, .how = QKV_TENSOR_BARE),
    {0}};

static const qkv_key_rule keys[] = {
    KEY("vocab_size", "vocab_size"),
    KEY("hidden_size", "d_model"),
    KEY("num_layers", "layers"),
    KEY("num_heads", "heads"),
    KEY("intermediate_size", "d_ff", .absent = "0"),
    KEY("max_position_embeddings", "max_len"),
    KEY("layer_norm_epsilon", "norm_eps", .absent = "1e-5"),
    KEY("activation_function", "activation", .absent = "gelu_new", .means = QKV_ACTIVATIONS),
    KEY("resid_dropout", "dropout", .absent = "0"),
    KEY("embed_dropout", "embedding_dropout", .absent = "0"),
    KEY("attention_dropout", "attention_dropout", .absent = "0"),
    KEY("tie_word_embeddings", "tie", .absent = "true"),
    KEY("window_size", NULL),
    KEY("attention_layers", NULL),
    KEY("attention_types", NULL),
    {0}};

static const qkv_class_row classes[] = {{"ForCausalLM", "task=lm"}, {"Model", "task=lm"}, {0}};

static bool is_text(qkv_json_at at, const char *word) {
    const char *text;
    size_t len;
    qkv_json_string(at, &text, &len);
    return len == strlen(word) && !memcmp(text, word, len);
}

/* [[["global", "local"], n]]: the two in turns, or one of them alone. */
static qkv_status read_types(qkv_json_at at, bool *global, bool *local) {
    qkv_json_at outer, pair, kinds, kind;
    if (!qkv_json_member(at, "attention_types", &outer) || qkv_json_count(outer) != 1 ||
        !qkv_json_first(outer, &pair) || !qkv_json_first(pair, &kinds) ||
        qkv_json_count(kinds) < 1 || qkv_json_count(kinds) > 2 || !qkv_json_first(kinds, &kind))
        return qkv_fail(QKV_BAD_FILE, "\"attention_types\" has a form that is not implemented");
    *global = is_text(kind, "global");
    *local = is_text(kind, "local");
    if (qkv_json_count(kinds) == 2) {
        qkv_json_next(kinds, &kind);
        if (!*global || !is_text(kind, "local"))
            return qkv_fail(QKV_BAD_FILE, "\"attention_types\" in this order are not implemented");
        *local = true;
    }
    if (*global || *local) return QKV_OK;
    return qkv_fail(QKV_BAD_FILE, "\"attention_types\": a kind that is not implemented");
}

/* Of a window of W keys the query's own is one. */
static qkv_status settle(qkv_json_at at, qkv_config *config, qkv_family_facts *facts) {
    bool global = false, local = false;
    int64_t window = 256;
    (void)facts;
    QKV_TRY(read_types(at, &global, &local));
    QKV_TRY(qkv_json_get_int(at, "window_size", false, 1, 1 << 20, &window));
    if (!local) return QKV_OK;
    config->window = window - 1;
    if (global) config->full_every = 2;
    return qkv_config_set(config, "attention", "local");
}

const qkv_family qkv_family_gpt_neo = {
    .name = "GPT-Neo",
    .types = "gpt_neo",
    .settings = "arch=transformer norm=pre position=learned attention_scale=none qkv_bias=false",
    .prefix = "transformer.",
    .tensors = {tensors},
    .keys = {keys},
    .classes = classes,
    .settle = settle,
};
