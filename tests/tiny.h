/* Tiny models and batches for tests: built from assignments, seeded, with a loss for every task. */
#ifndef QKV_TESTS_TINY_H
#define QKV_TESTS_TINY_H

#include "harness.h"
#include "model/decoder_cache.h"
#include "model/model.h"

#define TINY_SEQUENCES 8
#define TINY_ROWS      512

/* Sequences with random ids below `vocab`, random trees, a label each, and the next token of each;
 * of each the second half is a segment of its own. */
typedef struct tiny_batch {
    int32_t n, rows;
    int32_t start[TINY_SEQUENCES + 1];
    int32_t ids[TINY_ROWS], next[TINY_ROWS], node[TINY_ROWS], head[TINY_ROWS], segment[TINY_ROWS],
        label[TINY_SEQUENCES];
    qkv_cells nodes[TINY_SEQUENCES], heads[TINY_SEQUENCES], segments[TINY_SEQUENCES];
    qkv_tokens tokens; /* points into this struct: do not copy it */
} tiny_batch;

void tiny_batch_make(tiny_batch *b, const int32_t *lengths, int32_t n, int32_t vocab,
                     int32_t classes, uint64_t seed);

/* Defaults of a few dozen numbers, then the assignments; weights from the seed. */
qkv_model *tiny_model(const char *assignments, bool for_training, uint64_t seed);
/* The same for use, with larger weights: random ones give nearly flat distributions,
 * these something to search. */
qkv_model *tiny_sharp_model(const char *assignments, uint64_t seed);
/* Log-probabilities of the token after `ids` (with the source src, where n_src > 0),
 * by the full pass without a cache. */
void tiny_next(qkv_tape *t, qkv_model *m, const int32_t *src, int32_t n_src, const int32_t *ids,
               int32_t n, int32_t vocab, double *out);
/* Only the configuration, and whether a model can be built from it. */
qkv_status tiny_build(const char *assignments, qkv_model **out);

/* Hidden rows of whatever side the task ends in: encoder rows or decoder rows. */
qkv_tensor *tiny_hidden(qkv_tape *t, qkv_model *m, const tiny_batch *src, const tiny_batch *tgt);
/* The task's loss: labels, next tokens, or (mlm) the tokens themselves. Embedding models: none. */
qkv_tensor *tiny_loss(qkv_tape *t, qkv_model *m, const tiny_batch *src, const tiny_batch *tgt);

#endif
