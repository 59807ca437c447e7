/* Options: a table of rows describes what a command takes; parsing, checking, help and completion
 * follow from the rows.
 *
 * Forms: --name value, --name=value, -x value, -xvalue; "--" ends the options; "-" is an ordinary
 * argument. A list takes the arguments up to the next option: --train SOURCE TARGET. */
#ifndef QKV_CLI_OPTIONS_H
#define QKV_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum cli_kind {
    CLI_FLAG,   /* no value */
    CLI_INT,    /* whole number in min … max */
    CLI_REAL,   /* number in min … max */
    CLI_TEXT,   /* any text; the last one given counts */
    CLI_CHOICE, /* one of `value`, which names them as "full|local|bigbird" */
    CLI_EACH,   /* text, may be given many times: --set a=1 --set b=2 */
    CLI_LIST    /* one or more texts after one name: --data F G H */
} cli_kind;

/* Row i of a table: its name, and what it is in a few words; false past the end. */
typedef bool cli_rows_fn(size_t i, const char **name, const char **summary);

typedef struct cli_option {
    const char *name; /* without the dashes */
    char letter;      /* short form, or 0 */
    cli_kind kind;
    const char
        *value; /* what stands for the value in the help: "N", "FILE"; the choices of a choice */
    const char *initial; /* the default as one would write it; NULL: none */
    const char *help;
    double min, max;     /* of numbers; both 0: no bound */
    const char *section; /* of the help; NULL: the command's own options */
    cli_rows_fn *rows;   /* names that the value may be, for completion; or NULL */
    bool key;            /* passed on to the library as "name=value" (an EACH: as it is) */
} cli_option;

/* What was given, checked against the rows. */
typedef struct cli_args {
    const cli_option *options;
    size_t n_options;
    struct cli_given {
        size_t option;
        const char *text;
    } * given;
    size_t n_given;
    const char **rest; /* arguments that are no options, NULL at the end */
    size_t n_rest;
    bool help;         /* --help or -h: nothing else was checked */
    const char *topic; /* the word after it, or the first plain argument; or NULL */
} cli_args;

/* Parses argv[0 … argc−1] (options and arguments only); false after a message on stderr. `command`
 * is how messages name the command ("qkv bench"). Free in any case. */
bool cli_parse(cli_args *a, const char *command, const cli_option *options, size_t n_options,
               int argc, char **argv);
void cli_args_free(cli_args *a);

/* Values by name; the default where nothing was given. Asking for a name that has no row is a bug
 * and ends the program. */
bool cli_given(const cli_args *a, const char *name);
bool cli_flag(const cli_args *a, const char *name);
const char *cli_text(const cli_args *a, const char *name); /* NULL: neither given nor a default */
int64_t cli_int(const cli_args *a, const char *name);      /* 0: neither given nor a default */
double cli_real(const cli_args *a, const char *name);
/* Walks the values of an EACH or LIST: start with *cursor = 0; NULL at the end. */
const char *cli_next(const cli_args *a, const char *name, size_t *cursor);
/* All of them, NULL at the end; NULL when none was given. The caller frees the array. */
const char **cli_list(const cli_args *a, const char *name);

/* Calls `use` with each of the words of "one|two|three", until it returns false. */
void cli_each_choice(const char *choices, bool (*use)(void *user, const char *word, size_t n),
                     void *user);

#endif
