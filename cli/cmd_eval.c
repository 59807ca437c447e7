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
    {.name = "labels-separator",
     .kind = CLI_TEXT,
     .value = "TEXT",
     .help = "what stands between the labels of a row that has several"},
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
     .value = "13a|intl|char|zh|none",
     .initial = "13a",
     .help = "translators: how BLEU cuts lines into words"},
    {.name = "errors",
     .kind = CLI_INT,
     .value = "N",
     .min = 1,
     .max = 1000000,
     .help = "the N worst answers, with their text: where the truth has the least probability "
             "(translators: the lowest chrF2)"},
    {.name = "calibration",
     .kind = CLI_FLAG,
     .help = "do the probabilities mean what they say? A reliability diagram"},
    {.name = "output",
     .letter = 'o',
     .kind = CLI_TEXT,
     .value = "FILE",
     .help = "write here: .svg is the reliability diagram, .json and .txt as printed"},
    {.name = "lengths",
     .kind = CLI_FLAG,
     .help = "language models: the loss in windows of 1, 2 and 4 times the trained length"},
    {.name = "samples",
     .kind = CLI_INT,
     .value = "N",
     .initial = "1000",
     .min = 0,
     .max = 1000000,
     .help = "drawn from the rows for the 95 % intervals (bootstrap); 0: none"},
    {.name = "seed",
     .kind = CLI_INT,
     .value = "N",
     .initial = "12345",
     .min = 1,
     .max = 9007199254740992,
     .help = "of the samples"},
    CLI_OPTION_TREES,
    CLI_OPTION_PAIRS,
    CLI_OPTION_MAX_LEN,
    CLI_OPTION_JSON,
    CLI_OPTIONS_MACHINE,
};

static qkv_status evaluate(const cli_args *a, const qkv_text_model *m, const char *const *files,
                           qkv_show how, char **text) {
    const qkv_translate_options search = {.beam = (int32_t)cli_int(a, "beam")};
    const qkv_evaluate_options wanted = {.search = &search,
                                         .tokenize = cli_text(a, "tokenize"),
                                         .format = cli_text(a, "format"),
                                         .text = cli_text(a, "text"),
                                         .label = cli_text(a, "label"),
                                         .pair = cli_text(a, "pair"),
                                         .labels_separator = cli_text(a, "labels-separator"),
                                         .errors = cli_int(a, "errors"),
                                         .samples = cli_int(a, "samples"),
                                         .seed = (uint64_t)cli_int(a, "seed"),
                                         .calibration =
                                             cli_flag(a, "calibration") || how == QKV_SHOW_SVG,
                                         .lengths = cli_flag(a, "lengths")};
    qkv_evaluation found;
    qkv_status status = qkv_evaluate(m, files, &wanted, &found);
    if (status == QKV_OK) status = qkv_evaluation_show(&found, how, text);
    qkv_evaluation_free(&found);
    return status;
}

static int run(const cli_args *a) {
    const char *path = cli_text(a, "output");
    cli_use_machine(a);
    if (!cli_given(a, "data")) return cli_usage_error("eval needs data: --data FILE");
    if (!cli_ending_is(path, ".svg .json .txt")) return qkv_status_exit_code(QKV_USAGE);
    const bool json = cli_flag(a, "json") || (path && cli_ends_in(path, ".json")),
               picture = path && cli_ends_in(path, ".svg");
    const char **files = cli_list(a, "data");
    qkv_text_model *m;
    char *text = NULL;
    qkv_status status = cli_open_model(a, &m);
    if (status == QKV_OK) {
        status = evaluate(a, m, files,
                          picture ? QKV_SHOW_SVG
                          : json  ? QKV_SHOW_JSON
                                  : QKV_SHOW_TABLE,
                          &text);
        qkv_text_model_close(m);
    }
    free(files);
    return path ? cli_write_to(path, status, text) : cli_print(status, text);
}

const cli_command command_eval = {
    .usage = "DIR --data FILE… [options]",
    .examples = "qkv eval reviews --data test.tsv\n"
                "qkv eval reviews --data test.tsv --errors 20 --calibration\n"
                "qkv eval reviews --data test.tsv -o reliability.svg\n"
                "qkv eval de-en --data test.de test.en --beam 5\n"
                "qkv eval stories --data test.txt --lengths\n",
    .about = "Classifiers and taggers: accuracy, precision, recall and F1 of each class, which "
             "classes are taken for which, and 95 % intervals. Translators: BLEU, chrF and TER of "
             "what they write (see qkv score). All but classifiers: loss, perplexity and bits for "
             "each byte of the original text. Labels that the model does not know are counted, as "
             "wrong.",
    CLI_OPTIONS(options),
    .min_rest = 1,
    .max_rest = 1,
    .run = run,
};
