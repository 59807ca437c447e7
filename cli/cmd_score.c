/* qkv score --ref REF HYP: BLEU and chrF of a file of translations. */
#include "command.h"

#include <stdlib.h>

static const cli_option options[] = {
    {.name = "ref",
     .letter = 'r',
     .kind = CLI_EACH,
     .value = "FILE",
     .help = "reference, line by line; give it again for more than one"},
    {.name = "tokenize",
     .kind = CLI_CHOICE,
     .value = "13a|intl|char|none",
     .initial = "13a",
     .help = "how BLEU cuts lines into words"},
    CLI_OPTION_JSON,
};

static int run(const cli_args *a) {
    if (!cli_given(a, "ref")) return cli_usage_error("score needs a reference: --ref FILE");
    const char **references = cli_list(a, "ref");
    char *text = NULL;
    const qkv_score_request request = {
        .hypotheses = a->rest[0], .references = references, .tokenize = cli_text(a, "tokenize")};
    qkv_translation_score found;
    qkv_status status = qkv_score(&request, &found);
    if (status == QKV_OK) status = qkv_translation_score_show(&found, cli_show(a), &text);
    free(references);
    return cli_print(status, text);
}

const cli_command command_score = {
    .usage = "--ref FILE [options] HYPOTHESES",
    .examples = "qkv score --ref test.en output.en\n"
                "qkv score --ref test.ru --tokenize intl output.ru\n",
    .about = "BLEU, chrF2 and chrF2++ of detokenised, cased text, the same figures as sacrebleu's, "
             "each\n"
             "with the signature of how it was counted.",
    CLI_OPTIONS(options),
    .min_rest = 1,
    .max_rest = 1,
    .run = run,
};
