#include "vectors.h"
#include "terminal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Once, when the first line was too long for the model. */
static void say_cut(const qkv_text_model *m, bool *said) {
    if (*said || qkv_text_model_cut(m) == 0) return;
    fputs("qkv: some lines are longer than the model reads and were cut\n", stderr);
    *said = true;
}

typedef struct answering {
    const cli_args *a;
    const qkv_text_model *m;
    const cli_vectors *v;
    float *numbers;
    bool said;
    size_t before; /* lines answered */
    char end;      /* of an answer */
} answering;

/* The answers to some lines; the exit code. */
static int compute(answering *w, const qkv_text *lines, size_t n) {
    float *more = realloc(w->numbers, (n * w->v->width + 1) * sizeof *more);
    if (!more) {
        fprintf(stderr, "qkv: out of memory for the answers to %zu lines\n", n);
        return qkv_status_exit_code(QKV_FAILED);
    }
    w->numbers = more;
    const qkv_status status = w->v->compute(w->m, lines, n, more);
    if (status != QKV_OK) return cli_fail(status);
    say_cut(w->m, &w->said);
    for (size_t i = 0; i < n; i++) {
        w->v->print(w->a, w->m, &lines[i], more + i * w->v->width);
        putchar(w->end);
    }
    fflush(stdout);
    return 0;
}

/* The same as far as all is well: of a model of pairs, up to the first line that is none. */
static int answer(answering *w, const qkv_text *lines, size_t n) {
    size_t good = 0;
    const bool pairs = qkv_text_model_pairs(w->m);
    while (good < n && (!pairs || memchr(lines[good].data, '\t', lines[good].len))) good++;
    const int code = good ? compute(w, lines, good) : 0;
    w->before += good;
    if (code != 0 || good == n) return code;
    fprintf(stderr, "qkv: line %zu: no TAB: this model reads pairs of texts, first<TAB>second\n",
            w->before + 1);
    return qkv_status_exit_code(QKV_BAD_FILE);
}

int cli_vectors_run(const cli_args *a, const qkv_text_model *m, const cli_vectors *v) {
    cli_lines lines = cli_lines_of(a);
    answering w = {.a = a, .m = m, .v = v, .end = cli_lines_end(&lines)};
    int code = 0;
    while (code == 0 && cli_lines_or_texts(&lines, a, STDIN_FILENO))
        code = answer(&w, lines.line, lines.n);
    free(w.numbers);
    cli_lines_free(&lines);
    return code;
}
