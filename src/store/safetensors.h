/* safetensors: named tensors in one file, checked against the file before anything is touched. */
#ifndef QKV_STORE_SAFETENSORS_H
#define QKV_STORE_SAFETENSORS_H

#include "base/file.h"

typedef enum qkv_dtype { QKV_DTYPE_F32, QKV_DTYPE_F16, QKV_DTYPE_BF16, QKV_DTYPE_F64, QKV_DTYPE_I64, QKV_DTYPE_I32, QKV_DTYPE_U8, QKV_DTYPE_I8, QKV_DTYPE_BOOL, QKV_DTYPE_OTHER } qkv_dtype;

typedef struct qkv_stored {
    const char *name;
    qkv_dtype dtype;
    int rank;
    int64_t shape[8];
    const void *data; /* into the mapped file; no alignment promised */
    size_t bytes;
    int64_t elements;
} qkv_stored;

typedef struct qkv_safetensors {
    qkv_file file;
    struct qkv_safetensors_index *index;
    qkv_stored *tensors;
    size_t n;
    size_t n_meta;
    const char **meta_key, **meta_value;
} qkv_safetensors;

qkv_status qkv_safetensors_open(const char *path, qkv_safetensors *out);
void qkv_safetensors_close(qkv_safetensors *s);
const qkv_stored *qkv_safetensors_find(const qkv_safetensors *s, const char *name); /* NULL: not there */
/* Converts F32, F16, BF16 or F64 to float. */
qkv_status qkv_stored_to_float(const qkv_stored *t, float *out);

/* Writes atomically: tensors sorted, no gaps, header padded to 8. */
typedef struct qkv_to_store {
    const char *name;
    qkv_dtype dtype;
    int rank;
    int64_t shape[8];
    const void *data;
} qkv_to_store;
qkv_status qkv_safetensors_write(const char *path, const qkv_to_store *tensors, size_t n,
                                 const char *const *meta /* key, value, key, value, …, NULL */);

#endif
