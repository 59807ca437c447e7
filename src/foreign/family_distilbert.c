/* DistilBERT (Sanh et al. 2019): BERT without token types, under names of its own. */
#include "foreign/family.h"

static const qkv_tensor_rule tensors[] = {
    TENSOR("~embeddings.word_embeddings", "encoder.embedding"),
    TENSOR("~embeddings.position_embeddings", "encoder.position"),
    TENSOR("~embeddings.LayerNorm", "encoder.embedding_norm"),
    TENSOR("~transformer.layer.%d.attention.q_lin", "encoder.layers.%d.attention.qkv",
           .slice = QKV_SLICE_Q),
    TENSOR("~transformer.layer.%d.attention.k_lin", "encoder.layers.%d.attention.qkv",
           .slice = QKV_SLICE_K),
    TENSOR("~transformer.layer.%d.attention.v_lin", "encoder.layers.%d.attention.qkv",
           .slice = QKV_SLICE_V),
    TENSOR("~transformer.layer.%d.attention.out_lin", "encoder.layers.%d.attention.out"),
    TENSOR("~transformer.layer.%d.sa_layer_norm", "encoder.layers.%d.attention_norm"),
    TENSOR("~transformer.layer.%d.ffn.lin1", "encoder.layers.%d.ffn.in"),
    TENSOR("~transformer.layer.%d.ffn.lin2", "encoder.layers.%d.ffn.out"),
    TENSOR("~transformer.layer.%d.output_layer_norm", "encoder.layers.%d.ffn_norm"),
    TENSOR("~embeddings.position_ids", NULL, .how = QKV_TENSOR_BARE),
    TENSOR("pre_classifier", "head.pooler", .how = QKV_TENSOR_HEAD),
    TENSOR("classifier", "head.classes", .how = QKV_TENSOR_HEAD),
    TENSOR("vocab_transform", "head.transform", .how = QKV_TENSOR_HEAD),
    TENSOR("vocab_layer_norm", "head.norm", .how = QKV_TENSOR_HEAD),
    TENSOR("vocab_projector.bias", "head.bias", .how = QKV_TENSOR_HEAD | QKV_TENSOR_BARE),
    TENSOR("vocab_projector.weight", "head.weight", .how = QKV_TENSOR_HEAD | QKV_TENSOR_BARE),
    {0}};

static const qkv_key_rule keys[] = {
    KEY("vocab_size", "vocab_size"),
    KEY("dim", "d_model"),
    KEY("n_layers", "layers"),
    KEY("n_heads", "heads"),
    KEY("hidden_dim", "d_ff"),
    KEY("max_position_embeddings", "max_len", .absent = "512"),
    KEY("activation", "activation", .absent = "gelu", .means = QKV_ACTIVATIONS),
    KEY("dropout", "dropout", .absent = "0.1"),
    KEY("attention_dropout", "attention_dropout", .absent = "0.1"),
    KEY("tie_word_embeddings", "tie", .absent = "true"),
    KEY("tie_weights_", NULL),
    KEY("sinusoidal_pos_embds", NULL), /* how the table began */
    KEY("qa_dropout", NULL),
    KEY("seq_classif_dropout", NULL),
    {0}};

static const qkv_class_row classes[] = {
    {"Model", "task=embed pool=mean"},
    {"ForMaskedLM", "task=mlm head_transform=true head_bias=true"},
    {"ForSequenceClassification", "task=classify pool=first pooler=relu"},
    {"ForTokenClassification", "task=tag"},
    {0}};

const qkv_family qkv_family_distilbert = {
    .name = "DistilBERT",
    .types = "distilbert",
    .settings = "arch=transformer norm=post position=learned embedding_norm=true norm_eps=1e-12",
    .prefix = "distilbert.",
    .tensors = {tensors},
    .keys = {keys},
    .classes = classes,
};
