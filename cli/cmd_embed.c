/* qkv embed DIR: lines on stdin, one vector per line on stdout, in order, as they come. */
#include "vectors.h"

static const cli_option options[] = {
    {.name = "digits",
     .kind = CLI_INT,
     .value = "N",
     .initial = "6",
     .min = 1,
     .max = 9,
     .help = "significant digits; 9 give a float back exactly"},
    {.name = "json", .kind = CLI_FLAG, .help = "a JSON array per line"},
    CLI_OPTION_TREES,
    CLI_OPTION_PAIRS,
    CLI_OPTION_LINES,
    CLI_OPTIONS_MACHINE,
};

static void print_vector(const cli_args *a, const qkv_text_model *m, const qkv_text *line,
                         float *v) {
    const size_t width = qkv_embed_width(m);
    (void)line;
    const bool json = cli_flag(a, "json");
    for (size_t i = 0; i < width; i++)
        printf("%s%.*g",
               i      ? json ? "," : " "
               : json ? "["
                      : "",
               (int)cli_int(a, "digits"), (double)v[i]);
    if (json) putchar(']');
}

static int run(const cli_args *a) {
    cli_use_machine(a);
    qkv_text_model *m;
    const qkv_status status = cli_open_model(a, &m);
    if (status != QKV_OK) return cli_fail(status);
    const cli_vectors vectors = {
        .width = qkv_embed_width(m), .compute = qkv_embed, .print = print_vector};
    const int code = cli_vectors_run(a, m, &vectors);
    qkv_text_model_close(m);
    return code;
}

const cli_command command_embed = {
    .usage = "DIR [TEXT…] [options] < lines",
    .examples = "echo \"a fine film\" | qkv embed reviews\n"
                "qkv embed reviews --json < lines.txt > vectors.jsonl\n",
    .about =
        "Prints one vector per line: the pooled output of the encoder (of a language model: the "
        "mean of its\n"
        "last layer), numbers separated by blanks. The same line gives the same vector "
        "whatever stands beside it.",
    CLI_OPTIONS(options),
    .min_rest = 1,
    .max_rest = 100000,
    .run = run,
};
