/* qkv describe: shapes, parameters, work and memory of a model, without making its weights. */
#include "command.h"

static const cli_option options[] = {
    {.name = "preset",
     .letter = 'p',
     .kind = CLI_TEXT,
     .value = "NAME",
     .help = "start from a preset; --presets lists them",
     .rows = cli_preset_row},
    {.name = "set",
     .letter = 's',
     .kind = CLI_EACH,
     .value = "KEY=VALUE",
     .help = "any key of the model below, also as KEY=VALUE",
     .key = true},
    {.name = "batch",
     .kind = CLI_INT,
     .value = "N",
     .initial = "32",
     .min = 1,
     .max = 1000000,
     .help = "sequences in a batch"},
    {.name = "length",
     .kind = CLI_INT,
     .value = "N",
     .min = 1,
     .max = 100000000,
     .help = "tokens in a sequence (default: max_len)"},
    {.name = "output",
     .letter = 'o',
     .kind = CLI_TEXT,
     .value = "FILE",
     .help = "write here: .svg draws the architecture, .json and .txt as printed"},
    {.name = "keys", .kind = CLI_FLAG, .help = "list the keys of the configuration"},
    {.name = "presets", .kind = CLI_FLAG, .help = "list the presets"},
    CLI_OPTION_JSON,
};

static int list_presets(void) {
    const char *name, *summary, *assignments;
    for (size_t i = 0; qkv_preset_row(i, &name, &summary, &assignments); i++)
        cli_list_row(stdout, name, summary), cli_list_row(stdout, "", assignments);
    return 0;
}

static int run(const cli_args *a) {
    char *text = NULL;
    if (cli_flag(a, "presets")) return list_presets();
    if (cli_flag(a, "keys")) {
        qkv_status status = qkv_config_keys(cli_flag(a, "json"), &text);
        return cli_print(status, text);
    }
    const char *path = cli_text(a, "output");
    if (!cli_ending_is(path, ".svg .json .txt")) return qkv_status_exit_code(QKV_USAGE);
    char **set = cli_pairs(a);
    if (!set) return cli_fail(QKV_FAILED);
    qkv_describe_request request = {.model = a->n_rest ? a->rest[0] : NULL,
                                    .preset = cli_text(a, "preset"),
                                    .set = (const char *const *)set,
                                    .batch = cli_int(a, "batch"),
                                    .length = cli_int(a, "length")};
    bool json = cli_flag(a, "json") || (path && cli_ends_in(path, ".json"));
    qkv_show how = path && cli_ends_in(path, ".svg") ? QKV_SHOW_SVG
                   : json                            ? QKV_SHOW_JSON
                                                     : QKV_SHOW_TABLE;
    qkv_status status = qkv_describe(&request, how, &text);
    cli_pairs_free(set);
    return path ? cli_write_to(path, status, text) : cli_print(status, text);
}

const cli_command command_describe = {
    .usage = "[DIR | config.json] [options]",
    .examples = "qkv describe --preset reference\n"
                "qkv describe --preset reference --set qkv_bias=true\n"
                "qkv describe my-model --batch 8 --length 128 --json\n"
                "qkv describe --task lm --layers 12 -o model.svg\n",
    .about = "Layer by layer: shapes of weights and activations, parameters, multiply-adds; then "
             "totals and\n"
             "memory. No weights are made, so any size answers at once.",
    CLI_OPTIONS(options),
    .keys = CLI_KEYS_MODEL,
    .max_rest = 1,
    .run = run,
};
