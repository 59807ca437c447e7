/* The configuration of a model and its presets; everything about a key is its row in config.def. */
#ifndef QKV_MODEL_CONFIG_H
#define QKV_MODEL_CONFIG_H

#include "base/settings.h"
#include "nn/stack.h"
#include "ops/ops.h"

/* Tasks: TASK(ENUM, name, encoder, decoder, head). Which halves of a Transformer a task needs, and
 * what its head gives. */
typedef enum qkv_head_kind { QKV_HEAD_NONE, QKV_HEAD_CLASSES, QKV_HEAD_VOCAB } qkv_head_kind;
#define QKV_TASK_TABLE(X)                                                                          \
    X(CLASSIFY, classify, true, false, QKV_HEAD_CLASSES)                                           \
    X(TRANSLATE, translate, true, true, QKV_HEAD_VOCAB)                                            \
    X(LM, lm, false, true, QKV_HEAD_VOCAB)                                                         \
    X(MLM, mlm, true, false, QKV_HEAD_VOCAB)                                                       \
    X(EMBED, embed, true, false, QKV_HEAD_NONE)

typedef enum qkv_task_kind {
#define QKV_TASK_ENUM(id, ...) QKV_TASK_##id,
    QKV_TASK_TABLE(QKV_TASK_ENUM)
#undef QKV_TASK_ENUM
        QKV_TASK_COUNT
} qkv_task_kind;

typedef struct qkv_task_shape {
    bool encoder, decoder;
    qkv_head_kind head;
} qkv_task_shape;
extern const qkv_task_shape qkv_task_shapes[QKV_TASK_COUNT];

typedef enum qkv_arch { QKV_ARCH_TRANSFORMER, QKV_ARCH_LSTM, QKV_ARCH_GRU } qkv_arch;
typedef enum qkv_norm_place { QKV_NORM_PRE, QKV_NORM_POST } qkv_norm_place;
typedef enum qkv_pooler { QKV_POOLER_NONE, QKV_POOLER_TANH, QKV_POOLER_RELU } qkv_pooler;

typedef struct qkv_config {
#include "base/settings_fields.h"
#include "model/config.def"
#include "base/settings_end.h"
} qkv_config;

/* The table over `config`, for qkv_settings_set, _read, _write and the help. */
qkv_settings qkv_config_settings(qkv_config *config);

void qkv_config_default(qkv_config *config);

/* What one side of a model uses: a decoder may have positions and a pattern of its own. */
qkv_position_kind qkv_config_position(const qkv_config *c, bool decoder);
qkv_pattern_kind qkv_config_pattern(const qkv_config *c, bool decoder);

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
    int64_t below;     /* chosen for fewer tokens of training data than this; 0: only by name */
    bool labels;       /* chosen for classifiers, and for them alone */
    bool no_attention; /* not chosen for those who ask for a kind of attention */
} qkv_preset;
size_t qkv_preset_table(const qkv_preset **rows);
/* The preset's assignments, on top of what config holds. */
qkv_status qkv_config_preset(qkv_config *config, const char *name);
/* The preset that suits a task and `tokens` of training data, when the user names none; with
 * `attention`: one that has it. */
const char *qkv_preset_for(qkv_task_kind task, int64_t tokens, bool attention);

#endif
