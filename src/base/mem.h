/* Memory: the only place in the library that calls malloc.
 *
 * Everything is counted, and any allocation can be made to fail, so that the tests can fail the
 * n-th one for every n and see an error, no leak and no crash.
 * A failed allocation sets the message. */
#ifndef QKV_BASE_MEM_H
#define QKV_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

#define QKV_ALIGN 64 /* a cache line, and the widest vector */

void *qkv_alloc(size_t bytes);                 /* uninitialised, 16-byte aligned; NULL on failure */
void *qkv_zalloc(size_t count, size_t size);   /* zeroed; refuses a product that overflows */
void *qkv_realloc(void *old, size_t bytes);    /* `old` stays valid on failure */
void *qkv_alloc_aligned(size_t bytes);         /* QKV_ALIGN-aligned; huge pages where offered */
void qkv_free(void *p);                        /* NULL is fine */
char *qkv_strndup(const char *text, size_t n); /* NUL-terminated copy */

/* Counters since the start of the process. */
typedef struct qkv_mem_counts {
    uint64_t allocations; /* calls that asked for memory */
    uint64_t live;        /* blocks not yet freed */
} qkv_mem_counts;
qkv_mem_counts qkv_mem_count(void);

/* Tests: the n-th allocation from now fails (1 = the next; 0 = none),
 * and with `forever` all after it. */
void qkv_mem_fail(uint64_t n, bool forever);

/* Checked arithmetic for sizes that come from outside: true on overflow. */
static inline bool qkv_mul_over(size_t a, size_t b, size_t *out) {
    return __builtin_mul_overflow(a, b, out);
}
static inline bool qkv_add_over(size_t a, size_t b, size_t *out) {
    return __builtin_add_overflow(a, b, out);
}

/* Highest resident memory of this process so far, in bytes. */
size_t qkv_peak_rss(void);

#endif
