/* Rows that stand in two sets: a validation that was trained on says nothing. */
#ifndef QKV_DATA_DUPLICATES_H
#define QKV_DATA_DUPLICATES_H

#include "data/corpus.h"

/* Of the texts of a row; never 0. Labels do not count. */
uint64_t qkv_row_hash(const qkv_row *row);

/* How many of the rows of b that `take_b` marks (NULL: all) have the texts of a marked row of a.
 * *line gets the line of the first of them. Told by a 64-bit hash of the texts;
 * labels do not count. */
qkv_status qkv_corpus_duplicates(const qkv_corpus *a, const bool *take_a, const qkv_corpus *b,
                                 const bool *take_b, int64_t *n, int64_t *line);

#endif
