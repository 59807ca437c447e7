/* Made-up text with a meaning: little tasks that need no data at hand, from a seed. */
#ifndef QKV_DATA_MADE_UP_H
#define QKV_DATA_MADE_UP_H

#include "base/buf.h"

typedef struct qkv_made_up {
    const char *name, *summary;
    const char *task; /* of qkv_train */
    /* Appends row `i` of the seed's rows, with its line end. */
    void (*row)(uint64_t seed, uint64_t i, qkv_buf *out);
} qkv_made_up;

/* The row of the table named `name`; NULL: there is none. */
const qkv_made_up *qkv_made_up_find(const char *name);

#endif
