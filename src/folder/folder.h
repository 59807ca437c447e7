/* What a model folder is: config.json with the labels in it, tokenizer.json, model.safetensors; of
 * a training also its settings, log and checkpoints (parts.def). Nobody else spells these names. */
#ifndef QKV_FOLDER_FOLDER_H
#define QKV_FOLDER_FOLDER_H

#include "base/buf.h"
#include "data/labels.h"
#include "model/model.h"
#include "model/weights.h"
#include "text/tokenizer.h"

typedef enum qkv_folder_item {
#define PART(id, name, of_the_run) QKV_PART_##id,
#include "folder/parts.def"
#undef PART
    QKV_PART_COUNT
} qkv_folder_item;

/* Must a run that overwrites another be rid of it? */
bool qkv_folder_part_is_the_runs(qkv_folder_item part);

/* *path becomes that of a part, or of any other file of the folder. */
qkv_status qkv_folder_part(const char *folder, qkv_folder_item part, qkv_buf *path);
qkv_status qkv_folder_file(const char *folder, const char *name, qkv_buf *path);
/* The same of a part that must be there. Without the folder there is no such model (QKV_FAILED); a
 * folder without the part is a damaged one (QKV_BAD_FILE). */
qkv_status qkv_folder_find(const char *folder, qkv_folder_item part, qkv_buf *path);

/* A folder of another program serves as one of ours wherever a model is read (foreign/): the functions
 * below make no difference between the two. */

/* The configuration and, into an empty `labels` (may be NULL), the names of the classes. */
qkv_status qkv_folder_read_config(const char *folder, qkv_config *config, qkv_labels *labels);
/* Binds a model of the folder's configuration to its weights, which stay open with it. */
qkv_status qkv_folder_open_weights(const char *folder, qkv_model *m);
/* Takes as a start what has the same name and shape; see qkv_weights_take. */
qkv_status qkv_folder_take_weights(const char *folder, qkv_params *params, qkv_weights_taken *out);
qkv_status qkv_folder_open_tokenizer(const char *folder, qkv_tokenizer **out);

/* labels: may be NULL or empty. */
qkv_status qkv_folder_write_config(const char *folder, const qkv_config *config,
                                   const qkv_labels *labels);

/* Copies the tokenizer and the companions' files: what a folder with other weights of the same
 * model needs beside them. */
qkv_status qkv_folder_copy_rest(const char *from, const char *to, const qkv_config *config);

/* What would be a senseless request from a person is a damaged file where a file says it. */
qkv_status qkv_folder_blame(qkv_status status, const char *path);

#endif
