/* GPT-NeoX (Black et al. 2022), Pythia: attention and feed-forward layer side by side, RoPE on a part of
 * each head; queries, keys and values lie head by head. */
#include "foreign/family.h"

static const qkv_tensor_rule tensors[] = {
    TENSOR("~embed_in", "decoder.embedding"),
    TENSOR("~layers.%d.input_layernorm", "decoder.layers.%d.attention_norm"),
    TENSOR("~layers.%d.attention.query_key_value", "decoder.layers.%d.attention.qkv",
           .how = QKV_TENSOR_BY_HEAD),
    TENSOR("~layers.%d.attention.dense", "decoder.layers.%d.attention.out"),
    TENSOR("~layers.%d.post_attention_layernorm", "decoder.layers.%d.ffn_norm"),
    TENSOR("~layers.%d.mlp.dense_h_to_4h", "decoder.layers.%d.ffn.in"),
    TENSOR("~layers.%d.mlp.dense_4h_to_h", "decoder.layers.%d.ffn.out"),
    TENSOR("~final_layer_norm", "decoder.norm"),
    TENSOR("embed_out", "head", .how = QKV_TENSOR_HEAD),
    TENSOR("~layers.%d.attention.bias", NULL, .how = QKV_TENSOR_BARE),
    TENSOR("~layers.%d.attention.masked_bias", NULL, .how = QKV_TENSOR_BARE),
    TENSOR("~layers.%d.attention.rotary_emb.inv_freq", NULL, .how = QKV_TENSOR_BARE),
    {0}};

static const qkv_key_rule keys[] = {
    KEY("vocab_size", "vocab_size"),
    KEY("hidden_size", "d_model"),
    KEY("num_hidden_layers", "layers"),
    KEY("num_attention_heads", "heads"),
    KEY("intermediate_size", "d_ff"),
    KEY("max_position_embeddings", "max_len", .absent = "2048"),
    KEY("hidden_act", "activation", .absent = "gelu", .means = QKV_ACTIVATIONS),
    KEY("layer_norm_eps", "norm_eps", .absent = "1e-5"),
    KEY("use_parallel_residual", "parallel", .absent = "true"),
    KEY("attention_bias", "qkv_bias", .absent = "true"),
    KEY("attention_bias", "out_bias", .absent = "true"),
    KEY("hidden_dropout", "dropout", .absent = "0"),
    KEY("attention_dropout", "attention_dropout", .absent = "0"),
    KEY("tie_word_embeddings", "tie", .absent = "false"),
    KEY("rotary_pct", NULL),
    KEY("rotary_emb_base", NULL),
    {0}};

static const qkv_class_row classes[] = {{"ForCausalLM", "task=lm"}, {0}};

static qkv_status settle(qkv_json_at at, qkv_config *config, qkv_family_facts *facts) {
    double share = 0.25;
    (void)facts;
    QKV_TRY(qkv_json_get_real(at, "rotary_pct", false, 0, 1, &share));
    QKV_TRY(qkv_json_get_real(at, "rotary_emb_base", false, 1, 1e12, &config->rope_base));
    config->rope_width = (int64_t)(share * (double)(config->d_model / config->heads));
    return qkv_family_rope(at, config);
}

const qkv_family qkv_family_gpt_neox = {
    .name = "GPT-NeoX",
    .types = "gpt_neox",
    .settings = "arch=transformer norm=pre position=rope rope_pairing=halves",
    .prefix = "gpt_neox.",
    .tensors = {tensors},
    .keys = {keys, qkv_keys_rope},
    .classes = classes,
    .settle = settle,
};
