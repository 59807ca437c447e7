/* A decoding session: one model, read only, and the state of the sequences that are being written.
 *
 * Sessions are cheap and independent of each other; any number may use one model at once, each on
 * its own thread. A session begins with what its sequences start from (the beginning-of-text token,
 * or a prompt) and, for encoder-decoders, their sources; then each step adds one token to every
 * sequence. After both, `logits` has the scores of the next token. A row of them depends on its own
 * sequence only: what else is decoded beside it changes no bit. */
#ifndef QKV_DECODE_SESSION_H
#define QKV_DECODE_SESSION_H

#include "model/decoder_cache.h"

typedef struct qkv_session {
    qkv_model *model;
    qkv_cache *cache;
    qkv_tape tape;
    int32_t n;           /* sequences now */
    int64_t vocab;       /* V */
    int64_t scored;      /* tokens that have a logit: V, or as many as qkv_session_limit said */
    qkv_vocab_part part; /* their rows of the head, where they are not all */
    real *logits;        /* (n, scored) after begin and step; the caller may change them */
    int32_t *start;      /* layout of a step: 0, 1, 2 … */
    int32_t max_n;
    struct qkv_session *next; /* owned: of the next worker of a search on all threads; or NULL */
    bool watch; /* keep attention to the sources: qkv_cache_watched. Set it before beginning */
} qkv_session;

/* The first session of a model packs its weights, where it is not in training. */
qkv_status qkv_session_new(qkv_model *m, qkv_session **out);
void qkv_session_free(qkv_session *s);

/* From here on only the n tokens `ids` have a logit, in this order; NULL: all have. A logit's bits
 * are the same either way. */
qkv_status qkv_session_limit(qkv_session *s, const int32_t *ids, int64_t n);

/* Starts begin->layout.n sequences from the tokens of `begin`; `src` (one source a sequence) for
 * encoder-decoders, else NULL. There will be at most `max_n` sequences, of at most `capacity`
 * tokens each, `begin` counted. */
qkv_status qkv_session_begin(qkv_session *s, const qkv_tokens *src, const qkv_tokens *begin,
                             int32_t max_n, int32_t capacity);
/* Adds ids[i] to sequence i. */
qkv_status qkv_session_step(qkv_session *s, const int32_t *ids);
/* Sequence i goes on from what sequence from[i] was, for i < n. The logits are gone. */
qkv_status qkv_session_select(qkv_session *s, const int32_t *from, int32_t n);

#endif
