/* qkv completion SHELL: a completion script written from the tables of commands and options, so
 * that it never lags behind them. */
#include "command.h"

#include <string.h>

/* ---- bash ---- */

static void bash_begin(void) {
    fputs("# bash completion for qkv; use: source <(qkv completion bash)\n"
          "_qkv() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} path= w "
          "words=\n"
          "    for w in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
          "        case $w in -*) break ;; esac\n"
          "        case \" $(_qkv_words \"$path\") \" in *\" $w \"*) path=${path:+$path }$w ;; *) "
          "break ;; esac\n"
          "    done\n"
          "    words=$(_qkv_values \"$path $before\")\n"
          "    [ -n \"$words\" ] || words=\"$(_qkv_words \"$path\")\"\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
          "    [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- \"$word\"))\n"
          "}\n",
          stdout);
}

static bool print_word(void *user, const char *word, size_t n) {
    (void)user;
    printf("%.*s ", (int)n, word);
    return true;
}

static void bash_words(const char *path, const char *summary, const cli_command *c) {
    (void)summary;
    printf("    '%s') echo '", path);
    const char *name, *help;
    for (size_t i = 0; i < c->n_subcommands; i++) printf("%s ", c->subcommands[i].name);
    for (size_t i = 0; c->first && c->first(i, &name, &help); i++) printf("%s ", name);
    const cli_option *rows;
    const size_t n = cli_rows(c, &rows);
    for (size_t i = 0; i < n; i++) printf("--%s ", rows[i].name);
    puts("--help' ;;");
}

static void bash_values(const char *path, const char *summary, const cli_command *c) {
    (void)summary;
    const cli_option *rows;
    const size_t n = cli_rows(c, &rows);
    for (size_t i = 0; i < n; i++) {
        if (rows[i].kind != CLI_CHOICE) continue;
        printf("    '%s --%s') echo '", path, rows[i].name);
        cli_each_choice(rows[i].value, print_word, NULL);
        puts("' ;;");
    }
}

/* ---- zsh: the bash functions serve; fish: one line per option ---- */

static void zsh_begin(void) {
    fputs("#compdef qkv\n# zsh completion for qkv; use: source <(qkv completion zsh)\n"
          "autoload -U +X bashcompinit && bashcompinit\n",
          stdout);
    bash_begin();
}

/* Text for single quotes in fish: a quote and a backslash are escaped. */
static void fish_quoted(const char *text) {
    putchar('\'');
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\') putchar('\\');
        putchar(*text);
    }
    putchar('\'');
}

static void fish_condition(const char *path) {
    fputs("complete -c qkv -n '", stdout);
    if (!*path) fputs("__fish_use_subcommand", stdout);
    for (const char *word = path; *word;) {
        int n = (int)strcspn(word, " ");
        printf("%s__fish_seen_subcommand_from %.*s", word > path ? "; and " : "", n, word);
        word += n + (word[n] == ' ');
    }
    putchar('\'');
}

static void fish_command(const char *path, const char *summary, const cli_command *c) {
    (void)summary;
    for (size_t i = 0; i < c->n_subcommands; i++) {
        fish_condition(path);
        printf(" -f -a %s -d ", c->subcommands[i].name);
        fish_quoted(c->subcommands[i].summary);
        putchar('\n');
    }
    const char *name, *help;
    for (size_t i = 0; c->first && c->first(i, &name, &help); i++) {
        fish_condition(path);
        printf(" -f -a %s -d ", name);
        fish_quoted(help);
        putchar('\n');
    }
    const cli_option *rows;
    const size_t n = cli_rows(c, &rows);
    for (size_t i = 0; i < n; i++) {
        const cli_option *o = &rows[i];
        fish_condition(path);
        printf(" -l %s", o->name);
        if (o->letter) printf(" -s %c", o->letter);
        if (o->kind != CLI_FLAG) fputs(" -r", stdout);
        if (o->kind == CLI_CHOICE) {
            fputs(" -f -a '", stdout);
            cli_each_choice(o->value, print_word, NULL);
            putchar('\'');
        }
        fputs(" -d ", stdout);
        fish_quoted(o->help);
        putchar('\n');
    }
}

/* ---- the walk over the tables ---- */

typedef void visit_fn(const char *path, const char *summary, const cli_command *c);

static void visit_all(visit_fn *visit) {
    const cli_entry *commands;
    size_t n = cli_commands(&commands);
    visit("", "", &(cli_command){.subcommands = commands, .n_subcommands = n});
    for (size_t i = 0; i < n; i++) {
        const cli_command *c = commands[i].command;
        visit(commands[i].name, commands[i].summary, c);
        for (size_t k = 0; k < c->n_subcommands; k++) {
            char path[128];
            snprintf(path, sizeof path, "%s %s", commands[i].name, c->subcommands[k].name);
            visit(path, c->subcommands[k].summary, c->subcommands[k].command);
        }
    }
}

static void bash_functions(void) {
    static const struct {
        const char *name;
        visit_fn *visit;
    } functions[] = {{"_qkv_words", bash_words}, {"_qkv_values", bash_values}};
    for (size_t i = 0; i < CLI_COUNT(functions); i++) {
        printf("%s() {\n    case \"$1\" in\n", functions[i].name);
        visit_all(functions[i].visit);
        puts("    *) ;;\n    esac\n}");
    }
    puts("complete -F _qkv qkv");
}

static int run(const cli_args *a) {
    const char *name = a->rest[0];
    if (strcmp(name, "bash") == 0 || strcmp(name, "zsh") == 0) {
        (name[0] == 'b' ? bash_begin : zsh_begin)();
        bash_functions();
    } else if (strcmp(name, "fish") == 0) {
        puts("# fish completion for qkv; use: qkv completion fish | source");
        visit_all(fish_command);
    } else {
        return cli_usage_error("completion is there for bash, zsh and fish, not for \"%.40s\"",
                               name);
    }
    return 0;
}

const cli_command command_completion = {
    .usage = "bash|zsh|fish",
    .examples = "source <(qkv completion bash)           in ~/.bashrc\n"
                "qkv completion fish > ~/.config/fish/completions/qkv.fish\n",
    .min_rest = 1,
    .max_rest = 1,
    .run = run,
};
