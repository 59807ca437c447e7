/* TensorBoard event files: scalars over steps, appended record by record,
 * so that a run can be watched. */
#ifndef QKV_STORE_TENSORBOARD_H
#define QKV_STORE_TENSORBOARD_H

#include "base/error.h"

#include <stdio.h>

typedef struct qkv_tensorboard {
    FILE *file;
} qkv_tensorboard;

/* Opens a new file events.out.tfevents.<time>.<host> in `folder`, which must be there. */
qkv_status qkv_tensorboard_open(qkv_tensorboard *t, const char *folder);
/* One value of one curve; reaches the file at once. */
qkv_status qkv_tensorboard_scalar(qkv_tensorboard *t, const char *tag, int64_t step, double value);
void qkv_tensorboard_close(qkv_tensorboard *t);

#endif
