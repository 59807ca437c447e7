#include "base/mem.h"
#include "base/error.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

static _Atomic uint64_t n_allocations, n_frees;
static _Atomic uint64_t fail_at; /* count of n_allocations at which to fail; 0: never */
static _Atomic bool fail_forever;

qkv_mem_counts qkv_mem_count(void) {
    uint64_t made = atomic_load(&n_allocations);
    return (qkv_mem_counts){.allocations = made, .live = made - atomic_load(&n_frees)};
}

void qkv_mem_fail(uint64_t n, bool forever) {
    atomic_store(&fail_forever, forever);
    atomic_store(&fail_at, n ? atomic_load(&n_allocations) + n : 0);
}

/* Counts one allocation; false when the tests want this one to fail,
 * or no object can be so large. */
static bool may_allocate(size_t bytes) {
    uint64_t number = atomic_fetch_add(&n_allocations, 1) + 1;
    uint64_t at = atomic_load_explicit(&fail_at, memory_order_relaxed);
    bool refused = at != 0 && (number == at || (number > at && atomic_load(&fail_forever)));
    return !refused && bytes <= PTRDIFF_MAX;
}

static void *check(void *p, size_t bytes) {
    if (!p) {
        atomic_fetch_add(&n_frees, 1);
        qkv_fail(QKV_FAILED, "out of memory: %zu bytes asked for", bytes);
    }
    return p;
}

void *qkv_alloc(size_t bytes) {
    return check(may_allocate(bytes) ? malloc(bytes ? bytes : 1) : NULL, bytes);
}

void *qkv_zalloc(size_t count, size_t size) {
    size_t bytes;
    if (qkv_mul_over(count, size, &bytes)) bytes = SIZE_MAX;
    return check(may_allocate(bytes) ? calloc(count ? count : 1, size ? size : 1) : NULL, bytes);
}

void *qkv_realloc(void *old, size_t bytes) {
    bool fresh = old == NULL;
    void *p = may_allocate(bytes) ? realloc(old, bytes ? bytes : 1) : NULL;
    if (p && !fresh) atomic_fetch_add(&n_frees, 1); /* the old block went with it */
    return check(p, bytes);
}

void *qkv_alloc_aligned(size_t bytes) {
    const size_t huge = (size_t)2 << 20;
    size_t align = bytes >= 2 * huge ? huge : QKV_ALIGN;
    if (!may_allocate(bytes)) return check(NULL, bytes);
    size_t rounded = ((bytes ? bytes : 1) + align - 1) / align * align;
    void *p = check(aligned_alloc(align, rounded), bytes);
#ifdef MADV_HUGEPAGE
    /* Fewer TLB misses; only a wish. Not for the last part of one: it would take all of it. */
    if (p && align == huge) madvise(p, bytes / huge * huge, MADV_HUGEPAGE);
#endif
    return p;
}

void qkv_free(void *p) {
    if (!p) return;
    atomic_fetch_add(&n_frees, 1);
    free(p);
}

char *qkv_strndup(const char *text, size_t n) {
    char *copy = qkv_alloc(n + 1);
    if (!copy) return NULL;
    memcpy(copy, text, n);
    copy[n] = 0;
    return copy;
}

size_t qkv_peak_rss(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (size_t)usage.ru_maxrss * 1024 : 0;
}
