/* MPNet (Song et al. 2020): BERT without token types, with T5's bias of scores beside its learned
 * positions, which begin at row 2 of their table whatever the configuration says. */
#include "foreign/family.h"

static const qkv_tensor_rule tensors[] = {
    TENSOR("~embeddings.word_embeddings", "encoder.embedding"),
    TENSOR("~embeddings.position_embeddings.weight", "encoder.position.weight",
           .how = QKV_TENSOR_SKIPS | QKV_TENSOR_BARE),
    TENSOR("~embeddings.LayerNorm", "encoder.embedding_norm"),
    TENSOR("~encoder.relative_attention_bias.weight", "encoder.position.bias",
           .how = QKV_TENSOR_BARE | QKV_TENSOR_TRANSPOSED),
    TENSOR("~encoder.layer.%d.attention.attn.q", "encoder.layers.%d.attention.qkv",
           .slice = QKV_SLICE_Q),
    TENSOR("~encoder.layer.%d.attention.attn.k", "encoder.layers.%d.attention.qkv",
           .slice = QKV_SLICE_K),
    TENSOR("~encoder.layer.%d.attention.attn.v", "encoder.layers.%d.attention.qkv",
           .slice = QKV_SLICE_V),
    TENSOR("~encoder.layer.%d.attention.attn.o", "encoder.layers.%d.attention.out"),
    TENSOR("~encoder.layer.%d.attention.LayerNorm", "encoder.layers.%d.attention_norm"),
    TENSOR("~encoder.layer.%d.intermediate.dense", "encoder.layers.%d.ffn.in"),
    TENSOR("~encoder.layer.%d.output.dense", "encoder.layers.%d.ffn.out"),
    TENSOR("~encoder.layer.%d.output.LayerNorm", "encoder.layers.%d.ffn_norm"),
    TENSOR("~embeddings.position_ids", NULL, .how = QKV_TENSOR_BARE),
    TENSOR("classifier.dense", "head.pooler", .how = QKV_TENSOR_HEAD),
    TENSOR("classifier.out_proj", "head.classes", .how = QKV_TENSOR_HEAD),
    TENSOR("classifier", "head.classes", .how = QKV_TENSOR_HEAD),
    TENSOR("lm_head.dense", "head.transform", .how = QKV_TENSOR_HEAD),
    TENSOR("lm_head.layer_norm", "head.norm", .how = QKV_TENSOR_HEAD),
    TENSOR("lm_head.bias", "head.bias", .how = QKV_TENSOR_HEAD | QKV_TENSOR_BARE),
    TENSOR("lm_head.decoder.weight", "head.weight", .how = QKV_TENSOR_HEAD | QKV_TENSOR_BARE),
    TENSOR("lm_head.decoder.bias", NULL, .how = QKV_TENSOR_BARE),
    TENSOR("~pooler.dense", NULL),
    {0}};

static const qkv_key_rule keys[] = {
    KEY("type_vocab_size", NULL),
    KEY("relative_attention_num_buckets", "t5_buckets", .absent = "32", .means = "32"),
    KEY("tie_word_embeddings", "tie", .absent = "true"),
    {0}};

static const qkv_class_row classes[] = {
    {"Model", "task=embed pool=mean"},
    {"ForMaskedLM", "task=mlm head_transform=true head_bias=true"},
    {"ForSequenceClassification", "task=classify pool=first pooler=tanh"},
    {"ForTokenClassification", "task=tag"},
    {0}};

static qkv_status settle(qkv_json_at at, qkv_config *config, qkv_family_facts *facts) {
    (void)at;
    facts->skip = 2;
    config->max_len -= facts->skip;
    config->segments = 0;
    if (config->max_len < 1)
        return qkv_fail(QKV_BAD_FILE, "max_position_embeddings leaves no position");
    if (!config->head_transform || config->activation == QKV_FFN_GELU) return QKV_OK;
    return qkv_fail(QKV_BAD_FILE, "hidden_act other than gelu with a head over the vocabulary is "
                                  "not implemented");
}

const qkv_family qkv_family_mpnet = {
    .name = "MPNet",
    .types = "mpnet",
    .settings = "arch=transformer norm=post position=learned embedding_norm=true "
                "position_bias=true t5_distance=128",
    .prefix = "mpnet.",
    .tensors = {tensors},
    .keys = {keys, qkv_keys_bert},
    .classes = classes,
    .settle = settle,
};
