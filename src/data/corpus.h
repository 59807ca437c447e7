/* A corpus: the rows of text files, in the forms people have them.
 *
 * The form is recognised from the file (or insisted on by name), and so are the columns of a table;
 * how each file was read is kept, to be said. Every row keeps its line number for messages. Texts
 * point into the mapped file, or into an arena where quoting had to be undone. What is not UTF-8 is
 * refused with file and line. */
#ifndef QKV_DATA_CORPUS_H
#define QKV_DATA_CORPUS_H

#include "base/arena.h"
#include "base/file.h"
#include "data/labels.h"
#include "data/trees.h"
#include "data/words.h"
#include "text/tokenizer.h"

typedef enum qkv_corpus_shape {
    QKV_CORPUS_LABELLED, /* label and text (and, for pairs, a second text) */
    QKV_CORPUS_RATED,    /* the same with a number in the place of the label */
    QKV_CORPUS_PARALLEL, /* source and target */
    QKV_CORPUS_LINES,    /* one text per line */
    QKV_CORPUS_TAGGED,   /* a sentence whose words have labels */
    QKV_CORPUS_STREAM    /* running text, line ends included, in pieces of some kilobytes */
} qkv_corpus_shape;
/* Has a row a column of what is to be told of its text? */
static inline bool qkv_has_truth(qkv_corpus_shape shape) {
    return shape == QKV_CORPUS_LABELLED || shape == QKV_CORPUS_RATED;
}

typedef struct qkv_row {
    qkv_text text, second; /* second.data NULL: there is none */
    int32_t label;         /* −1: none, or a list */
    int32_t *labels;       /* of a corpus with several a row: in order, */
    size_t n_labels;       /* any number of them */
    float value;           /* RATED: the number */
    qkv_text_words words;  /* TAGGED */
    int64_t line;
} qkv_row;

/* What a column is for. A translator's source is the text, its target the pair. */
typedef enum qkv_role { QKV_ROLE_LABEL, QKV_ROLE_TEXT, QKV_ROLE_PAIR, QKV_ROLES } qkv_role;

/* A column: its name (data NULL: it has none), and its number from 1 (0: there is no such column,
 * or it has only a name). */
typedef struct qkv_column_name {
    qkv_text name;
    size_t number;
} qkv_column_name;

/* How a file was read. */
typedef struct qkv_reading {
    const char *path;   /* as it was given */
    const char *format; /* the form that was recognised */
    const char *packed; /* "gzip", "xz", "zstd"; or NULL */
    char separator;     /* of a table's fields; 0: the form has none */
    bool header;        /* the first row names the columns */
    bool counted;       /* which column has the labels was found by counting */
    bool rest;          /* the text goes on to the end of the row */
    qkv_column_name used[QKV_ROLES];
    qkv_text unused; /* names of the columns left aside, ", " between */
    size_t n_unused;
    qkv_text left_out; /* of a folder: folders that were not read, ", " between */
    size_t first;      /* the first of its rows */
} qkv_reading;

typedef struct qkv_corpus {
    qkv_corpus_shape shape;
    qkv_row *rows;
    size_t n, cap;
    qkv_labels labels;  /* LABELLED, TAGGED */
    bool several;       /* LABELLED: rows have any number of labels */
    qkv_labels unknown; /* labels that are not among those of the spec, where it lets them pass */
    int64_t n_empty;    /* rows without text, left out */
    const char *format; /* the form that was recognised, of the last file */
    QKV_VEC(qkv_reading) readings;
    QKV_VEC(qkv_file) files;
    qkv_arena strings;
    qkv_trees trees; /* of the sentences, when some were given */
} qkv_corpus;

/* Whether rows have a second text, beside those of a translator. */
typedef enum qkv_second {
    QKV_SECOND_MAY,  /* where a column says that it is one */
    QKV_SECOND_MUST, /* also by place: label, text, second text */
    QKV_SECOND_NOT   /* whatever the columns say */
} qkv_second;

typedef struct qkv_corpus_spec {
    qkv_corpus_shape shape;
    const char *const *paths;
    size_t n_paths;
    const qkv_train_row *rows; /* not NULL: instead of files; the texts must outlive the corpus */
    size_t n_rows;
    const char *format;            /* NULL: recognise */
    const char *column[QKV_ROLES]; /* name, or number from 1; NULL: recognise */
    qkv_second second;
    const char *trees;        /* a CoNLL-U file with the trees of the texts; or NULL */
    const char *between;      /* stands between the labels of a row; NULL: a cell is one label */
    bool several;             /* rows have any number of labels, whatever they look like */
    const qkv_labels *labels; /* when not NULL: a label that is not among these is refused */
    bool pass_unknown;        /* or is −1, and noted in `unknown` (of words always) */
} qkv_corpus_spec;

qkv_status qkv_corpus_read(qkv_corpus *c, const qkv_corpus_spec *spec);
void qkv_corpus_free(qkv_corpus *c);
/* Of running text: makes a row begin about `wanted` bytes into it, where a text may be cut;
 * *row: which (c->n: none does, there is less). */
qkv_status qkv_corpus_cut(qkv_corpus *c, int64_t wanted, size_t *row);

/* ---- for the readers ---- */

typedef struct qkv_reader {
    qkv_corpus *corpus;
    const qkv_corpus_spec *spec;
    const char *path;     /* as messages name it */
    qkv_reading *reading; /* to be filled in */
    const char *at, *end; /* what is left of the file */
    int64_t line;         /* of `at`, from 1 */
} qkv_reader;

/* The next line without its end; false when there is none left. */
bool qkv_reader_line(qkv_reader *r, qkv_text *line);
/* Adds a row; empty texts are counted instead. `label` is ignored unless LABELLED. */
qkv_status qkv_reader_add(qkv_reader *r, qkv_text label, qkv_text text, qkv_text second,
                          int64_t line);
/* The same with any number of labels, `separator` between them. */
qkv_status qkv_reader_add_list(qkv_reader *r, qkv_text labels, qkv_text separator, qkv_text text,
                               qkv_text second, int64_t line);
/* The number of a label; −1 for one that is unknown and may be. */
qkv_status qkv_reader_label(qkv_reader *r, qkv_text label, int64_t line, int32_t *number);
/* Adds a sentence; text and words are copied. */
qkv_status qkv_reader_add_words(qkv_reader *r, qkv_text text, qkv_text_words words, int64_t line);
/* How well the name of a column says that it has this role: 0 not at all, 3 outright. */
int qkv_column_rank(qkv_corpus_shape shape, qkv_role role, qkv_text name);
/* A failure in what stands on the reader's line, with file and line unless it names them. */
qkv_status qkv_reader_blame(const qkv_reader *r, qkv_status status);
/* A line of CoNLL-U: its ten columns, none of which is empty, TABs between; false: it is none. */
enum {
    QKV_CONLLU_ID,
    QKV_CONLLU_FORM,
    QKV_CONLLU_UPOS = 3,
    QKV_CONLLU_HEAD = 6,
    QKV_CONLLU_MISC = 9,
    QKV_CONLLU_COLUMNS
};
bool qkv_conllu_line(qkv_text line, qkv_text column[QKV_CONLLU_COLUMNS]);
/* Is a wish for a column a number, and which? 0: it is a name. */
size_t qkv_column_number(const char *wanted);
/* "a", "b" and 3 more, in the corpus's memory: for messages and for `unused`. */
qkv_status qkv_name_list(qkv_arena *a, const qkv_text *names, size_t n, size_t most, qkv_text *out);
/* The file is of no form that the task can use. */
qkv_status qkv_not_recognised(const qkv_reader *r);

qkv_status qkv_read_tsv(qkv_reader *r);
qkv_status qkv_read_csv(qkv_reader *r);
qkv_status qkv_read_jsonl(qkv_reader *r);
qkv_status qkv_read_fasttext(qkv_reader *r);
qkv_status qkv_read_conllu(qkv_reader *r);
qkv_status qkv_read_conll(qkv_reader *r);
qkv_status qkv_read_tagged_conllu(qkv_reader *r);
qkv_status qkv_read_tagged_jsonl(qkv_reader *r);
/* One folder per class, its files the texts: not through a form, since it is no file. */
qkv_status qkv_read_folder(qkv_reader *r);

#endif
