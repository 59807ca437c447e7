/* The range test of learning rates (Smith 2015):
 * a short training whose rate rises from step to step. */
#ifndef QKV_TRAIN_FIND_LR_H
#define QKV_TRAIN_FIND_LR_H

#include "train/loop.h"

/* Makes up to n steps from rate `low` to `high`, until the loss runs away; *used gets how many.
 * *best gets a tenth of the rate at which the running mean was lowest: fast, and well below where
 * it turns. The loop's weights are of no use afterwards. */
qkv_status qkv_loop_find_lr(qkv_loop *l, double low, double high, qkv_lr_trial *out, int64_t n,
                            int64_t *used, double *best);

#endif
