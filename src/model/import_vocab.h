/* Two vocabularies made one, for models whose source and target have words of their own: a model
 * folder has one tokenizer. The joint ids are those of the source,
 * then the words that only the target has. */
#ifndef QKV_MODEL_IMPORT_VOCAB_H
#define QKV_MODEL_IMPORT_VOCAB_H

#include "base/buf.h"

typedef struct qkv_joint_vocab {
    int64_t n;                        /* joint words */
    int32_t *source_row, *target_row; /* by joint id: the row of the old table, −1: none */
} qkv_joint_vocab;

/* source, target: texts of one word per line (target NULL: the same as source). Words beyond the
 * last line, up to source_rows and target_rows, are <unk>.
 * The joint words are appended to `words`, a line each. */
qkv_status qkv_joint_vocab_make(qkv_joint_vocab *v, qkv_text source, int64_t source_rows,
                                const qkv_text *target, int64_t target_rows, qkv_buf *words);
void qkv_joint_vocab_free(qkv_joint_vocab *v);

#endif
