#include "input_lines.h"
#include "terminal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BLOCK (1u << 20)

cli_lines cli_lines_of(const cli_args *a) {
    return (cli_lines){.nul = cli_flag(a, "null"), .wait = cli_real(a, "max-wait") / 1000};
}

void cli_lines_free(cli_lines *l) {
    free(l->data);
    free(l->line);
    l->data = NULL;
    l->line = NULL;
}

/* Whether lines were left unread: in one place, so that no command can forget to say it. */
static bool failed;

bool cli_lines_failed(void) {
    return failed;
}

static bool out_of_memory(void) {
    fputs("qkv: out of memory\n", stderr);
    return !(failed = true);
}

static bool add_line(cli_lines *l, const char *text, size_t len) {
    if (l->n == l->line_cap) {
        const size_t cap = l->line_cap ? 2 * l->line_cap : 1024;
        qkv_text *grown = realloc(l->line, cap * sizeof *grown);
        if (!grown) return out_of_memory();
        l->line = grown;
        l->line_cap = cap;
    }
    if (!l->nul && len && text[len - 1] == '\r') len--;
    l->line[l->n++] = (qkv_text){text, len};
    return true;
}

/* Reads what there is, one block at most, behind what is kept. */
static bool fill(cli_lines *l, int fd) {
    if (l->cap - l->len < BLOCK) {
        const size_t cap = l->len + l->len / 2 + BLOCK;
        char *grown = realloc(l->data, cap);
        if (!grown) return out_of_memory();
        l->data = grown;
        l->cap = cap;
    }
    ssize_t got;
    do got = read(fd, l->data + l->len, BLOCK);
    while (got < 0 && errno == EINTR);
    if (got < 0) {
        fprintf(stderr, "qkv: standard input: cannot read it: %s\n", strerror(errno));
        return !(failed = true);
    }
    l->end = got == 0;
    l->len += (size_t)got;
    return true;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Is there more to read before the time is over? */
static bool more_until(int fd, double until) {
    const double left = until - now();
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return left > 0 && poll(&p, 1, (int)(1000 * left) + 1) > 0;
}

/* Reads until there is a whole line, and then for as long as lines are waited for. */
static bool read_some(cli_lines *l, int fd) {
    size_t searched = 0;
    double until = 0;
    for (bool whole = false; !l->end;) {
        if (!whole && searched < l->len)
            whole = memchr(l->data + searched, cli_lines_end(l), l->len - searched) != NULL;
        searched = l->len;
        if (whole && until == 0) until = now() + l->wait;
        if (whole && (l->len >= BLOCK || l->wait <= 0 || !more_until(fd, until))) break;
        if (!fill(l, fd)) return false;
    }
    return true;
}

bool cli_lines_next(cli_lines *l, int fd) {
    if (!l->begun && isatty(fd)) /* who sits there should know that it is their turn */
        cli_say(stderr, 5, "qkv: a text per line, please; Ctrl-D ends (or: qkv … < FILE)");
    l->begun = true;
    l->n = 0;
    if (l->used) memmove(l->data, l->data + l->used, l->len - l->used);
    l->len -= l->used;
    l->used = 0;
    if (!read_some(l, fd)) return false;
    for (char *found; (!l->most || l->n < l->most) && l->used < l->len &&
                      (found = memchr(l->data + l->used, cli_lines_end(l), l->len - l->used));) {
        if (!add_line(l, l->data + l->used, (size_t)(found - l->data) - l->used)) return false;
        l->used = (size_t)(found - l->data) + 1;
    }
    if (l->end && l->n == 0 && l->used < l->len) { /* a last line without its end */
        if (!add_line(l, l->data + l->used, l->len - l->used)) return false;
        l->used = l->len;
    }
    return l->n > 0;
}

/* The name of a file is a text like any other, but seldom what is meant. */
static void say_file(const char *text) {
    if (access(text, R_OK) == 0)
        cli_say(stderr, 5,
                "qkv: \"%s\" is read as a text, though a file has this name; for the file's lines: "
                "< %s",
                text, text);
}

bool cli_lines_or_texts(cli_lines *l, const cli_args *a, int fd) {
    if (a->n_rest < 2) return cli_lines_next(l, fd);
    if (l->end) return false;
    l->end = true;
    if (a->n_rest == 2) say_file(a->rest[1]);
    for (size_t i = 1; i < a->n_rest; i++)
        if (!add_line(l, a->rest[i], strlen(a->rest[i]))) return false;
    return true;
}

/* ---- files ---- */

static bool fail_file(cli_files *f, const char *name) {
    f->failed = name;
    f->error = errno;
    return false;
}

static void close_file(cli_files *f) {
    if (f->file && f->file != stdin) fclose(f->file);
    f->file = NULL;
}

bool cli_files_next(void *files, const char **text, size_t *len) {
    for (cli_files *f = files; !f->failed;) {
        if (!f->file) {
            const char *const name = *f->names;
            if (!name) return false;
            f->file = strcmp(name, "-") == 0 ? stdin : fopen(name, "rb");
            if (!f->file) return fail_file(f, name);
            f->names++;
        }
        errno = 0;
        ssize_t n = getline(&f->line, &f->cap, f->file);
        if (n < 0) {
            if (ferror(f->file) || errno) return fail_file(f, f->names[-1]);
            close_file(f);
            continue;
        }
        if (!f->keep_ends && n && f->line[n - 1] == '\n') n--;
        if (!f->keep_ends && n && f->line[n - 1] == '\r') n--;
        *text = f->line;
        *len = (size_t)n;
        return true;
    }
    return false;
}

int cli_files_close(cli_files *f) {
    close_file(f);
    free(f->line);
    f->line = NULL;
    if (!f->failed) return 0;
    fprintf(stderr, "qkv: %s: %s\n", f->failed, strerror(f->error));
    return 1;
}
