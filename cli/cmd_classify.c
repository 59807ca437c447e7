/* qkv classify DIR: lines on stdin, one answer per line on stdout, in order, as they come. */
#include "vectors.h"

#include <string.h>

static const cli_option options[] = {
    {.name = "all",
     .kind = CLI_FLAG,
     .help = "every class with its probability, best first, TABs between"},
    {.name = "json",
     .kind = CLI_FLAG,
     .help = "one JSON object per line: label, probability; with --all every class and its "
             "probability"},
    CLI_OPTION_TREES,
    CLI_OPTION_LINES,
    CLI_OPTION_THREADS,
};

/* The class with the highest probability that is not yet printed;
 * its probability is then struck out. */
static size_t take_best(float *p, size_t n, float *value) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (p[i] > p[best]) best = i;
    *value = p[best];
    p[best] = -1;
    return best;
}

static void print_answer(const cli_args *a, const qkv_text_model *m, float *p, size_t classes) {
    const bool all = cli_flag(a, "all"), json = cli_flag(a, "json");
    for (size_t i = 0; i < (all ? classes : 1); i++) {
        float value;
        const char *label = qkv_text_model_label(m, take_best(p, classes, &value));
        if (!json) {
            printf("%s%s\t%.4f", i ? "\t" : "", label, (double)value);
            continue;
        }
        fputs(i ? "," : all ? "{" : "{\"label\":", stdout);
        cli_json_string(stdout, label, strlen(label));
        printf("%s%.6g", all ? ":" : ",\"probability\":", (double)value);
    }
    if (json) putchar('}');
}

static int answer(const cli_args *a, const qkv_text_model *m) {
    cli_vectors v = {.compute = qkv_classify, .print = print_answer};
    while (qkv_text_model_label(m, v.width)) v.width++;
    return cli_vectors_run(a, m, &v);
}

static int run(const cli_args *a) {
    if (cli_given(a, "threads")) qkv_threads_set((int)cli_int(a, "threads"));
    qkv_text_model *m;
    const qkv_status status = cli_open_model(a, &m);
    if (status != QKV_OK) return cli_fail(status);
    const int code = answer(a, m);
    qkv_text_model_close(m);
    return code;
}

const cli_command command_classify = {
    .usage = "DIR [options] < lines",
    .examples = "echo \"a fine film\" | qkv classify reviews\n"
                "qkv classify reviews --all --json < lines.txt > classes.jsonl\n",
    .about = "Prints label<TAB>probability for each line.",
    CLI_OPTIONS(options),
    .min_rest = 1,
    .max_rest = 1,
    .run = run,
};
