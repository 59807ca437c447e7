/* qkv classify DIR: lines on stdin, one answer a line on stdout, in order, as they come. */
#include "command.h"
#include "lines.h"

#include <stdlib.h>
#include <unistd.h>

static const cli_option options[] = {
    {.name = "all",
     .kind = CLI_FLAG,
     .help = "every class with its probability, best first, TABs between"},
    {.name = "trees",
     .kind = CLI_TEXT,
     .value = "FILE",
     .help = "models with structural positions: the texts' dependency trees, in CoNLL-U"},
    CLI_OPTION_THREADS,
};

/* The class with the highest probability that is not yet printed; its probability is then struck out. */
static size_t take_best(float *p, size_t n, float *value) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (p[i] > p[best]) best = i;
    *value = p[best];
    p[best] = -1;
    return best;
}

static void print_answer(const qkv_text_model *m, float *p, size_t classes, bool all) {
    for (size_t i = 0; i < (all ? classes : 1); i++) {
        float value;
        const size_t best = take_best(p, classes, &value);
        printf("%s%s\t%.4f", i ? "\t" : "", qkv_text_model_label(m, best), (double)value);
    }
    putchar('\n');
}

static int answer(qkv_text_model *m, bool all) {
    cli_lines lines = {0};
    size_t classes = 0;
    while (qkv_text_model_label(m, classes)) classes++;
    qkv_status status = QKV_OK;
    float *p = NULL;
    while (status == QKV_OK && cli_lines_next(&lines, STDIN_FILENO)) {
        float *more = realloc(p, (lines.n * classes + 1) * sizeof *p);
        if (!more) {
            status = QKV_FAILED;
            break;
        }
        p = more;
        status = qkv_classify(m, lines.line, lines.n, p);
        for (size_t i = 0; status == QKV_OK && i < lines.n; i++)
            print_answer(m, p + i * classes, classes, all);
        fflush(stdout);
    }
    free(p);
    cli_lines_free(&lines);
    return status == QKV_OK ? 0 : cli_fail(status);
}

static int run(const cli_args *a) {
    if (cli_given(a, "threads")) qkv_threads_set((int)cli_int(a, "threads"));
    qkv_text_model *m;
    qkv_status status = qkv_text_model_open(a->rest[0], &m);
    if (status != QKV_OK) return cli_fail(status);
    if (cli_given(a, "trees")) status = qkv_text_model_read_trees(m, cli_text(a, "trees"));
    const int code = status == QKV_OK ? answer(m, cli_flag(a, "all")) : cli_fail(status);
    qkv_text_model_close(m);
    return code;
}

const cli_command command_classify = {
    .usage = "DIR [options] < lines",
    .examples = "echo \"a fine film\" | qkv classify reviews\n",
    .about = "Prints label<TAB>probability for each line.",
    CLI_OPTIONS(options),
    .min_rest = 1,
    .max_rest = 1,
    .run = run,
};
