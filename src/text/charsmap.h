/* SentencePiece's precompiled_charsmap: a double-array trie of byte strings and the strings they
 * are replaced by. */
#ifndef QKV_TEXT_CHARSMAP_H
#define QKV_TEXT_CHARSMAP_H

#include "base/buf.h"

#define QKV_CHARSMAP_MAX (16u << 20)

typedef struct qkv_charsmap {
    uint32_t *units;
    size_t n_units;
    char *values; /* NUL-separated, and a NUL at the end */
    size_t n_values;
    bool plain[128]; /* ASCII characters that stay themselves when ASCII or nothing follows */
} qkv_charsmap;

/* From the blob u32 size of the trie | trie | values. An empty blob maps everything to itself. */
qkv_status qkv_charsmap_read(qkv_charsmap *m, const void *blob, size_t n);
void qkv_charsmap_free(qkv_charsmap *m);
/* The first (shortest) or the longest key that begins at text: its length, 0 for none, and its
 * value (NUL-terminated). */
size_t qkv_charsmap_match(const qkv_charsmap *m, const char *text, size_t len, bool longest,
                          const char **value);

/* Standard base64 with padding; refuses anything else. */
qkv_status qkv_base64_decode(const char *text, size_t len, qkv_buf *out);
void qkv_base64_encode(const void *data, size_t n, qkv_buf *out);

#endif
