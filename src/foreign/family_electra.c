/* ELECTRA (Clark et al. 2020): BERT whose embeddings may be narrower than its layers. */
#include "foreign/family.h"

static const qkv_tensor_rule heads[] = {
    TENSOR("~embeddings_project", "encoder.embedding_projection"),
    TENSOR("classifier.dense", "head.pooler", .how = QKV_TENSOR_HEAD),
    TENSOR("classifier.out_proj", "head.classes", .how = QKV_TENSOR_HEAD),
    TENSOR("classifier", "head.classes", .how = QKV_TENSOR_HEAD),
    TENSOR("generator_predictions.dense", "head.transform", .how = QKV_TENSOR_HEAD),
    TENSOR("generator_predictions.LayerNorm", "head.norm", .how = QKV_TENSOR_HEAD),
    TENSOR("generator_lm_head", "head", .how = QKV_TENSOR_HEAD),
    TENSOR("discriminator_predictions.dense", NULL),
    TENSOR("discriminator_predictions.dense_prediction", NULL),
    {0}};

static const qkv_key_rule keys[] = {KEY("embedding_size", "d_embedding", .absent = "128"),
                                    KEY("tie_word_embeddings", "tie", .absent = "true"),
                                    {0}};

/* A discriminator tells which words were exchanged; what it is used for is its encoder. */
static const qkv_class_row classes[] = {
    {"Model", "task=embed pool=mean"},
    {"ForPreTraining", "task=embed pool=mean"},
    {"ForMaskedLM", "task=mlm head_transform=true head_bias=true"},
    {"ForSequenceClassification", "task=classify pool=first pooler=gelu"},
    {"ForTokenClassification", "task=tag"},
    {0}};

/* The head's activation is fixed, and ours is that of the layers. */
static qkv_status settle(qkv_json_at at, qkv_config *config, qkv_family_facts *facts) {
    (void)at, (void)facts;
    if (!config->head_transform || config->activation == QKV_FFN_GELU) return QKV_OK;
    return qkv_fail(QKV_BAD_FILE, "hidden_act other than gelu with a head over the vocabulary is "
                                  "not implemented");
}

const qkv_family qkv_family_electra = {
    .name = "ELECTRA",
    .types = "electra",
    .settings = "arch=transformer norm=post position=learned embedding_norm=true",
    .prefix = "electra.",
    .tensors = {qkv_tensors_bert, heads},
    .keys = {qkv_keys_bert, keys},
    .classes = classes,
    .settle = settle,
};
