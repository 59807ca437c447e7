/* qkv train TASK: its own options, and every key of a training and of a model (keys.c),
 * which the library knows. */
#include "command.h"
#include "live.h"
#include "terminal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const cli_option options[] = {
    {.name = "train",
     .kind = CLI_LIST,
     .value = "FILE",
     .help = "data: files (or source and target), packed or not; a folder with one folder per "
             "class; - for stdin"},
    {.name = "valid",
     .kind = CLI_LIST,
     .value = "FILE",
     .help = "validation data; else some of the training data is held out"},
    {.name = "out",
     .letter = 'o',
     .kind = CLI_TEXT,
     .value = "DIR",
     .help = "folder of the run and the model; a run that is there goes on"},
    {.name = "overwrite", .kind = CLI_FLAG, .help = "replace the run that is there, from step 0"},
    {.name = "keep-checkpoints",
     .kind = CLI_FLAG,
     .help = "leave the checkpoints of a run that ends well in its folder"},
    {.name = "preset",
     .kind = CLI_TEXT,
     .value = "NAME",
     .help = "sizes to start from (qkv describe --presets); else chosen from the data",
     .rows = cli_preset_row},
    {.name = "config",
     .kind = CLI_TEXT,
     .value = "FILE",
     .help = "keys from a JSON file: a config.json, or another run's run.json"},
    {.name = "init",
     .kind = CLI_TEXT,
     .value = "DIR",
     .help = "start from this model: its sizes, tokenizer and all weights that fit"},
    {.name = "set",
     .letter = 's',
     .kind = CLI_EACH,
     .value = "KEY=VALUE",
     .help = "any key below, also as KEY=VALUE",
     .key = true},
    {.name = "find-lr",
     .kind = CLI_FLAG,
     .help = "try learning rates and say which to use, instead of training"},
    {.name = "folds",
     .kind = CLI_INT,
     .value = "K",
     .min = 2,
     .max = 100,
     .help =
         "cross-validation instead of a model: K trainings that each leave a part of the rows out"},
    {.name = "tune",
     .kind = CLI_REAL,
     .value = "MINUTES",
     .min = 0.01,
     .max = 1000000,
     .help = "first search for better settings; the best of them is then trained with all rows"},
    CLI_OPTION_JSON,
    {.name = "quiet", .letter = 'q', .kind = CLI_FLAG, .help = "say nothing but errors"},
    CLI_OPTIONS_MACHINE,
};

static int no_task(void) {
    char list[256] = "";
    const char *name, *summary;
    for (size_t i = 0; qkv_task_row(i, &name, &summary); i++) {
        const size_t len = strlen(list);
        snprintf(list + len, sizeof list - len, "%s%s", i ? ", " : "", name);
    }
    return cli_usage_error("train what? %s: \"qkv train --help\"", list);
}

static qkv_status find_lr(const cli_args *a, const qkv_train_request *request, char **text) {
    qkv_lr_search found;
    qkv_status status = qkv_find_lr(request, &found);
    if (status == QKV_OK) status = qkv_lr_search_show(&found, cli_show(a), text);
    qkv_lr_search_free(&found);
    return status;
}

static qkv_status compare(const cli_args *a, const qkv_train_request *request, char **text) {
    qkv_trials trials;
    qkv_status status = cli_given(a, "folds")
                            ? qkv_cross_validate(request, (int)cli_int(a, "folds"), &trials)
                            : qkv_tune(request, cli_real(a, "tune"), &trials);
    if (status == QKV_OK) status = qkv_trials_show(&trials, cli_show(a), text);
    qkv_trials_free(&trials);
    return status;
}

/* What the run left as its figures. */
static void print_result(const char *folder) {
    char path[4096], line[512];
    snprintf(path, sizeof path, "%s/result.json", folder);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) fputs(line, stdout);
    if (file) fclose(file);
}

static int run(const cli_args *a) {
    if (a->n_rest < 1) return no_task();
    const bool find = cli_flag(a, "find-lr"), folds = cli_given(a, "folds"),
               tune = cli_given(a, "tune");
    if (find + folds + tune > 1)
        return cli_usage_error("--find-lr, --folds and --tune are three things to do; give one");
    cli_use_machine(a);
    char **set = cli_pairs(a);
    const char **train = cli_list(a, "train"), **valid = cli_list(a, "valid");
    cli_live live;
    cli_live_begin(&live, cli_flag(a, "quiet"));
    cli_live_catch();
    const qkv_train_request request = {.task = a->rest[0],
                                       .train = train,
                                       .valid = valid,
                                       .out = cli_text(a, "out"),
                                       .preset = cli_text(a, "preset"),
                                       .config = cli_text(a, "config"),
                                       .init = cli_text(a, "init"),
                                       .set = (const char *const *)set,
                                       .overwrite = cli_flag(a, "overwrite"),
                                       .keep_checkpoints = cli_flag(a, "keep-checkpoints"),
                                       .columns = cli_columns(STDERR_FILENO),
                                       .progress = cli_live_show,
                                       .user = &live};
    char *text = NULL;
    qkv_status status = QKV_FAILED;
    if (set)
        status = find            ? find_lr(a, &request, &text)
                 : folds || tune ? compare(a, &request, &text)
                                 : qkv_train(&request);
    cli_live_end(&live);
    if (text)
        fputs(text, stdout);
    else if (status == QKV_OK && cli_flag(a, "json") && qkv_train_rank() == 0)
        print_result(request.out);
    qkv_text_free(text);
    cli_pairs_free(set);
    free(train);
    free(valid);
    return cli_live_code(status);
}

const cli_command command_train = {
    .usage = "TASK --train FILE… --out DIR [options]",
    .examples = "qkv train classify --train reviews.tsv --out reviews\n"
                "qkv train classify --train q.csv.gz --text Subject --label Queue --out q\n"
                "qkv train translate --train train.de train.en --out de-en\n"
                "qkv train lm --train shakespeare.txt --out bard --minutes 10\n",
    .about = "All else is chosen from the data. Ctrl-C saves and stops; the same command goes on "
             "from there and ends with the same bits as a run never stopped.",
    CLI_OPTIONS(options),
    .keys = CLI_KEYS_TRAINING | CLI_KEYS_MODEL,
    .no_keys = "task classes pairs several", /* from the command and from the data */
    .first = qkv_task_row,
    .everyday = "train valid out init minutes epochs tokenizer",
    .max_rest = 1,
    .run = run,
};
