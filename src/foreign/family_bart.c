/* BART (Lewis et al. 2020) and the translators that are built like it: Marian, mBART, M2M-100 and
 * NLLB. They differ in where the norms stand and how positions are told. */
#include "foreign/family.h"

#define SIDE(side)                                                                                 \
    TENSOR("~" side ".embed_positions", side ".position",                                          \
           .how = QKV_TENSOR_SKIPS | QKV_TENSOR_HEAD),                                             \
        TENSOR("~" side ".layernorm_embedding", side ".embedding_norm"),                           \
        TENSOR("~" side ".layers.%d.self_attn.q_proj", side ".layers.%d.attention.qkv",            \
               .slice = QKV_SLICE_Q),                                                              \
        TENSOR("~" side ".layers.%d.self_attn.k_proj", side ".layers.%d.attention.qkv",            \
               .slice = QKV_SLICE_K),                                                              \
        TENSOR("~" side ".layers.%d.self_attn.v_proj", side ".layers.%d.attention.qkv",            \
               .slice = QKV_SLICE_V),                                                              \
        TENSOR("~" side ".layers.%d.self_attn.out_proj", side ".layers.%d.attention.out"),         \
        TENSOR("~" side ".layers.%d.self_attn_layer_norm", side ".layers.%d.attention_norm"),      \
        TENSOR("~" side ".layers.%d.fc1", side ".layers.%d.ffn.in"),                               \
        TENSOR("~" side ".layers.%d.fc2", side ".layers.%d.ffn.out"),                              \
        TENSOR("~" side ".layers.%d.final_layer_norm", side ".layers.%d.ffn_norm"),                \
        TENSOR("~" side ".layer_norm", side ".norm"),                                              \
        TENSOR("~" side ".embed_tokens", side ".embedding", .how = QKV_TENSOR_HEAD),               \
        TENSOR("~" side ".embed_positions.weights", NULL, .how = QKV_TENSOR_BARE)

static const qkv_tensor_rule encoder[] = {SIDE("encoder"), {0}};
static const qkv_tensor_rule decoder[] = {
    SIDE("decoder"),
    TENSOR("~decoder.layers.%d.encoder_attn.q_proj", "decoder.layers.%d.cross.q"),
    TENSOR("~decoder.layers.%d.encoder_attn.k_proj", "decoder.layers.%d.cross.kv",
           .slice = QKV_SLICE_FIRST),
    TENSOR("~decoder.layers.%d.encoder_attn.v_proj", "decoder.layers.%d.cross.kv",
           .slice = QKV_SLICE_LAST),
    TENSOR("~decoder.layers.%d.encoder_attn.out_proj", "decoder.layers.%d.cross.out"),
    TENSOR("~decoder.layers.%d.encoder_attn_layer_norm", "decoder.layers.%d.cross_norm"),
    {0}};
static const qkv_tensor_rule head[] = {
    TENSOR("~shared", "embedding", .how = QKV_TENSOR_HEAD),
    TENSOR("final_logits_bias", "head.bias", .how = QKV_TENSOR_BARE),
    TENSOR("lm_head", "head", .how = QKV_TENSOR_HEAD),
    {0}};

static const qkv_key_rule keys[] = {KEY("vocab_size", "vocab_size"),
                                    KEY("d_model", "d_model"),
                                    KEY("encoder_layers", "encoder_layers"),
                                    KEY("decoder_layers", "decoder_layers"),
                                    KEY("encoder_attention_heads", "heads"),
                                    KEY("encoder_ffn_dim", "d_ff"),
                                    KEY("max_position_embeddings", "max_len"),
                                    KEY("dropout", "dropout", .absent = "0.1"),
                                    KEY("attention_dropout", "attention_dropout", .absent = "0"),
                                    KEY("scale_embedding", "embedding_scale", .absent = "false"),
                                    KEY("tie_word_embeddings", "tie", .absent = "true"),
                                    KEY("decoder_attention_heads", NULL),
                                    KEY("decoder_ffn_dim", NULL),
                                    KEY("num_hidden_layers", NULL),
                                    KEY("activation_dropout", NULL),
                                    KEY("encoder_layerdrop", NULL),
                                    KEY("decoder_layerdrop", NULL),
                                    KEY("init_std", NULL),
                                    KEY("classif_dropout", NULL),
                                    {0}};

#define ACTIVATION(usual)                                                                          \
    KEY("activation_function", "activation", .absent = usual, .means = QKV_ACTIVATIONS)

static const qkv_class_row classes[] = {
    {"ForConditionalGeneration", "task=translate"}, {"MTModel", "task=translate"}, {0}};

/* Both sides are of one size here. */
static qkv_status same_sizes(qkv_json_at at, const qkv_config *config) {
    int64_t heads = config->heads, width = config->d_ff;
    QKV_TRY(qkv_json_get_int(at, "decoder_attention_heads", false, 1, 4096, &heads));
    QKV_TRY(qkv_json_get_int(at, "decoder_ffn_dim", false, 1, 1 << 22, &width));
    if (heads == config->heads && width == config->d_ff) return QKV_OK;
    return qkv_fail(QKV_BAD_FILE, "a decoder of other widths than the encoder is not implemented");
}

/* Position p is row p + 2 of the table. */
static qkv_status settle_learned(qkv_json_at at, qkv_config *config, qkv_family_facts *facts) {
    facts->skip = 2;
    config->layers = config->encoder_layers;
    return same_sizes(at, config);
}

static qkv_status settle_sines(qkv_json_at at, qkv_config *config, qkv_family_facts *facts) {
    (void)facts;
    config->layers = config->encoder_layers;
    return same_sizes(at, config);
}

static const qkv_key_rule bart_keys[] = {
    ACTIVATION("gelu"),
    KEY("normalize_before", NULL, .absent = "false", .means = "false"),
    KEY("normalize_embedding", NULL, .absent = "true", .means = "true"),
    KEY("add_final_layer_norm", NULL, .absent = "false", .means = "false"),
    KEY("add_bias_logits", NULL),
    KEY("static_position_embeddings", NULL, .absent = "false", .means = "false"),
    KEY("extra_pos_embeddings", NULL, .absent = "2", .means = "2"),
    KEY("force_bos_token_to_be_generated", NULL),
    {0}};

const qkv_family qkv_family_bart = {
    .name = "BART",
    .types = "bart",
    .settings = "arch=transformer norm=post position=learned embedding_norm=true head_bias=true",
    .prefix = "model.",
    .tensors = {encoder, decoder, head},
    .keys = {keys, bart_keys},
    .classes = classes,
    .no_texts = "its texts begin with a token that is forced, which is not implemented",
    .settle = settle_learned,
};

static const qkv_key_rule mbart_keys[] = {
    ACTIVATION("gelu"),
    KEY("normalize_before", NULL, .absent = "true", .means = "true"),
    KEY("normalize_embedding", NULL, .absent = "true", .means = "true"),
    KEY("add_final_layer_norm", NULL, .absent = "true", .means = "true"),
    KEY("add_bias_logits", NULL),
    KEY("static_position_embeddings", NULL, .absent = "false", .means = "false"),
    KEY("extra_pos_embeddings", NULL, .absent = "2", .means = "2"),
    {0}};

const qkv_family qkv_family_mbart = {
    .name = "mBART",
    .types = "mbart",
    .settings = "arch=transformer norm=pre position=learned embedding_norm=true head_bias=true",
    .prefix = "model.",
    .tensors = {encoder, decoder, head},
    .keys = {keys, mbart_keys},
    .classes = classes,
    .no_texts = "languages are chosen by tokens, which is not implemented",
    .settle = settle_learned,
};

static const qkv_key_rule marian_keys[] = {
    ACTIVATION("gelu"),
    KEY("share_encoder_decoder_embeddings", "share_embeddings", .absent = "true"),
    KEY("decoder_vocab_size", "target_vocab_size", .absent = "0"),
    KEY("normalize_before", NULL, .absent = "false", .means = "false"),
    KEY("normalize_embedding", NULL, .absent = "false", .means = "false"),
    KEY("add_final_layer_norm", NULL, .absent = "false", .means = "false"),
    KEY("static_position_embeddings", NULL, .absent = "true", .means = "true"),
    KEY("extra_pos_embeddings", NULL),
    KEY("add_bias_logits", NULL),
    {0}};

const qkv_family qkv_family_marian = {
    .name = "Marian",
    .types = "marian",
    .settings = "arch=transformer norm=post position=sinusoidal sinusoidal_pairing=halves "
                "head_bias=true",
    .prefix = "model.",
    .tensors = {encoder, decoder, head},
    .keys = {keys, marian_keys},
    .classes = classes,
    .no_texts =
        "its vocabulary is in source.spm, target.spm and vocab.json, which are not read together",
    .settle = settle_sines,
};

/* Its sines have other wavelengths and begin at position 2; so they are in fairseq. */
static const qkv_key_rule m2m_keys[] = {ACTIVATION("relu"), KEY("num_hidden_layers", NULL), {0}};

const qkv_family qkv_family_m2m = {
    .name = "M2M-100",
    .types = "m2m_100 nllb",
    .settings = "arch=transformer norm=pre position=sinusoidal sinusoidal_pairing=halves "
                "sinusoidal_rates=spread sinusoidal_first=2 share_embeddings=true",
    .prefix = "model.",
    .tensors = {encoder, decoder, head},
    .keys = {keys, m2m_keys},
    .classes = classes,
    .no_texts = "languages are chosen by tokens, which is not implemented",
    .settle = settle_sines,
};
