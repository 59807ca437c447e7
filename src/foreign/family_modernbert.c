/* ModernBERT (Warner et al. 2024): a pre-norm encoder with RoPE and gated layers. Every third layer sees
 * all, the others a window, with RoPE of another base; the first layer's attention has no norm, and
 * norms have no bias. */
#include "foreign/family.h"

static const qkv_tensor_rule tensors[] = {
    TENSOR("~embeddings.tok_embeddings", "encoder.embedding"),
    TENSOR("~embeddings.norm", "encoder.embedding_norm"),
    TENSOR("~layers.%d.attn_norm", "encoder.layers.%d.attention_norm"),
    TENSOR("~layers.%d.attn.Wqkv", "encoder.layers.%d.attention.qkv"),
    TENSOR("~layers.%d.attn.Wo", "encoder.layers.%d.attention.out"),
    TENSOR("~layers.%d.mlp_norm", "encoder.layers.%d.ffn_norm"),
    TENSOR("~layers.%d.mlp.Wi", "encoder.layers.%d.ffn.in"),
    TENSOR("~layers.%d.mlp.Wo", "encoder.layers.%d.ffn.out"),
    TENSOR("~final_norm", "encoder.norm"),
    TENSOR("head.dense", "head.transform", .how = QKV_TENSOR_HEAD),
    TENSOR("head.norm", "head.norm", .how = QKV_TENSOR_HEAD),
    TENSOR("decoder", "head", .how = QKV_TENSOR_HEAD),
    {0}};

static const qkv_key_rule keys[] = {
    KEY("vocab_size", "vocab_size"),
    KEY("hidden_size", "d_model"),
    KEY("num_hidden_layers", "layers"),
    KEY("num_attention_heads", "heads"),
    KEY("intermediate_size", "d_ff"),
    KEY("max_position_embeddings", "max_len", .absent = "8192"),
    KEY("hidden_activation", "activation", .absent = "gelu",
        .means = "gelu=geglu gelu_pytorch_tanh=geglu_tanh silu=swiglu"),
    KEY("norm_eps", "norm_eps", .absent = "1e-5"),
    KEY("layer_norm_eps", NULL), /* stands in the files, and nobody reads it */
    KEY("norm_bias", "norm_bias", .absent = "false"),
    KEY("attention_bias", "qkv_bias", .absent = "false"),
    KEY("attention_bias", "out_bias", .absent = "false"),
    KEY("mlp_bias", "ffn_bias", .absent = "false"),
    KEY("decoder_bias", "head_bias", .absent = "true"),
    KEY("attention_dropout", "attention_dropout", .absent = "0"),
    KEY("embedding_dropout", "embedding_dropout", .absent = "0"),
    KEY("mlp_dropout", "dropout", .absent = "0"),
    KEY("tie_word_embeddings", "tie", .absent = "true"),
    KEY("classifier_activation", NULL, .absent = "gelu", .means = "gelu"),
    KEY("classifier_bias", NULL, .absent = "false", .means = "false"),
    KEY("sparse_prediction", NULL), /* of training */
    KEY("sparse_pred_ignore_index", NULL),
    KEY("classifier_pooling", NULL),
    KEY("position_embedding_type", NULL),
    KEY("deterministic_flash_attn", NULL),
    KEY("reference_compile", NULL),
    KEY("repad_logits_with_grad", NULL),
    KEY("initializer_cutoff_factor", NULL),
    KEY("local_attention", NULL),
    KEY("global_attn_every_n_layers", NULL),
    KEY("global_rope_theta", NULL),
    KEY("local_rope_theta", NULL),
    {0}};

static const qkv_class_row classes[] = {
    {"Model", "task=embed pool=mean"}, {"ForMaskedLM", "task=mlm head_transform=true"}, {0}};

/* A window of W tokens is W/2 to each side. */
static qkv_status settle(qkv_json_at at, qkv_config *config, qkv_family_facts *facts) {
    int64_t window = 128;
    (void)facts;
    config->rope_base = 160000;
    config->rope_base_local = 10000;
    config->full_every = 3;
    QKV_TRY(qkv_json_get_int(at, "local_attention", false, 2, 1 << 20, &window));
    QKV_TRY(
        qkv_json_get_int(at, "global_attn_every_n_layers", false, 1, 10000, &config->full_every));
    QKV_TRY(qkv_json_get_real(at, "global_rope_theta", false, 1, 1e12, &config->rope_base));
    QKV_TRY(qkv_json_get_real(at, "local_rope_theta", false, 1, 1e12, &config->rope_base_local));
    config->window = window / 2;
    QKV_TRY(qkv_config_set(config, "attention", "local"));
    QKV_TRY(qkv_family_rope(at, config));
    return qkv_family_layer_types(at, config);
}

const qkv_family qkv_family_modernbert = {
    .name = "ModernBERT",
    .types = "modernbert",
    .settings = "arch=transformer norm=pre position=rope rope_pairing=halves embedding_norm=true "
                "first_norm=false",
    .prefix = "model.",
    .tensors = {tensors},
    .keys = {keys, qkv_keys_rope},
    .classes = classes,
    .settle = settle,
};
