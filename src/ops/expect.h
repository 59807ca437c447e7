/* What ops expect of their arguments. Each returns true when it holds, else records an error that
 * names the op, the argument and the first offending element. */
#ifndef QKV_OPS_EXPECT_H
#define QKV_OPS_EXPECT_H

#include "tape/tape.h"

/* Rows without gaps, for kernels that know no row stride. */
bool qkv_expect_packed(qkv_tape *t, const qkv_op *op, const char *what, const qkv_tensor *x);
bool qkv_expect_shape(qkv_tape *t, const qkv_op *op, const char *what, const qkv_tensor *x,
                      int64_t rows, int64_t cols);
bool qkv_expect_same_shape(qkv_tape *t, const qkv_op *op, const qkv_tensor *x, const qkv_tensor *y);
/* n numbers in [low, limit). */
bool qkv_expect_ids(qkv_tape *t, const qkv_op *op, const char *what, const int32_t *ids, int64_t n,
                    int64_t low, int64_t limit);
/* No sequence is empty or beyond `rows`; a packed layout covers all rows in order, and only that is
 * accepted when `packed`. */
bool qkv_expect_layout(qkv_tape *t, const qkv_op *op, const char *what, const qkv_layout *l,
                       int64_t rows, bool packed);
/* A dropout rate: 0 ≤ p < 1. */
bool qkv_expect_rate(qkv_tape *t, const qkv_op *op, real p);

#endif
