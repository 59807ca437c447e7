/* ALBERT (Lan et al. 2020): BERT with narrow embeddings and one layer that is used again and again. */
#include "foreign/family.h"

#define LAYER "~encoder.albert_layer_groups.0.albert_layers.0."
#define OURS  "encoder.layers.0."

static const qkv_tensor_rule tensors[] = {
    TENSOR("~embeddings.word_embeddings", "encoder.embedding"),
    TENSOR("~embeddings.position_embeddings", "encoder.position"),
    TENSOR("~embeddings.token_type_embeddings", "encoder.segment_embedding"),
    TENSOR("~embeddings.LayerNorm", "encoder.embedding_norm"),
    TENSOR("~encoder.embedding_hidden_mapping_in", "encoder.embedding_projection"),
    TENSOR(LAYER "attention.query", OURS "attention.qkv", .slice = QKV_SLICE_Q),
    TENSOR(LAYER "attention.key", OURS "attention.qkv", .slice = QKV_SLICE_K),
    TENSOR(LAYER "attention.value", OURS "attention.qkv", .slice = QKV_SLICE_V),
    TENSOR(LAYER "attention.dense", OURS "attention.out"),
    TENSOR(LAYER "attention.LayerNorm", OURS "attention_norm"),
    TENSOR(LAYER "ffn", OURS "ffn.in"),
    TENSOR(LAYER "ffn_output", OURS "ffn.out"),
    TENSOR(LAYER "full_layer_layer_norm", OURS "ffn_norm"),
    TENSOR("~embeddings.position_ids", NULL, .how = QKV_TENSOR_BARE),
    TENSOR("~embeddings.token_type_ids", NULL, .how = QKV_TENSOR_BARE),
    TENSOR("~pooler", "head.pooler", .how = QKV_TENSOR_HEAD),
    TENSOR("classifier", "head.classes", .how = QKV_TENSOR_HEAD),
    TENSOR("predictions.dense", "head.transform", .how = QKV_TENSOR_HEAD),
    TENSOR("predictions.LayerNorm", "head.norm", .how = QKV_TENSOR_HEAD),
    TENSOR("predictions.bias", "head.bias", .how = QKV_TENSOR_HEAD | QKV_TENSOR_BARE),
    TENSOR("predictions.decoder.weight", "head.weight", .how = QKV_TENSOR_HEAD | QKV_TENSOR_BARE),
    TENSOR("predictions.decoder.bias", NULL, .how = QKV_TENSOR_BARE),
    TENSOR("sop_classifier.classifier", NULL),
    {0}};

static const qkv_key_rule keys[] = {
    KEY("embedding_size", "d_embedding", .absent = "128"),
    KEY("num_hidden_groups", NULL, .absent = "1", .means = "1"),
    KEY("inner_group_num", NULL, .absent = "1", .means = "1"),
    KEY("hidden_act", "activation", .absent = "gelu_new", .means = QKV_ACTIVATIONS),
    KEY("tie_word_embeddings", "tie", .absent = "true"),
    KEY("classifier_dropout_prob", NULL),
    KEY("down_scale_factor", NULL, .absent = "1", .means = "1"),
    KEY("gap_size", NULL, .absent = "0", .means = "0"),
    KEY("net_structure_type", NULL, .absent = "0", .means = "0"),
    KEY("num_memory_blocks", NULL, .absent = "0", .means = "0"),
    KEY("layers_to_keep", NULL),
    {0}};

static const qkv_class_row classes[] = {
    {"Model", "task=embed pool=mean"},
    {"ForMaskedLM", "task=mlm head_transform=true head_bias=true"},
    {"ForPreTraining", "task=mlm head_transform=true head_bias=true"},
    {"ForSequenceClassification", "task=classify pool=first pooler=tanh"},
    {"ForTokenClassification", "task=tag"},
    {0}};

const qkv_family qkv_family_albert = {
    .name = "ALBERT",
    .types = "albert",
    .settings = "arch=transformer norm=post position=learned embedding_norm=true share_layers=true",
    .prefix = "albert.",
    .tensors = {tensors},
    .keys = {qkv_keys_bert, keys},
    .classes = classes,
};
