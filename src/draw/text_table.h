/* Tables for the terminal: columns aligned by what they hold, wide characters counted as they show.
 *
 *     qkv_table t = qkv_table_begin("lrr");
 *     qkv_table_cell(&t, "class"); qkv_table_cell(&t, "F1"); qkv_table_cell(&t, "n");   the header
 *     qkv_table_cell(&t, "%s", name); …                                                 row by row
 *     qkv_table_print(&t, ink, &out);
 *     qkv_table_free(&t);
 */
#ifndef QKV_DRAW_TABLE_H
#define QKV_DRAW_TABLE_H

#include "draw/ink.h"

typedef struct qkv_table {
    const char *align; /* one letter per column: 'l' or 'r' */
    QKV_VEC(char *) cells;
    QKV_VEC(size_t) rules; /* rows before which a line is drawn */
    qkv_status status;     /* sticky */
} qkv_table;

qkv_table qkv_table_begin(const char *align);
/* The next cell, row by row; the first row is the header. */
void qkv_table_cell(qkv_table *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line before the next row: totals. */
void qkv_table_rule(qkv_table *t);
/* Cells too wide for the terminal are cut in the widest left-aligned column. */
qkv_status qkv_table_print(const qkv_table *t, qkv_ink ink, qkv_buf *out);
void qkv_table_free(qkv_table *t);

#endif
