/* Lines from standard input in blocks: all whole lines that are there, at most so many bytes,
 * without waiting for more. So a program that talks through a pipe gets its answers at once, and a
 * file is read in large pieces. */
#ifndef QKV_CLI_LINES_H
#define QKV_CLI_LINES_H

#include "qkv.h"

#include <stdio.h>

typedef struct cli_lines {
    char *data; /* what was read */
    size_t len, cap, used;
    bool end;
    qkv_text *line; /* of this block, without line ends */
    size_t n, line_cap;
} cli_lines;

/* The next block in l->line, l->n; false at the end, or after a message when reading failed. A '\r'
 * before '\n' is dropped. */
bool cli_lines_next(cli_lines *l, int fd);
void cli_lines_free(cli_lines *l);

/* The lines of files, one file after another; "-" is standard input. */
typedef struct cli_files {
    const char *const *names; /* those to come; NULL at the end */
    bool keep_ends;           /* give a line with its '\n' (and the '\r' before it) */
    FILE *file;
    char *line;
    size_t cap;
    const char *failed; /* could not be read: the text ended there */
    int error;          /* errno of that */
} cli_files;

/* A qkv_text_source. */
bool cli_files_next(void *files, const char **text, size_t *len);
/* Frees; returns 0, or the exit code after a message when a file could not be read. */
int cli_files_close(cli_files *f);

#endif
