/* Which columns of a table are the label, the text and its pair: as asked for, by the names in the
 * first row, by place, or by counting. */
#ifndef QKV_DATA_TABLE_COLUMNS_H
#define QKV_DATA_TABLE_COLUMNS_H

#include "data/corpus.h"

enum { QKV_NO_COLUMN = -1 };

/* The first rows of a table; what is looked at to tell which column is what. */
typedef struct qkv_table_sample {
    const qkv_text *head;  /* the first row, whole */
    int width;             /* of the first row */
    const qkv_text *cells; /* `rows` rows of `looked` fields, the first among them; shorter rows are
                              filled up with empty ones */
    int rows, looked;
    bool even;   /* every row has as many fields as the first */
    bool quoted; /* CSV: fields that need it are quoted, so that each separator separates */
} qkv_table_sample;

typedef struct qkv_table_columns {
    bool header;           /* the first row names the columns */
    bool counted;          /* the label was found by counting */
    bool strict;           /* each row must have as many fields as the first */
    bool rest;             /* the text goes from its column to the end of the row */
    int column[QKV_ROLES]; /* from 0; QKV_NO_COLUMN: there is none */
} qkv_table_columns;

/* Chooses, and tells the reader's reading what was chosen. */
qkv_status qkv_table_choose(const qkv_reader *r, const qkv_table_sample *s, qkv_table_columns *out);

#endif
