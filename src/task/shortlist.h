/* Which target tokens may stand in a translation of which source tokens,
 * learned from the training pairs.
 *
 * A text's list is the union over its tokens of the target tokens that each most likely becomes,
 * and of the most frequent target tokens; it depends on nothing but the text. With some hundreds of
 * tokens instead of thousands the map to the vocabulary, a large part of a decoder's step,
 * costs little. */
#ifndef QKV_TASK_SHORTLIST_H
#define QKV_TASK_SHORTLIST_H

#include "data/encoded.h"
#include "store/safetensors.h"

/* Tokens kept for each source token, and of the most frequent ones. */
enum { QKV_SHORTLIST_WIDTH = 50, QKV_SHORTLIST_FREQUENT = 200 };

/* Learns from examples of two sides and writes the file. */
#define QKV_SHORTLIST_FILE "shortlist.safetensors"
qkv_status qkv_shortlist_learn(const qkv_encoded *pairs, int32_t source_vocab, int32_t target_vocab,
                               const char *path);

typedef struct qkv_shortlist {
    qkv_safetensors file;
    const int32_t *start;   /* source_vocab + 1: where a token's targets begin */
    const int32_t *targets; /* start[source_vocab] */
    const int32_t *frequent;
    int32_t source_vocab, target_vocab, n_frequent;
} qkv_shortlist;

/* Opens and checks the file. */
qkv_status qkv_shortlist_open(const char *path, int32_t source_vocab, int32_t target_vocab,
                              qkv_shortlist *out);
void qkv_shortlist_close(qkv_shortlist *s);

/* Marks in `mark` (target_vocab bytes) what may stand in a translation of these tokens. */
void qkv_shortlist_mark(const qkv_shortlist *s, const int32_t *ids, int64_t n, uint8_t *mark);

#endif
