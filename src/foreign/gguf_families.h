/* Architectures of GGUF files: what they call their tensors and entries, and what we call them. An
 * architecture is one row of gguf_families.c, with its tables. */
#ifndef QKV_FOREIGN_GGUF_FAMILIES_H
#define QKV_FOREIGN_GGUF_FAMILIES_H

#include <stdbool.h>
#include <stddef.h>

/* Which rows of our parameter a tensor is: Q, K, V of those of self-attention, which lie one above
 * the other; FIRST and LAST: halves, of gated layers and of keys and values of cross-attention. */
typedef enum qkv_gguf_slice {
    QKV_GGUF_ALL,
    QKV_GGUF_Q,
    QKV_GGUF_K,
    QKV_GGUF_V,
    QKV_GGUF_FIRST,
    QKV_GGUF_LAST
} qkv_gguf_slice;

/* Names without the ".weight" and ".bias" that both sides have; %d is the layer's number. */
typedef struct qkv_gguf_tensor_row {
    const char *theirs, *ours;
    qkv_gguf_slice slice;
} qkv_gguf_tensor_row;

/* An entry, without the architecture before its name, and the setting that it is. */
typedef struct qkv_gguf_key_row {
    const char *theirs;
    const char *ours; /* NULL: it changes nothing, or must be `only` */
    const char *only; /* the one value that is implemented, as text; NULL: any */
    bool required;
} qkv_gguf_key_row;

typedef struct qkv_gguf_family {
    const char *name;                   /* general.architecture */
    const char *settings;               /* "key=value …" that hold for all of it */
    const qkv_gguf_tensor_row *tensors; /* ends with a row of zeros, as keys do */
    const qkv_gguf_key_row *keys;
} qkv_gguf_family;

/* Row i of the table; NULL past its end. */
const qkv_gguf_family *qkv_gguf_family_at(size_t i);
/* NULL (message set): it is not known. */
const qkv_gguf_family *qkv_gguf_family_of(const char *name, size_t len);

#endif
