/* Memory that is taken and given back while a tape is made and walked back: gradients of
 * activations, and what an op keeps from its forward to its backward.
 *
 * A gradient lives from the first consumer that adds to it until its producer's backward has run,
 * so only a few are alive at once. A tape has a heap for those and other short lives, and one for
 * what is kept, so that neither leaves holes among the other. A heap is one region (several only
 * until the next reset), cut into pieces that are joined again when both neighbours are free; it
 * settles at the largest step's need and then asks the system for nothing. */
#ifndef QKV_TAPE_HEAP_H
#define QKV_TAPE_HEAP_H

#include <stddef.h>

typedef struct qkv_heap {
    struct qkv_heap_region *regions;
    size_t total; /* bytes of all regions */
} qkv_heap;

/* QKV_ALIGN-aligned, uninitialised; NULL (message set) when the system has no more. */
void *qkv_heap_take(qkv_heap *p, size_t bytes);
void qkv_heap_give(void *memory); /* NULL is fine */

/* Bytes that are taken and not given back, headers left out. */
size_t qkv_heap_used(const qkv_heap *p);

/* Takes everything back and joins several regions into one of their total size. */
void qkv_heap_reset(qkv_heap *p);
void qkv_heap_free(qkv_heap *p);

#endif
