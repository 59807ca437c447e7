/* What a decoder remembers between steps: keys and values, or recurrent states, of several
 * sequences.
 *
 * Pass one to qkv_model_decode and give it the new tokens only; the result is that of the full
 * pass. The first pass of an encoder-decoder also needs the encoder's output, one sequence
 * of it for each of the cache; later passes take NULL. */
#ifndef QKV_MODEL_CACHE_H
#define QKV_MODEL_CACHE_H

#include "model/model.h"

/* Room for n sequences of at most `capacity` tokens each. */
qkv_status qkv_cache_new(const qkv_model *m, int32_t n, int32_t capacity, qkv_cache **out);
void qkv_cache_free(qkv_cache *c);
/* Other numbers of sequences and tokens in the same allocation; reset it then. False: it is too
 * small. */
bool qkv_cache_fit(qkv_cache *c, int32_t n, int32_t capacity);

/* Starts n ≤ max_n empty sequences. */
qkv_status qkv_cache_reset(qkv_cache *c, int32_t n);
int32_t qkv_cache_len(const qkv_cache *c, int32_t s); /* tokens of sequence s */

/* Sequence s becomes a copy of what sequence from[s] was, for s < n ≤ max_n: beam search, or
 * dropping finished ones. */
qkv_status qkv_cache_select(qkv_cache *c, const int32_t *from, int32_t n);

/* From now on keeps how the last row of each sequence attends to the source:
 * weights that sum to 1. */
void qkv_cache_watch(qkv_cache *c, bool on);
/* Those of sequence s after a pass, *n of them; NULL when not watched. */
const real *qkv_cache_watched(const qkv_cache *c, int32_t s, int32_t *n);

#endif
