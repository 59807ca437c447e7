/* The configuration of a model and its presets; everything about a key is its row in config.def. */
#ifndef QKV_MODEL_CONFIG_H
#define QKV_MODEL_CONFIG_H

#include "base/settings.h"
#include "nn/stack.h"
#include "ops/ops.h"

/* What a task asks of a model: which halves of a Transformer, and what its head gives. The rows of
 * the tasks hold it (task/task.h); a configuration names its task, and the model knows no more of
 * it than this. These two are the only things that a lower room takes from the table above it. */
typedef enum qkv_head_kind {
    QKV_HEAD_NONE,
    QKV_HEAD_CLASSES, /* of a text */
    QKV_HEAD_NUMBER,  /* one number of a text */
    QKV_HEAD_TAGS,    /* classes of each of its words */
    QKV_HEAD_VOCAB
} qkv_head_kind;
typedef struct qkv_shape {
    bool encoder, decoder;
    qkv_head_kind head;
} qkv_shape;
static inline bool qkv_has_labels(qkv_shape shape) {
    return shape.head == QKV_HEAD_CLASSES || shape.head == QKV_HEAD_TAGS;
}
/* Is the answer made of a text's pooled rows (and its n-grams)? */
static inline bool qkv_is_pooled(qkv_shape shape) {
    return shape.head == QKV_HEAD_CLASSES || shape.head == QKV_HEAD_NUMBER;
}
extern const char *const qkv_task_names[]; /* by qkv_config.task, NULL at the end */
qkv_shape qkv_shape_of(int task);

typedef enum qkv_arch { QKV_ARCH_TRANSFORMER, QKV_ARCH_LSTM, QKV_ARCH_GRU } qkv_arch;
typedef enum qkv_norm_place { QKV_NORM_PRE, QKV_NORM_POST } qkv_norm_place;
extern const char *const qkv_pool_names[]; /* by qkv_pool_kind */
typedef enum qkv_pooler {
    QKV_POOLER_NONE,
    QKV_POOLER_TANH,
    QKV_POOLER_RELU,
    QKV_POOLER_GELU
} qkv_pooler;

typedef struct qkv_config {
#include "base/settings_fields.h"
#include "model/config.def"
#include "base/settings_end.h"
} qkv_config;

/* The table over `config`, for qkv_settings_set, _read, _write and the help. */
qkv_settings qkv_config_settings(qkv_config *config);

void qkv_config_default(qkv_config *config);
/* Sets one key from text, as `--set` does. */
qkv_status qkv_config_set(qkv_config *config, const char *key, const char *value);

/* What one side of a model uses: a decoder may have positions and a pattern of its own. */
qkv_position_kind qkv_config_position(const qkv_config *c, bool decoder);
qkv_pattern_kind qkv_config_pattern(const qkv_config *c, bool decoder);

/* Tokens to which a text is cut. */
static inline int64_t qkv_config_longest(const qkv_config *c) {
    return c->cut && c->cut < c->max_len ? c->cut : c->max_len;
}

/* Width of the vectors of words. */
static inline int64_t qkv_config_embedding(const qkv_config *c) {
    return c->d_embedding ? c->d_embedding : c->d_model;
}

/* Fills what stands for "derived from the others" and refuses what makes no sense, with the reason
 * and what to use. */
qkv_status qkv_config_resolve(const qkv_config *config, qkv_config *out);

/* config.json: reading starts from the defaults. The keys of other programs that share the file are
 * passed over. */
qkv_status qkv_config_read(qkv_config *config, qkv_json_at root);
qkv_status qkv_config_load(qkv_config *config, const char *path);
extern const char *const qkv_config_foreign[]; /* keys of others in the file, NULL at the end */
void qkv_config_write(const qkv_config *config, qkv_json_out *j); /* into an open object */

/* Presets: a name and the assignments that it stands for. */
typedef struct qkv_preset {
    const char *name, *help, *assignments;
} qkv_preset;
size_t qkv_preset_table(const qkv_preset **rows);
/* The preset's assignments, on top of what config holds. */
qkv_status qkv_config_preset(qkv_config *config, const char *name);

#endif
