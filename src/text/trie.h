/* A double-array trie over bytes: one array access per byte, for longest and all-prefix matching.
 *
 * A node is an index; its child by byte c is node[base + c], if that unit's `parent` is the node.
 * The value of a key sits in the node where it ends (−1: none ends here). Node 0 is the root. */
#ifndef QKV_TEXT_TRIE_H
#define QKV_TEXT_TRIE_H

#include "base/error.h"

typedef struct qkv_trie_unit {
    uint32_t base;
    uint32_t parent; /* UINT32_MAX: free */
    int32_t value;
} qkv_trie_unit;

typedef struct qkv_trie {
    qkv_trie_unit *units;
    size_t n; /* base + 255 < n for every node: a step needs no bounds check */
} qkv_trie;

typedef struct qkv_trie_key {
    const char *text;
    uint32_t len;
    int32_t value; /* ≥ 0 */
} qkv_trie_key;

/* Bytes of a key: a search walks as far from each place of a text, so that its time is linear in the
 * text by at most this factor. */
#define QKV_TRIE_DEPTH 1024u

/* Builds from keys (sorted here, in place). Of equal keys the one with the greatest value stays;
 * empty keys are ignored. */
qkv_status qkv_trie_build(qkv_trie *t, qkv_trie_key *keys, size_t n);
void qkv_trie_free(qkv_trie *t);

/* The child by byte c, or 0 (the root, which is no child) when there is none. */
static inline uint32_t qkv_trie_step(const qkv_trie *t, uint32_t node, uint8_t c) {
    const uint32_t child = t->units[node].base + c;
    return t->units[child].parent == node ? child : 0;
}

/* Length of the longest key that begins at text, 0 for none; its value in *value. */
size_t qkv_trie_longest(const qkv_trie *t, const char *text, size_t len, int32_t *value);

#endif
