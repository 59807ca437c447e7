/* What is to be told of a text, as a row has it: a number, a label, several labels. For the readers
 * and corpus.c. */
#ifndef QKV_DATA_ROW_TRUTH_H
#define QKV_DATA_ROW_TRUTH_H

#include "data/corpus.h"

/* Reads the number of a row, blanks around it left aside; false: it is none that a row may have. */
bool qkv_row_number(qkv_text text, float *out);
/* Refuses what is none. */
qkv_status qkv_row_no_number(const qkv_reader *r, qkv_text label, int64_t line);

/* Gives a row the labels that stand in a list, `separator` between them: any number, none too. */
qkv_status qkv_row_labels(qkv_reader *r, qkv_text list, qkv_text separator, qkv_row *row);
/* Once all rows are there: do they have several labels? */
qkv_status qkv_rows_settle_labels(qkv_corpus *c, const qkv_corpus_spec *spec);
/* map[old] = new, of a row with several labels. */
void qkv_row_renumber(qkv_row *row, const int32_t *map);

#endif
