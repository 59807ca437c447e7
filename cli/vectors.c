#include "vectors.h"

#include <stdlib.h>
#include <unistd.h>

/* Once, when the first line was too long for the model. */
static void say_cut(const qkv_text_model *m, bool *said) {
    if (*said || qkv_text_model_cut(m) == 0) return;
    fputs("qkv: some lines are longer than the model reads and were cut\n", stderr);
    *said = true;
}

int cli_vectors_run(const cli_args *a, const qkv_text_model *m, const cli_vectors *v) {
    cli_lines lines = cli_lines_of(a);
    qkv_status status = QKV_OK;
    float *numbers = NULL;
    bool said = false;
    while (status == QKV_OK && cli_lines_next(&lines, STDIN_FILENO)) {
        float *more = realloc(numbers, (lines.n * v->width + 1) * sizeof *numbers);
        if (!more) {
            free(numbers);
            cli_lines_free(&lines);
            fprintf(stderr, "qkv: out of memory for the answers to %zu lines\n", lines.n);
            return qkv_status_exit_code(QKV_FAILED);
        }
        numbers = more;
        status = v->compute(m, lines.line, lines.n, numbers);
        say_cut(m, &said);
        for (size_t i = 0; status == QKV_OK && i < lines.n; i++) {
            v->print(a, m, numbers + i * v->width, v->width);
            putchar(cli_lines_end(&lines));
        }
        fflush(stdout);
    }
    free(numbers);
    cli_lines_free(&lines);
    return status == QKV_OK ? 0 : cli_fail(status);
}
