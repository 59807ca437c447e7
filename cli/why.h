/* --explain: why an answer was given, for classify, rate and tag. */
#ifndef QKV_CLI_WHY_H
#define QKV_CLI_WHY_H

#include "command.h"

#define CLI_OPTION_EXPLAIN                                                                         \
    {.name = "explain",                                                                            \
     .kind = CLI_FLAG,                                                                             \
     .help = "why: what each word added to the answer (its lead over the runner-up)"},             \
        {.name = "by",                                                                             \
         .kind = CLI_CHOICE,                                                                       \
         .value = "gradients|occlusion",                                                           \
         .initial = "gradients",                                                                   \
         .help = "--explain: parts that sum to the lead; or what is lost when a word is hidden"},  \
    {                                                                                              \
        .name = "output", .letter = 'o', .kind = CLI_TEXT, .value = "FILE.html",                   \
        .help = "--explain: write one page here, with colours and what to point at"                \
    }

/* Explains the answers to the texts that are arguments behind the first, or else to the lines on
 * stdin; the exit code. */
int cli_explain_run(const cli_args *a, const qkv_text_model *m);
/* Refuses options that are for --explain where that is not given, and where it is the `others`
 * (names, NULL at the end), which say how answers are printed; 0: fine. */
int cli_explain_check(const cli_args *a, const char *const *others);

#endif
