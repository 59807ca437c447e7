/* The table of families, and how keys become a configuration: every key of the file has a row, or is
 * refused. */
#include "foreign/family.h"

#include <stdio.h>
#include <string.h>

static const qkv_family *const families[] = {
#define FAMILY(name) &qkv_family_##name,
#include "foreign/families.def"
#undef FAMILY
};
enum { N_FAMILIES = sizeof families / sizeof *families };

const qkv_family *qkv_family_at(size_t i) {
    return i < N_FAMILIES ? families[i] : NULL;
}

/* Is `word` one of the words of `list`? */
static bool is_among(const char *list, const char *word, size_t len) {
    for (const char *at = list; *at;) {
        const size_t n = strcspn(at, " ");
        if (n == len && !memcmp(at, word, n)) return true;
        at += n + strspn(at + n, " ");
    }
    return false;
}

const qkv_family *qkv_family_of(const char *type, size_t len) {
    for (size_t i = 0; i < N_FAMILIES; i++)
        if (is_among(families[i]->types, type, len)) return families[i];
    qkv_fail(QKV_BAD_FILE,
             "models of the type \"%.*s\" are not read; `qkv import --formats` lists what is",
             (int)(len < 60 ? len : 60), type);
    return NULL;
}

/* ---- one key ---- */

enum { VALUE_BYTES = 64 };

/* A scalar as text; false: it is a list or an object, or too long for any value that has a
 * meaning. */
static bool text_of(qkv_json_at at, char out[VALUE_BYTES]) {
    const char *text = "";
    size_t len = 0;
    switch (qkv_json_kind_of(at)) {
    case QKV_JSON_TRUE:
    case QKV_JSON_FALSE:
        text = qkv_json_kind_of(at) == QKV_JSON_TRUE ? "true" : "false";
        len = strlen(text);
        break;
    case QKV_JSON_NUMBER:
        qkv_json_number_text(at, &text, &len);
        break;
    case QKV_JSON_STRING:
        qkv_json_string(at, &text, &len);
        break;
    default:
        return false;
    }
    if (len >= VALUE_BYTES || memchr(text, 0, len)) return false;
    memcpy(out, text, len);
    out[len] = 0;
    return true;
}

static bool is_number(const char *text) {
    return text[0] == '-' || (text[0] >= '0' && text[0] <= '9');
}

/* Two spellings of one value: 1e-12 and 0.000000000001, 5 and 5.0. */
static bool same(const char *a, size_t n, const char *b) {
    if (strlen(b) == n && !memcmp(a, b, n)) return true;
    double x, y;
    char copy[VALUE_BYTES];
    if (!is_number(a) || !is_number(b) || n >= sizeof copy) return false;
    memcpy(copy, a, n);
    copy[n] = 0;
    return sscanf(copy, "%lf", &x) == 1 && sscanf(b, "%lf", &y) == 1 && x == y;
}

/* What a value of theirs is called here: the part behind "=", or the word itself. */
static bool translate(const char *means, const char *value, char out[VALUE_BYTES]) {
    for (const char *at = means; *at;) {
        const size_t n = strcspn(at, " "), name = strcspn(at, "= ");
        if (same(at, name, value)) {
            const char *ours = name < n ? at + name + 1 : at;
            const size_t len = name < n ? n - name - 1 : n;
            memcpy(out, ours, len);
            out[len] = 0;
            return true;
        }
        at += n + strspn(at + n, " ");
    }
    return false;
}

static qkv_status apply(const qkv_key_rule *row, const char *value, qkv_config *config) {
    char ours[VALUE_BYTES];
    const char *set = value;
    if (row->means) {
        if (!translate(row->means, value, ours))
            return qkv_fail(QKV_BAD_FILE, "%s is \"%s\", which is not implemented (known: %s)",
                            row->theirs, value, row->means);
        set = ours;
    }
    if (!row->ours) return QKV_OK;
    const qkv_status status = qkv_config_set(config, row->ours, set);
    return status == QKV_OK ? status : qkv_fail_in(QKV_BAD_FILE, "%s", row->theirs);
}

/* A whole number written as 1.0 is one. */
static void without_fraction(char *text) {
    const size_t n = strlen(text);
    if (n > 2 && !strcmp(text + n - 2, ".0") && !strpbrk(text, "eE")) text[n - 2] = 0;
}

static qkv_status read_row(const qkv_key_rule *row, qkv_json_at keys, qkv_config *config) {
    char value[VALUE_BYTES];
    qkv_json_at at;
    if (!row->ours && !row->means) return QKV_OK;
    const bool there =
        qkv_json_member(keys, row->theirs, &at) && qkv_json_kind_of(at) != QKV_JSON_NULL;
    if (!there) {
        if (!row->absent) return qkv_fail(QKV_BAD_FILE, "there is no \"%s\"", row->theirs);
        return apply(row, row->absent, config);
    }
    if (!text_of(at, value))
        return qkv_fail(QKV_BAD_FILE, "line %zu: \"%s\" has a value of a form that is not read",
                        qkv_json_line(at), row->theirs);
    without_fraction(value);
    return apply(row, value, config);
}

/* ---- all keys ---- */

/* The tables of a family, and behind them the one that all have. */
static const qkv_key_rule *table_of(const qkv_family *family, int t) {
    return t < QKV_FAMILY_TABLES ? family->keys[t] : qkv_keys_common;
}

static const qkv_key_rule *row_of(const qkv_family *family, const char *key, size_t len) {
    for (int t = 0; t <= QKV_FAMILY_TABLES; t++)
        for (const qkv_key_rule *row = table_of(family, t); row && row->theirs; row++)
            if (strlen(row->theirs) == len && !memcmp(row->theirs, key, len)) return row;
    return NULL;
}

/* A key that nobody knows may say anything; without a value it says nothing. */
static qkv_status check_known(const qkv_family *family, qkv_json_at keys) {
    qkv_json_at at;
    for (bool more = qkv_json_first(keys, &at); more; more = qkv_json_next(keys, &at)) {
        const char *key;
        size_t len;
        qkv_json_key(at, &key, &len);
        if (qkv_json_kind_of(at) == QKV_JSON_NULL || row_of(family, key, len)) continue;
        return qkv_fail(QKV_BAD_FILE,
                        "line %zu: the key \"%.*s\" is not known for %s, so what it asks for might "
                        "be left out; take it out of the file if it changes nothing",
                        qkv_json_line(at), (int)(len < 60 ? len : 60), key, family->name);
    }
    return QKV_OK;
}

/* The class that the file names, or the family's first. */
static qkv_status class_of(const qkv_family *family, qkv_json_at keys, bool sentence,
                           const qkv_class_row **out) {
    qkv_json_at list, at;
    const char *name;
    size_t len;
    *out = family->classes;
    if (sentence || !qkv_json_member(keys, "architectures", &list) || !qkv_json_first(list, &at))
        return QKV_OK;
    qkv_json_string(at, &name, &len);
    for (const qkv_class_row *row = family->classes; row->ends; row++) {
        const size_t n = strlen(row->ends);
        if (n <= len && !memcmp(name + len - n, row->ends, n)) {
            *out = row;
            return QKV_OK;
        }
    }
    return qkv_fail(QKV_BAD_FILE, "models of the class \"%.*s\" are not read",
                    (int)(len < 60 ? len : 60), name);
}

/* How many classes there are is said by a number (which wins, as it does there), or by their
 * names. */
static qkv_status count_classes(qkv_json_at keys, qkv_config *config) {
    qkv_json_at labels;
    if (!qkv_has_labels(qkv_shape_of(config->task))) return QKV_OK;
    config->classes = 2;
    if (qkv_json_member(keys, "id2label", &labels) && qkv_json_kind_of(labels) == QKV_JSON_OBJECT &&
        qkv_json_count(labels))
        config->classes = (int64_t)qkv_json_count(labels);
    return qkv_json_get_int(keys, "num_labels", false, 1, 1000000, &config->classes);
}

/* The id of a key, or the first of a list of them; one beyond the vocabulary is none. */
static void read_id(qkv_json_at keys, const char *key, const qkv_config *c, int64_t *id) {
    qkv_json_at at;
    if (!qkv_json_member(keys, key, &at)) return;
    if (qkv_json_kind_of(at) == QKV_JSON_ARRAY && !qkv_json_first(at, &at)) return;
    (void)!qkv_json_integer(at, 0, c->vocab_size - 1, id);
}

void qkv_family_ids(qkv_json_at keys, qkv_config *config) {
    const qkv_shape shape = qkv_shape_of(config->task);
    if (!shape.decoder) return;
    read_id(keys, shape.encoder ? "decoder_start_token_id" : "bos_token_id", config,
            &config->begin_token);
    read_id(keys, "eos_token_id", config, &config->end_token);
}

qkv_status qkv_family_configure(const qkv_family *family, qkv_json_at keys, bool sentence,
                                qkv_config *config, qkv_family_facts *facts) {
    qkv_config_default(config);
    const qkv_settings s = qkv_config_settings(config);
    const qkv_class_row *class = NULL;
    *facts = (qkv_family_facts){0};
    QKV_TRY(check_known(family, keys));
    QKV_TRY(qkv_settings_assign(&s, 1, family->settings));
    QKV_TRY(class_of(family, keys, sentence, &class));
    QKV_TRY(qkv_settings_assign(&s, 1, class->settings));
    for (int t = 0; t <= QKV_FAMILY_TABLES; t++)
        for (const qkv_key_rule *row = table_of(family, t); row && row->theirs; row++)
            QKV_TRY(read_row(row, keys, config));
    QKV_TRY(count_classes(keys, config));
    /* One label is a number: how alike two texts are, how good one is. */
    if (config->classes == 1 && qkv_shape_of(config->task).head == QKV_HEAD_CLASSES)
        QKV_TRY(qkv_config_set(config, "task", "rate"));
    qkv_family_ids(keys, config);
    return family->settle ? family->settle(keys, config, facts) : QKV_OK;
}

/* ---- keys that every family may have ---- */

const qkv_key_rule qkv_keys_common[] = {{.theirs = "architectures"},
                                        {.theirs = "model_type"},
                                        {.theirs = "_name_or_path"},
                                        {.theirs = "_num_labels"},
                                        {.theirs = "transformers_version"},
                                        {.theirs = "torch_dtype"},
                                        {.theirs = "dtype"},
                                        {.theirs = "id2label"},
                                        {.theirs = "label2id"},
                                        {.theirs = "num_labels"},
                                        {.theirs = "problem_type",
                                         .ours = "several",
                                         .absent = "single_label_classification",
                                         .means = "single_label_classification=false "
                                                  "regression=false "
                                                  "multi_label_classification=true"},
                                        {.theirs = "finetuning_task"},
                                        {.theirs = "language"},
                                        {.theirs = "name"},
                                        /* how it is trained and run */
                                        {.theirs = "initializer_range"},
                                        {.theirs = "initializer_factor"},
                                        {.theirs = "gradient_checkpointing"},
                                        {.theirs = "use_cache"},
                                        {.theirs = "output_past"},
                                        {.theirs = "output_attentions"},
                                        {.theirs = "output_hidden_states"},
                                        {.theirs = "return_dict"},
                                        {.theirs = "torchscript"},
                                        {.theirs = "pruned_heads"},
                                        {.theirs = "use_bfloat16"},
                                        {.theirs = "chunk_size_feed_forward"},
                                        {.theirs = "attn_implementation"},
                                        {.theirs = "_attn_implementation"},
                                        {.theirs = "_attn_implementation_autoset"},
                                        {.theirs = "pretraining_tp"},
                                        {.theirs = "pad_token_id"},
                                        {.theirs = "bos_token_id"},
                                        {.theirs = "eos_token_id"},
                                        {.theirs = "eos_token_ids"},
                                        {.theirs = "sep_token_id"},
                                        {.theirs = "cls_token_id"},
                                        {.theirs = "mask_token_id"},
                                        {.theirs = "decoder_start_token_id"},
                                        {.theirs = "forced_bos_token_id"},
                                        {.theirs = "forced_eos_token_id"},
                                        {.theirs = "classifier_dropout"},
                                        {.theirs = "sentence_transformers"},
                                        {.theirs = "sbert_ce_default_activation_function"},
                                        /* what would make another model of it */
                                        {.theirs = "is_decoder"},
                                        {.theirs = "is_encoder_decoder"},
                                        {.theirs = "add_cross_attention"},
                                        {.theirs = "cross_attention_hidden_size"},
                                        /* how text is generated, as versions before 4.26 kept it */
                                        {.theirs = "task_specific_params"},
                                        {.theirs = "max_length"},
                                        {.theirs = "min_length"},
                                        {.theirs = "do_sample"},
                                        {.theirs = "early_stopping"},
                                        {.theirs = "num_beams"},
                                        {.theirs = "num_beam_groups"},
                                        {.theirs = "diversity_penalty"},
                                        {.theirs = "temperature"},
                                        {.theirs = "top_k"},
                                        {.theirs = "top_p"},
                                        {.theirs = "typical_p"},
                                        {.theirs = "repetition_penalty"},
                                        {.theirs = "length_penalty"},
                                        {.theirs = "no_repeat_ngram_size"},
                                        {.theirs = "encoder_no_repeat_ngram_size"},
                                        {.theirs = "bad_words_ids"},
                                        {.theirs = "num_return_sequences"},
                                        {.theirs = "output_scores"},
                                        {.theirs = "return_dict_in_generate"},
                                        {.theirs = "remove_invalid_values"},
                                        {.theirs = "exponential_decay_length_penalty"},
                                        {.theirs = "suppress_tokens"},
                                        {.theirs = "begin_suppress_tokens"},
                                        {.theirs = "tokenizer_class"},
                                        {.theirs = "prefix"},
                                        {.theirs = "summary_type"},
                                        {.theirs = "summary_use_proj"},
                                        {.theirs = "summary_activation"},
                                        {.theirs = "summary_proj_to_labels"},
                                        {.theirs = "summary_first_dropout"},
                                        {.theirs = "summary_last_dropout"},
                                        {.theirs = "tf_legacy_loss"},
                                        {0}};
