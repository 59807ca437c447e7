/* Other programs' weights: a table of importers, each of which recognises a file and
 * makes a model of it.
 *
 * An importer declares the model from what the file says, compares every size with the file, and
 * only then takes memory and copies; so a damaged file costs no more than its own size. */
#ifndef QKV_MODEL_IMPORT_H
#define QKV_MODEL_IMPORT_H

#include "base/file.h"
#include "model/model.h"

/* What an importer found. */
typedef struct qkv_imported {
    qkv_model *model; /* with its weights */
    /* The vocabulary, where the format has one of whole words: one word per line, by id. */
    qkv_buf words;
    qkv_buf tokenizer; /* else the name of the tokenizer file that belongs beside the weights */
} qkv_imported;
void qkv_imported_free(qkv_imported *i);

typedef struct qkv_importer {
    const char *name, *summary;
    bool (*is)(const qkv_file *file);
    qkv_status (*read)(const qkv_file *file, const char *folder, qkv_imported *out);
} qkv_importer;

size_t qkv_importer_table(const qkv_importer *const **rows);
/* Reads weights of any known kind: a file, or a folder with model.bin.
 * *kind names the row that did. */
qkv_status qkv_import_weights(const char *path, qkv_imported *out, const char **kind);

/* ---- for importers ---- */

/* Copies n floats into rows from … of a parameter. Where the parameter has no values yet its shape
 * is checked only: run the same assignments before and after qkv_model_allocate. */
typedef struct qkv_import_rows {
    const void *data; /* n floats, no alignment promised; NULL: only checked */
    int64_t from, rows, cols;
} qkv_import_rows;
qkv_status qkv_import_put(qkv_params *params, const qkv_import_rows *what, const char *name, ...)
    __attribute__((format(printf, 3, 4)));

extern const qkv_importer qkv_import_llama2c, qkv_import_ct2;

#endif
