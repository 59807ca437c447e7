#include "tape/heap.h"
#include "base/mem.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

/* Stands in front of its bytes; neighbours in memory are neighbours in the list. */
typedef struct piece {
    struct piece *before, *after;
    size_t size; /* of the bytes behind the header */
    bool used;
} piece;

typedef struct qkv_heap_region {
    struct qkv_heap_region *next;
    size_t size; /* of the bytes behind the header, headers of pieces included */
} region;

#define ROUND(n)      (((n) + QKV_ALIGN - 1) / QKV_ALIGN * QKV_ALIGN)
#define PIECE_HEADER  ROUND(sizeof(piece))
#define REGION_HEADER ROUND(sizeof(region))
#define ROOM_MIN      ((size_t)1 << 16)
#define ROOM_MAX      ((size_t)1 << 28)

static piece *first_piece(region *r) {
    return (piece *)((char *)r + REGION_HEADER);
}

static void empty_region(region *r) {
    *first_piece(r) = (piece){.size = r->size - PIECE_HEADER};
}

static region *add_region(qkv_heap *p, size_t size) {
    size_t bytes;
    region *r = qkv_alloc_aligned(qkv_add_over(size, REGION_HEADER, &bytes) ? SIZE_MAX : bytes);
    if (!r) return NULL;
    *r = (region){.next = p->regions, .size = size};
    p->regions = r;
    p->total += size;
    empty_region(r);
    return r;
}

/* Cuts the end off a free piece when what remains is worth keeping, and marks the front as used. */
static void *use(piece *found, size_t need) {
    assert(!found->used && found->size >= need);
    if (found->size - need > PIECE_HEADER) {
        piece *rest = (piece *)((char *)found + PIECE_HEADER + need);
        *rest = (piece){
            .before = found, .after = found->after, .size = found->size - need - PIECE_HEADER};
        if (rest->after) rest->after->before = rest;
        found->after = rest;
        found->size = need;
    }
    found->used = true;
    return (char *)found + PIECE_HEADER;
}

void *qkv_heap_take(qkv_heap *p, size_t bytes) {
    if (bytes > SIZE_MAX / 2) return qkv_alloc(SIZE_MAX);
    size_t need = ROUND(bytes ? bytes : 1);
    piece *best = NULL;
    for (region *r = p->regions; r; r = r->next)
        for (piece *x = first_piece(r); x; x = x->after)
            if (!x->used && x->size >= need && (!best || x->size < best->size)) best = x;
    if (best) return use(best, need);
    /* Room for more: pages that are not used cost nothing, and pieces of one region fill each
     * other's gaps. */
    const size_t room = need < ROOM_MAX / 16 ? need * 16 : ROOM_MAX;
    region *r = add_region(p, need + PIECE_HEADER + (room > ROOM_MIN ? room : ROOM_MIN));
    return r ? use(first_piece(r), need) : NULL;
}

static void join_next(piece *x) {
    x->size += PIECE_HEADER + x->after->size;
    x->after = x->after->after;
    if (x->after) x->after->before = x;
}

void qkv_heap_give(void *memory) {
    if (!memory) return;
    piece *x = (piece *)((char *)memory - PIECE_HEADER);
    assert(x->used); /* else it is given back twice */
    /* else somebody wrote over a header, beyond the end of the piece before it */
    assert((!x->after || x->after->before == x) && (!x->before || x->before->after == x));
    x->used = false;
    if (x->after && !x->after->used) join_next(x);
    if (x->before && !x->before->used) join_next(x->before);
}

size_t qkv_heap_used(const qkv_heap *p) {
    size_t used = 0;
    for (region *r = p->regions; r; r = r->next)
        for (const piece *x = first_piece(r); x; x = x->after) used += x->used ? x->size : 0;
    return used;
}

void qkv_heap_free(qkv_heap *p) {
    while (p->regions) {
        region *next = p->regions->next;
        qkv_free(p->regions);
        p->regions = next;
    }
    p->total = 0;
}

void qkv_heap_reset(qkv_heap *p) {
    if (!p->regions) return;
    if (p->regions->next) {
        size_t total = p->total + p->total / 8; /* the next batch may be a little larger */
        qkv_heap_free(p);
        add_region(p, total); /* refused: the next take asks again, and reports it */
    } else {
        empty_region(p->regions);
    }
}
