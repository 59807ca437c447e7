/* GGUF: named values and named tensors in one file, as llama.cpp has its models.
 *
 *     "GGUF", u32 version, u64 tensors, u64 entries,
 *     entries   string key, u32 type, value; an array is u32 type, u64 n, n values
 *     tensors   string name, u32 rank, u64 dims (fastest first), u32 type, u64 offset
 *     the tensors' bytes, from the next multiple of general.alignment (32) on
 *
 * Little-endian; a string is u64 length and bytes. Versions 2 and 3 are the same. Reading checks
 * every extent against the file before it is touched, and every count against the bytes that remain
 * before memory is taken for it; values and tensors point into the file. */
#ifndef QKV_STORE_GGUF_H
#define QKV_STORE_GGUF_H

#include "base/file.h"
#include "base/weight_format.h"
#include "qkv.h"

typedef enum qkv_gguf_type {
    QKV_GGUF_U8,
    QKV_GGUF_I8,
    QKV_GGUF_U16,
    QKV_GGUF_I16,
    QKV_GGUF_U32,
    QKV_GGUF_I32,
    QKV_GGUF_F32,
    QKV_GGUF_BOOL,
    QKV_GGUF_STRING,
    QKV_GGUF_ARRAY,
    QKV_GGUF_U64,
    QKV_GGUF_I64,
    QKV_GGUF_F64,
    QKV_GGUF_TYPES
} qkv_gguf_type;

typedef struct qkv_gguf_entry {
    qkv_text key;
    qkv_gguf_type type; /* of the elements, for an array */
    bool array;
    uint64_t n; /* 1 unless an array */
    const uint8_t *at;
} qkv_gguf_entry;

typedef struct qkv_gguf_tensor {
    qkv_text name;
    uint32_t number; /* the type as the file says it */
    qkv_weight_format format;
    int rank;
    int64_t shape[4]; /* slowest first, as everywhere else; 1 past the rank */
    const void *data; /* in the file; no alignment promised */
    uint64_t offset, bytes;
} qkv_gguf_tensor;

typedef struct qkv_gguf {
    const char *data;
    size_t size;
    uint32_t version;
    qkv_gguf_entry *entries;
    size_t n_entries;
    qkv_gguf_tensor *tensors;
    size_t n_tensors;
    const qkv_text **keys, **names; /* of entries and tensors, sorted; each is there once */
} qkv_gguf;

bool qkv_is_gguf(const char *data, size_t n);
/* Reads the header of a file in memory, which must stay; `tensors`: those too, else only entries.
 * Messages do not name the file. */
qkv_status qkv_gguf_read(const char *data, size_t n, bool tensors, qkv_gguf *out);
void qkv_gguf_free(qkv_gguf *g);

/* ---- what entries say ---- */

/* NULL: there is none of this name. */
const qkv_gguf_entry *qkv_gguf_find(const qkv_gguf *g, const char *key);
/* Each leaves *out as it is where there is no such entry, unless `required`; of another type or
 * outside of what fits it is refused by name. Integers of any width and sign are integers. */
qkv_status qkv_gguf_int(const qkv_gguf *g, const char *key, bool required, int64_t *out);
qkv_status qkv_gguf_real(const qkv_gguf *g, const char *key, bool required, double *out);
qkv_status qkv_gguf_bool(const qkv_gguf *g, const char *key, bool *out);
qkv_status qkv_gguf_string(const qkv_gguf *g, const char *key, bool required, qkv_text *out);
/* The next string of an array of strings: *at begins as NULL; at most e->n calls. */
qkv_text qkv_gguf_string_at(const qkv_gguf_entry *e, const uint8_t **at);
/* Element i of an array of numbers. */
int64_t qkv_gguf_int_at(const qkv_gguf_entry *e, uint64_t i);
double qkv_gguf_real_at(const qkv_gguf_entry *e, uint64_t i);

const qkv_gguf_tensor *qkv_gguf_tensor_find(const qkv_gguf *g, const char *name); /* or NULL */

#endif
