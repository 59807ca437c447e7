/* qkv describe: shapes, parameters, work and memory of a model, without making its weights. */
#include "command.h"

#include <string.h>
#include <unistd.h>

#include "terminal.h"

enum { ALLOWED = 400 }; /* bytes of what is allowed for a key */

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

/* What may be written for a key: "1 … 4096", "pre|post", "true|false". */
static void allowed(const qkv_key *k, char out[ALLOWED]) {
    size_t n = 0;
    out[0] = 0;
    if (k->kind == QKV_KEY_BOOL) snprintf(out, ALLOWED, "true|false");
    if (k->kind == QKV_KEY_INT || k->kind == QKV_KEY_REAL)
        snprintf(out, ALLOWED, "%.10g … %.10g", k->min, k->max);
    for (size_t i = 0; k->kind == QKV_KEY_CHOICE && k->choices[i] && n < ALLOWED; i++)
        n += (size_t)snprintf(out + n, ALLOWED - n, "%s%s", i ? "|" : "", k->choices[i]);
}

static void put_member(const char *key, const char *value, bool last) {
    printf("    \"%s\": ", key);
    cli_json_string(stdout, value, strlen(value));
    fputs(last ? "\n" : ",\n", stdout);
}

static void key_json(size_t i, const qkv_key *k, const char *standard, const char *range) {
    fputs(i ? ",\n  {\n" : "\n  {\n", stdout);
    put_member("key", k->name, false);
    put_member("default", standard, false);
    put_member("allowed", range, false);
    put_member("help", k->help, true);
    fputs("  }", stdout);
}

/* Name and default, then what it is and what may be written, broken where the terminal ends. */
static void key_row(const qkv_key *k, const char *standard, const char *range) {
    const int columns = cli_columns(STDOUT_FILENO), indent = columns && columns < 60 ? 4 : 33;
    cli_page p = {.out = stdout, .columns = columns, .indent = indent, .at = indent};
    printf("%-20s %-12s", k->name, standard);
    if (indent < 33) printf("\n%*s", indent, "");
    cli_page_put(&p, k->help);
    cli_page_put(&p, "\n");
    for (const char *at = range; *at; at += strcspn(at, "|"), at += *at == '|') {
        char one[ALLOWED];
        const size_t n = strcspn(at, "|");
        snprintf(one, sizeof one, "%.*s%s", (int)n, at, at[n] ? " | " : "");
        cli_page_put(&p, one);
    }
    putchar('\n');
}

static int list_keys(bool json) {
    qkv_key k;
    char standard[CLI_KEY_DEFAULT], range[ALLOWED];
    if (json) putchar('[');
    for (size_t i = 0; qkv_key_row(QKV_KEYS_MODEL, i, &k); i++) {
        cli_key_default(&k, standard);
        allowed(&k, range);
        if (json)
            key_json(i, &k, standard, range);
        else
            key_row(&k, standard, range);
    }
    if (json) fputs("\n]\n", stdout);
    return 0;
}

static int run(const cli_args *a) {
    char *text = NULL;
    if (cli_flag(a, "presets")) return list_presets();
    if (cli_flag(a, "keys")) return list_keys(cli_flag(a, "json"));
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
    qkv_description found;
    qkv_status status = qkv_describe(&request, &found);
    if (status == QKV_OK) status = qkv_description_show(&found, how, &text);
    qkv_description_free(&found);
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
