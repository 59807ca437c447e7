/* The gradients of activations: memory that backward takes and gives back while it walks down the
 * tape.
 *
 * A gradient lives from the first consumer that adds to it until its producer's backward has run,
 * so only a few are alive at once. The pool is one region (several only until the next reset), cut
 * into pieces that are joined again when both neighbours are free; it settles at the largest step's
 * need and then asks the system for nothing. */
#ifndef QKV_TAPE_POOL_H
#define QKV_TAPE_POOL_H

#include <stddef.h>

typedef struct qkv_pool {
    struct qkv_pool_region *regions;
    size_t total; /* bytes of all regions */
} qkv_pool;

/* QKV_ALIGN-aligned, uninitialised; NULL (message set) when the system has no more. */
void *qkv_pool_take(qkv_pool *p, size_t bytes);
void qkv_pool_give(void *memory); /* NULL is fine */

/* Takes everything back and joins several regions into one of their total size. */
void qkv_pool_reset(qkv_pool *p);
void qkv_pool_free(qkv_pool *p);

#endif
