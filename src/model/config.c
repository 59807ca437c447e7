/* The configuration table at work: defaults, derived values, what makes no sense, config.json,
 * presets. */
#include "model/config.h"

#include <string.h>

static const char *const qkv_arch_names[] = {"transformer", "lstm", "gru", NULL};
static const char *const qkv_norm_place_names[] = {"pre", "post", NULL};
const char *const qkv_pool_names[] = {"mean", "max", "first", "last", NULL};
static const char *const qkv_pooler_names[] = {"none", "tanh", "relu", "gelu", NULL};

/* Index 0 stands for what the encoder uses, k + 1 for kind k. */
static const char *const qkv_decoder_position_names[] = {"same",
#define POSITION(id, name, traits, help) #name,
#include "nn/position.def"
#undef POSITION
                                                         NULL};
static const char *const qkv_decoder_pattern_names[] = {"same",
#define PATTERN(id, name, help) #name,
#include "nn/pattern.def"
#undef PATTERN
                                                        NULL};

qkv_position_kind qkv_config_position(const qkv_config *c, bool decoder) {
    return (qkv_position_kind)(decoder && c->decoder_position ? c->decoder_position - 1
                                                              : c->position);
}

qkv_pattern_kind qkv_config_pattern(const qkv_config *c, bool decoder) {
    return (qkv_pattern_kind)(decoder && c->decoder_attention ? c->decoder_attention - 1
                                                              : c->attention);
}

static const qkv_setting rows[] = {
#define SETTINGS_OWNER qkv_config
#include "base/settings_rows.h"
#include "model/config.def"
#include "base/settings_end.h"
};

qkv_settings qkv_config_settings(qkv_config *config) {
    return (qkv_settings){.rows = rows,
                          .n = sizeof rows / sizeof *rows,
                          .values = config,
                          .seldom = offsetof(qkv_config, cut)};
}

void qkv_config_default(qkv_config *config) {
    qkv_settings s = qkv_config_settings(config);
    memset(config, 0, sizeof *config); /* gaps too, so that equal configurations have equal bytes */
    qkv_settings_default(&s);
}

qkv_status qkv_config_set(qkv_config *config, const char *key, const char *value) {
    const qkv_settings s = qkv_config_settings(config);
    return qkv_settings_set(&s, 1, key, value);
}

/* ---- derived values and sense ---- */

/* Of a recurrent layer. An encoder that reads both ways has two states side by side, which a head
 * that is the embedding table wants as wide as that. */
static int64_t state_width(const qkv_config *c) {
    const qkv_shape shape = qkv_shape_of(c->task);
    const bool halves =
        c->tie && c->bidirectional && shape.head == QKV_HEAD_VOCAB && !shape.decoder;
    return halves && c->d_model % 2 == 0 ? c->d_model / 2 : c->d_model;
}

static void derive(qkv_config *c) {
    bool gated = qkv_ffn_shapes[c->activation].gated;
    if (!c->target_vocab_size) c->target_vocab_size = c->vocab_size;
    if (!c->encoder_layers) c->encoder_layers = c->layers;
    if (!c->decoder_layers) c->decoder_layers = c->layers;
    if (!c->kv_heads) c->kv_heads = c->heads;
    if (!c->d_head && c->d_model % c->heads == 0) c->d_head = c->d_model / c->heads;
    /* two thirds of the plain width, so that a gated layer costs the same; rounded up to whole
     * vectors */
    if (!c->d_ff) c->d_ff = gated ? (8 * c->d_model / 3 + 15) / 16 * 16 : 4 * c->d_model;
    if (!c->d_state) c->d_state = state_width(c);
    if (!c->ngram_buckets) c->ngram_buckets = 1 << 18;
    if (c->ngram_chars < 0) c->ngram_chars = 0;
    if (c->attention_dropout < 0) c->attention_dropout = c->dropout;
    if (c->embedding_dropout < 0) c->embedding_dropout = c->dropout;
    if (c->init == QKV_INIT_SCHEME_AUTO)
        c->init = c->norm == QKV_NORM_PRE ? QKV_INIT_SCHEME_NORMAL : QKV_INIT_SCHEME_XAVIER;
}

static qkv_status check_transformer(const qkv_config *c) {
    if (!c->d_head)
        return qkv_fail(
            QKV_USAGE,
            "d_model (%lld) is not a multiple of heads (%lld); change one, or set d_head",
            (long long)c->d_model, (long long)c->heads);
    if (c->heads % c->kv_heads != 0)
        return qkv_fail(
            QKV_USAGE,
            "heads (%lld) is not a multiple of kv_heads (%lld), so they do not form groups",
            (long long)c->heads, (long long)c->kv_heads);
    if (qkv_config_embedding(c) != c->d_model && c->tie && !c->head_transform &&
        qkv_shape_of(c->task).head == QKV_HEAD_VOCAB)
        return qkv_fail(QKV_USAGE,
                        "tie=true needs rows as wide as the embedding table (d_embedding, %lld): "
                        "set head_transform=true, tie=false or d_embedding=0",
                        (long long)c->d_embedding);
    return QKV_OK;
}

static qkv_status check_recurrent(const qkv_config *c, const qkv_shape *shape) {
    bool plain_decoder = shape->decoder && !shape->encoder;
    if (c->tie && plain_decoder && c->d_state != c->d_model)
        return qkv_fail(
            QKV_USAGE,
            "tie=true needs d_state (%lld) to be d_model (%lld); set tie=false or make them equal",
            (long long)c->d_state, (long long)c->d_model);
    if (c->tie && shape->head == QKV_HEAD_VOCAB && !shape->decoder &&
        c->d_state * (c->bidirectional ? 2 : 1) != c->d_model)
        return qkv_fail(QKV_USAGE,
                        "tie=true needs the encoder's output (%lld wide) to have d_model (%lld); "
                        "set tie=false, or "
                        "d_state to d_model/2 when it reads both ways",
                        (long long)c->d_state * (c->bidirectional ? 2 : 1), (long long)c->d_model);
    return QKV_OK;
}

qkv_status qkv_config_resolve(const qkv_config *config, qkv_config *out) {
    qkv_config c = *config;
    derive(&c);
    const qkv_shape shape = qkv_shape_of(c.task);
    if (c.arch == QKV_ARCH_TRANSFORMER)
        QKV_TRY(check_transformer(&c));
    else
        QKV_TRY(check_recurrent(&c, &shape));
    bool two_sided = shape.encoder && shape.decoder;
    if ((c.segments || c.pairs) && (!shape.encoder || two_sided))
        return qkv_fail(
            QKV_USAGE, "%s are for a model that is an encoder alone, and task=%s has another shape",
            c.pairs ? "pairs of texts" : "segments", qkv_task_names[c.task]);
    if (two_sided && c.share_embeddings && c.target_vocab_size != c.vocab_size)
        return qkv_fail(QKV_USAGE,
                        "share_embeddings=true needs one vocabulary, but vocab_size is %lld and "
                        "target_vocab_size "
                        "%lld; set share_embeddings=false",
                        (long long)c.vocab_size, (long long)c.target_vocab_size);
    if (!two_sided) c.target_vocab_size = c.vocab_size;
    if (shape.head == QKV_HEAD_NUMBER) c.classes = 1;
    *out = c;
    return QKV_OK;
}

/* ---- config.json ---- */

/* Keys that the Hugging Face libraries keep in the same file. */
const char *const qkv_config_foreign[] = {"architectures", "model_type",    "torch_dtype",
                                          "dtype",         "id2label",      "label2id",
                                          "labels",        "_name_or_path", "transformers_version",
                                          "qkv_version",   "train_tokens",  NULL};

qkv_status qkv_config_read(qkv_config *config, qkv_json_at root) {
    qkv_config_default(config);
    qkv_settings s = qkv_config_settings(config);
    return qkv_settings_read(&s, 1, root, qkv_config_foreign);
}

qkv_status qkv_config_load(qkv_config *config, const char *path) {
    qkv_config_default(config);
    qkv_settings s = qkv_config_settings(config);
    return qkv_settings_load(&s, 1, path, qkv_config_foreign);
}

void qkv_config_write(const qkv_config *config, qkv_json_out *j) {
    qkv_config copy = *config;
    qkv_settings s = qkv_config_settings(&copy);
    qkv_settings_write(&s, j);
}

/* ---- presets ---- */

static const qkv_preset presets[] = {
#define PRESET(title, what, sizes) {.name = title, .help = what, .assignments = sizes},
#include "model/preset.def"
#undef PRESET
};
#define N_PRESETS (sizeof presets / sizeof *presets)

size_t qkv_preset_table(const qkv_preset **table) {
    *table = presets;
    return N_PRESETS;
}

qkv_status qkv_config_preset(qkv_config *config, const char *name) {
    const char *names[N_PRESETS];
    for (size_t i = 0; i < N_PRESETS; i++) {
        names[i] = presets[i].name;
        if (strcmp(names[i], name) != 0) continue;
        qkv_settings s = qkv_config_settings(config);
        return qkv_settings_assign(&s, 1, presets[i].assignments);
    }
    const char *near = qkv_nearest(name, names, N_PRESETS);
    return qkv_fail(QKV_USAGE,
                    "there is no preset \"%.60s\"%s%s; `qkv describe --presets` lists them", name,
                    near ? ", the nearest is " : "", near ? near : "");
}
