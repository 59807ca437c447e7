/* qkv translate DIR: lines on stdin, one translation per line on stdout, in order, as they come. */
#include "command.h"
#include "input_lines.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Lines translated together: enough to sort by length, few enough for answers to keep coming. */
enum { WINDOW = 512 };

static const cli_option options[] = {
    {.name = "beam",
     .kind = CLI_INT,
     .value = "N",
     .initial = "5",
     .min = 1,
     .max = 4096,
     .help = "hypotheses kept while searching; 1 is greedy search"},
    {.name = "nbest",
     .kind = CLI_INT,
     .value = "N",
     .min = 1,
     .max = 4096,
     .help =
         "print the N best of each line: line number, text, log-probability, score, TABs between"},
    {.name = "align",
     .kind = CLI_FLAG,
     .help = "after a TAB, which source word each word came from: 0-0 1-2 …"},
    {.name = "penalty",
     .kind = CLI_CHOICE,
     .value = "gnmt|average|none",
     .initial = "gnmt",
     .help = "scores divide the log-probability of n tokens by ((5+n)/6)^alpha, n^alpha or 1"},
    {.name = "alpha",
     .kind = CLI_REAL,
     .value = "X",
     .initial = "1",
     .min = -100,
     .max = 100,
     .help = "of the penalty"},
    {.name = "coverage",
     .kind = CLI_REAL,
     .value = "X",
     .initial = "0",
     .min = 0,
     .max = 100,
     .help = "weight of a penalty for source words that nothing attends to"},
    {.name = "min-tokens",
     .kind = CLI_INT,
     .value = "N",
     .min = 0,
     .max = 1e6,
     .help = "of a translation"},
    {.name = "max-tokens",
     .kind = CLI_INT,
     .value = "N",
     .min = 1,
     .max = 1e6,
     .help = "of a translation (default: twice the source's and 10)"},
    {.name = "prefix", .kind = CLI_TEXT, .value = "TEXT", .help = "every translation begins so"},
    {.name = "forbid",
     .kind = CLI_EACH,
     .value = "WORD",
     .help = "a word that must not occur; may be given many times"},
    {.name = "no-repeat-ngram",
     .kind = CLI_INT,
     .value = "N",
     .min = 0,
     .max = 64,
     .help = "write no N tokens that stand together twice (0: they may be)"},
    {.name = "no-unknown", .kind = CLI_FLAG, .help = "never write the unknown token"},
    {.name = "shortlist",
     .kind = CLI_FLAG,
     .help = "write only tokens that the training data make likely for the line: faster, nearly "
             "the same"},
    {.name = "json",
     .kind = CLI_FLAG,
     .help = "one JSON object per line: text, log_prob, score, tokens' log_probs, …"},
    CLI_OPTION_TREES,
    CLI_OPTION_MAX_LEN,
    CLI_OPTION_LINES,
    CLI_OPTIONS_MACHINE,
};

typedef struct printer {
    bool json, nbest, align, warned;
    char end;
    size_t line; /* number of the block's first */
} printer;

/* ---- writing ---- */

static void print_links(const qkv_translation *t) {
    for (size_t i = 0; i < t->n_links; i++)
        printf("%s%u-%u", i ? " " : "", (unsigned)t->links[i].source, (unsigned)t->links[i].target);
}

static void print_plain(const printer *p, const qkv_translation *t, size_t line) {
    if (p->nbest) printf("%zu\t", line + 1);
    fwrite(t->text, 1, t->len, stdout);
    if (p->nbest) printf("\t%.4f\t%.4f", t->log_prob, t->score);
    if (p->align) putchar('\t');
    if (p->align) print_links(t);
    putchar(p->end);
}

static void print_json(const qkv_translation *t) {
    printf("{\"text\":");
    cli_json_string(stdout, t->text, t->len);
    printf(",\"log_prob\":%.6g,\"score\":%.6g,\"cut\":%s,\"source_cut\":%s,\"log_probs\":[",
           t->log_prob, t->score, t->cut ? "true" : "false", t->source_cut ? "true" : "false");
    for (size_t i = 0; i < t->n; i++) printf("%s%.6g", i ? "," : "", (double)t->log_probs[i]);
    printf("],\"links\":[");
    for (size_t i = 0; i < t->n_links; i++)
        printf("%s[%u,%u]", i ? "," : "", (unsigned)t->links[i].source,
               (unsigned)t->links[i].target);
    printf("]}");
}

/* All translations of one line. */
static void print_line(printer *p, const qkv_translations *all, size_t i) {
    const qkv_translation *t = all->at + i * all->nbest;
    if (t->source_cut && !p->warned) {
        fputs("qkv: some lines are longer than the model reads and were cut\n", stderr);
        p->warned = true;
    }
    if (p->json && p->nbest) putchar('[');
    for (size_t k = 0; k < all->nbest && t[k].text; k++) {
        if (p->json && k) putchar(',');
        if (p->json)
            print_json(&t[k]);
        else
            print_plain(p, &t[k], p->line + i);
    }
    if (p->json && p->nbest) putchar(']');
    if (p->json) putchar(p->end);
}

/* ---- running ---- */

static int answer(const qkv_text_model *m, qkv_translate_options *o, const cli_args *a) {
    cli_lines lines = cli_lines_of(a);
    lines.most = WINDOW;
    printer p = {.json = cli_flag(a, "json"),
                 .nbest = cli_given(a, "nbest"),
                 .align = cli_flag(a, "align"),
                 .end = cli_lines_end(&lines)};
    const char *prefix = cli_text(a, "prefix");
    qkv_text prefixes[WINDOW];
    for (size_t i = 0; prefix && i < WINDOW; i++) prefixes[i] = (qkv_text){prefix, strlen(prefix)};
    if (prefix) o->prefixes = prefixes;
    qkv_status status = QKV_OK;
    while (status == QKV_OK && cli_lines_next(&lines, STDIN_FILENO)) {
        qkv_translations all;
        status = qkv_translate(m, lines.line, lines.n, o, &all);
        if (status != QKV_OK) break;
        for (size_t i = 0; i < lines.n; i++) print_line(&p, &all, i);
        qkv_translations_free(&all);
        p.line += lines.n;
        fflush(stdout);
    }
    cli_lines_free(&lines);
    return status == QKV_OK ? 0 : cli_fail(status);
}

static qkv_length_penalty penalty_of(const char *name) {
    return strcmp(name, "gnmt") == 0      ? QKV_LENGTH_GNMT
           : strcmp(name, "average") == 0 ? QKV_LENGTH_AVERAGE
                                          : QKV_LENGTH_NONE;
}

static int run(const cli_args *a) {
    cli_use_machine(a);
    qkv_text *words = calloc(a->n_given + 1, sizeof *words);
    if (!words) return cli_usage_error("out of memory");
    size_t n_words = 0, cursor = 0;
    for (const char *word; (word = cli_next(a, "forbid", &cursor));)
        words[n_words++] = (qkv_text){word, strlen(word)};
    qkv_translate_options o = {
        .beam = (int32_t)cli_int(a, "beam"),
        .nbest = (int32_t)cli_int(a, "nbest"),
        .penalty = cli_real(a, "alpha") == 0 ? QKV_LENGTH_NONE : penalty_of(cli_text(a, "penalty")),
        .alpha = cli_real(a, "alpha"),
        .coverage = cli_real(a, "coverage"),
        .min_tokens = (int32_t)cli_int(a, "min-tokens"),
        .max_tokens = (int32_t)cli_int(a, "max-tokens"),
        .forbidden = words,
        .n_forbidden = n_words,
        .no_repeat_ngram = (int32_t)cli_int(a, "no-repeat-ngram"),
        .no_unknown = cli_flag(a, "no-unknown"),
        .align = cli_flag(a, "align"),
        .shortlist = cli_flag(a, "shortlist")};
    qkv_text_model *m;
    const qkv_status status = cli_open_model(a, &m);
    const int code = status == QKV_OK ? answer(m, &o, a) : cli_fail(status);
    qkv_text_model_close(m);
    free(words);
    return code;
}

const cli_command command_translate = {
    .usage = "DIR [options] < lines",
    .examples = "echo \"ein Haus\" | qkv translate de-en\n"
                "qkv translate de-en --beam 8 --nbest 4 < lines\n",
    .about = "Prints the best translation of each line that beam search finds.",
    CLI_OPTIONS(options),
    .min_rest = 1,
    .max_rest = 1,
    .run = run,
};
