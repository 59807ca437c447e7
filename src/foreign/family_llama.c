/* Llama (Touvron et al. 2023) and what is built like it: pre-norm decoders with RMSNorm, RoPE that
 * turns halves, gated feed-forward layers. What the members differ in is their keys and a few
 * settings. */
#include "foreign/family.h"

#include <math.h>

static const qkv_tensor_rule around[] = {
    TENSOR("~embed_tokens", "decoder.embedding"),
    TENSOR("~layers.%d.self_attn.o_proj", "decoder.layers.%d.attention.out"),
    TENSOR("~layers.%d.mlp.down_proj", "decoder.layers.%d.ffn.out"),
    TENSOR("lm_head", "head", .how = QKV_TENSOR_HEAD),
    TENSOR("~layers.%d.self_attn.rotary_emb.inv_freq", NULL, .how = QKV_TENSOR_BARE),
    TENSOR("~rotary_emb.inv_freq", NULL, .how = QKV_TENSOR_BARE),
    {0}};
static const qkv_tensor_rule apart[] = {
    TENSOR("~layers.%d.self_attn.q_proj", "decoder.layers.%d.attention.qkv", .slice = QKV_SLICE_Q),
    TENSOR("~layers.%d.self_attn.k_proj", "decoder.layers.%d.attention.qkv", .slice = QKV_SLICE_K),
    TENSOR("~layers.%d.self_attn.v_proj", "decoder.layers.%d.attention.qkv", .slice = QKV_SLICE_V),
    TENSOR("~layers.%d.mlp.gate_proj", "decoder.layers.%d.ffn.in", .slice = QKV_SLICE_FIRST),
    TENSOR("~layers.%d.mlp.up_proj", "decoder.layers.%d.ffn.in", .slice = QKV_SLICE_LAST),
    {0}};
static const qkv_tensor_rule joined[] = {
    TENSOR("~layers.%d.self_attn.qkv_proj", "decoder.layers.%d.attention.qkv"),
    TENSOR("~layers.%d.mlp.gate_up_proj", "decoder.layers.%d.ffn.in"),
    {0}};
static const qkv_tensor_rule norms[] = {
    TENSOR("~layers.%d.input_layernorm", "decoder.layers.%d.attention_norm"),
    TENSOR("~layers.%d.post_attention_layernorm", "decoder.layers.%d.ffn_norm"),
    TENSOR("~norm", "decoder.norm"),
    {0}};
static const qkv_tensor_rule norms_from_one[] = {
    TENSOR("~layers.%d.input_layernorm", "decoder.layers.%d.attention_norm",
           .how = QKV_TENSOR_PLUS_ONE),
    TENSOR("~layers.%d.post_attention_layernorm", "decoder.layers.%d.ffn_norm",
           .how = QKV_TENSOR_PLUS_ONE),
    TENSOR("~norm", "decoder.norm", .how = QKV_TENSOR_PLUS_ONE),
    {0}};

#define GATED "silu=swiglu swish=swiglu gelu=geglu gelu_pytorch_tanh=geglu_tanh gelu_new=geglu_tanh"

static const qkv_key_rule common[] = {KEY("vocab_size", "vocab_size"),
                                      KEY("hidden_size", "d_model"),
                                      KEY("num_hidden_layers", "layers"),
                                      KEY("num_attention_heads", "heads"),
                                      KEY("num_key_value_heads", "kv_heads", .absent = "0"),
                                      KEY("head_dim", "d_head", .absent = "0"),
                                      KEY("intermediate_size", "d_ff"),
                                      KEY("max_position_embeddings", "max_len", .absent = "2048"),
                                      KEY("rms_norm_eps", "norm_eps", .absent = "1e-6"),
                                      KEY("attention_dropout", "attention_dropout", .absent = "0"),
                                      {0}};

static const qkv_class_row classes[] = {{"ForCausalLM", "task=lm"}, {"Model", "task=lm"}, {0}};

#define LLAMA_SETTINGS                                                                             \
    "arch=transformer norm=pre norm_kind=rms position=rope rope_pairing=halves dropout=0 "         \
    "ffn_bias=false "

static qkv_status settle(qkv_json_at keys, qkv_config *config, qkv_family_facts *facts) {
    (void)facts;
    QKV_TRY(qkv_family_rope(keys, config));
    return qkv_family_window(keys, config);
}

/* ---- Llama 1 to 3, SmolLM2, TinyLlama ---- */

static const qkv_key_rule llama_keys[] = {
    KEY("hidden_act", "activation", .absent = "silu", .means = GATED),
    KEY("attention_bias", "qkv_bias", .absent = "false"),
    KEY("attention_bias", "out_bias", .absent = "false"),
    KEY("mlp_bias", "ffn_bias", .absent = "false"),
    KEY("tie_word_embeddings", "tie", .absent = "false"),
    KEY("is_llama_config", NULL),
    KEY("rope_interleaved", NULL, .absent = "false", .means = "false"),
    {0}};

const qkv_family qkv_family_llama = {
    .name = "Llama",
    .types = "llama",
    .settings = LLAMA_SETTINGS,
    .prefix = "model.",
    .tensors = {around, apart, norms},
    .keys = {common, llama_keys, qkv_keys_rope},
    .classes = classes,
    .settle = settle,
};

/* ---- Mistral ---- */

static const qkv_key_rule mistral_keys[] = {
    KEY("hidden_act", "activation", .absent = "silu", .means = GATED),
    KEY("tie_word_embeddings", "tie", .absent = "false"),
    {0}};

const qkv_family qkv_family_mistral = {
    .name = "Mistral",
    .types = "mistral",
    .settings = LLAMA_SETTINGS "qkv_bias=false out_bias=false",
    .prefix = "model.",
    .tensors = {around, apart, norms},
    .keys = {common, mistral_keys, qkv_keys_rope},
    .classes = classes,
    .settle = settle,
};

/* ---- Qwen 2, 2.5 ---- */

const qkv_family qkv_family_qwen2 = {
    .name = "Qwen 2",
    .types = "qwen2",
    .settings = LLAMA_SETTINGS "qkv_bias=true out_bias=false",
    .prefix = "model.",
    .tensors = {around, apart, norms},
    .keys = {common, mistral_keys, qkv_keys_rope},
    .classes = classes,
    .settle = settle,
};

/* ---- Phi-3: the matrices are joined as ours are ---- */

static const qkv_key_rule phi3_keys[] = {
    KEY("hidden_act", "activation", .absent = "silu", .means = GATED),
    KEY("tie_word_embeddings", "tie", .absent = "false"),
    KEY("resid_pdrop", "dropout", .absent = "0"),
    KEY("embd_pdrop", "embedding_dropout", .absent = "0"),
    {0}};

const qkv_family qkv_family_phi3 = {
    .name = "Phi-3",
    .types = "phi3",
    .settings = LLAMA_SETTINGS "qkv_bias=false out_bias=false norm_eps=1e-5",
    .prefix = "model.",
    .tensors = {around, joined, norms},
    .keys = {common, phi3_keys, qkv_keys_rope},
    .classes = classes,
    .settle = settle,
};

/* ---- Gemma: norms count from 1, embeddings are scaled ---- */

/* "gelu" stands in the files of the first version, and the tanh form was meant. */
#define GEMMA_GATED "gelu_pytorch_tanh=geglu_tanh gelu=geglu_tanh"

static const qkv_key_rule gemma_keys[] = {
    KEY("hidden_act", "activation", .absent = "gelu_pytorch_tanh", .means = GEMMA_GATED),
    KEY("hidden_activation", "activation", .absent = "gelu_pytorch_tanh", .means = GEMMA_GATED),
    KEY("attention_bias", "qkv_bias", .absent = "false"),
    KEY("attention_bias", "out_bias", .absent = "false"),
    KEY("tie_word_embeddings", "tie", .absent = "true"),
    KEY("use_bidirectional_attention", NULL, .absent = "false", .means = "false"),
    {0}};

const qkv_family qkv_family_gemma = {
    .name = "Gemma",
    .types = "gemma",
    .settings = LLAMA_SETTINGS "embedding_scale=true",
    .prefix = "model.",
    .tensors = {around, apart, norms_from_one},
    .keys = {common, gemma_keys, qkv_keys_rope},
    .classes = classes,
    .settle = settle,
};

/* ---- Qwen 3: each head of queries and keys is normed ---- */

static const qkv_tensor_rule head_norms[] = {
    TENSOR("~layers.%d.self_attn.q_norm", "decoder.layers.%d.attention.q_norm"),
    TENSOR("~layers.%d.self_attn.k_norm", "decoder.layers.%d.attention.k_norm"),
    {0}};

static const qkv_key_rule qwen3_keys[] = {
    KEY("hidden_act", "activation", .absent = "silu", .means = GATED),
    KEY("attention_bias", "qkv_bias", .absent = "false"),
    KEY("attention_bias", "out_bias", .absent = "false"),
    KEY("head_dim", "d_head", .absent = "128"),
    KEY("tie_word_embeddings", "tie", .absent = "false"),
    {0}};

const qkv_family qkv_family_qwen3 = {
    .name = "Qwen 3",
    .types = "qwen3",
    .settings = LLAMA_SETTINGS "qk_norm=true",
    .prefix = "model.",
    .tensors = {around, apart, norms, head_norms},
    .keys = {qwen3_keys, common, qkv_keys_rope},
    .classes = classes,
    .settle = settle,
};

/* ---- Gemma 3: norms before and after each part, windows in five of six layers ---- */

static const qkv_tensor_rule norms_around[] = {
    TENSOR("~layers.%d.input_layernorm", "decoder.layers.%d.attention_norm",
           .how = QKV_TENSOR_PLUS_ONE),
    TENSOR("~layers.%d.post_attention_layernorm", "decoder.layers.%d.attention_out_norm",
           .how = QKV_TENSOR_PLUS_ONE),
    TENSOR("~layers.%d.pre_feedforward_layernorm", "decoder.layers.%d.ffn_norm",
           .how = QKV_TENSOR_PLUS_ONE),
    TENSOR("~layers.%d.post_feedforward_layernorm", "decoder.layers.%d.ffn_out_norm",
           .how = QKV_TENSOR_PLUS_ONE),
    TENSOR("~norm", "decoder.norm", .how = QKV_TENSOR_PLUS_ONE),
    {0}};
static const qkv_tensor_rule head_norms_from_one[] = {
    TENSOR("~layers.%d.self_attn.q_norm", "decoder.layers.%d.attention.q_norm",
           .how = QKV_TENSOR_PLUS_ONE),
    TENSOR("~layers.%d.self_attn.k_norm", "decoder.layers.%d.attention.k_norm",
           .how = QKV_TENSOR_PLUS_ONE),
    {0}};

static const qkv_key_rule gemma3_keys[] = {
    KEY("head_dim", "d_head", .absent = "256"),
    KEY("query_pre_attn_scalar", NULL),
    KEY("attn_logit_softcapping", NULL, .absent = "0", .means = "0"),
    KEY("final_logit_softcapping", "logit_cap", .absent = "0"),
    KEY("rope_local_base_freq", NULL),
    KEY("sliding_window_pattern", NULL),
    KEY("_sliding_window_pattern", NULL),
    {0}};

/* Scores are divided by the root of a width of their own; windows and bases are by layer. */
static qkv_status settle_gemma3(qkv_json_at at, qkv_config *config, qkv_family_facts *facts) {
    double width = 256;
    int64_t every = 6;
    (void)facts;
    config->rope_base = 1e6;
    config->rope_base_local = 1e4;
    QKV_TRY(qkv_json_get_real(at, "query_pre_attn_scalar", false, 1e-6, 1e6, &width));
    QKV_TRY(
        qkv_json_get_real(at, "rope_local_base_freq", false, 1, 1e12, &config->rope_base_local));
    QKV_TRY(qkv_json_get_int(at, "_sliding_window_pattern", false, 1, 10000, &every));
    QKV_TRY(qkv_json_get_int(at, "sliding_window_pattern", false, 1, 10000, &every));
    config->score_scale = 1 / sqrt(width);
    config->full_every = every;
    config->full_at = every - 1;
    QKV_TRY(qkv_family_rope(at, config));
    return qkv_family_window(at, config);
}

const qkv_family qkv_family_gemma3 = {
    .name = "Gemma 3",
    .types = "gemma3_text",
    .settings = LLAMA_SETTINGS "embedding_scale=true qk_norm=true norm_after=true window=511 "
                               "attention=local",
    .prefix = "model.",
    .tensors = {around, apart, norms_around, head_norms_from_one},
    .keys = {gemma3_keys, common, gemma_keys, qkv_keys_rope},
    .classes = classes,
    .settle = settle_gemma3,
};
