/* qkv classify DIR: lines on stdin, or texts as arguments; one answer a line on stdout, in order, as
 * they come. */
#include "why.h"
#include "vectors.h"

#include <string.h>

static const cli_option options[] = {
    {.name = "all",
     .kind = CLI_FLAG,
     .help = "every class with its probability, best first, TABs between"},
    {.name = "top",
     .kind = CLI_INT,
     .value = "K",
     .min = 1,
     .max = 1e9,
     .help = "the K likeliest classes, as --all does"},
    {.name = "threshold",
     .kind = CLI_REAL,
     .value = "P",
     .min = 0,
     .max = 1,
     .help = "only classes with at least this probability (of several labels a text: instead of "
             "the model's own)"},
    {.name = "unknown",
     .kind = CLI_TEXT,
     .value = "NAME",
     .initial = "unknown",
     .help = "the answer where no class reaches the threshold"},
    {.name = "keep", .kind = CLI_FLAG, .help = "after a TAB, the line itself"},
    {.name = "json",
     .kind = CLI_FLAG,
     .help = "one JSON object per line: label, probability (of several a text: labels); with --all "
             "or --top the classes with their probabilities; with --keep text"},
    CLI_OPTION_EXPLAIN,
    CLI_OPTION_TREES,
    CLI_OPTION_PAIRS,
    CLI_OPTION_MAX_LEN,
    CLI_OPTION_LINES,
    CLI_OPTIONS_MACHINE,
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

/* Answer i to a line: the class, or what stands for none. */
static void print_class(const cli_args *a, size_t i, const char *label, double p, bool many) {
    if (!cli_flag(a, "json")) {
        printf("%s%s\t%.4f", i ? "\t" : "", label, p);
        return;
    }
    if (i) putchar(',');
    if (!many) fputs("\"label\":", stdout);
    cli_json_string(stdout, label, strlen(label));
    printf("%s%.6g", many ? ":" : ",\"probability\":", p);
}

static size_t count_classes(const qkv_text_model *m) {
    size_t n = 0;
    while (qkv_text_model_label(m, n)) n++;
    return n;
}

/* How many classes a line gets at most. */
static size_t wanted(const cli_args *a, size_t classes) {
    const size_t top = cli_given(a, "top") ? (size_t)cli_int(a, "top") : 1;
    return cli_flag(a, "all") || top > classes ? classes : top;
}

/* Is the answer a list, of any number of labels? So it is where a text may have several and nobody
 * asks for a number of them. */
static bool is_list(const cli_args *a, const qkv_text_model *m) {
    return qkv_text_model_several(m) && !cli_flag(a, "all") && !cli_given(a, "top");
}

static void print_classes(const cli_args *a, const qkv_text_model *m, float *p, bool many) {
    const bool list = is_list(a, m);
    const size_t classes = count_classes(m), n = list ? classes : wanted(a, classes);
    const double threshold = cli_given(a, "threshold") ? cli_real(a, "threshold")
                             : list                    ? qkv_text_model_threshold(m)
                                                       : 0;
    for (size_t i = 0; i < n; i++) {
        float value;
        const char *label = qkv_text_model_label(m, take_best(p, classes, &value));
        const bool under = (double)value < threshold;
        if (under && (i || (list && !cli_given(a, "unknown")))) break;
        if (under) label = cli_text(a, "unknown");
        print_class(a, i, label, (double)value, many);
        if (under) break;
    }
}

static void print_answer(const cli_args *a, const qkv_text_model *m, const qkv_text *line,
                         float *p) {
    const bool json = cli_flag(a, "json"), keep = cli_flag(a, "keep"), list = is_list(a, m),
               many = list || cli_flag(a, "all") || cli_given(a, "top");
    if (json) putchar('{');
    if (json && keep) {
        fputs("\"text\":", stdout);
        cli_json_string(stdout, line->data, line->len);
        putchar(',');
    }
    if (json && many && (list || keep)) fputs(list ? "\"labels\":{" : "\"classes\":{", stdout);
    print_classes(a, m, p, many);
    if (json) fputs(many && (list || keep) ? "}}" : "}", stdout);
    if (json || !keep) return;
    putchar('\t');
    fwrite(line->data, 1, line->len, stdout);
}

static int run(const cli_args *a) {
    cli_use_machine(a);
    static const char *const answers[] = {"all", "top", "threshold", "unknown", "keep", NULL};
    const int refused = cli_explain_check(a, answers);
    if (refused) return refused;
    qkv_text_model *m;
    qkv_status status = cli_open_model(a, &m);
    if (status != QKV_OK) return cli_fail(status);
    if (cli_given(a, "unknown") && !cli_given(a, "threshold") && !qkv_text_model_several(m)) {
        qkv_text_model_close(m);
        return cli_usage_error("--unknown names what stays under a threshold: --threshold P");
    }
    const cli_vectors v = {
        .width = count_classes(m), .compute = qkv_classify, .print = print_answer};
    status = qkv_classify(m, NULL, 0, NULL); /* is it a classifier? */
    int code;
    if (status != QKV_OK)
        code = cli_fail(status);
    else
        code = cli_flag(a, "explain") ? cli_explain_run(a, m) : cli_vectors_run(a, m, &v);
    qkv_text_model_close(m);
    return code;
}

const cli_command command_classify = {
    .usage = "DIR [TEXT…] [options] < lines",
    .examples = "echo \"a fine film\" | qkv classify reviews\n"
                "qkv classify reviews \"a fine film\" \"a dull one\"\n"
                "qkv classify reviews --threshold 0.9 --unknown unsure --keep < lines.txt\n"
                "qkv classify reviews --all --json < lines.txt > classes.jsonl\n"
                "qkv classify reviews --explain \"a fine film\"\n"
                "qkv classify reviews --explain -o why.html < lines.txt\n",
    .about = "Prints label<TAB>probability for each line, or for each text that is an argument. A "
             "model of several labels a text prints those over its threshold, TABs between, and an "
             "empty line where there are none. A "
             "model of pairs reads first<TAB>second.",
    CLI_OPTIONS(options),
    .min_rest = 1,
    .max_rest = 100000,
    .run = run,
};
