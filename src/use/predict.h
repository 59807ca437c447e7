/* Texts through a model in batches: what classify, embed and attention share. */
#ifndef QKV_USE_PREDICT_H
#define QKV_USE_PREDICT_H

#include "use/textmodel.h"

/* What a text becomes on its way into the model: ids with the marks that the task puts around them.
 * For an encoder-decoder this is the source. A text of a model of pairs holds both, a TAB between;
 * offsets are places in it. */
qkv_status qkv_texts_encode(const qkv_text_model *m, const qkv_text *texts, size_t n, bool offsets,
                            qkv_encoding *out);
void qkv_encodings_free(qkv_encoding *e, size_t n);

/* The two texts of a pair, which have a TAB between them. */
qkv_status qkv_pair_split(qkv_text pair, qkv_text *first, qkv_text *second);

/* Texts, and the words of each where the model is a tagger (else NULL). */
typedef struct qkv_use_texts {
    const qkv_text *at;
    const qkv_text_words *words;
} qkv_use_texts;

/* The columns that the model reads, of each text of the batch. The encodings must have offsets where
 * they are made by place; trees were read before. */
qkv_status qkv_texts_columns(qkv_tape *t, const qkv_text_model *m, qkv_use_texts texts,
                             const qkv_encoding *e, qkv_tokens *batch);

/* The rows of texts that are encoded: text i fills rows first[i] … first[i + 1] − 1 of `out`;
 * first NULL: one row each. */
typedef struct qkv_use_rows {
    const qkv_encoding *e;
    const size_t *first;
    size_t width;
    float *out;
} qkv_use_rows;

/* One row of `width` numbers per text (or per word), by a function of a batch: (n, width) on the
 * tape. */
typedef qkv_tensor *(*qkv_rows_fn)(qkv_tape *t, qkv_model *m, const qkv_tokens *batch);
qkv_status qkv_rows_of_texts(const qkv_text_model *m, qkv_use_texts texts, size_t n,
                             qkv_rows_fn rows, size_t width, float *out);

qkv_status qkv_rows_of_encodings(const qkv_text_model *m, qkv_use_texts texts, size_t n,
                                 qkv_rows_fn rows, const qkv_use_rows *to);

#endif
