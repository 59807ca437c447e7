/* A text file as lines, empty ones included: for files whose lines answer each other one by one. */
#ifndef QKV_DATA_LINES_H
#define QKV_DATA_LINES_H

#include "base/file.h"

typedef struct qkv_lines {
    qkv_file file;
    QKV_VEC(qkv_text) line; /* without line ends; they point into the file */
} qkv_lines;

/* Refuses what is not UTF-8, with its line. On failure nothing is left to free. */
qkv_status qkv_lines_read(qkv_lines *l, const char *path);
void qkv_lines_free(qkv_lines *l);

/* Opens a file ("-": standard input), unpacks what gzip, xz or zstd packed and checks that it is
 * text; *text leaves a byte-order mark out. */
qkv_status qkv_text_open(const char *path, qkv_file *file, qkv_text *text);
/* How messages name a path: "-" is standard input. */
const char *qkv_text_name(const char *path);
/* Takes the next line, without its end, off *text; false when there is none left. */
bool qkv_text_line(qkv_text *text, qkv_text *line);

#endif
