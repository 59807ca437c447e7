/* qkv train TASK: every option of the table is passed on as key=value; the library knows the keys. */
#include "command.h"
#include "live.h"

#include <stdlib.h>
#include <string.h>

#define KEY(key, what, words)                                                                      \
    { .name = key, .kind = CLI_TEXT, .value = what, .help = words }

static const cli_option options[] = {
    {.name = "train",
     .kind = CLI_LIST,
     .value = "FILE",
     .help = "training data: one file, or source and target"},
    {.name = "valid",
     .kind = CLI_LIST,
     .value = "FILE",
     .help = "validation data; else some of the training data is held out"},
    {.name = "out",
     .letter = 'o',
     .kind = CLI_TEXT,
     .value = "DIR",
     .help = "folder of the run and the model; a run that is there goes on"},
    {.name = "overwrite", .kind = CLI_FLAG, .help = "begin anew where there is a run"},
    {.name = "preset",
     .kind = CLI_TEXT,
     .value = "NAME",
     .help = "sizes to start from (qkv describe --presets); else chosen from the data"},
    {.name = "init",
     .kind = CLI_TEXT,
     .value = "DIR",
     .help = "start from this model: its sizes, tokenizer and all weights that fit"},
    {.name = "set",
     .letter = 's',
     .kind = CLI_EACH,
     .value = "KEY=VALUE",
     .help = "any key of the model (qkv describe --keys) or of the training (--keys)"},
    {.name = "keys", .kind = CLI_FLAG, .help = "list the keys of a training and what they mean"},
    {.name = "quiet", .letter = 'q', .kind = CLI_FLAG, .help = "say nothing but errors"},
    CLI_OPTION_THREADS,
    KEY("arch", "NAME", "transformer, lstm or gru"),
    KEY("position", "NAME", "how the order of tokens is told"),
    KEY("attention", "NAME", "full, local, bigbird or linformer"),
    KEY("norm", "NAME", "pre or post"),
    KEY("d-model", "N", "width between layers"),
    KEY("layers", "N", "layers of encoder and decoder"),
    KEY("heads", "N", "attention heads"),
    KEY("d-head", "N", "width of a head"),
    KEY("d-ff", "N", "width inside the feed-forward layer"),
    KEY("dropout", "P", "share of values dropped while training"),
    KEY("max-len", "N", "longest sequence in tokens"),
    KEY("vocab-size", "N", "tokens of a tokenizer that is trained here"),
    KEY("tokenizer", "FILE|KIND",
        "a tokenizer, or bpe, unigram, wordpiece, char, word to train one"),
    KEY("lowercase", "BOOL", "true: a tokenizer trained here ignores case"),
    KEY("format", "NAME", "form of the data: tsv, fasttext, csv, jsonl, text"),
    KEY("epochs", "N", "passes over the data"),
    KEY("steps", "N", "updates"),
    KEY("minutes", "X", "time to train for"),
    KEY("batch-tokens", "N", "tokens in a batch"),
    KEY("accumulate", "N", "batches that make one update"),
    KEY("optimizer", "NAME", "adamw, adam, sgd or muon"),
    KEY("lr", "X", "learning rate at its peak"),
    KEY("schedule", "NAME", "constant, linear, cosine or inverse_sqrt"),
    KEY("warmup", "N", "steps in which the rate rises"),
    KEY("weight-decay", "X", "of matrices"),
    KEY("label-smoothing", "X", "share of the target spread over all classes"),
    KEY("clip", "X", "largest norm of the gradient"),
    KEY("average", "N", "keep the mean of the weights at the last N validations"),
    KEY("ema", "DECAY", "keep a moving average of the weights, say 0.999"),
    KEY("patience", "N", "stop after so many validations without improvement"),
    KEY("precision", "f32|bf16", "of the matrix products"),
    KEY("on-nan", "skip|stop", "what to do with a step that is not finite"),
    KEY("seed", "N", "of everything random"),
    KEY("save-every", "N", "steps between validations and checkpoints"),
    KEY("valid-share", "X", "share held out when there is no validation data"),
};

static bool own(const char *name) {
    static const char *const names[] = {"train", "valid", "out",   "overwrite", "preset",
                                        "init",  "keys",  "quiet", "threads"};
    for (size_t i = 0; i < CLI_COUNT(names); i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

/* "batch-tokens", "4096" → "batch_tokens=4096"; --set passes its text as it is. */
static char *pair(const cli_option *o, const char *value) {
    const size_t n = strlen(o->name) + strlen(value) + 2;
    char *text = malloc(n);
    if (!text) return NULL;
    if (strcmp(o->name, "set") == 0) return strcpy(text, value);
    snprintf(text, n, "%s=%s", o->name, value);
    for (char *c = text; *c != '='; c++)
        if (*c == '-') *c = '_';
    return text;
}

static int list_keys(void) {
    const char *name, *help;
    for (size_t i = 0; qkv_train_key(i, &name, &help); i++) printf("%-18s %s\n", name, help);
    return 0;
}

/* The values of a list option, NULL at the end; NULL when it was not given. */
static const char **list(const cli_args *a, const char *name) {
    if (!cli_given(a, name)) return NULL;
    const char **paths = calloc(a->n_given + 1, sizeof *paths);
    size_t cursor = 0, n = 0;
    for (const char *path; paths && (path = cli_next(a, name, &cursor));) paths[n++] = path;
    return paths;
}

static void say_how_to_use(const qkv_train_request *r) {
    const bool classifies = strcmp(r->task, "classify") == 0;
    fprintf(stderr, "\nThe model is in %s. Use it:\n  %s\n", r->out,
            classifies ? "echo \"some text\" | qkv classify DIR   (that folder)"
                       : "qkv eval DIR --data FILE             (that folder)");
}

static int run(const cli_args *a) {
    if (cli_flag(a, "keys")) return list_keys();
    if (a->n_rest < 1)
        return cli_usage_error("train what? classify, translate, lm or mlm: \"qkv train --help\"");
    if (cli_given(a, "threads")) qkv_threads_set((int)cli_int(a, "threads"));
    char **set = calloc(a->n_given + 1, sizeof *set);
    size_t n = 0;
    bool complete = set != NULL;
    for (size_t i = 0; complete && i < a->n_given; i++) {
        const cli_option *o = &a->options[a->given[i].option];
        if (!own(o->name)) complete = (set[n++] = pair(o, a->given[i].text)) != NULL;
    }
    const char **train = list(a, "train"), **valid = list(a, "valid");
    cli_live live;
    cli_live_begin(&live, cli_flag(a, "quiet"));
    const qkv_train_request request = {.task = a->rest[0],
                                       .train = train,
                                       .valid = valid,
                                       .out = cli_text(a, "out"),
                                       .preset = cli_text(a, "preset"),
                                       .init = cli_text(a, "init"),
                                       .set = (const char *const *)set,
                                       .overwrite = cli_flag(a, "overwrite"),
                                       .progress = cli_live_show,
                                       .user = &live};
    const qkv_status status = complete ? qkv_train(&request) : QKV_FAILED;
    cli_live_end(&live);
    if (status == QKV_OK && !cli_flag(a, "quiet")) say_how_to_use(&request);
    for (size_t i = 0; i < n; i++) free(set[i]);
    free(set);
    free(train);
    free(valid);
    return cli_live_code(status);
}

const cli_command command_train = {
    .usage = "classify|translate|lm|mlm --train FILE… --out DIR [options]",
    .examples = "qkv train classify --train reviews.tsv --out reviews\n"
                "qkv train translate --train train.de train.en --valid val.de val.en --out de-en\n"
                "qkv train lm --train shakespeare.txt --tokenizer char --out bard --minutes 10\n",
    .about =
        "Everything has a default chosen from the size of the data. Ctrl-C saves and stops; the "
        "same command\ngoes on from there and ends with the same bits as a run never stopped.",
    CLI_OPTIONS(options),
    .max_rest = 1,
    .run = run,
};
