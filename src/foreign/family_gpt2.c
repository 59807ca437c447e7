/* GPT-2 (Radford et al. 2019). Its linear maps are stored as (inputs, outputs). */
#include "foreign/family.h"

static const qkv_tensor_rule tensors[] = {
    TENSOR("~wte", "decoder.embedding"),
    TENSOR("~wpe", "decoder.position"),
    TENSOR("~h.%d.ln_1", "decoder.layers.%d.attention_norm"),
    TENSOR("~h.%d.attn.c_attn", "decoder.layers.%d.attention.qkv", .how = QKV_TENSOR_TRANSPOSED),
    TENSOR("~h.%d.attn.c_proj", "decoder.layers.%d.attention.out", .how = QKV_TENSOR_TRANSPOSED),
    TENSOR("~h.%d.ln_2", "decoder.layers.%d.ffn_norm"),
    TENSOR("~h.%d.mlp.c_fc", "decoder.layers.%d.ffn.in", .how = QKV_TENSOR_TRANSPOSED),
    TENSOR("~h.%d.mlp.c_proj", "decoder.layers.%d.ffn.out", .how = QKV_TENSOR_TRANSPOSED),
    TENSOR("~ln_f", "decoder.norm"),
    TENSOR("lm_head.weight", "head.weight", .how = QKV_TENSOR_HEAD | QKV_TENSOR_BARE),
    TENSOR("~h.%d.attn.bias", NULL, .how = QKV_TENSOR_BARE),
    TENSOR("~h.%d.attn.masked_bias", NULL, .how = QKV_TENSOR_BARE),
    {0}};

static const qkv_key_rule keys[] = {
    KEY("vocab_size", "vocab_size"),
    KEY("n_embd", "d_model"),
    KEY("n_layer", "layers"),
    KEY("n_head", "heads"),
    KEY("n_inner", "d_ff", .absent = "0"),
    KEY("n_positions", "max_len"),
    KEY("layer_norm_epsilon", "norm_eps", .absent = "1e-5"),
    KEY("activation_function", "activation", .absent = "gelu_new", .means = QKV_ACTIVATIONS),
    KEY("resid_pdrop", "dropout", .absent = "0.1"),
    KEY("attn_pdrop", "attention_dropout", .absent = "0.1"),
    KEY("embd_pdrop", "embedding_dropout", .absent = "0.1"),
    KEY("scale_attn_weights", NULL, .absent = "true", .means = "true"),
    KEY("scale_attn_by_inverse_layer_idx", NULL, .absent = "false", .means = "false"),
    KEY("add_cross_attention", NULL, .absent = "false", .means = "false"),
    KEY("tie_word_embeddings", "tie", .absent = "true"),
    KEY("reorder_and_upcast_attn", NULL),
    KEY("n_ctx", NULL),
    {0}};

static const qkv_class_row classes[] = {{"LMHeadModel", "task=lm"}, {"Model", "task=lm"}, {0}};

const qkv_family qkv_family_gpt2 = {
    .name = "GPT-2",
    .types = "gpt2",
    .settings = "arch=transformer norm=pre position=learned",
    .prefix = "transformer.",
    .tensors = {tensors},
    .keys = {keys},
    .classes = classes,
};
