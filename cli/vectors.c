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

/* The name of a file is a text like any other, but seldom what is meant. */
static void say_file(const char *text) {
    if (access(text, R_OK) == 0)
        cli_say(stderr, 5,
                "qkv: \"%s\" is read as a text, though a file has this name; for the file's lines: "
                "< %s",
                text, text);
}

static int answer_arguments(answering *w) {
    const size_t n = w->a->n_rest - 1;
    if (n == 1) say_file(w->a->rest[1]);
    qkv_text *texts = calloc(n, sizeof *texts);
    if (!texts) return qkv_status_exit_code(QKV_FAILED);
    for (size_t i = 0; i < n; i++)
        texts[i] = (qkv_text){w->a->rest[i + 1], strlen(w->a->rest[i + 1])};
    const int code = answer(w, texts, n);
    free(texts);
    return code;
}

int cli_vectors_run(const cli_args *a, const qkv_text_model *m, const cli_vectors *v) {
    cli_lines lines = cli_lines_of(a);
    answering w = {.a = a, .m = m, .v = v, .end = cli_lines_end(&lines)};
    int code = 0;
    if (a->n_rest > 1)
        code = answer_arguments(&w);
    else
        while (code == 0 && cli_lines_next(&lines, STDIN_FILENO))
            code = answer(&w, lines.line, lines.n);
    free(w.numbers);
    cli_lines_free(&lines);
    return code;
}
