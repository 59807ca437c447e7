/* qkv import: another program's weights become a model folder. */
#include "command.h"

static const cli_option options[] = {
    {.name = "tokenizer",
     .kind = CLI_TEXT,
     .value = "FILE",
     .help = "the tokenizer (default: the vocabulary that comes with the weights)"},
    {.name = "overwrite", .kind = CLI_FLAG, .help = "replace the model that is in OUT"},
    {.name = "formats", .kind = CLI_FLAG, .help = "list what can be read"},
};

static int list_formats(void) {
    const char *name, *summary;
    for (size_t i = 0; qkv_import_row(i, &name, &summary); i++) cli_list_row(stdout, name, summary);
    return 0;
}

static int run(const cli_args *a) {
    if (cli_flag(a, "formats")) return list_formats();
    if (a->n_rest != 2) return cli_usage_error("qkv import: SRC and OUT are needed");
    const qkv_import_request request = {.source = a->rest[0],
                                        .out = a->rest[1],
                                        .tokenizer = cli_text(a, "tokenizer"),
                                        .overwrite = cli_flag(a, "overwrite")};
    qkv_import_facts found;
    const qkv_status status = qkv_import(&request, &found);
    if (status != QKV_OK) return cli_fail(status);
    printf("%s: %s, %lld parameters, %lld tokens → %s\n", found.format, found.task,
           (long long)found.parameters, (long long)found.tokens, request.out);
    return 0;
}

const cli_command command_import = {
    .usage = "SRC OUT [options]",
    .examples = "qkv import all-MiniLM-L6-v2 minilm\n"
                "qkv import stories260K.bin stories\n"
                "qkv import ct2-model-folder translator\n"
                "qkv import --formats\n",
    .about =
        "Reads a Hugging Face folder, or weights of llama2.c and CTranslate2, and writes a model "
        "folder. Every command also takes a Hugging Face folder as it is.",
    CLI_OPTIONS(options),
    .max_rest = 2,
    .run = run,
};
