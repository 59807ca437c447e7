/* qkv bench NAME: passes what was given on as key=value; the benchmark checks the keys it knows. */
#include "command.h"
#include "bench/bench.h"

static const cli_option options[] = {
    CLI_OPTION_JSON,
    CLI_OPTIONS_MACHINE,
    {.name = "seconds",
     .kind = CLI_REAL,
     .value = "X",
     .min = 0.001,
     .max = 3600,
     .help = "time to measure for",
     .key = true},
    {.name = "precision",
     .kind = CLI_CHOICE,
     .value = "f32|bf16",
     .help = "of the matrix products",
     .key = true},
    {.name = "task",
     .kind = CLI_TEXT,
     .value = "T",
     .help = "train: what for",
     .rows = qkv_task_row,
     .key = true},
    {.name = "data",
     .kind = CLI_LIST,
     .value = "F",
     .help = "real data instead of synthetic lengths",
     .key = true},
    {.name = "tokenizer",
     .kind = CLI_TEXT,
     .value = "TOK",
     .help = "tokenizer.json, model folder or kind",
     .key = true},
    {.name = "batch-tokens",
     .kind = CLI_INT,
     .value = "N",
     .min = 1,
     .max = 1 << 30,
     .help = "tokens in a batch",
     .key = true},
    {.name = "steps",
     .kind = CLI_INT,
     .value = "N",
     .min = 1,
     .max = 1 << 30,
     .help = "steps to measure",
     .key = true},
    {.name = "set",
     .kind = CLI_EACH,
     .value = "KEY=VALUE",
     .help = "a key of the configuration or of the benchmark",
     .key = true},
};

static int run(const cli_args *a) {
    if (a->n_rest == 0) {
        const char *name, *summary;
        for (size_t i = 0; qkv_bench_row(i, &name, &summary); i++)
            cli_list_row(stdout, name, summary);
        return 0;
    }
    cli_use_machine(a);
    char **pairs = cli_pairs(a), *text = NULL;
    if (!pairs) return cli_fail(QKV_FAILED);
    const qkv_status status =
        qkv_bench(a->rest[0], (const char *const *)pairs, cli_flag(a, "json"), &text);
    cli_pairs_free(pairs);
    return cli_print(status, text);
}

const cli_command command_bench = {
    .usage = "[NAME] [options]",
    .examples = "qkv bench                      the benchmarks there are\n"
                "qkv bench gemm\n"
                "qkv bench train --task classify --json\n",
    .about = "Measures on this machine, with nothing else running if you can. Without a name, "
             "lists them.",
    CLI_OPTIONS(options),
    .first = qkv_bench_row,
    .max_rest = 1,
    .run = run,
};
