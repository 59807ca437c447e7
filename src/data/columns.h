/* How texts become the columns beside their ids (base/column.h): the same functions for training
 * data and for texts that an opened model is asked about. */
#ifndef QKV_DATA_COLUMNS_H
#define QKV_DATA_COLUMNS_H

#include "base/column.h"
#include "data/trees.h"
#include "data/words.h"

/* What a column is made of. */
typedef struct qkv_column_source {
    qkv_text text, second; /* second.data NULL: there is none */
    qkv_text_words words;  /* of the text, for WORDS and TAGS */
    const qkv_encoding
        *e; /* tokens of the text, with offsets where a column of QKV_COLUMNS_BY_PLACE is wanted */
    int64_t from, to; /* the tokens of it that the sequence has */
    const qkv_trees *trees;
    float value;      /* for VALUE */
    qkv_cells labels; /* for LABELS */
    int64_t line;     /* of the training data, for messages; 0: a text in use */
} qkv_column_source;

/* Numbers that qkv_column_make may write. */
int64_t qkv_column_room(qkv_column column, const qkv_column_source *s);
/* Writes the column of one sequence, *n numbers. */
qkv_status qkv_column_make(qkv_column column, const qkv_column_source *s, int32_t *out, int64_t *n);

/* The byte at which each of the CHARS begins, in a text that holds both of a pair with a character
 * between; as many numbers as that column has. */
int64_t qkv_column_char_places(const qkv_column_source *s, uint32_t *out);

/* Sets of columns, a bit each. */
static inline unsigned qkv_column_bit(qkv_column column) {
    return 1u << column;
}
enum {
    QKV_COLUMNS_TREE = 1u << QKV_COLUMN_NODES | 1u << QKV_COLUMN_HEADS,
    QKV_COLUMNS_WORD = 1u << QKV_COLUMN_WORDS | 1u << QKV_COLUMN_TAGS,
    QKV_COLUMNS_TRUTH =
        1u << QKV_COLUMN_VALUE | 1u << QKV_COLUMN_LABELS, /* to be told: texts in use have none */
    QKV_COLUMNS_BY_PLACE = QKV_COLUMNS_TREE | QKV_COLUMNS_WORD /* made by offsets of tokens */
};

#endif
