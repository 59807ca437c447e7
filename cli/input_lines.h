/* Lines from standard input in blocks: all whole lines that are there, without waiting for more. So
 * a program that talks through a pipe gets its answers at once, and a file is read in large pieces.
 * With --max-wait lines that come soon after are taken along: larger batches for a little delay. */
#ifndef QKV_CLI_LINES_H
#define QKV_CLI_LINES_H

#include "options.h"
#include "qkv.h"

#include <stdio.h>

typedef struct cli_lines {
    bool nul;    /* lines end in NUL */
    double wait; /* seconds for more lines after the first */
    size_t most; /* lines in a block; 0: no limit */
    char *data;  /* what was read */
    size_t len, cap, used;
    bool begun, end;
    qkv_text *line; /* of this block, without line ends */
    size_t n, line_cap;
} cli_lines;

/* The options of a command that reads lines, for its table; and a reader as they ask for. */
#define CLI_OPTION_LINES                                                                           \
    {.name = "null",                                                                               \
     .letter = '0',                                                                                \
     .kind = CLI_FLAG,                                                                             \
     .help = "lines end in NUL instead of a line end, on both sides"},                             \
    {                                                                                              \
        .name = "max-wait", .kind = CLI_REAL, .value = "MS", .initial = "0", .min = 0,             \
        .max = 60000, .help = "milliseconds to wait for more lines, to answer them together"       \
    }
cli_lines cli_lines_of(const cli_args *a);
static inline char cli_lines_end(const cli_lines *l) {
    return l->nul ? '\0' : '\n';
}

/* The next block in l->line, l->n; false at the end, or after a message when reading failed. A '\r'
 * before '\n' is dropped. */
bool cli_lines_next(cli_lines *l, int fd);
/* The same, or where there are arguments behind the first, those as the only block. */
bool cli_lines_or_texts(cli_lines *l, const cli_args *a, int fd);
void cli_lines_free(cli_lines *l);
/* Did a reader of this process end before the last line? Then its exit code is 1. */
bool cli_lines_failed(void);

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
