/* BERT (Devlin et al. 2019) and what is built like it: post-norm encoders with learned positions,
 * token types and a norm behind the embedding. */
#include "foreign/family.h"

const qkv_tensor_rule qkv_tensors_bert[] = {
    TENSOR("~embeddings.word_embeddings", "encoder.embedding"),
    TENSOR("~embeddings.position_embeddings", "encoder.position", .how = QKV_TENSOR_SKIPS),
    TENSOR("~embeddings.token_type_embeddings", "encoder.segment_embedding"),
    TENSOR("~embeddings.LayerNorm", "encoder.embedding_norm"),
    TENSOR("~encoder.layer.%d.attention.self.query", "encoder.layers.%d.attention.qkv",
           .slice = QKV_SLICE_Q),
    TENSOR("~encoder.layer.%d.attention.self.key", "encoder.layers.%d.attention.qkv",
           .slice = QKV_SLICE_K),
    TENSOR("~encoder.layer.%d.attention.self.value", "encoder.layers.%d.attention.qkv",
           .slice = QKV_SLICE_V),
    TENSOR("~encoder.layer.%d.attention.output.dense", "encoder.layers.%d.attention.out"),
    TENSOR("~encoder.layer.%d.attention.output.LayerNorm", "encoder.layers.%d.attention_norm"),
    TENSOR("~encoder.layer.%d.intermediate.dense", "encoder.layers.%d.ffn.in"),
    TENSOR("~encoder.layer.%d.output.dense", "encoder.layers.%d.ffn.out"),
    TENSOR("~encoder.layer.%d.output.LayerNorm", "encoder.layers.%d.ffn_norm"),
    TENSOR("~embeddings.position_ids", NULL, .how = QKV_TENSOR_BARE),
    TENSOR("~embeddings.token_type_ids", NULL, .how = QKV_TENSOR_BARE),
    {0}};

const qkv_key_rule qkv_keys_bert[] = {
    KEY("vocab_size", "vocab_size"),
    KEY("hidden_size", "d_model"),
    KEY("num_hidden_layers", "layers"),
    KEY("num_attention_heads", "heads"),
    KEY("intermediate_size", "d_ff"),
    KEY("max_position_embeddings", "max_len"),
    KEY("type_vocab_size", "segments", .absent = "2"),
    KEY("hidden_act", "activation", .absent = "gelu", .means = QKV_ACTIVATIONS),
    KEY("layer_norm_eps", "norm_eps", .absent = "1e-12"),
    KEY("hidden_dropout_prob", "dropout", .absent = "0.1"),
    KEY("attention_probs_dropout_prob", "attention_dropout", .absent = "0.1"),
    KEY("position_embedding_type", NULL, .absent = "absolute", .means = "absolute"),
    KEY("is_decoder", NULL, .absent = "false", .means = "false"),
    KEY("add_cross_attention", NULL, .absent = "false", .means = "false"),
    {0}};

static const qkv_tensor_rule heads[] = {
    TENSOR("~pooler.dense", "head.pooler", .how = QKV_TENSOR_HEAD),
    TENSOR("classifier", "head.classes", .how = QKV_TENSOR_HEAD),
    TENSOR("cls.predictions.transform.dense", "head.transform", .how = QKV_TENSOR_HEAD),
    TENSOR("cls.predictions.transform.LayerNorm", "head.norm", .how = QKV_TENSOR_HEAD),
    TENSOR("cls.predictions.bias", "head.bias", .how = QKV_TENSOR_HEAD | QKV_TENSOR_BARE),
    TENSOR("cls.predictions.decoder.weight", "head.weight",
           .how = QKV_TENSOR_HEAD | QKV_TENSOR_BARE),
    TENSOR("cls.predictions.decoder.bias", NULL, .how = QKV_TENSOR_BARE),
    TENSOR("cls.seq_relationship", NULL),
    {0}};

static const qkv_class_row classes[] = {
    {"Model", "task=embed pool=mean"},
    {"ForMaskedLM", "task=mlm head_transform=true head_bias=true"},
    {"ForPreTraining", "task=mlm head_transform=true head_bias=true"},
    {"ForSequenceClassification", "task=classify pool=first pooler=tanh"},
    {"ForTokenClassification", "task=tag"},
    {0}};

const qkv_family qkv_family_bert = {
    .name = "BERT",
    .types = "bert",
    .settings = "arch=transformer norm=post position=learned embedding_norm=true",
    .prefix = "bert.",
    .tensors = {qkv_tensors_bert, heads},
    .keys = {qkv_keys_bert,
             (const qkv_key_rule[]){KEY("tie_word_embeddings", "tie", .absent = "true"), {0}}},
    .classes = classes,
};
