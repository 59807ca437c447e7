/* What a decoder's rows attend to in the source, kept beside the pass for alignments and coverage.
 *
 * The attention op never stores its weights, so those of one layer are made a second time, as the
 * mean over its heads, when a cache asks for them. */
#ifndef QKV_NN_WATCH_H
#define QKV_NN_WATCH_H

#include "nn/kv.h"
#include "ops/ops.h"

/* Weights of queries q over keys k of a cross-attention, for the cache's watcher (on the tape:
 * until the next step). Nothing when it watches another layer. */
void qkv_watch(qkv_tape *t, qkv_kv *kv, int32_t layer, const qkv_tensor *q, const qkv_tensor *k,
               const qkv_attention_spec *spec);

#endif
