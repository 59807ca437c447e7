#include "base/arena.h"
#include "base/mem.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define POISON(p, n)   ASAN_POISON_MEMORY_REGION(p, n)
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#define RED_ZONE       QKV_ALIGN /* between neighbours, so that a run over the end is seen */
#else
#define POISON(p, n)   ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#define RED_ZONE       0
#endif

/* Few blocks: pages that are not used cost nothing, but each block may waste most of its last one,
 * of 2 MiB. */
#define BLOCK_MIN ((size_t)1 << 16)
#define BLOCK_MAX ((size_t)1 << 28) /* unless one piece needs more */

struct qkv_arena_block {
    qkv_arena_block *next;
    size_t size, used; /* of the bytes after the header */
};
#define HEADER ((sizeof(qkv_arena_block) + QKV_ALIGN - 1) / QKV_ALIGN * QKV_ALIGN)

static char *block_data(qkv_arena_block *b) {
    return (char *)b + HEADER;
}

static qkv_arena_block *block_new(size_t size) {
    size_t bytes;
    qkv_arena_block *b = qkv_add_over(size, HEADER, &bytes) ? NULL : qkv_alloc_aligned(bytes);
    if (!b) return NULL;
    *b = (qkv_arena_block){.size = size};
    POISON(block_data(b), size);
    return b;
}

static void blocks_free(qkv_arena_block *b) {
    while (b) {
        qkv_arena_block *next = b->next;
        UNPOISON(block_data(b), b->size);
        qkv_free(b);
        b = next;
    }
}

void qkv_arena_init(qkv_arena *a) {
    *a = (qkv_arena){0};
}

void qkv_arena_free(qkv_arena *a) {
    blocks_free(a->first);
    qkv_arena_init(a);
}

void *qkv_arena_alloc(qkv_arena *a, size_t bytes) {
    size_t need;
    if (qkv_add_over(bytes, QKV_ALIGN - 1 + RED_ZONE, &need)) return qkv_alloc(SIZE_MAX);
    need -= need % QKV_ALIGN;
    while (!a->current || a->current->size - a->current->used < need) {
        /* Later blocks are empty ones kept from before a rewind;
         * take the next that is large enough. */
        qkv_arena_block **link = a->current ? &a->current->next : &a->first;
        if (!*link) {
            size_t size = a->used > BLOCK_MAX / 8 ? BLOCK_MAX : a->used * 8;
            if (size < BLOCK_MIN) size = BLOCK_MIN;
            if (!(*link = block_new(size > need ? size : need))) return NULL;
        }
        a->current = *link;
    }
    assert(a->current->used % QKV_ALIGN == 0 && a->current->used + need <= a->current->size);
    void *p = block_data(a->current) + a->current->used;
    a->current->used += need;
    a->used += need;
    if (a->used > a->high_water) a->high_water = a->used;
    UNPOISON(p, bytes);
    return p;
}

void *qkv_arena_zalloc(qkv_arena *a, size_t bytes) {
    void *p = qkv_arena_alloc(a, bytes);
    return p ? memset(p, 0, bytes) : NULL;
}

char *qkv_arena_strndup(qkv_arena *a, const char *text, size_t n) {
    char *copy = qkv_arena_alloc(a, n + 1);
    if (!copy) return NULL;
    memcpy(copy, text, n);
    copy[n] = 0;
    return copy;
}

char *qkv_arena_printf(qkv_arena *a, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = n < 0 ? NULL : qkv_arena_alloc(a, (size_t)n + 1);
    if (!text) return NULL;
    va_start(args, format);
    vsnprintf(text, (size_t)n + 1, format, args);
    va_end(args);
    return text;
}

qkv_arena_mark qkv_arena_here(const qkv_arena *a) {
    return (qkv_arena_mark){a->current, a->current ? a->current->used : 0, a->used};
}

void qkv_arena_rewind(qkv_arena *a, qkv_arena_mark mark) {
    assert(mark.used <= a->used); /* a mark of this step, and no later one was returned to since */
    assert(!mark.block || mark.block_used <= mark.block->used);
    for (qkv_arena_block *b = mark.block ? mark.block->next : a->first; b; b = b->next) {
        b->used = 0;
        POISON(block_data(b), b->size);
    }
    a->current = mark.block;
    a->used = mark.used;
    if (!mark.block) return;
    mark.block->used = mark.block_used;
    POISON(block_data(mark.block) + mark.block_used, mark.block->size - mark.block_used);
}

void qkv_arena_reset(qkv_arena *a) {
    if (a->first && a->first->next) {
        /* Several blocks: what one step needs fits in one from now on, and a little more, since the
         * next batch may be a little larger (pages that are not used cost nothing). If that is
         * refused, go on with several. */
        size_t size = a->high_water + a->high_water / 8;
        blocks_free(a->first);
        a->first = a->current = NULL;
        a->first = block_new(size);
    }
    qkv_arena_rewind(a, (qkv_arena_mark){0});
}
