/* Help: examples first, then usage, words, and a table of the options; all from the command's
 * struct. */
#include "command.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

cli_style cli_style_for(FILE *out) {
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    bool plain = (no && *no) || !isatty(fileno(out)) || (term && strcmp(term, "dumb") == 0);
    return plain ? (cli_style){"", "", "", ""}
                 : (cli_style){"\033[1m", "\033[2m", "\033[36m", "\033[0m"};
}

static void print_entries(FILE *out, cli_style s, const cli_entry *entries, size_t n) {
    for (size_t i = 0; i < n; i++)
        fprintf(out, "  %s%-12s%s %s\n", s.accent, entries[i].name, s.off, entries[i].summary);
}

void cli_help_all(FILE *out) {
    const cli_entry *commands;
    size_t n = cli_commands(&commands);
    cli_style s = cli_style_for(out);
    fprintf(out, "%sqkv%s: Transformers in C, on the CPU at hand\n\n", s.bold, s.off);
    fprintf(out, "%sExamples%s\n", s.bold, s.off);
    fputs("  qkv demo                                     watch a small model learn\n"
          "  qkv train classify --train reviews.tsv --out model\n"
          "  echo 'what a lovely film' | qkv classify model\n\n",
          out);
    fprintf(out, "%sCommands%s\n", s.bold, s.off);
    print_entries(out, s, commands, n);
    fputs("\n\"qkv help COMMAND\" or \"qkv COMMAND --help\" tells more; \"qkv --version\" says "
          "which qkv this is.\n",
          out);
}

/* Left column of an option's row: "-t, --threads N". Returns its length. */
static int option_head(char *text, size_t size, const cli_option *o) {
    char letter[8] = "    ";
    if (o->letter) snprintf(letter, sizeof letter, "-%c, ", o->letter);
    const char *value = o->kind == CLI_CHOICE ? "NAME" : o->value ? o->value : "";
    const char *more = o->kind == CLI_LIST ? "…" : "";
    return snprintf(text, size, "%s--%s%s%s%s", letter, o->name, *value ? " " : "", value, more);
}

static void print_options(FILE *out, cli_style s, const cli_command *c) {
    const cli_option *rows;
    const size_t n_rows = cli_rows(c, &rows);
    fprintf(out, "\n%sOptions%s\n", s.bold, s.off);
    for (size_t i = 0; i < n_rows; i++) {
        const cli_option *o = &rows[i];
        if (i && o->section != rows[i - 1].section)
            fprintf(out, "\n%s%s%s\n", s.bold, o->section, s.off);
        char head[128];
        int n = option_head(head, sizeof head, o);
        if (o->kind == CLI_LIST) n -= 2; /* the ellipsis is three bytes and one column */
        fprintf(out, "  %s%s%s%*s %s", s.accent, head, s.off, n < 26 ? 26 - n : 0, "", o->help);
        if (o->kind == CLI_CHOICE) fprintf(out, ": %s", o->value);
        if (o->initial) fprintf(out, " %s(default: %s)%s", s.dim, o->initial, s.off);
        fputc('\n', out);
    }
    fprintf(out, "  %s-h, --help%s%*s this text\n", s.accent, s.off, 16, "");
}

/* What the first argument may be; the usage names it in capitals. */
static void print_first(FILE *out, cli_style s, const cli_command *c) {
    cli_entry e = {0};
    fprintf(out, "\n%s%.*s%s\n", s.bold, (int)strcspn(c->usage, " "), c->usage, s.off);
    for (size_t i = 0; c->first(i, &e.name, &e.summary); i++) print_entries(out, s, &e, 1);
}

void cli_help(FILE *out, const char *path, const char *summary, const cli_command *c) {
    cli_style s = cli_style_for(out);
    fprintf(out, "%s%s%s: %s\n", s.bold, path, s.off, summary);
    if (c->examples) {
        fprintf(out, "\n%sExamples%s\n", s.bold, s.off);
        for (const char *line = c->examples; *line;) {
            int n = (int)strcspn(line, "\n");
            fprintf(out, "  %.*s\n", n, line);
            line += n + (line[n] == '\n');
        }
    }
    fprintf(out, "\n%sUsage%s: %s %s\n", s.bold, s.off, path, c->usage ? c->usage : "[options]");
    if (c->about) fprintf(out, "\n%s\n", c->about);
    if (c->first) print_first(out, s, c);
    if (c->subcommands) {
        fprintf(out, "\n%sCommands%s\n", s.bold, s.off);
        print_entries(out, s, c->subcommands, c->n_subcommands);
        fprintf(out, "\n\"%s COMMAND --help\" tells more.\n", path);
        return;
    }
    print_options(out, s, c);
}
