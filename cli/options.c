/* Parsing by the rows of a table; see options.h. */
#include "options.h"
#include "qkv.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct parser {
    cli_args *a;
    const char *command;
    int argc;
    char **argv;
    int at;
} parser;

/* ---- messages ---- */

static bool complain(const parser *p, const char *what, const char *name, const char *why) {
    fprintf(stderr, "qkv: %s%s%s\n", what, name, why);
    fprintf(stderr, "     see: %s --help\n", p->command);
    return false;
}

static bool unknown_option(const parser *p, const char *name, size_t n) {
    char asked[64];
    snprintf(asked, sizeof asked, "%.*s", (int)(n < 63 ? n : 63), name);
    const char **names = malloc((p->a->n_options + 1) * sizeof *names);
    if (!names) return complain(p, "out of memory", "", "");
    for (size_t i = 0; i < p->a->n_options; i++) names[i] = p->a->options[i].name;
    names[p->a->n_options] = "help";
    const char *near = qkv_nearest(asked, names, p->a->n_options + 1);
    free(names);
    char why[160];
    snprintf(why, sizeof why, near ? "; did you mean --%s?" : "%s", near ? near : "");
    return complain(p, "there is no option --", asked, why);
}

/* ---- values ---- */

void cli_each_choice(const char *choices, bool (*use)(void *user, const char *word, size_t n),
                     void *user) {
    for (const char *word = choices;; word++) {
        size_t n = strcspn(word, "|");
        if (!use(user, word, n)) return;
        word += n;
        if (!*word) return;
    }
}

typedef struct search {
    const char *wanted;
    bool found;
} search;

static bool same_word(void *user, const char *word, size_t n) {
    search *s = user;
    s->found = strlen(s->wanted) == n && memcmp(s->wanted, word, n) == 0;
    return !s->found;
}

static bool check_number(const parser *p, const cli_option *o, const char *text) {
    char *end;
    errno = 0;
    double value;
    if (o->kind == CLI_INT) {
        long long whole = strtoll(text, &end, 10);
        value = (double)whole;
    } else {
        value = strtod(text, &end);
    }
    char why[160];
    if (end == text || *end || errno == ERANGE || !isfinite(value)) {
        snprintf(why, sizeof why, " takes a %s, not \"%.40s\"",
                 o->kind == CLI_INT ? "whole number" : "number", text);
        return complain(p, "--", o->name, why);
    }
    if ((o->min != 0 || o->max != 0) && !(value >= o->min && value <= o->max)) {
        snprintf(why, sizeof why, " must lie between %.10g and %.10g, not %.40s", o->min, o->max,
                 text);
        return complain(p, "--", o->name, why);
    }
    return true;
}

static bool check(const parser *p, const cli_option *o, const char *text) {
    if (o->kind == CLI_INT || o->kind == CLI_REAL) return check_number(p, o, text);
    if (o->kind != CLI_CHOICE) return true;
    search s = {.wanted = text};
    cli_each_choice(o->value, same_word, &s);
    if (s.found) return true;
    char why[400];
    snprintf(why, sizeof why, " is one of %s, not \"%.40s\"", o->value, text);
    return complain(p, "--", o->name, why);
}

/* argv holds at least as many words as there can be entries, so `given` and `rest` never grow. */
static bool take(parser *p, size_t option, const char *text) {
    if (!check(p, &p->a->options[option], text)) return false;
    p->a->given[p->a->n_given++] = (struct cli_given){option, text};
    return true;
}

/* The value(s) of an option whose name was just read; `attached` is what followed '=' or the
 * letter. */
static bool take_values(parser *p, size_t option, const char *attached) {
    const cli_option *o = &p->a->options[option];
    if (o->kind == CLI_FLAG) {
        if (attached) return complain(p, "--", o->name, " takes no value");
        return take(p, option, "");
    }
    if (attached) return take(p, option, attached);
    size_t before = p->a->n_given;
    while (p->at < p->argc) {
        const char *word = p->argv[p->at];
        bool number = o->kind == CLI_INT || o->kind == CLI_REAL;
        if (word[0] == '-' && word[1] && !number) break;
        p->at++;
        if (!take(p, option, word)) return false;
        if (o->kind != CLI_LIST) return true;
    }
    if (p->a->n_given > before) return true;
    return complain(p, "--", o->name,
                    " needs a value (one that begins with - is given as --name=value)");
}

/* ---- words ---- */

static bool long_option(parser *p, const char *word) {
    const char *name = word + 2;
    size_t n = strcspn(name, "=");
    const char *attached = name[n] ? name + n + 1 : NULL;
    if (n == 4 && memcmp(name, "help", 4) == 0) return p->a->help = true;
    for (size_t i = 0; i < p->a->n_options; i++)
        if (strlen(p->a->options[i].name) == n && memcmp(p->a->options[i].name, name, n) == 0)
            return take_values(p, i, attached);
    return unknown_option(p, name, n);
}

static bool short_option(parser *p, const char *word) {
    if (word[1] == 'h' && !word[2]) return p->a->help = true;
    for (size_t i = 0; i < p->a->n_options; i++)
        if (p->a->options[i].letter && p->a->options[i].letter == word[1])
            return take_values(p, i, word[2] ? word + 2 + (word[2] == '=') : NULL);
    return complain(p, "there is no option ", word, "");
}

bool cli_parse(cli_args *a, const char *command, const cli_option *options, size_t n_options,
               int argc, char **argv) {
    *a = (cli_args){.options = options, .n_options = n_options};
    parser p = {.a = a, .command = command, .argc = argc, .argv = argv};
    a->given = calloc((size_t)argc + 1, sizeof *a->given);
    a->rest = calloc((size_t)argc + 1, sizeof *a->rest);
    if (!a->given || !a->rest) return complain(&p, "out of memory", "", "");
    bool only_rest = false;
    while (p.at < argc && !a->help) {
        const char *word = argv[p.at++];
        if (only_rest || word[0] != '-' || !word[1]) {
            a->rest[a->n_rest++] = word;
        } else if (strcmp(word, "--") == 0) {
            only_rest = true;
        } else if (!(word[1] == '-' ? long_option(&p, word) : short_option(&p, word))) {
            return false;
        }
    }
    if (a->help && p.at < argc && argv[p.at][0] != '-')
        a->topic = argv[p.at];
    else if (a->help && a->n_rest)
        a->topic = a->rest[0];
    return true;
}

void cli_args_free(cli_args *a) {
    free(a->given);
    free(a->rest);
    *a = (cli_args){0};
}

/* ---- asking ---- */

static size_t row_of(const cli_args *a, const char *name) {
    for (size_t i = 0; i < a->n_options; i++)
        if (strcmp(a->options[i].name, name) == 0) return i;
    fprintf(stderr, "qkv: bug: no row for option --%s\n", name);
    exit(70);
}

static const char *last_given(const cli_args *a, size_t row) {
    for (size_t i = a->n_given; i-- > 0;)
        if (a->given[i].option == row) return a->given[i].text;
    return NULL;
}

bool cli_given(const cli_args *a, const char *name) {
    return last_given(a, row_of(a, name)) != NULL;
}

bool cli_flag(const cli_args *a, const char *name) {
    return cli_given(a, name);
}

const char *cli_text(const cli_args *a, const char *name) {
    size_t row = row_of(a, name);
    const char *text = last_given(a, row);
    return text ? text : a->options[row].initial;
}

int64_t cli_int(const cli_args *a, const char *name) {
    const char *text = cli_text(a, name);
    return text ? strtoll(text, NULL, 10) : 0;
}

double cli_real(const cli_args *a, const char *name) {
    const char *text = cli_text(a, name);
    return text ? strtod(text, NULL) : 0;
}

const char *cli_next(const cli_args *a, const char *name, size_t *cursor) {
    size_t row = row_of(a, name);
    while (*cursor < a->n_given) {
        const struct cli_given *g = &a->given[(*cursor)++];
        if (g->option == row) return g->text;
    }
    return NULL;
}

const char **cli_list(const cli_args *a, const char *name) {
    if (!cli_given(a, name)) return NULL;
    const char **values = calloc(a->n_given + 1, sizeof *values);
    if (!values) {
        fputs("qkv: out of memory\n", stderr);
        exit(1);
    }
    for (size_t cursor = 0, n = 0; (values[n] = cli_next(a, name, &cursor)); n++) {}
    return values;
}
