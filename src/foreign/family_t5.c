/* T5 (Raffel et al. 2020), mT5, FLAN-T5: a bias by bucket of distances, scores that are not scaled, no
 * biases, RMSNorm. */
#include "foreign/family.h"

#include <math.h>

#define SIDE(side, its_ffn)                                                                        \
    TENSOR(side ".block.%d.layer.0.SelfAttention.q", side ".layers.%d.attention.qkv",              \
           .slice = QKV_SLICE_Q),                                                                  \
        TENSOR(side ".block.%d.layer.0.SelfAttention.k", side ".layers.%d.attention.qkv",          \
               .slice = QKV_SLICE_K),                                                              \
        TENSOR(side ".block.%d.layer.0.SelfAttention.v", side ".layers.%d.attention.qkv",          \
               .slice = QKV_SLICE_V),                                                              \
        TENSOR(side ".block.%d.layer.0.SelfAttention.o", side ".layers.%d.attention.out"),         \
        TENSOR(side ".block.%d.layer.0.layer_norm", side ".layers.%d.attention_norm"),             \
        TENSOR(side ".block.%d.layer." its_ffn ".DenseReluDense.wi", side ".layers.%d.ffn.in",     \
               .how = QKV_TENSOR_EITHER),                                                          \
        TENSOR(side ".block.%d.layer." its_ffn ".DenseReluDense.wi_0", side ".layers.%d.ffn.in",   \
               .slice = QKV_SLICE_FIRST, .how = QKV_TENSOR_EITHER),                                \
        TENSOR(side ".block.%d.layer." its_ffn ".DenseReluDense.wi_1", side ".layers.%d.ffn.in",   \
               .slice = QKV_SLICE_LAST, .how = QKV_TENSOR_EITHER),                                 \
        TENSOR(side ".block.%d.layer." its_ffn ".DenseReluDense.wo", side ".layers.%d.ffn.out"),   \
        TENSOR(side ".block.%d.layer." its_ffn ".layer_norm", side ".layers.%d.ffn_norm"),         \
        TENSOR(side ".block.0.layer.0.SelfAttention.relative_attention_bias.weight",               \
               side ".position.bias", .how = QKV_TENSOR_TRANSPOSED | QKV_TENSOR_BARE),             \
        TENSOR(side ".final_layer_norm", side ".norm"), TENSOR(side ".embed_tokens", NULL)

static const qkv_tensor_rule tensors[] = {
    TENSOR("shared", "embedding", .how = QKV_TENSOR_HEAD),
    TENSOR("shared", "encoder.embedding", .how = QKV_TENSOR_HEAD),
    SIDE("encoder", "1"),
    TENSOR("lm_head", "head", .how = QKV_TENSOR_HEAD),
    {0}};
static const qkv_tensor_rule decoder[] = {
    SIDE("decoder", "2"),
    TENSOR("decoder.block.%d.layer.1.EncDecAttention.q", "decoder.layers.%d.cross.q"),
    TENSOR("decoder.block.%d.layer.1.EncDecAttention.k", "decoder.layers.%d.cross.kv",
           .slice = QKV_SLICE_FIRST),
    TENSOR("decoder.block.%d.layer.1.EncDecAttention.v", "decoder.layers.%d.cross.kv",
           .slice = QKV_SLICE_LAST),
    TENSOR("decoder.block.%d.layer.1.EncDecAttention.o", "decoder.layers.%d.cross.out"),
    TENSOR("decoder.block.%d.layer.1.layer_norm", "decoder.layers.%d.cross_norm"),
    {0}};
/* Left over from the first version of the program. */
static const qkv_tensor_rule unused[] = {
    TENSOR("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias", NULL), {0}};

static const qkv_key_rule keys[] = {
    KEY("vocab_size", "vocab_size"),
    KEY("d_model", "d_model"),
    KEY("d_kv", "d_head", .absent = "64"),
    KEY("d_ff", "d_ff"),
    KEY("num_layers", "encoder_layers"),
    KEY("num_decoder_layers", "decoder_layers", .absent = "0"),
    KEY("num_heads", "heads"),
    KEY("relative_attention_num_buckets", "t5_buckets", .absent = "32"),
    KEY("relative_attention_max_distance", "t5_distance", .absent = "128"),
    KEY("dropout_rate", "dropout", .absent = "0.1"),
    KEY("layer_norm_epsilon", "norm_eps", .absent = "1e-6"),
    KEY("feed_forward_proj", "activation", .absent = "relu",
        .means = "relu=relu gated-gelu=geglu_tanh gated-silu=swiglu gelu=gelu silu=silu"),
    KEY("tie_word_embeddings", "tie", .absent = "true"),
    KEY("scale_decoder_outputs", NULL),
    KEY("is_decoder", NULL, .absent = "false", .means = "false"),
    KEY("n_positions", "max_len", .absent = "512"),
    KEY("is_gated_act", NULL),
    KEY("dense_act_fn", NULL),
    {0}};

static const qkv_class_row classes[] = {
    {"ForConditionalGeneration", "task=translate share_embeddings=true"},
    {"WithLMHeadModel", "task=translate share_embeddings=true"},
    {"EncoderModel", "task=embed pool=mean"},
    {0}};

/* What enters the map to the vocabulary is scaled where that map is the table of words; since version
 * 5 a key of its own says so. */
static qkv_status settle(qkv_json_at at, qkv_config *config, qkv_family_facts *facts) {
    bool scaled = config->tie;
    (void)facts;
    QKV_TRY(qkv_json_get_bool(at, "scale_decoder_outputs", false, &scaled));
    config->layers = config->encoder_layers;
    if (!config->decoder_layers) config->decoder_layers = config->encoder_layers;
    config->head_scale = scaled ? 1 / sqrt((double)config->d_model) : 1;
    return QKV_OK;
}

const qkv_family qkv_family_t5 = {
    .name = "T5",
    .types = "t5 mt5",
    .settings = "arch=transformer norm=pre norm_kind=rms position=t5 attention_scale=none "
                "qkv_bias=false out_bias=false ffn_bias=false",
    .tensors = {tensors, decoder, unused},
    .keys = {keys},
    .classes = classes,
    .settle = settle,
};
