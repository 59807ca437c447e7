/* qkv quantize DIR OUT --to int8: a model folder quantized, and what it costs. */
#include "command.h"

#include <stdlib.h>

static const cli_option options[] = {
    {.name = "to",
     .kind = CLI_CHOICE,
     .value = "int8|int4|bf16",
     .initial = "int8",
     .help = "bits of a weight: 8 with a scale per row, 4 with a scale for 32 of them, or 16"},
    {.name = "data",
     .kind = CLI_LIST,
     .value = "FILE",
     .help = "score the model before and after on this: one file, or source and target"},
    {.name = "overwrite", .kind = CLI_FLAG, .help = "replace the model that is in OUT"},
    CLI_OPTION_JSON,
    CLI_OPTIONS_MACHINE,
};

static int run(const cli_args *a) {
    cli_use_machine(a);
    const char **files = cli_list(a, "data");
    const qkv_quantize_request request = {.model = a->rest[0],
                                          .out = a->rest[1],
                                          .to = cli_text(a, "to"),
                                          .data = files,
                                          .overwrite = cli_flag(a, "overwrite")};
    char *text = NULL;
    qkv_quantization done;
    qkv_status status = qkv_quantize(&request, &done);
    if (status == QKV_OK) status = qkv_quantization_show(&done, cli_show(a), &text);
    qkv_quantization_free(&done);
    free(files);
    return cli_print(status, text);
}

const cli_command command_quantize = {
    .usage = "DIR OUT [options]",
    .examples = "qkv quantize reviews reviews-int8 --to int8 --data test.tsv\n",
    .about = "Writes the model folder OUT, which all commands use as they use DIR. Matrices, "
             "embeddings and\n"
             "n-grams (those in 8 bits or 16) are rounded, vectors are not. Products with integers "
             "round each row of activations to 8 "
             "bits, too.",
    CLI_OPTIONS(options),
    .min_rest = 2,
    .max_rest = 2,
    .run = run,
};
