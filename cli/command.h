/* A command is one file cmd_<name>.c with one const struct, and one row in commands.def. */
#ifndef QKV_CLI_COMMAND_H
#define QKV_CLI_COMMAND_H

#include "options.h"
#include "qkv.h"

#include <stdio.h>

typedef struct cli_command cli_command;

typedef struct cli_entry {
    const char *name, *summary;
    const cli_command *command;
} cli_entry;

/* A command as it was called: "qkv tokenizer train". */
typedef struct cli_named {
    const char *path, *summary;
    const cli_command *command;
} cli_named;

struct cli_command {
    const char *usage;    /* after the command's name: "DIR --data F… [options]" */
    const char *examples; /* lines, each ending in '\n'; the help opens with them */
    const char *about;    /* a paragraph or two; may be NULL */
    const cli_option *options;
    size_t n_options;
    unsigned keys;       /* CLI_KEYS_…: the tables of the library whose keys are options too */
    const char *no_keys; /* but not these, which the command finds out itself: "task classes" */
    /* the rows, of a table of the library, that the first plain argument names one of; or NULL */
    cli_rows_fn *first;
    /* the options that the short help shows: "train out"; the whole one then comes with --help all,
     * and that of a row of `first` with its name. NULL: there is only one help */
    const char *everyday;
    size_t min_rest, max_rest;     /* how many plain arguments */
    int (*run)(const cli_args *a); /* returns the exit code */
    const cli_entry
        *subcommands; /* when not NULL: the first argument picks one, run is not called */
    size_t n_subcommands;
};

enum { CLI_KEYS_MODEL = 1, CLI_KEYS_TRAINING = 2 };

#define CLI_COUNT(array)       (sizeof(array) / sizeof *(array))
#define CLI_OPTIONS(array)     .options = (array), .n_options = CLI_COUNT(array)
#define CLI_SUBCOMMANDS(array) .subcommands = (array), .n_subcommands = CLI_COUNT(array)

/* Rows that many commands share. */
#define CLI_OPTION_JSON                                                                            \
    { .name = "json", .kind = CLI_FLAG, .help = "print one JSON object instead of a table" }
#define CLI_OPTION_TREES                                                                           \
    {                                                                                              \
        .name = "trees", .kind = CLI_TEXT, .value = "FILE",                                        \
        .help = "models with structural positions: the texts' dependency trees, in CoNLL-U"        \
    }
#define CLI_OPTION_PAIRS                                                                           \
    {                                                                                              \
        .name = "pairs", .kind = CLI_FLAG,                                                         \
        .help = "lines are pairs, a TAB between (known of models trained here on pairs)"           \
    }
#define CLI_OPTION_MAX_LEN                                                                         \
    {                                                                                              \
        .name = "max-len", .kind = CLI_INT, .value = "N", .min = 2, .max = 1048576,                \
        .help = "tokens of a text that are read; beyond the trained length where the positions "   \
                "have no end (default: as trained)"                                                \
    }
#define CLI_OPTIONS_MACHINE                                                                        \
    {.name = "threads",                                                                            \
     .letter = 't',                                                                                \
     .kind = CLI_INT,                                                                              \
     .value = "N",                                                                                 \
     .min = 1,                                                                                     \
     .max = 256,                                                                                   \
     .help = "threads to use (default: every core this process may run on)"},                      \
    {                                                                                              \
        .name = "no-mmap", .kind = CLI_FLAG,                                                       \
        .help = "read large files into memory instead of mapping them: for file systems that may " \
                "fail, and files that may be cut short"                                            \
    }

/* All commands, in the order of commands.def. */
size_t cli_commands(const cli_entry **out);

/* Prints "qkv: " and the library's message on stderr; returns the exit code for the status. */
int cli_fail(qkv_status status);
/* Sets what CLI_OPTIONS_MACHINE asks for. */
void cli_use_machine(const cli_args *a);
/* Opens the model in the folder a->rest[0], and reads the trees of --trees,
 * for commands that have it. */
qkv_status cli_open_model(const cli_args *a, qkv_text_model **m);
/* The same with the command's own words; a usage error. */
int cli_usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* `text` is printed on stdout and freed; returns the exit code for the status of the call that made
 * it. */
int cli_print(qkv_status status, char *text);

/* The text as a JSON string, quotes included. */
void cli_json_string(FILE *out, const char *text, size_t len);

/* keys.c */
/* Presets: a cli_rows_fn. */
bool cli_preset_row(size_t i, const char **name, const char **summary);
/* All options of a command: its own rows, then those of the tables of keys it asks for. */
size_t cli_rows(const cli_command *c, const cli_option **out);
/* What was given for options that are keys, as "name=value", NULL at the end;
 * NULL without memory. */
char **cli_pairs(const cli_args *a);
void cli_pairs_free(char **pairs);

/* keys.c: the default of a key as one would write it. */
enum { CLI_KEY_DEFAULT = 320 };
void cli_key_default(const qkv_key *k, char out[CLI_KEY_DEFAULT]);

/* output.c: JSON where --json was given, else a table. */
qkv_show cli_show(const cli_args *a);
/* output.c: the same into a file, which is named when it cannot be written. */
int cli_write_to(const char *path, qkv_status status, char *text);
bool cli_ends_in(const char *text, const char *end);
/* Has the path (NULL: none, which is fine) one of the endings ".svg .json", or none at all? False
 * after a message: it would not hold what its name says. */
bool cli_ending_is(const char *path, const char *endings);

/* help.c */
void cli_help_all(FILE *out);
/* topic: "all", the name of a row of c->first, or NULL. */
void cli_help(FILE *out, const cli_named *e, const char *topic);
/* Is `name` one of the words, which blanks separate? */
bool cli_among(const char *words, const char *name);
/* A row of a list: "name         what it is", broken where `out` is a terminal. */
void cli_list_row(FILE *out, const char *name, const char *summary);

/* man.c: writes qkv.1 and a page for each command into a folder that exists. */
int cli_man_pages(const char *folder);

/* Colour, where `out` is a terminal and NO_COLOR is not set; else "". */
typedef struct cli_style {
    const char *bold, *dim, *accent, *off;
} cli_style;
cli_style cli_style_for(FILE *out);

#endif
