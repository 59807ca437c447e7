/* qkv embed DIR: lines on stdin, one vector a line on stdout, in order, as they come. */
#include "command.h"
#include "lines.h"

#include <stdlib.h>
#include <unistd.h>

static const cli_option options[] = {
    {.name = "digits",
     .kind = CLI_INT,
     .value = "N",
     .initial = "6",
     .min = 1,
     .max = 9,
     .help = "significant digits; 9 give a float back exactly"},
    {.name = "json", .kind = CLI_FLAG, .help = "a JSON array a line"},
    CLI_OPTION_LINES,
    CLI_OPTION_THREADS,
};

static void print_vector(const float *v, size_t width, int digits, bool json) {
    for (size_t i = 0; i < width; i++)
        printf("%s%.*g", i ? json ? "," : " " : json ? "[" : "", digits, (double)v[i]);
    if (json) putchar(']');
}

static int answer(const cli_args *a, const qkv_text_model *m) {
    cli_lines lines = cli_lines_of(a);
    const size_t width = qkv_embed_width(m);
    qkv_status status = QKV_OK;
    float *v = NULL;
    while (status == QKV_OK && cli_lines_next(&lines, STDIN_FILENO)) {
        float *more = realloc(v, (lines.n * width + 1) * sizeof *v);
        if (!more) {
            free(v);
            cli_lines_free(&lines);
            fprintf(stderr, "qkv: out of memory for %zu vectors\n", lines.n);
            return qkv_status_exit_code(QKV_FAILED);
        }
        v = more;
        status = qkv_embed(m, lines.line, lines.n, v);
        for (size_t i = 0; status == QKV_OK && i < lines.n; i++) {
            print_vector(v + i * width, width, (int)cli_int(a, "digits"), cli_flag(a, "json"));
            putchar(cli_lines_end(&lines));
        }
        fflush(stdout);
    }
    free(v);
    cli_lines_free(&lines);
    return status == QKV_OK ? 0 : cli_fail(status);
}

static int run(const cli_args *a) {
    if (cli_given(a, "threads")) qkv_threads_set((int)cli_int(a, "threads"));
    qkv_text_model *m;
    const qkv_status status = qkv_text_model_open(a->rest[0], &m);
    if (status != QKV_OK) return cli_fail(status);
    const int code = answer(a, m);
    qkv_text_model_close(m);
    return code;
}

const cli_command command_embed = {
    .usage = "DIR [options] < lines",
    .examples = "echo \"a fine film\" | qkv embed reviews\n"
                "qkv embed reviews --json < lines.txt > vectors.jsonl\n",
    .about = "Prints one vector a line: the pooled output of the encoder (of a language model: the "
             "mean of its\n"
             "last layer), numbers separated by blanks. The same line gives the same vector "
             "whatever stands beside it.",
    CLI_OPTIONS(options),
    .min_rest = 1,
    .max_rest = 1,
    .run = run,
};
