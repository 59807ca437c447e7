/* safetensors: named tensors in one file, checked against the file before anything is touched. */
#ifndef QKV_STORE_SAFETENSORS_H
#define QKV_STORE_SAFETENSORS_H

#include "base/file.h"

/* Every dtype of the format: name in the file, bits of an element. Those without a name of ours are
 * OTHER: their sizes are checked and their bytes can be had, but nothing converts them. */
#define QKV_DTYPE_TABLE(X)                                                                         \
    X(F32, "F32", 32)                                                                              \
    X(F16, "F16", 16)                                                                              \
    X(BF16, "BF16", 16)                                                                            \
    X(F64, "F64", 64)                                                                              \
    X(I64, "I64", 64)                                                                              \
    X(I32, "I32", 32)                                                                              \
    X(U8, "U8", 8)                                                                                 \
    X(I8, "I8", 8)                                                                                 \
    X(BOOL, "BOOL", 8)

typedef enum qkv_dtype {
#define QKV_DTYPE_ENUM(id, name, bits) QKV_DTYPE_##id,
    QKV_DTYPE_TABLE(QKV_DTYPE_ENUM)
#undef QKV_DTYPE_ENUM
        QKV_DTYPE_OTHER
} qkv_dtype;

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

/* Maps the file and checks every tensor's extent against it. Tensors are listed in the order of
 * their bytes. */
qkv_status qkv_safetensors_open(const char *path, qkv_safetensors *out);
void qkv_safetensors_close(qkv_safetensors *s);
const qkv_stored *qkv_safetensors_find(const qkv_safetensors *s,
                                       const char *name); /* NULL: not there */
/* Converts n elements from `from` on to float, of a type that can be. */
void qkv_stored_range(const qkv_stored *t, int64_t from, int64_t n, float *out);
/* Converts all elements to float; F32, F16, BF16 and F64 can be. */
qkv_status qkv_stored_to_float(const qkv_stored *t, float *out);

/* A tensor to write; `data` holds its elements as `dtype` says (base/half.h rounds floats to F16
 * and BF16). */
typedef struct qkv_to_store {
    const char *name;
    qkv_dtype dtype;
    int rank;
    int64_t shape[8];
    const void *data;
} qkv_to_store;
/* Replaces `path` in one step: tensors sorted by element size and name, no gaps, header padded to 8
 * bytes. Names must differ; "format": "pt" is added to the metadata, as other readers expect. */
qkv_status qkv_safetensors_write(const char *path, const qkv_to_store *tensors, size_t n,
                                 const char *const *meta /* key, value, key, value, …, NULL */);

#endif
