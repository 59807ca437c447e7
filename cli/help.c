/* Help: examples first, then usage, words, and a table of the options; all from the command's
 * struct. It fits the terminal, or 80 columns. */
#include "command.h"
#include "terminal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

cli_style cli_style_for(FILE *out) {
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    bool plain = (no && *no) || !isatty(fileno(out)) || (term && strcmp(term, "dumb") == 0);
    return plain ? (cli_style){"", "", "", ""}
                 : (cli_style){"\033[1m", "\033[2m", "\033[36m", "\033[0m"};
}

bool cli_among(const char *words, const char *name) {
    const size_t n = strlen(name);
    for (const char *at = words; at && (at = strstr(at, name)); at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || !at[n])) return true;
    return false;
}

/* ---- pieces ---- */

enum {
    LIST_COLUMN = 15,   /* where the words of a list of names begin */
    OPTION_COLUMN = 29, /* and those of a list of options */
    WIDEST = 100,       /* longer lines are hard to read */
    NARROW = 60         /* a terminal on which there is no room beside an option */
};

/* What is being written: to where, how wide, in which colours. */
typedef struct helper {
    FILE *out;
    cli_style s;
    int columns;
} helper;

static helper helper_on(FILE *out) {
    const int columns = cli_columns(fileno(out));
    return (helper){.out = out,
                    .s = cli_style_for(out),
                    .columns = !columns           ? 80
                               : columns > WIDEST ? WIDEST
                                                  : columns};
}

/* A text that begins at column `at`; further lines begin at `indent`. */
static void put(const helper *h, int at, int indent, const char *text) {
    cli_page p = {.out = h->out, .columns = h->columns, .at = at, .indent = indent, .flows = true};
    cli_page_put(&p, text);
    putc('\n', h->out);
}

static void put_heading(const helper *h, const char *text, size_t n) {
    char words[128];
    cli_page p = {.out = h->out, .columns = h->columns, .indent = 2};
    snprintf(words, sizeof words, "%.*s", (int)n, text);
    fprintf(h->out, "\n%s", h->s.bold);
    cli_page_put(&p, words);
    fprintf(h->out, "%s\n", h->s.off);
}

static void put_row(const helper *h, const char *name, const char *summary) {
    const bool wide = strlen(name) > LIST_COLUMN - 3;
    fprintf(h->out, "  %s%-*s%s", h->s.accent, wide ? 0 : LIST_COLUMN - 2, name, h->s.off);
    if (wide) fprintf(h->out, "\n%*s", LIST_COLUMN, "");
    put(h, LIST_COLUMN, LIST_COLUMN, summary);
}

void cli_list_row(FILE *out, const char *name, const char *summary) {
    enum { COLUMN = 13 };
    cli_page p = {.out = out, .columns = cli_columns(fileno(out)), .indent = COLUMN, .at = COLUMN};
    const bool wide = strlen(name) >= COLUMN;
    fprintf(out, "%-*s", wide ? 0 : COLUMN, name);
    if (wide) fprintf(out, "\n%*s", COLUMN, "");
    cli_page_put(&p, summary);
    putc('\n', out);
}

static void put_entries(const helper *h, const cli_entry *entries, size_t n) {
    for (size_t i = 0; i < n; i++) put_row(h, entries[i].name, entries[i].summary);
}

/* A command to be copied: where it is broken, a shell goes on reading. */
static void put_example(const helper *h, const char *line, size_t n) {
    char text[200];
    snprintf(text, sizeof text, "  %.*s", (int)n, line);
    cli_page p = {.out = h->out, .columns = h->columns, .indent = 4, .tail = " \\"};
    if (cli_width(text) <= h->columns) p.columns = 0;
    cli_page_put(&p, text);
    putc('\n', h->out);
}

void cli_help_all(FILE *out) {
    const helper h = helper_on(out);
    const cli_entry *commands;
    const size_t n = cli_commands(&commands);
    static const char *const examples[] = {
        "qkv demo                                    watch a small model learn",
        "qkv train classify --train reviews.tsv --out model",
        "echo 'what a lovely film' | qkv classify model"};
    fprintf(out, "%sqkv%s", h.s.bold, h.s.off);
    put(&h, 3, 5, ": Transformers in C, on the CPU at hand");
    put_heading(&h, "Examples", 8);
    for (size_t i = 0; i < CLI_COUNT(examples); i++)
        put_example(&h, examples[i], strlen(examples[i]));
    put_heading(&h, "Commands", 8);
    put_entries(&h, commands, n);
    putc('\n', out);
    put(&h, 0, 0,
        "\"qkv help COMMAND\" or \"qkv COMMAND --help\" tells more; \"qkv --version\" says which "
        "qkv this is.");
}

/* ---- what fits a topic ---- */

static bool is_row(const cli_command *c, const char *name, size_t n) {
    const char *row, *summary;
    for (size_t i = 0; c->first && c->first(i, &row, &summary); i++)
        if (strlen(row) == n && memcmp(row, name, n) == 0) return true;
    return false;
}

/* A key whose help begins with names of tasks ("classify, rate: …") is for those alone. */
static bool fits(const cli_command *c, const char *help, const char *topic) {
    const char *colon = strchr(help, ':');
    bool named = false;
    for (const char *word = help; colon && word < colon;) {
        const size_t n = strcspn(word, ",: ");
        if (!is_row(c, word, n)) return true;
        named |= strlen(topic) == n && memcmp(word, topic, n) == 0;
        word += n;
        word += strspn(word, ", ");
    }
    return !colon || named;
}

/* ---- options ---- */

/* Left column of an option's row: "-t, --threads N". */
static void option_head(char *text, size_t size, const cli_option *o) {
    char letter[8] = "    ";
    if (o->letter) snprintf(letter, sizeof letter, "-%c, ", o->letter);
    const char *value = o->kind == CLI_CHOICE ? "NAME" : o->value ? o->value : "";
    const char *more = o->kind == CLI_LIST ? "…" : "";
    snprintf(text, size, "%s--%s%s%s%s", letter, o->name, *value ? " " : "", value, more);
}

/* "one|two" as ": one, two" */
static void put_choices(cli_page *p, const char *choices) {
    cli_page_put(p, ": ");
    for (const char *at = choices; *at;) {
        char word[80];
        const size_t n = strcspn(at, "|");
        snprintf(word, sizeof word, "%.*s%s", (int)n, at, at[n] ? ", " : "");
        cli_page_put(p, word);
        at += n + (at[n] == '|');
    }
}

static void put_option(const helper *h, const cli_option *o) {
    char head[128], initial[160];
    option_head(head, sizeof head, o);
    const int indent = h->columns < NARROW ? 8 : OPTION_COLUMN, at = 2 + cli_width(head);
    cli_page p = {.out = h->out, .columns = h->columns, .indent = indent, .at = indent};
    fprintf(h->out, "  %s%s%s", h->s.accent, head, h->s.off);
    if (at < indent)
        fprintf(h->out, "%*s", indent - at, "");
    else
        fprintf(h->out, "\n%*s", indent, "");
    cli_page_put(&p, o->help);
    if (o->kind == CLI_CHOICE) put_choices(&p, o->value);
    if (o->initial) {
        snprintf(initial, sizeof initial, " (default: %s)", o->initial);
        fputs(h->s.dim, h->out);
        cli_page_put(&p, initial);
        fputs(h->s.off, h->out);
    }
    putc('\n', h->out);
}

/* All options, or those that fit the topic, or those of every day. */
static void put_options(const helper *h, const cli_command *c, const char *topic) {
    const cli_option *rows;
    const size_t n_rows = cli_rows(c, &rows);
    const char *section = NULL;
    const bool all = !c->everyday || (topic && strcmp(topic, "all") == 0);
    put_heading(h, "Options", 7);
    for (size_t i = 0; i < n_rows; i++) {
        const cli_option *o = &rows[i];
        if (!all && !topic && !cli_among(c->everyday, o->name)) continue;
        if (!all && topic && !fits(c, o->help, topic)) continue;
        if (o->section != section && (all || topic)) {
            put_heading(h, o->section, strlen(o->section));
            section = o->section;
        }
        put_option(h, o);
    }
    put_option(h, &(cli_option){.name = "help", .letter = 'h', .help = "this text"});
}

/* ---- a command ---- */

/* Those of the topic; one made for it where there are none. */
static void put_examples(const helper *h, const cli_named *e, const char *row) {
    char begin[160], made[256];
    bool any = false;
    snprintf(begin, sizeof begin, "%s %s ", e->path, row ? row : "");
    put_heading(h, "Examples", 8);
    for (const char *line = e->command->examples; *line;) {
        const size_t n = strcspn(line, "\n");
        if (!row || strncmp(line, begin, strlen(begin)) == 0) put_example(h, line, n), any = true;
        line += n + (line[n] == '\n');
    }
    if (any) return;
    const char *rest = strchr(e->command->usage, ' ') + 1; /* behind TASK, up to "[options]" */
    snprintf(made, sizeof made, "%s%.*s", begin, (int)strcspn(rest, "["), rest);
    put_example(h, made, strlen(made));
}

/* What the first argument may be; the usage names it in capitals. */
static void put_first(const helper *h, const cli_command *c) {
    const char *name, *summary, *usage = c->usage + (*c->usage == '[');
    put_heading(h, usage, strcspn(usage, " ]"));
    for (size_t i = 0; c->first(i, &name, &summary); i++) put_row(h, name, summary);
}

static void put_more(const helper *h, const cli_named *e) {
    char text[256];
    const char *usage = e->command->usage;
    snprintf(text, sizeof text,
             "\"%s %.*s --help\" shows what fits one of them, \"%s --help all\" every option.",
             e->path, (int)strcspn(usage, " "), usage, e->path);
    putc('\n', h->out);
    put(h, 0, 0, text);
}

static void put_usage(const helper *h, const cli_named *e, const char *row) {
    char text[256];
    const char *usage = e->command->usage ? e->command->usage : "[options]";
    fprintf(h->out, "\n%sUsage%s", h->s.bold, h->s.off);
    snprintf(text, sizeof text, ": %s %s%s", e->path, row ? row : "",
             row ? usage + strcspn(usage, " ") : usage);
    put(h, 5, 9, text);
}

void cli_help(FILE *out, const cli_named *e, const char *topic) {
    const helper h = helper_on(out);
    const cli_command *c = e->command;
    const char *row = topic && c->everyday && is_row(c, topic, strlen(topic)) ? topic : NULL;
    const bool all = topic && strcmp(topic, "all") == 0;
    char text[256];
    fprintf(out, "%s%s%s%s%s: ", h.s.bold, e->path, row ? " " : "", row ? row : "", h.s.off);
    const char *name, *summary = e->summary;
    for (size_t i = 0; row && c->first(i, &name, &summary) && strcmp(name, row) != 0;) i++;
    put(&h, cli_width(e->path) + (row ? cli_width(row) + 1 : 0) + 2, 4, summary);
    if (c->examples) put_examples(&h, e, row);
    put_usage(&h, e, row);
    if (c->about) putc('\n', out), put(&h, 0, 0, c->about);
    if (c->first && !row) put_first(&h, c);
    if (c->subcommands) {
        put_heading(&h, "Commands", 8);
        put_entries(&h, c->subcommands, c->n_subcommands);
        snprintf(text, sizeof text, "\"%s COMMAND --help\" tells more.", e->path);
        putc('\n', out), put(&h, 0, 0, text);
        return;
    }
    put_options(&h, c, row ? row : all ? topic : NULL);
    if (c->everyday && !row && !all) put_more(&h, e);
}
