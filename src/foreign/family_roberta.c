/* RoBERTa (Liu et al. 2019), XLM-R and CamemBERT: BERT with another head. The position of a token is
 * counted from pad_token_id + 1, for which the first rows of the table stand; the rest is ours. */
#include "foreign/family.h"

static const qkv_tensor_rule heads[] = {
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

static const qkv_class_row classes[] = {
    {"Model", "task=embed pool=mean"},
    {"ForMaskedLM", "task=mlm head_transform=true head_bias=true"},
    {"ForSequenceClassification", "task=classify pool=first pooler=tanh"},
    {"ForTokenClassification", "task=tag"},
    {0}};

static const qkv_key_rule keys[] = {KEY("tie_word_embeddings", "tie", .absent = "true"), {0}};

static qkv_status settle(qkv_json_at keys_at, qkv_config *config, qkv_family_facts *facts) {
    int64_t pad = 1;
    QKV_TRY(qkv_json_get_int(keys_at, "pad_token_id", false, 0, config->vocab_size, &pad));
    facts->skip = pad + 1;
    config->max_len -= facts->skip;
    if (config->max_len >= 1) return QKV_OK;
    return qkv_fail(QKV_BAD_FILE, "max_position_embeddings leaves no position behind pad_token_id");
}

const qkv_family qkv_family_roberta = {
    .name = "RoBERTa",
    .types = "roberta xlm-roberta camembert",
    .settings = "arch=transformer norm=post position=learned embedding_norm=true",
    .prefix = "roberta.",
    .tensors = {qkv_tensors_bert, heads},
    .keys = {qkv_keys_bert, keys},
    .classes = classes,
    .settle = settle,
};
