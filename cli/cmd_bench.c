/* qkv bench NAME: passes what was given on as key=value; the benchmark checks the keys it knows. */
#include "command.h"

#include <stdlib.h>
#include <string.h>

static const cli_option options[] = {
    CLI_OPTION_JSON,
    CLI_OPTION_THREADS,
    {.name = "seconds",
     .kind = CLI_REAL,
     .value = "X",
     .min = 0.001,
     .max = 3600,
     .help = "time to measure for"},
    {.name = "precision",
     .kind = CLI_CHOICE,
     .value = "f32|bf16",
     .help = "of the matrix products"},
    {.name = "task",
     .kind = CLI_TEXT,
     .value = "T",
     .help = "train: classify, translate, lm or mlm"},
    {.name = "data",
     .kind = CLI_LIST,
     .value = "F",
     .help = "real data instead of made-up lengths"},
    {.name = "tokenizer",
     .kind = CLI_TEXT,
     .value = "TOK",
     .help = "tokenizer.json, model folder or kind"},
    {.name = "model", .kind = CLI_TEXT, .value = "DIR", .help = "model folder to measure"},
    {.name = "batch-tokens",
     .kind = CLI_INT,
     .value = "N",
     .min = 1,
     .max = 1 << 30,
     .help = "tokens in a batch"},
    {.name = "steps",
     .kind = CLI_INT,
     .value = "N",
     .min = 1,
     .max = 1 << 30,
     .help = "steps to measure"},
    {.name = "set",
     .kind = CLI_EACH,
     .value = "KEY=VALUE",
     .help = "a key of the configuration or of the benchmark"},
};

/* Options that are the command's own business. */
static bool own(const char *name) {
    return strcmp(name, "json") == 0 || strcmp(name, "threads") == 0;
}

/* "batch-tokens", "4096" → "batch_tokens=4096"; --set passes its text as it is. */
static char *pair(const cli_option *o, const char *value) {
    size_t n = strlen(o->name) + strlen(value) + 2;
    char *text = malloc(n);
    if (!text) return NULL;
    if (strcmp(o->name, "set") == 0) return strcpy(text, value);
    snprintf(text, n, "%s=%s", o->name, value);
    for (char *c = text; *c != '='; c++)
        if (*c == '-') *c = '_';
    return text;
}

static int run(const cli_args *a) {
    if (a->n_rest == 0) {
        const char *name, *summary;
        for (size_t i = 0; qkv_bench_row(i, &name, &summary); i++)
            printf("%-12s %s\n", name, summary);
        return 0;
    }
    if (cli_given(a, "threads")) qkv_threads_set((int)cli_int(a, "threads"));
    char **pairs = calloc(a->n_given + 1, sizeof *pairs);
    size_t n = 0;
    bool complete = pairs != NULL;
    for (size_t i = 0; complete && i < a->n_given; i++) {
        const cli_option *o = &a->options[a->given[i].option];
        if (!own(o->name)) complete = (pairs[n++] = pair(o, a->given[i].text)) != NULL;
    }
    int code;
    if (complete) {
        char *text = NULL;
        qkv_status status =
            qkv_bench(a->rest[0], (const char *const *)pairs, cli_flag(a, "json"), &text);
        code = cli_print(status, text);
    } else {
        fputs("qkv: out of memory\n", stderr);
        code = qkv_status_exit_code(QKV_FAILED);
    }
    for (size_t i = 0; i < n; i++) free(pairs[i]);
    free(pairs);
    return code;
}

const cli_command command_bench = {
    .usage = "[NAME] [options]",
    .examples = "qkv bench                      the benchmarks there are\n"
                "qkv bench gemm\n"
                "qkv bench train --task classify --json\n",
    .about = "Measures on this machine, with nothing else running if you can. Without a name, "
             "lists them.",
    CLI_OPTIONS(options),
    .max_rest = 1,
    .run = run,
};
