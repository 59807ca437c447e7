/* Columns: what a sequence may have beside its ids. All go one way, from the text (data/columns.h)
 * through the encoded data and the batch (qkv_tokens) to the part of the model that reads them; a
 * new one is a row of column.def and a function that makes it. */
#ifndef QKV_BASE_COLUMN_H
#define QKV_BASE_COLUMN_H

#include <stdint.h>

typedef enum qkv_column {
#define COLUMN(id, name, help) QKV_COLUMN_##id,
#include "base/column.def"
#undef COLUMN
    QKV_COLUMNS
} qkv_column;

/* The numbers of one sequence in one column. */
typedef struct qkv_cells {
    const int32_t *at;
    int64_t n;
} qkv_cells;

#endif
