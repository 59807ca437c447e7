/* qkv eval DIR --data FILE…: a model's scores on data of the form it was trained on. */
#include "command.h"

#include <stdlib.h>

static const cli_option options[] = {
    {.name = "data",
     .kind = CLI_LIST,
     .value = "FILE",
     .help = "files (or source and target); a folder with one folder per class; - for stdin"},
    {.name = "text",
     .kind = CLI_TEXT,
     .value = "COLUMN",
     .help = "column of the text (translators: the source), by name or number; else recognised"},
    {.name = "label", .kind = CLI_TEXT, .value = "COLUMN", .help = "column of the label"},
    {.name = "pair",
     .kind = CLI_TEXT,
     .value = "COLUMN",
     .help = "column of the second text (translators: the target)"},
    {.name = "format",
     .kind = CLI_TEXT,
     .value = "FORM",
     .help = "tsv, csv, jsonl, json, fasttext, conllu or text; else recognised"},
    {.name = "beam",
     .kind = CLI_INT,
     .value = "N",
     .initial = "5",
     .min = 1,
     .max = 4096,
     .help = "translators: hypotheses kept while searching"},
    {.name = "tokenize",
     .kind = CLI_CHOICE,
     .value = "13a|intl|char|none",
     .initial = "13a",
     .help = "translators: how BLEU cuts lines into words"},
    CLI_OPTION_TREES,
    CLI_OPTION_PAIRS,
    CLI_OPTION_JSON,
    CLI_OPTIONS_MACHINE,
};

static int run(const cli_args *a) {
    cli_use_machine(a);
    if (!cli_given(a, "data")) return cli_usage_error("eval needs data: --data FILE");
    const char **files = cli_list(a, "data");
    qkv_text_model *m;
    char *text = NULL;
    qkv_status status = cli_open_model(a, &m);
    if (status == QKV_OK) {
        const qkv_translate_options search = {.beam = (int32_t)cli_int(a, "beam")};
        const qkv_evaluate_options wanted = {.search = &search,
                                             .tokenize = cli_text(a, "tokenize"),
                                             .format = cli_text(a, "format"),
                                             .text = cli_text(a, "text"),
                                             .label = cli_text(a, "label"),
                                             .pair = cli_text(a, "pair")};
        qkv_evaluation found;
        status = qkv_evaluate(m, files, &wanted, &found);
        if (status == QKV_OK) status = qkv_evaluation_show(&found, cli_show(a), &text);
        qkv_evaluation_free(&found);
        qkv_text_model_close(m);
    }
    free(files);
    return cli_print(status, text);
}

const cli_command command_eval = {
    .usage = "DIR --data FILE… [options]",
    .examples = "qkv eval reviews --data test.tsv\n"
                "qkv eval de-en --data test.de test.en --beam 5\n",
    .about = "Classifiers: accuracy, precision, recall and F1 of each class, and which classes are "
             "taken for\n"
             "which. Translators: BLEU and chrF of what they write (see qkv score). All but "
             "classifiers: loss,\n"
             "perplexity and bits for each byte of the original text.",
    CLI_OPTIONS(options),
    .min_rest = 1,
    .max_rest = 1,
    .run = run,
};
