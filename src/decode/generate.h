/* Going on from a prompt, token by token. */
#ifndef QKV_DECODE_GENERATE_H
#define QKV_DECODE_GENERATE_H

#include "decode/beam.h"
#include "decode/sample.h"

typedef struct qkv_generate_spec {
    qkv_sampling sampling;
    int32_t tokens, min_tokens; /* at most; before the end may come */
    const int32_t *ends;        /* tokens that end the text; none: only its length does */
    int32_t n_ends;
    int32_t window;    /* tokens that the model sees; 0: as many as it was trained on */
    const bool *never; /* by id; NULL: all may be drawn */
    qkv_phrases forbidden;
} qkv_generate_spec;

/* Gets each token and its log-probability (of the model alone, before any sampler); false stops. */
typedef bool (*qkv_token_fn)(void *user, int32_t id, double log_prob);

/* Writes up to spec->tokens tokens after the prompt (at least one token). *ended: by the end of
 * text.
 *
 * When the window is full it slides: the newer half is read again from position 0, so that
 * positions stay where the model was trained, whatever their scheme. A window beyond max_len is
 * allowed where positions are no table. Recurrent models have no window. */
qkv_status qkv_generate_tokens(qkv_session *s, const qkv_generate_spec *spec, const int32_t *prompt,
                               int32_t n, qkv_token_fn token, void *user, bool *ended);

#endif
