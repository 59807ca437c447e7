/* Options from the library's tables of keys: every key of a model or of a training is an option of
 * the commands that ask for it, with its help, bounds, choices and default,
 * so no list here repeats those tables. */
#include "command.h"

#include <stdlib.h>
#include <string.h>

/* Rows once made are kept: parsing, help, man pages and completions all ask for them. */
typedef struct rows {
    const cli_command *command;
    cli_option *list;
    size_t n;
} rows;

static bool has_own(const cli_command *c, const char *name) {
    for (size_t i = 0; i < c->n_options; i++)
        if (strcmp(c->options[i].name, name) == 0) return true;
    return false;
}

static char *copy(const char *text) {
    char *out = malloc(strlen(text) + 1);
    return out ? strcpy(out, text) : NULL;
}

/* "full|local|bigbird" */
static char *join(const char *const *words) {
    size_t n = 1;
    for (size_t i = 0; words[i]; i++) n += strlen(words[i]) + 1;
    char *out = calloc(n, 1);
    for (size_t i = 0; out && words[i]; i++) strcat(strcat(out, i ? "|" : ""), words[i]);
    return out;
}

/* As few digits as read back the same. */
static void put_number(double value, char out[CLI_KEY_DEFAULT]) {
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(out, CLI_KEY_DEFAULT, "%.*g", digits, value);
        if (strtod(out, NULL) == value) return;
    }
}

void cli_key_default(const qkv_key *k, char out[CLI_KEY_DEFAULT]) {
    switch (k->kind) {
    case QKV_KEY_INT:
        snprintf(out, CLI_KEY_DEFAULT, "%lld", (long long)k->standard);
        break;
    case QKV_KEY_REAL:
        put_number(k->standard, out);
        break;
    case QKV_KEY_BOOL:
        snprintf(out, CLI_KEY_DEFAULT, "%s", k->standard != 0 ? "true" : "false");
        break;
    case QKV_KEY_CHOICE:
        snprintf(out, CLI_KEY_DEFAULT, "%s", k->choices[(size_t)k->standard]);
        break;
    case QKV_KEY_TEXT:
        snprintf(out, CLI_KEY_DEFAULT, "%s", k->text);
        break;
    }
}

/* The default as the help shows it. A key that is 0 or −1 by default is chosen elsewhere:
 * its help says how. */
static const char *initial(const qkv_key *k) {
    char text[CLI_KEY_DEFAULT];
    if (k->kind == QKV_KEY_CHOICE) return k->choices[(size_t)k->standard];
    if (k->kind == QKV_KEY_BOOL) return k->standard != 0 ? "true" : "false";
    if (k->kind == QKV_KEY_TEXT) return *k->text ? k->text : NULL;
    if (k->standard <= 0) return NULL;
    cli_key_default(k, text);
    return copy(text);
}

/* ---- names that the value of a key may be ---- */

bool cli_preset_row(size_t i, const char **name, const char **summary) {
    const char *assignments;
    return qkv_preset_row(i, name, summary, &assignments);
}

static bool format_row(size_t i, const char **name, const char **summary) {
    *summary = "";
    return qkv_format_row(i, name);
}

static bool kind_row(size_t i, const char **name, const char **summary) {
    static const char *const kinds[][2] = {{"bpe", "joined pairs"},
                                           {"unigram", "probable pieces"},
                                           {"wordpiece", "pieces of words"},
                                           {"char", "characters"},
                                           {"word", "whole words"}};
    if (i >= CLI_COUNT(kinds)) return false;
    *name = kinds[i][0], *summary = kinds[i][1];
    return true;
}

static cli_rows_fn *rows_of(const char *key) {
    return strcmp(key, "format") == 0      ? format_row
           : strcmp(key, "tokenizer") == 0 ? kind_row
                                           : NULL;
}

static cli_option option_of(const qkv_key *k, const char *section) {
    static const char *const truth[] = {"true", "false", NULL};
    cli_option o = {.help = k->help,
                    .section = section,
                    .key = true,
                    .initial = initial(k),
                    .rows = rows_of(k->name),
                    .min = k->min,
                    .max = k->max};
    char *name = copy(k->name);
    for (char *c = name; c && *c; c++)
        if (*c == '_') *c = '-';
    o.name = name;
    switch (k->kind) {
    case QKV_KEY_INT:
        o.kind = CLI_INT, o.value = "N";
        break;
    case QKV_KEY_REAL:
        o.kind = CLI_REAL, o.value = "X";
        break;
    case QKV_KEY_BOOL:
        o.kind = CLI_CHOICE, o.value = join(truth);
        break;
    case QKV_KEY_CHOICE:
        o.kind = CLI_CHOICE, o.value = join(k->choices);
        break;
    case QKV_KEY_TEXT:
        o.kind = CLI_TEXT, o.value = "TEXT";
        break;
    }
    return o;
}

static void add_table(rows *r, qkv_key_table table, const char *section) {
    qkv_key k;
    for (size_t i = 0; qkv_key_row(table, i, &k); i++) {
        char name[80]; /* decided before anything is made that nobody would keep */
        snprintf(name, sizeof name, "%s", k.name);
        for (char *c = name; *c; c++)
            if (*c == '_') *c = '-';
        if (has_own(r->command, name) || cli_among(r->command->no_keys, k.name)) continue;
        cli_option *list = realloc(r->list, (r->n + 1) * sizeof *list);
        if (!list) return;
        r->list = list;
        list[r->n] = option_of(&k, section);
        if (list[r->n].name) r->n++;
    }
}

size_t cli_rows(const cli_command *c, const cli_option **out) {
    static rows made[4];
    *out = c->options;
    if (!c->keys) return c->n_options;
    size_t i = 0;
    while (i + 1 < CLI_COUNT(made) && made[i].command && made[i].command != c) i++;
    rows *r = &made[i];
    if (r->command != c) {
        *r = (rows){.command = c, .list = calloc(c->n_options + 1, sizeof *r->list)};
        if (!r->list) return c->n_options;
        memcpy(r->list, c->options, c->n_options * sizeof *r->list);
        r->n = c->n_options;
        if (c->keys & CLI_KEYS_TRAINING) add_table(r, QKV_KEYS_TRAINING, "Training");
        if (c->keys & CLI_KEYS_MODEL)
            add_table(r, QKV_KEYS_MODEL, "Model (defaults that a preset may change)");
    }
    *out = r->list;
    return r->n;
}

/* "batch-tokens", "4096" → "batch_tokens=4096"; --set passes its text as it is. */
static char *pair(const cli_option *o, const char *value) {
    if (o->kind == CLI_EACH) return copy(value);
    const size_t n = strlen(o->name) + strlen(value) + 2;
    char *text = malloc(n);
    if (!text) return NULL;
    snprintf(text, n, "%s=%s", o->name, value);
    for (char *c = text; *c != '='; c++)
        if (*c == '-') *c = '_';
    return text;
}

char **cli_pairs(const cli_args *a) {
    char **pairs = calloc(a->n_given + 1, sizeof *pairs);
    size_t n = 0;
    for (size_t i = 0; pairs && i < a->n_given; i++) {
        const cli_option *o = &a->options[a->given[i].option];
        if (!o->key) continue;
        pairs[n] = pair(o, a->given[i].text);
        if (!pairs[n++]) return cli_pairs_free(pairs), NULL;
    }
    return pairs;
}

void cli_pairs_free(char **pairs) {
    for (size_t i = 0; pairs && pairs[i]; i++) free(pairs[i]);
    free(pairs);
}
