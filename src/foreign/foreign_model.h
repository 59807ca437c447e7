/* A folder of another program, read as it is: what src/folder asks when a folder is not one of ours.
 *
 *   container (named tensors)  ─┐
 *                               ├─ family (tables of names) ─► configuration, parameters
 *   config.json and the like   ─┘
 */
#ifndef QKV_FOREIGN_MODEL_H
#define QKV_FOREIGN_MODEL_H

#include "data/labels.h"
#include "foreign/container.h"
#include "foreign/family.h"
#include "model/model.h"
#include "model/weights.h"

/* What is known of a folder before its weights are touched. */
typedef struct qkv_foreign {
    const char *folder;
    const qkv_family *family;
    qkv_family_facts facts;
    qkv_config config;
    qkv_labels labels;
} qkv_foreign;

/* Is this a folder of another program? One of ours has our keys in config.json. */
bool qkv_is_foreign(const char *folder);

/* `folder` must outlive *out. */
qkv_status qkv_foreign_read(const char *folder, qkv_foreign *out);
void qkv_foreign_free(qkv_foreign *f);

/* Binds every parameter of a model of this configuration to the file: what lies there as we want it
 * stays there, the rest is copied. The model keeps the file open. */
qkv_status qkv_foreign_bind(const qkv_foreign *f, qkv_model *m);
/* Copies every parameter of such a model; *bf16 says whether its matrices are such, which then keep
 * every bit as bf16. */
qkv_status qkv_foreign_fill(const qkv_foreign *f, qkv_params *params, bool *bf16);
/* Copies what has the same name and shape, as a start for another task: as qkv_weights_take. */
qkv_status qkv_foreign_take(const qkv_foreign *f, qkv_params *params, qkv_weights_taken *out);

/* The folder's tokenizer. */
qkv_status qkv_foreign_tokenizer(const qkv_foreign *f, qkv_tokenizer **out);

/* sentence.c: the modules of a sentence encoder, where the folder is one's. */
qkv_status qkv_sentence_look(const char *folder, bool *is);
qkv_status qkv_sentence_configure(const char *folder, qkv_config *config);

#endif
