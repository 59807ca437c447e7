/* qkv completion SHELL: a completion script written from the tables of commands and options, so
 * that it never lags behind them.
 *
 * bash and zsh get the tables as functions of a path ("tokenizer train") and, for values, an option
 * behind it ("train --norm"):
 *     _qkv_commands  the commands below the path
 *     _qkv_first     what its first plain argument may be: tasks, benchmarks
 *     _qkv_options   its options
 *     _qkv_values    what an option's value may be
 *     _qkv_takes     true for an option that takes a value
 * fish gets one line for each. */
#include "command.h"

#include <string.h>

/* ---- the walk over the tables ---- */

typedef void visit_fn(const char *path, const cli_command *c);

static void visit_all(visit_fn *visit) {
    const cli_entry *commands;
    size_t n = cli_commands(&commands);
    visit("", &(cli_command){.subcommands = commands, .n_subcommands = n});
    for (size_t i = 0; i < n; i++) {
        const cli_command *c = commands[i].command;
        visit(commands[i].name, c);
        for (size_t k = 0; k < c->n_subcommands; k++) {
            char path[128];
            snprintf(path, sizeof path, "%s %s", commands[i].name, c->subcommands[k].name);
            visit(path, c->subcommands[k].command);
        }
    }
}

/* ---- bash and zsh ---- */

static bool described; /* zsh shows what a word means: 'word:what it means' */

/* A word for the shell, quoted. */
static void put_word(const char *word, size_t n, const char *meaning) {
    printf(" '%.*s", (int)n, word);
    if (described && *meaning) putchar(':');
    for (; described && *meaning; meaning++)
        if (*meaning == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*meaning);
    putchar('\'');
}

static void begin_case(const char *path, const char *option) {
    printf("    '%s%s%s') printf '%%s\\n'", path, *option ? " --" : "", option);
}

static void put_rows(const char *path, const char *option, cli_rows_fn *rows) {
    const char *name, *meaning;
    begin_case(path, option);
    for (size_t i = 0; rows(i, &name, &meaning); i++) put_word(name, strlen(name), meaning);
    puts(" ;;");
}

static void commands_of(const char *path, const cli_command *c) {
    if (!c->n_subcommands) return;
    begin_case(path, "");
    for (size_t i = 0; i < c->n_subcommands; i++)
        put_word(c->subcommands[i].name, strlen(c->subcommands[i].name), c->subcommands[i].summary);
    if (!*path) put_word("help", 4, "what a command does");
    puts(" ;;");
}

static void first_of(const char *path, const cli_command *c) {
    if (c->first) put_rows(path, "", c->first);
}

static void options_of(const char *path, const cli_command *c) {
    const cli_option *rows;
    const size_t n = cli_rows(c, &rows);
    begin_case(path, "");
    for (size_t i = 0; i < n; i++) {
        char word[96];
        const int len = snprintf(word, sizeof word, "--%s", rows[i].name);
        put_word(word, (size_t)len, rows[i].help);
    }
    put_word("--help", 6, "what it does, and its options");
    if (!*path) put_word("--version", 9, "which qkv this is");
    puts(" ;;");
}

static bool put_choice(void *user, const char *word, size_t n) {
    (void)user;
    put_word(word, n, "");
    return true;
}

static void values_of(const char *path, const cli_command *c) {
    const cli_option *rows;
    const size_t n = cli_rows(c, &rows);
    for (size_t i = 0; i < n; i++) {
        if (rows[i].rows) put_rows(path, rows[i].name, rows[i].rows);
        if (rows[i].kind != CLI_CHOICE) continue;
        begin_case(path, rows[i].name);
        cli_each_choice(rows[i].value, put_choice, NULL);
        puts(" ;;");
    }
}

static void takers_of(const char *path, const cli_command *c) {
    const cli_option *rows;
    const size_t n = cli_rows(c, &rows);
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (rows[i].kind == CLI_FLAG) continue;
        printf("%s'%s --%s'", any ? "|" : "    ", path, rows[i].name);
        if (rows[i].letter) printf("|'%s -%c'", path, rows[i].letter);
        any = true;
    }
    if (any) puts(") return 0 ;;");
}

static void put_functions(void) {
    static const struct {
        const char *name, *otherwise;
        visit_fn *visit;
    } functions[] = {{"_qkv_commands", ":", commands_of},
                     {"_qkv_first", ":", first_of},
                     {"_qkv_options", ":", options_of},
                     {"_qkv_values", ":", values_of},
                     {"_qkv_takes", "return 1", takers_of}};
    for (size_t i = 0; i < CLI_COUNT(functions); i++) {
        printf("%s() {\n    case \"$1\" in\n", functions[i].name);
        visit_all(functions[i].visit);
        printf("    *) %s ;;\n    esac\n}\n", functions[i].otherwise);
    }
}

/* No answer of ours is file names, which the shell knows best: `-o default`. */
static const char bash_body[] =
    "_qkv() {\n"
    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} at= w words= "
    "first=\n"
    "    local IFS=$'\\n'\n"
    "    if [ \"$word\" = = ]; then word=\n" /* --norm=p is three words here */
    "    elif [ \"$before\" = = ]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
    "    for w in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
    "        if [ \"$w\" = help ] && [ -z \"$at\" ]; then continue; fi\n"
    "        case $IFS$(_qkv_commands \"$at\")$IFS in *\"$IFS$w$IFS\"*) at=${at:+$at }$w ;; esac\n"
    "        case $IFS$(_qkv_first \"$at\")$IFS in *\"$IFS$w$IFS\"*) first=$w ;; esac\n"
    "    done\n"
    "    case $word in\n"
    "    -*) words=$(_qkv_options \"$at\") ;;\n"
    "    *)  words=$(_qkv_values \"$at $before\")\n"
    "        if [ -z \"$words\" ] && ! _qkv_takes \"$at $before\"; then\n"
    "            words=$(_qkv_commands \"$at\")\n"
    "            [ -n \"$words$first\" ] || words=$(_qkv_first \"$at\")\n"
    "        fi ;;\n"
    "    esac\n"
    "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
    "}\n"
    "complete -o bashdefault -o default -F _qkv qkv";

static const char zsh_body[] =
    "_qkv() {\n"
    "    local word=${words[CURRENT]} before=${words[CURRENT-1]} at= w first=\n"
    "    local -a rows\n"
    "    if [[ $word = --*=* ]]; then before=${word%%=*}; compset -P '*='; word=; fi\n"
    "    for w in ${words[2,CURRENT-1]}; do\n"
    "        [[ $w = help && -z $at ]] && continue\n"
    "        rows=(${(f)\"$(_qkv_commands $at)\"})\n"
    "        (( ${rows[(I)$w(|:*)]} )) && at=${at:+$at }$w\n"
    "        rows=(${(f)\"$(_qkv_first $at)\"})\n"
    "        (( ${rows[(I)$w(|:*)]} )) && first=$w\n"
    "    done\n"
    "    rows=()\n"
    "    if [[ $word = -* ]]; then\n"
    "        rows=(${(f)\"$(_qkv_options $at)\"})\n"
    "    else\n"
    "        rows=(${(f)\"$(_qkv_values \"$at $before\")\"})\n"
    "        if (( ! $#rows )) && ! _qkv_takes \"$at $before\"; then\n"
    "            rows=(${(f)\"$(_qkv_commands $at)\"})\n"
    "            (( $#rows )) || [[ -n $first ]] || rows=(${(f)\"$(_qkv_first $at)\"})\n"
    "        fi\n"
    "    fi\n"
    "    (( $#rows )) && _describe -t words qkv rows && return\n"
    "    _files\n"
    "}\n"
    /* as a file on fpath it is called; read by source it says what it is for */
    "if [[ $funcstack[1] = _qkv ]]; then _qkv \"$@\"; else compdef _qkv qkv; fi";

static void put_bash(void) {
    puts("# bash completion for qkv; use: source <(qkv completion bash)");
    described = false;
    put_functions();
    puts(bash_body);
}

static void put_zsh(void) {
    puts("#compdef qkv\n# zsh completion for qkv; use, after compinit: source <(qkv completion "
         "zsh)");
    described = true;
    put_functions();
    puts(zsh_body);
}

/* ---- fish ---- */

/* Text for single quotes in fish: a quote and a backslash are escaped. */
static void fish_quoted(const char *text) {
    putchar('\'');
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\') putchar('\\');
        putchar(*text);
    }
    putchar('\'');
}

static void fish_row(const char *condition, const char *name, const char *meaning) {
    printf("complete -c qkv -n '%s' -f -a %s -d ", condition, name);
    fish_quoted(meaning);
    putchar('\n');
}

/* Commands stand right behind the path; one name of `first` stands anywhere behind it. */
static void fish_rows(const char *path, const cli_command *c) {
    char condition[1024];
    const char *name, *meaning;
    snprintf(condition, sizeof condition, "__qkv_at_end %s", path);
    for (size_t i = 0; i < c->n_subcommands; i++)
        fish_row(condition, c->subcommands[i].name, c->subcommands[i].summary);
    if (!c->first) return;
    snprintf(condition, sizeof condition, "__qkv_at %s; and not __fish_seen_subcommand_from", path);
    for (size_t i = 0; c->first(i, &name, &meaning); i++) {
        const size_t len = strlen(condition);
        snprintf(condition + len, sizeof condition - len, " %s", name);
    }
    for (size_t i = 0; c->first(i, &name, &meaning); i++) fish_row(condition, name, meaning);
}

static bool put_plain(void *user, const char *word, size_t n) {
    (void)user;
    printf("%.*s ", (int)n, word);
    return true;
}

static void fish_option(const char *path, const cli_option *o) {
    const char *name, *meaning;
    printf("complete -c qkv -n '__qkv_at %s' -l %s", path, o->name);
    if (o->letter) printf(" -s %c", o->letter);
    if (o->kind != CLI_FLAG) fputs(o->kind == CLI_CHOICE ? " -x" : " -r", stdout);
    if (o->kind == CLI_CHOICE || o->rows) fputs(" -a '", stdout);
    if (o->kind == CLI_CHOICE) cli_each_choice(o->value, put_plain, NULL);
    for (size_t i = 0; o->rows && o->rows(i, &name, &meaning); i++)
        put_plain(NULL, name, strlen(name));
    if (o->kind == CLI_CHOICE || o->rows) putchar('\'');
    fputs(" -d ", stdout);
    fish_quoted(o->help);
    putchar('\n');
}

static void fish_command(const char *path, const cli_command *c) {
    const cli_option *rows;
    const size_t n = cli_rows(c, &rows);
    fish_rows(path, c);
    for (size_t i = 0; i < n; i++) fish_option(path, &rows[i]);
}

static const char fish_head[] =
    "# fish completion for qkv; use: qkv completion fish | source\n"
    "# Do the words behind qkv begin with these, and, for _end, is there nothing else yet?\n"
    "function __qkv_at\n"
    "    set -l words (commandline -opc)\n"
    "    set -e words[1]\n"
    "    set -l n (count $argv)\n"
    "    test (count $words) -ge $n; or return 1\n"
    "    test $n -eq 0; or test \"$words[1..$n]\" = \"$argv\"\n"
    "end\n"
    "function __qkv_at_end\n"
    "    set -l words (commandline -opc)\n"
    "    set -l plain (string match -v -- '-*' $words)\n"
    "    __qkv_at $argv; and test (count $plain) -eq (math (count $argv) + 1)\n"
    "end";

static void put_fish(void) {
    const cli_entry *commands;
    const size_t n = cli_commands(&commands);
    puts(fish_head);
    visit_all(fish_command);
    fish_option("", &(cli_option){.name = "help", .letter = 'h', .help = "what it does"});
    fish_row("__qkv_at_end", "help", "what a command does");
    for (size_t i = 0; i < n; i++)
        fish_row("__qkv_at_end help", commands[i].name, commands[i].summary);
}

static int run(const cli_args *a) {
    static const struct {
        const char *name;
        void (*put)(void);
    } shells[] = {{"bash", put_bash}, {"zsh", put_zsh}, {"fish", put_fish}};
    for (size_t i = 0; i < CLI_COUNT(shells); i++)
        if (strcmp(shells[i].name, a->rest[0]) == 0) return shells[i].put(), 0;
    return cli_usage_error("completion is there for bash, zsh and fish, not for \"%.40s\"",
                           a->rest[0]);
}

static bool shell_row(size_t i, const char **name, const char **summary) {
    static const char *const names[] = {"bash", "zsh", "fish"};
    *summary = "";
    return i < CLI_COUNT(names) ? *name = names[i], true : false;
}

const cli_command command_completion = {
    .usage = "SHELL",
    .examples = "source <(qkv completion bash)           in ~/.bashrc\n"
                "source <(qkv completion zsh)            in ~/.zshrc, after compinit\n"
                "qkv completion fish > ~/.config/fish/completions/qkv.fish\n",
    .first = shell_row,
    .min_rest = 1,
    .max_rest = 1,
    .run = run,
};
