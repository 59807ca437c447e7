/* qkv score --ref REF HYP: BLEU, chrF and TER of a file of translations, and of two systems whether
 * they differ. */
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
     .value = "13a|intl|char|zh|none",
     .initial = "13a",
     .help = "how BLEU cuts lines into words"},
    {.name = "baseline",
     .kind = CLI_TEXT,
     .value = "FILE",
     .help = "translations of the same lines by another system: are the two different, or is it "
             "chance (paired bootstrap)"},
    {.name = "confidence",
     .kind = CLI_FLAG,
     .help = "95 % intervals (bootstrap), as with --baseline"},
    {.name = "samples",
     .kind = CLI_INT,
     .value = "N",
     .initial = "1000",
     .min = 2,
     .max = 1048576,
     .help = "drawn for these"},
    {.name = "seed",
     .kind = CLI_INT,
     .value = "N",
     .initial = "12345",
     .min = 1,
     .max = 9007199254740992,
     .help = "of the samples; 12345 gives sacrebleu's"},
    CLI_OPTION_JSON,
    CLI_OPTIONS_MACHINE,
};

static qkv_status compare(const cli_args *a, const qkv_score_request *request, char **text) {
    qkv_score_comparison found;
    const qkv_status status = qkv_score_compare(request, &found);
    return status != QKV_OK ? status : qkv_score_comparison_show(&found, cli_show(a), text);
}

static qkv_status score(const cli_args *a, const qkv_score_request *request, char **text) {
    qkv_translation_score found;
    const qkv_status status = qkv_score(request, &found);
    return status != QKV_OK ? status : qkv_translation_score_show(&found, cli_show(a), text);
}

static int run(const cli_args *a) {
    cli_use_machine(a);
    if (!cli_given(a, "ref")) return cli_usage_error("score needs a reference: --ref FILE");
    const char **references = cli_list(a, "ref");
    char *text = NULL;
    const bool drawn = cli_given(a, "baseline") || cli_flag(a, "confidence");
    if (!drawn && (cli_given(a, "samples") || cli_given(a, "seed"))) {
        free(references);
        return cli_usage_error("--samples and --seed are for --confidence and --baseline");
    }
    const qkv_score_request request = {.hypotheses = a->n_rest ? a->rest[0] : "-",
                                       .references = references,
                                       .tokenize = cli_text(a, "tokenize"),
                                       .baseline = cli_text(a, "baseline"),
                                       .samples = drawn ? cli_int(a, "samples") : 0,
                                       .seed = (uint64_t)cli_int(a, "seed")};
    const qkv_status status = (request.baseline ? compare : score)(a, &request, &text);
    free(references);
    return cli_print(status, text);
}

const cli_command command_score = {
    .usage = "--ref FILE [options] [HYPOTHESES]",
    .examples = "qkv score --ref test.en output.en\n"
                "qkv translate de-en < test.de | qkv score --ref test.en --confidence\n"
                "qkv score --ref test.en --baseline old.en new.en\n"
                "qkv score --ref test.zh --tokenize zh output.zh\n",
    .about = "BLEU, chrF2, chrF2++ and TER of detokenised text (TER without cases), the same "
             "figures as sacrebleu's, each with the signature of how it was counted. Without a "
             "file, or with \"-\", the translations are read from standard input.",
    CLI_OPTIONS(options),
    .max_rest = 1,
    .run = run,
};
