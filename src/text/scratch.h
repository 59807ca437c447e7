/* What encoding writes to: one per thread at a time, kept in a pool by the tokenizer.
 *
 * The word cache is direct-mapped, one cache line per entry: a word that was seen before costs a
 * hash and a comparison. It grows with the distinct words, up to a bound, so that a short text pays
 * for little, and never changes a result: which words are in it does not matter. */
#ifndef QKV_TEXT_SCRATCH_H
#define QKV_TEXT_SCRATCH_H

#include "text/pipeline.h"

#define QKV_CACHE_KEY 26
#define QKV_CACHE_IDS 8

typedef struct qkv_word_slot { /* 64 bytes */
    uint32_t hash;
    uint8_t len, n; /* len 0: free */
    char key[QKV_CACHE_KEY];
    int32_t ids[QKV_CACHE_IDS];
} qkv_word_slot;

/* A token in the making: BPE's symbols, linked when there are many. */
typedef struct qkv_symbol {
    int32_t id;
    uint32_t len;       /* bytes of the word; 0: merged away */
    int32_t prev, next; /* −1: none */
} qkv_symbol;

typedef struct qkv_lattice_node { /* best path that ends here */
    double score;
    uint32_t from; /* where its last token begins */
    int32_t id;    /* INT32_MIN: no path yet */
} qkv_lattice_node;

struct qkv_scratch {
    qkv_scratch *next; /* in the pool */
    qkv_draft work;
    struct qkv_word_cache {
        qkv_word_slot *slots; /* NULL until the first word */
        uint32_t mask, used;  /* slots − 1; slots that are not free */
    } cache;
    bool use_cache;
    bool ranges;     /* fill begin and end, */
    bool characters; /* with numbers of characters */
    double dropout;
    qkv_rng rng;
    uint64_t draws; /* random numbers used for this text */
    QKV_VEC(qkv_symbol) symbols;
    QKV_VEC(uint64_t) heap, skipped;
    QKV_VEC(qkv_merge) unmade; /* how unused tokens came about in this word */
    QKV_VEC(qkv_lattice_node) lattice;
    QKV_VEC(qkv_piece) path;
    qkv_buf held; /* normalised text while its parts are worked on */
    QKV_VEC(uint32_t) held_from, held_to;
    QKV_VEC(uint32_t) before; /* characters before each byte of the text */
    qkv_encoding part[2];
};

/* Room for n more tokens in *e. */
bool qkv_encoding_room(qkv_encoding *e, size_t n, bool ranges);

/* Appends a token; false when there is no memory. */
static inline bool qkv_emit(const qkv_scratch *s, qkv_encoding *e, int32_t id, size_t begin,
                            size_t end) {
    if (e->n == e->cap || s->ranges)
        if (!qkv_encoding_room(e, 1, s->ranges)) return false;
    if (s->ranges) {
        e->begin[e->n] = (uint32_t)begin;
        e->end[e->n] = (uint32_t)end;
    }
    e->ids[e->n++] = id;
    return true;
}

/* Uniform in [0, 1), a new one each time. */
static inline double qkv_scratch_draw(qkv_scratch *s) {
    return qkv_rng_uniform(s->rng, s->draws++);
}

#endif
