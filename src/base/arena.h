/* An arena: memory that is handed out in order and given back all at once.
 *
 * Blocks are chained, so pointers never move while in use. After the first step the arena has one
 * block of its high-water mark, and a training step allocates nothing.
 * Under ASan the free part is poisoned. */
#ifndef QKV_BASE_ARENA_H
#define QKV_BASE_ARENA_H

#include <stddef.h>

typedef struct qkv_arena_block qkv_arena_block;

typedef struct qkv_arena {
    qkv_arena_block *first, *current;
    size_t used;       /* bytes handed out now, all blocks */
    size_t high_water; /* the most there ever was */
} qkv_arena;

typedef struct qkv_arena_mark {
    qkv_arena_block *block;
    size_t block_used, used;
} qkv_arena_mark;

void qkv_arena_init(qkv_arena *a); /* allocates nothing yet */
void qkv_arena_free(qkv_arena *a);

/* QKV_ALIGN-aligned, uninitialised; NULL (message set) when the system has no more. */
void *qkv_arena_alloc(qkv_arena *a, size_t bytes);
void *qkv_arena_zalloc(qkv_arena *a, size_t bytes);
char *qkv_arena_strndup(qkv_arena *a, const char *text, size_t n);
char *qkv_arena_printf(qkv_arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A point to return to: everything allocated after the mark is given back. */
qkv_arena_mark qkv_arena_here(const qkv_arena *a);
void qkv_arena_rewind(qkv_arena *a, qkv_arena_mark mark);

/* Gives everything back and, if there are several blocks,
 * joins them into one of the high-water size. */
void qkv_arena_reset(qkv_arena *a);

#endif
