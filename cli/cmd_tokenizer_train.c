/* qkv tokenizer train: learn a vocabulary from text files and write it as tokenizer.json. */
#include "command.h"
#include "input_lines.h"
#include "live.h"
#include "terminal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const cli_option train_options[] = {
    {.name = "kind",
     .kind = CLI_CHOICE,
     .value = "bpe|unigram|wordpiece|char|word",
     .initial = "bpe",
     .help = "what is learned: joined pairs, probable pieces, whole words, or nothing (char)"},
    {.name = "vocab-size",
     .kind = CLI_INT,
     .value = "N",
     .initial = "8000",
     .min = 1,
     .max = 4 << 20,
     .help = "tokens, special ones included; a small text may give fewer"},
    {.name = "out",
     .letter = 'o',
     .kind = CLI_TEXT,
     .value = "FILE",
     .initial = "tokenizer.json",
     .help = "where to write it"},
    {.name = "split",
     .kind = CLI_CHOICE,
     .value = "byte-level|metaspace|end-of-word|bert",
     .help = "how text is cut into words (default: byte-level for bpe, metaspace for unigram, "
             "bert for wordpiece, end-of-word for word)"},
    {.name = "special",
     .kind = CLI_EACH,
     .value = "TOKEN",
     .help = "a special token, in place of the usual ones; may be given many times"},
    {.name = "lowercase", .kind = CLI_FLAG, .help = "make all text lower case first"},
    {.name = "by-count",
     .kind = CLI_FLAG,
     .help = "wordpiece: join the most frequent pair (as Hugging Face does), not the likeliest"},
    {.name = "min-count",
     .kind = CLI_INT,
     .value = "N",
     .initial = "0",
     .min = 0,
     .max = 1e15,
     .help = "a pair or word seen less often is not joined or kept (0: 2, words 1)"},
    {.name = "coverage",
     .kind = CLI_REAL,
     .value = "P",
     .initial = "0",
     .min = 0,
     .max = 1,
     .help =
         "share of all characters that get a token of their own (0: 0.9995 for unigram, else 1)"},
    {.name = "max-alphabet",
     .kind = CLI_INT,
     .value = "N",
     .initial = "0",
     .min = 0,
     .max = 1e9,
     .help = "most characters that get a token of their own (0: as many as fit)"},
    {.name = "max-piece",
     .kind = CLI_INT,
     .value = "N",
     .initial = "0",
     .min = 0,
     .max = 1e9,
     .help = "characters in a token (0: 16 for unigram, else no limit)"},
    {.name = "sample-lines",
     .kind = CLI_INT,
     .value = "N",
     .initial = "0",
     .min = 0,
     .max = 1e15,
     .help = "lines to train on, drawn at random (0: all)"},
    {.name = "seed", .kind = CLI_INT, .value = "N", .initial = "1", .help = "of the sample"},
    CLI_OPTIONS_MACHINE,
    CLI_OPTION_JSON,
};

/* What a kind takes when nothing is said; the order is that of qkv_tok_kind and of --kind. */
static const struct kind {
    const char *name;
    qkv_tok_split split;
} kinds[QKV_TOK_KINDS] = {
    [QKV_TOK_BPE] = {"bpe", QKV_SPLIT_BYTE_LEVEL},
    [QKV_TOK_UNIGRAM] = {"unigram", QKV_SPLIT_METASPACE},
    [QKV_TOK_WORDPIECE] = {"wordpiece", QKV_SPLIT_BERT},
    [QKV_TOK_CHAR] = {"char", QKV_SPLIT_BYTE_LEVEL},
    [QKV_TOK_WORD] = {"word", QKV_SPLIT_END_OF_WORD},
};

static const char *const split_names[QKV_SPLITS] = {
    [QKV_SPLIT_BYTE_LEVEL] = "byte-level",
    [QKV_SPLIT_METASPACE] = "metaspace",
    [QKV_SPLIT_END_OF_WORD] = "end-of-word",
    [QKV_SPLIT_BERT] = "bert",
};

static const char *const plain_specials[] = {"<pad>", "<unk>", "<s>", "</s>"};
static const char *const bert_specials[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"};

static void show_progress(void *user, const char *stage, double share) {
    const qkv_progress p = {.kind = QKV_PROGRESS_PHASE, .text = stage, .share = share};
    (void)cli_live_show(user, &p);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void choose(const cli_args *a, qkv_tok_train *spec) {
    for (int k = 0; k < QKV_TOK_KINDS; k++)
        if (strcmp(cli_text(a, "kind"), kinds[k].name) == 0) spec->kind = (qkv_tok_kind)k;
    spec->split = kinds[spec->kind].split;
    for (int s = 0; s < QKV_SPLITS && cli_given(a, "split"); s++)
        if (strcmp(cli_text(a, "split"), split_names[s]) == 0) spec->split = (qkv_tok_split)s;
    const bool bert = spec->split == QKV_SPLIT_BERT && spec->kind != QKV_TOK_CHAR;
    spec->specials = bert ? bert_specials : plain_specials;
    spec->n_specials = bert ? CLI_COUNT(bert_specials) : CLI_COUNT(plain_specials);
}

static void report(const cli_args *a, const qkv_tok_train *spec, const qkv_tokenizer *tok,
                   double time) {
    const size_t size = qkv_tokenizer_size(tok);
    if (*spec->capped && spec->kind != QKV_TOK_CHAR)
        cli_say(stderr, 5, "qkv: note: the text supports %zu tokens, fewer than the %zu asked for",
                size, spec->vocab_size);
    if (cli_flag(a, "json"))
        printf("{\"kind\": \"%s\", \"size\": %zu, \"capped\": %s, \"seconds\": %.3f}\n",
               kinds[spec->kind].name, size, *spec->capped ? "true" : "false", time);
    else
        cli_say(stdout, 2, "%s: %s, %zu tokens, learned in %.2f s", cli_text(a, "out"),
                kinds[spec->kind].name, size, time);
}

static int train(const cli_args *a, qkv_tok_train *spec) {
    qkv_tokenizer *tok;
    cli_files files = {.names = a->rest, .keep_ends = spec->kind == QKV_TOK_CHAR};
    const double start = seconds();
    cli_live live;
    cli_live_begin(&live, spec->progress == NULL);
    spec->user = &live;
    if (spec->progress) spec->progress(&live, "reading", 0);
    qkv_status status = qkv_tokenizer_train(spec, cli_files_next, &files, &tok);
    cli_live_end(&live);
    const int code = cli_files_close(&files);
    if (!code && status == QKV_OK) {
        status = qkv_tokenizer_save(tok, cli_text(a, "out"));
        if (status == QKV_OK) report(a, spec, tok, seconds() - start);
    }
    if (tok) qkv_tokenizer_free(tok);
    return code ? code : status == QKV_OK ? 0 : cli_fail(status);
}

static int run(const cli_args *a) {
    bool capped = false;
    qkv_tok_train spec = {
        .vocab_size = (size_t)cli_int(a, "vocab-size"),
        .lowercase = cli_flag(a, "lowercase"),
        .by_count = cli_flag(a, "by-count"),
        .min_count = (size_t)cli_int(a, "min-count"),
        .coverage = cli_real(a, "coverage"),
        .max_alphabet = (size_t)cli_int(a, "max-alphabet"),
        .max_piece = (size_t)cli_int(a, "max-piece"),
        .sample_lines = (size_t)cli_int(a, "sample-lines"),
        .seed = (uint64_t)cli_int(a, "seed"),
        .progress = isatty(STDERR_FILENO) ? show_progress : NULL,
        .capped = &capped,
    };
    choose(a, &spec);
    cli_use_machine(a);
    const char **specials = cli_list(a, "special");
    if (specials) {
        spec.n_specials = 0;
        while (specials[spec.n_specials]) spec.n_specials++;
        spec.specials = specials;
    }
    const int code = train(a, &spec);
    free(specials);
    return code;
}

const cli_command command_tokenizer_train = {
    .usage = "[options] FILE…",
    .examples =
        "qkv tokenizer train --kind bpe --vocab-size 8000 -o tokenizer.json reviews.txt\n"
        "qkv tokenizer train --kind unigram --vocab-size 8000 -o tokenizer.json a.txt b.txt\n",
    .about = "Reads lines of text (\"-\": standard input) and writes a tokenizer.json, which "
             "Hugging Face\n"
             "`tokenizers` reads too. Any language will do; texts need not be cut into words. The "
             "result "
             "does not\ndepend on the number of threads or the order of the lines.",
    CLI_OPTIONS(train_options),
    .min_rest = 1,
    .max_rest = 100000,
    .run = run,
};
