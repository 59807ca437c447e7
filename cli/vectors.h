/* Commands that answer each line on stdin with some numbers of a model: classify and embed. */
#ifndef QKV_CLI_VECTORS_H
#define QKV_CLI_VECTORS_H

#include "command.h"
#include "input_lines.h"

typedef struct cli_vectors {
    size_t width; /* numbers per line */
    qkv_status (*compute)(const qkv_text_model *m, const qkv_text *lines, size_t n, float *out);
    /* Prints the answer to one line, without its end; may destroy the numbers. */
    void (*print)(const cli_args *a, const qkv_text_model *m, const qkv_text *line, float *numbers);
} cli_vectors;

/* Answers the texts that are arguments behind the first, or else the lines on stdin, in order, as
 * they come; the exit code. */
int cli_vectors_run(const cli_args *a, const qkv_text_model *m, const cli_vectors *v);

#endif
