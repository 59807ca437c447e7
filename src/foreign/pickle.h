/* A closed reader of the pickles that torch.save writes: a dictionary of tensors, and nothing else.
 *
 * A pickle is a program for a small machine with a stack, and in Python it may call anything. Here it
 * runs with the opcodes and the names that such dictionaries are made of, and every other is refused by
 * its name; what it builds are values of this file, so there is nothing that it could call. */
#ifndef QKV_FOREIGN_PICKLE_H
#define QKV_FOREIGN_PICKLE_H

#include "base/arena.h"
#include "base/buf.h"
#include "store/safetensors.h"

/* A tensor as the pickle describes it: elements of a storage, which is kept apart, by its key. */
typedef struct qkv_pickled {
    const char *name, *storage;
    qkv_dtype dtype;
    int64_t offset; /* elements before the first */
    int64_t storage_elements;
    int rank;
    int64_t shape[8];
} qkv_pickled;

typedef struct qkv_pickle {
    qkv_arena *memory; /* of names; the caller's */
    QKV_VEC(qkv_pickled) tensors;
    QKV_VEC(const char *) keys; /* what a list of texts at the top holds */
    int64_t number;             /* a whole number at the top, else −1 */
    qkv_text magic;             /* a long one's bytes */
    size_t used;                /* bytes of the program */
} qkv_pickle;

/* Runs one program of at most n bytes. */
qkv_status qkv_pickle_read(const char *data, size_t n, qkv_arena *memory, qkv_pickle *out);
void qkv_pickle_free(qkv_pickle *p);

#endif
