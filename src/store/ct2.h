/* The container of CTranslate2 models, binary version 2:
 * a specification's name, then named arrays. */
#ifndef QKV_STORE_CT2_H
#define QKV_STORE_CT2_H

#include "base/file.h"

#define QKV_CT2_RANK 4

typedef struct qkv_ct2_array {
    qkv_text name;
    int rank;
    int64_t shape[QKV_CT2_RANK];
    int item; /* bytes of an element: 4 float, 2 and 1 integers with a scale */
    int64_t elements;
    const void *data; /* into the file; no alignment promised */
    bool used;        /* for readers that refuse what they do not know */
} qkv_ct2_array;

typedef struct qkv_ct2 {
    qkv_text spec; /* "TransformerBase" */
    uint32_t revision;
    qkv_ct2_array *arrays;
    size_t n;
} qkv_ct2;

/* Does the file begin like one? */
bool qkv_is_ct2(const qkv_file *file);
/* Lists the arrays, each checked against the file, which must stay open. */
qkv_status qkv_ct2_read(const qkv_file *file, qkv_ct2 *out);
void qkv_ct2_free(qkv_ct2 *c);
qkv_ct2_array *qkv_ct2_find(const qkv_ct2 *c, const char *name); /* NULL: not there */

/* Row r of a matrix (or all of a vector, r = 0) as floats: integers are divided by the scales, one
 * for the whole array or one a row; `scale` may be NULL for floats. */
void qkv_ct2_row(const qkv_ct2_array *a, const qkv_ct2_array *scale, int64_t r, float *out);

#endif
