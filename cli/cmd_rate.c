/* qkv rate DIR: lines on stdin, or texts as arguments; a number a line on stdout, in order, as they
 * come. */
#include "vectors.h"
#include "why.h"

static const cli_option options[] = {
    {.name = "keep", .kind = CLI_FLAG, .help = "after a TAB, the line itself"},
    {.name = "json",
     .kind = CLI_FLAG,
     .help = "one JSON object per line: number; with --keep text"},
    CLI_OPTION_EXPLAIN,
    CLI_OPTION_TREES,
    CLI_OPTION_PAIRS,
    CLI_OPTION_LINES,
    CLI_OPTIONS_MACHINE,
};

static void print_number(const cli_args *a, const qkv_text_model *m, const qkv_text *line,
                         float *number) {
    (void)m;
    const bool keep = cli_flag(a, "keep");
    if (!cli_flag(a, "json")) {
        printf("%.6g", (double)*number);
        if (keep) putchar('\t');
        if (keep) fwrite(line->data, 1, line->len, stdout);
        return;
    }
    fputs(keep ? "{\"text\":" : "{", stdout);
    if (keep) cli_json_string(stdout, line->data, line->len);
    printf("%s\"number\":%.7g}", keep ? "," : "", (double)*number);
}

static int run(const cli_args *a) {
    cli_use_machine(a);
    static const char *const answers[] = {"keep", NULL};
    const int refused = cli_explain_check(a, answers);
    if (refused) return refused;
    qkv_text_model *m;
    qkv_status status = cli_open_model(a, &m);
    if (status != QKV_OK) return cli_fail(status);
    const cli_vectors v = {.width = 1, .compute = qkv_rate, .print = print_number};
    status = qkv_rate(m, NULL, 0, NULL); /* does it rate? */
    int code;
    if (status != QKV_OK)
        code = cli_fail(status);
    else
        code = cli_flag(a, "explain") ? cli_explain_run(a, m) : cli_vectors_run(a, m, &v);
    qkv_text_model_close(m);
    return code;
}

const cli_command command_rate = {
    .usage = "DIR [TEXT…] [options] < lines",
    .examples = "echo \"a fine film\" | qkv rate stars\n"
                "qkv rate stars \"a fine film\" \"a dull one\"\n"
                "qkv rate stars --keep < lines.txt | sort -n\n"
                "qkv rate stars --explain \"a fine film\"\n",
    .about = "Prints a number for each line, or for each text that is an argument, in the units of "
             "the training data. A model of pairs reads first<TAB>second.",
    CLI_OPTIONS(options),
    .min_rest = 1,
    .max_rest = 100000,
    .run = run,
};
