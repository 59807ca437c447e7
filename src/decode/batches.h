/* Many searches: sorted by length, cut into batches, run on all threads.
 *
 * Batches are independent of each other, so each runs on one thread with a session of its own where
 * there are enough of them; a single batch uses all threads inside. Neither changes a bit of the
 * results. */
#ifndef QKV_DECODE_BATCHES_H
#define QKV_DECODE_BATCHES_H

#include "decode/beam.h"

/* Gets the nbest hypotheses of item i, valid during the call; called once an item, in any order and
 * from several threads. */
typedef qkv_status (*qkv_found_fn)(void *user, size_t i, const qkv_hypothesis *found);

/* Items with n_begin 0 are passed over. `s` runs a single batch; workers of several use it
 * and those chained to it. */
qkv_status qkv_search_all(qkv_session *s, const qkv_search_spec *spec, const qkv_search_item *items,
                          size_t n, qkv_found_fn found, void *user);

#endif
