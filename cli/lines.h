/* Lines from standard input in blocks: all whole lines that are there, at most so many bytes,
 * without waiting for more. So a program that talks through a pipe gets its answers at once, and a
 * file is read in large pieces. */
#ifndef QKV_CLI_LINES_H
#define QKV_CLI_LINES_H

#include "qkv.h"

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

#endif
