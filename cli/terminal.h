/* What fits on a terminal: its width, and words broken into lines of it. */
#ifndef QKV_CLI_TERMINAL_H
#define QKV_CLI_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Columns of the terminal that `fd` is, asked each time (it may have been resized);
 * 0: it is none. */
int cli_columns(int fd);

/* Columns that a text takes. */
int cli_width(const char *text);

/* Words broken into lines. */
typedef struct cli_page {
    FILE *out;
    int columns;      /* of a line; 0: no line is broken */
    int indent;       /* of every line but the first */
    int at;           /* the column reached */
    int gap;          /* blanks before the next word */
    bool flows;       /* line ends are blanks like others */
    const char *tail; /* ends a line that was broken; NULL: nothing does */
} cli_page;

/* Writes words, which blanks separate; a word longer than a line stays whole. A line end in the
 * text is one on the page. A tab shows as a blank, other control characters as "?". */
void cli_page_put(cli_page *p, const char *text);

/* A text and a line end; lines after the first begin `indent` in. Broken where `out` is a
 * terminal. */
void cli_say(FILE *out, int indent, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A result of several lines: on a terminal those that are too wide go on below, behind their label. */
void cli_put_lines(FILE *out, const char *text);

/* A message of the library, such as "data      5,452 rows …": what does not fit goes on below,
 * behind the label. Lines of a text of several (a chart) are cut. columns 0: as it is. */
void cli_put_note(FILE *out, const char *text, int columns);

#endif
