/* qkv eval DIR --data FILE…: a model's scores on data of the form it was trained on. */
#include "command.h"

#include <stdlib.h>

static const cli_option options[] = {
    {.name = "data", .kind = CLI_LIST, .value = "FILE", .help = "one file, or source and target"},
    CLI_OPTION_JSON,
    CLI_OPTION_THREADS,
};

static int run(const cli_args *a) {
    if (cli_given(a, "threads")) qkv_threads_set((int)cli_int(a, "threads"));
    if (!cli_given(a, "data")) return cli_usage_error("eval needs data: --data FILE");
    const char **files = calloc(a->n_given + 1, sizeof *files);
    size_t cursor = 0, n = 0;
    for (const char *path; files && (path = cli_next(a, "data", &cursor));) files[n++] = path;
    qkv_text_model *m;
    char *text = NULL;
    qkv_status status = qkv_text_model_open(a->rest[0], &m);
    if (status == QKV_OK) {
        status = qkv_evaluate(m, files, cli_flag(a, "json"), &text);
        qkv_text_model_close(m);
    }
    free(files);
    return cli_print(status, text);
}

const cli_command command_eval = {
    .usage = "DIR --data FILE… [options]",
    .examples = "qkv eval reviews --data test.tsv\n",
    .about =
        "Accuracy, and precision, recall and F1 of each class; loss, perplexity and bits per byte.",
    CLI_OPTIONS(options),
    .min_rest = 1,
    .max_rest = 1,
    .run = run,
};
