/* Manual pages in man(7), written from the tables of commands and options: qkv.1 and one page a
 * command, so that they say what the program does. `qkv --man-pages FOLDER` is for the build. */
#include "command.h"

#include <errno.h>
#include <string.h>

/* Text with what troff would take for itself put right:
 * backslashes, hyphens, a leading dot or quote. */
static void put(FILE *out, const char *text, size_t n, bool line_start) {
    for (size_t i = 0; i < n; i++) {
        if (line_start && (text[i] == '.' || text[i] == '\'')) fputs("\\&", out);
        line_start = text[i] == '\n';
        if (text[i] == '\\')
            fputs("\\e", out);
        else if (text[i] == '-')
            fputs("\\-", out);
        else
            fputc(text[i], out);
    }
}

static void put_text(FILE *out, const char *text) {
    put(out, text, strlen(text), true);
}

static void put_heading(FILE *out, const char *path, const char *summary) {
    fputs(".TH ", out);
    for (const char *p = path; *p; p++)
        fputc(*p == ' ' ? '-' : *p >= 'a' && *p <= 'z' ? *p - 32 : *p, out);
    fprintf(out, " 1 \"\" \"qkv %s\" \"User Commands\"\n.SH NAME\n", qkv_version());
    for (const char *p = path; *p; p++) fputs(*p == ' ' ? "\\-" : (char[]){*p, 0}, out);
    fputs(" \\- ", out);
    put_text(out, summary);
    fputc('\n', out);
}

static void put_option(FILE *out, const cli_option *o) {
    fputs(".TP\n\\fB", out);
    if (o->letter) fprintf(out, "\\-%c\\fR, \\fB", o->letter);
    fputs("\\-\\-", out);
    put_text(out, o->name);
    fputs("\\fR", out);
    if (o->value) {
        fputs(" \\fI", out);
        put_text(out, o->value);
        fputs(o->kind == CLI_LIST ? "...\\fR" : "\\fR", out);
    }
    fputc('\n', out);
    put_text(out, o->help);
    if (o->initial) {
        fputs(" (default: ", out);
        put(out, o->initial, strlen(o->initial), false);
        fputc(')', out);
    }
    fputc('\n', out);
}

static void put_leaf(FILE *out, const char *path, const cli_command *c) {
    if (c->about) {
        fputs(".PP\n", out);
        put_text(out, c->about);
        fputc('\n', out);
    }
    const char *name, *summary;
    const char *first = c->usage ? c->usage + (*c->usage == '[') : "";
    if (c->first) fprintf(out, ".SS %.*s\n", (int)strcspn(first, " ]"), first);
    for (size_t i = 0; c->first && c->first(i, &name, &summary); i++) {
        fprintf(out, ".TP\n\\fB%s\\fR\n", name);
        put_text(out, summary);
        fputc('\n', out);
    }
    const cli_option *rows;
    const size_t n = cli_rows(c, &rows);
    if (n) fprintf(out, ".SS Options of %s\n", path);
    for (size_t i = 0; i < n; i++) {
        if (i && rows[i].section != rows[i - 1].section) fprintf(out, ".SS %s\n", rows[i].section);
        put_option(out, &rows[i]);
    }
    if (!c->examples) return;
    fprintf(out, ".SS Examples\n.nf\n");
    put_text(out, c->examples);
    fputs(".fi\n", out);
}

static void put_synopsis(FILE *out, const char *path, const cli_command *c) {
    fputs(".B ", out);
    put(out, path, strlen(path), false);
    fputc('\n', out);
    put_text(out, c->usage ? c->usage : "[options]");
    fputs("\n.br\n", out);
}

static void put_end(FILE *out) {
    fputs(".SH EXIT STATUS\n", out);
#define EXIT_ROW(name, code, text) fprintf(out, ".TP\n\\fB%d\\fR\n%s\n", code, text);
    QKV_STATUS_TABLE(EXIT_ROW)
#undef EXIT_ROW
    fputs(".SH SEE ALSO\n.BR qkv (1)\n", out);
}

/* The page of one command; its subcommands are sections of it. */
static void put_command(FILE *out, const cli_entry *e) {
    char path[128], sub[256];
    const cli_command *c = e->command;
    snprintf(path, sizeof path, "qkv %s", e->name);
    put_heading(out, path, e->summary);
    fputs(".SH SYNOPSIS\n", out);
    for (size_t i = 0; i < c->n_subcommands; i++) {
        snprintf(sub, sizeof sub, "%s %s", path, c->subcommands[i].name);
        put_synopsis(out, sub, c->subcommands[i].command);
    }
    if (!c->n_subcommands) put_synopsis(out, path, c);
    fputs(".SH DESCRIPTION\n", out);
    put_leaf(out, path, c);
    for (size_t i = 0; i < c->n_subcommands; i++) {
        snprintf(sub, sizeof sub, "%s %s", path, c->subcommands[i].name);
        fprintf(out, ".SH %s\n", sub);
        put_text(out, c->subcommands[i].summary);
        fputc('\n', out);
        put_leaf(out, sub, c->subcommands[i].command);
    }
    put_end(out);
}

static void put_overview(FILE *out, const cli_entry *entries, size_t n) {
    put_heading(out, "qkv", "train, evaluate, explain and use Transformers on the CPU");
    fputs(".SH SYNOPSIS\n.B qkv\n.I COMMAND\n[options]\n.SH COMMANDS\n", out);
    for (size_t i = 0; i < n; i++) {
        fprintf(out, ".TP\n.BR qkv\\-%s (1)\n", entries[i].name);
        put_text(out, entries[i].summary);
        fputc('\n', out);
    }
    fputs(".SH ENVIRONMENT\n.TP\n.B QKV_ISA\nforces an instruction set: plain, avx2, avx512\n"
          ".TP\n.B NO_COLOR\nwhen set, no colours on a terminal\n",
          out);
    put_end(out);
}

/* Opens FOLDER/name.1; NULL after a message. */
static FILE *open_page(const char *folder, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s.1", folder, name);
    FILE *out = fopen(path, "w");
    if (!out) fprintf(stderr, "qkv: cannot write %s: %s\n", path, strerror(errno));
    return out;
}

int cli_man_pages(const char *folder) {
    const cli_entry *entries;
    size_t n = cli_commands(&entries);
    for (size_t i = 0; i <= n; i++) {
        char name[64];
        snprintf(name, sizeof name, "qkv%s%s", i < n ? "-" : "", i < n ? entries[i].name : "");
        FILE *out = open_page(folder, name);
        if (!out) return qkv_status_exit_code(QKV_FAILED);
        if (i < n)
            put_command(out, &entries[i]);
        else
            put_overview(out, entries, n);
        if (fclose(out) != 0) return qkv_status_exit_code(QKV_FAILED);
    }
    return 0;
}
