/* A vocabulary: token bytes to id and back.
 *
 * All bytes lie in one buffer and all entries in one array, so 50,000 tokens are four allocations.
 * Two tokens may share an id and a token may appear twice (real files do both): the last one wins,
 * as in Hugging Face's maps. */
#ifndef QKV_TEXT_VOCAB_H
#define QKV_TEXT_VOCAB_H

#include "base/buf.h"

#define QKV_VOCAB_MAX (4u << 20)  /* ids and tokens */
#define QKV_TOKEN_MAX (64u << 10) /* bytes of a token */

typedef struct qkv_vocab_entry {
    uint32_t at, len; /* in `bytes` */
    int32_t id;
} qkv_vocab_entry;

typedef struct qkv_vocab_slot {
    uint32_t hash; /* here, so that only the right entry is looked at */
    int32_t entry; /* index into `entries`, −1: free */
} qkv_vocab_slot;

typedef struct qkv_vocab {
    qkv_buf bytes;
    QKV_VEC(qkv_vocab_entry) entries;
    QKV_VEC(int32_t) by_id; /* index into `entries`, −1: no such id */
    qkv_vocab_slot *slots;  /* open addressing */
    size_t mask;            /* slots − 1 */
} qkv_vocab;

void qkv_vocab_free(qkv_vocab *v);
/* Room for n tokens with about `bytes` bytes in all, to save growing. */
qkv_status qkv_vocab_reserve(qkv_vocab *v, size_t n, size_t bytes);
/* Adds a token; id must be 0 … QKV_VOCAB_MAX − 1 and the token at most QKV_TOKEN_MAX bytes long. */
qkv_status qkv_vocab_put(qkv_vocab *v, const char *text, size_t len, int32_t id);
/* The token's id, or −1. */
int32_t qkv_vocab_find(const qkv_vocab *v, const char *text, size_t len);
/* The ids of many tokens: faster than one by one, since their memory is asked for ahead. */
void qkv_vocab_find_many(const qkv_vocab *v, const qkv_text *texts, size_t n, int32_t *ids);
/* The token's bytes, not NUL-terminated; NULL when there is no such id. */
const char *qkv_vocab_text(const qkv_vocab *v, int32_t id, size_t *len);

/* A fast hash of short strings, not for outside use: no defence against crafted collisions beyond
 * the table's bounds. */
uint32_t qkv_text_hash(const char *text, size_t len);

#endif
