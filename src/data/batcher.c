/* The plan of an epoch: permute, (group), cut, (shuffle the batches). */
#include "data/batcher.h"
#include "base/mem.h"
#include "base/rng.h"

#include <assert.h>
#include <string.h>

enum { STREAM_ORDER = 1, STREAM_SHIFT, STREAM_BATCHES }; /* what the random numbers are for */

static qkv_rng key(const qkv_batcher *b, uint64_t purpose) {
    return qkv_rng_derive((qkv_rng){.seed = b->seed, .stream = purpose}, (uint64_t)b->epoch, 0);
}

/* Windows when the first begins at `shift`; each needs one token after it as last target. What is
 * left at the end makes one more, shorter, where every token is to count: in evaluation. */
static int64_t windows(const qkv_batcher *b, int64_t shift) {
    const int64_t left = qkv_encoded_tokens(b->data) - 1 - shift;
    return left < 1 ? 0 : (left + (b->shuffle ? 0 : b->window - 1)) / b->window;
}

int64_t qkv_batcher_tokens(const qkv_batcher *b, int64_t example) {
    if (b->window) return b->window;
    const int64_t s = example * b->data->sides;
    return b->data->start[s + b->data->sides] - b->data->start[s];
}

qkv_status qkv_batcher_init(qkv_batcher *b) {
    if (b->budget < 1)
        return qkv_fail(QKV_USAGE, "batch_tokens is %lld; it must be at least 1",
                        (long long)b->budget);
    const bool stream = b->window > 0;
    const int64_t most_inputs = qkv_encoded_tokens(b->data) - 1;
    if (stream && b->window > most_inputs) b->window = most_inputs; /* a short stream */
    if (stream ? b->window < 1 : b->data->n < 1)
        return qkv_fail(QKV_BAD_FILE, "no examples are left to make batches of");
    const int64_t most = stream ? windows(b, 0) : b->data->n;
    const size_t bytes = ((size_t)most + 1) * sizeof(int64_t);
    b->epoch = -1;
    b->order = qkv_alloc(bytes);
    b->cut = qkv_alloc(bytes);
    b->swap = qkv_alloc(bytes);
    if (b->order && b->cut && b->swap) return QKV_OK;
    qkv_batcher_free(b);
    return QKV_FAILED;
}

void qkv_batcher_free(qkv_batcher *b) {
    qkv_free(b->order);
    qkv_free(b->cut);
    qkv_free(b->swap);
    b->order = b->cut = b->swap = NULL;
}

/* Merge sort by length; stable, so that equals keep the order of the permutation. */
static void sort_by_length(const qkv_batcher *b, int64_t *x, int64_t n, int64_t *scratch) {
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t lo = 0; lo < n; lo += 2 * width) {
            const int64_t mid = lo + width < n ? lo + width : n,
                          hi = mid + width < n ? mid + width : n;
            for (int64_t i = lo, j = mid, k = lo; k < hi; k++)
                scratch[k] = i < mid && (j >= hi ||
                                         qkv_batcher_tokens(b, x[i]) <= qkv_batcher_tokens(b, x[j]))
                                 ? x[i++]
                                 : x[j++];
        }
        memcpy(x, scratch, (size_t)n * sizeof *x);
    }
}

/* Cuts the order into batches within the budget. */
static void cut(qkv_batcher *b) {
    int64_t filled = 0;
    b->n_batches = 0;
    b->cut[0] = 0;
    for (int64_t i = 0; i < b->n_examples; i++) {
        const int64_t n = qkv_batcher_tokens(b, b->order[i]);
        if (i > b->cut[b->n_batches] && filled + n > b->budget) {
            b->cut[++b->n_batches] = i;
            filled = 0;
        }
        filled += n;
    }
    b->cut[++b->n_batches] = b->n_examples;
}

/* Sorts by length within pools of about pool·budget tokens. */
static void group(qkv_batcher *b) {
    int64_t from = 0, filled = 0;
    for (int64_t i = 0; i < b->n_examples; i++) {
        filled += qkv_batcher_tokens(b, b->order[i]);
        if (filled < b->pool * b->budget && i + 1 < b->n_examples) continue;
        sort_by_length(b, b->order + from, i + 1 - from, b->swap);
        from = i + 1;
        filled = 0;
    }
}

/* Puts the batches themselves into a keyed order. */
static void shuffle_batches(qkv_batcher *b) {
    const qkv_rng rng = key(b, STREAM_BATCHES);
    int64_t at = 0;
    /* `swap` takes the examples in their new order; the new cuts then follow from the same walk. */
    for (int64_t i = 0; i < b->n_batches; i++) {
        const int64_t from = (int64_t)qkv_rng_permute(rng, (uint64_t)b->n_batches, (uint64_t)i);
        const int64_t n = b->cut[from + 1] - b->cut[from];
        memcpy(b->swap + at, b->order + b->cut[from], (size_t)n * sizeof *b->swap);
        at += n;
    }
    assert(at == b->n_examples); /* each batch once */
    memcpy(b->order, b->swap, (size_t)at * sizeof *b->order);
    memcpy(b->swap, b->cut, (size_t)(b->n_batches + 1) * sizeof *b->swap);
    b->cut[0] = 0;
    for (int64_t i = 0; i < b->n_batches; i++) {
        const int64_t from = (int64_t)qkv_rng_permute(rng, (uint64_t)b->n_batches, (uint64_t)i);
        b->cut[i + 1] = b->cut[i] + b->swap[from + 1] - b->swap[from];
    }
}

void qkv_batcher_plan(qkv_batcher *b, int64_t epoch) {
    if (b->epoch == epoch) return;
    b->epoch = epoch;
    b->shift = 0;
    if (b->window && b->shuffle) {
        const int64_t spare = qkv_encoded_tokens(b->data) - 1 - b->window + 1;
        const int64_t range = spare < b->window ? spare : b->window;
        b->shift = (int64_t)qkv_rng_below(key(b, STREAM_SHIFT), 0, (uint64_t)range);
    }
    b->n_examples = b->window ? windows(b, b->shift) : b->data->n;
    assert(!b->window || b->n_examples <= windows(b, 0)); /* for which there is room */
    const qkv_rng rng = key(b, STREAM_ORDER);
    for (int64_t i = 0; i < b->n_examples; i++)
        b->order[i] =
            b->shuffle ? (int64_t)qkv_rng_permute(rng, (uint64_t)b->n_examples, (uint64_t)i) : i;
    const bool grouped = b->pool > 1 && b->shuffle && !b->window;
    if (grouped) group(b);
    cut(b);
    if (grouped) shuffle_batches(b);
}

const int64_t *qkv_batcher_get(const qkv_batcher *b, int64_t i, int64_t *n) {
    assert(b->epoch >= 0 && i >= 0 && i < b->n_batches);
    *n = b->cut[i + 1] - b->cut[i];
    return b->order + b->cut[i];
}

const int32_t *qkv_batcher_ids(const qkv_batcher *b, int64_t example, int side, int64_t *n) {
    assert(example >= 0 && example < b->n_examples);
    if (!b->window) return qkv_encoded_ids(b->data, example, side, n);
    const int64_t at = b->shift + example * b->window, left = qkv_encoded_tokens(b->data) - at;
    *n = left < b->window + 1 ? left : b->window + 1;
    return b->data->ids + at;
}
