/* Runs a command on a terminal of its own and says what a person would have seen.
 *
 *     watch_terminal COLUMNSxROWS [--resize SECONDS COLUMNSxROWS] [--type TEXT]… COMMAND …
 *
 * Prints the lines that stand there in the end (those scrolled away too), then one line
 *     watched: widest W broken B first F silence S exit C
 * the widest line ever on it, how often a line ran over the right edge, seconds to the first byte,
 * the longest time without a change, and the exit code. --type types a text once all has been quiet
 * for a moment ("\t" is the tabulator, "\n" the return key, "\c" Ctrl-C); after the last one the
 * command is hung up on. */
#include "qkv.h"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WIDE = 1024, TALL = 4096, CELL = 8, QUIET_MS = 600 };

typedef struct terminal {
    int columns, row, column, rows; /* rows: in use */
    int widest, broken;
    char (*cell)[WIDE][CELL]; /* a character each, or "" */
    char character[CELL];     /* one that has begun */
    size_t have, want;
    int escape; /* 0: text; 1: after ESC; 2: in a sequence; 3: in a title; 4: an alphabet */
    char sequence[32];
    size_t n_sequence;
} terminal;

static void clear_from(terminal *t, int row, int column) {
    for (int i = column; i < WIDE; i++) t->cell[row][i][0] = 0;
}

static void next_row(terminal *t) {
    if (t->row + 1 < TALL) t->row++;
    if (t->row >= t->rows) t->rows = t->row + 1;
}

static void put_character(terminal *t) {
    const int width = qkv_text_columns(t->character, t->have);
    if (t->column + width > t->columns) {
        t->broken++;
        t->column = 0;
        next_row(t);
    }
    memcpy(t->cell[t->row][t->column], t->character, t->have);
    t->cell[t->row][t->column][t->have] = 0;
    t->column += width;
    if (t->column > t->widest) t->widest = t->column;
}

static void end_sequence(terminal *t, char final) {
    t->sequence[t->n_sequence] = 0;
    const int n = atoi(t->sequence) > 0 ? atoi(t->sequence) : 1;
    if (final == 'K') clear_from(t, t->row, t->column);
    if (final == 'C') t->column = t->column + n < t->columns ? t->column + n : t->columns - 1;
    if (final == 'D') t->column = t->column > n ? t->column - n : 0;
    if (final == 'A') t->row = t->row > n ? t->row - n : 0;
    if (final != 'J') return;
    clear_from(t, t->row, t->column);
    for (int row = t->row + 1; row < t->rows; row++) clear_from(t, row, 0);
}

static void in_escape(terminal *t, char c) {
    if (t->escape == 1) {
        t->escape = c == '[' ? 2 : c == ']' ? 3 : c == '(' ? 4 : 0;
        t->n_sequence = 0;
    } else if (t->escape == 4) {
        t->escape = 0;
    } else if (t->escape == 3) {
        if (c == '\a' || c == '\\') t->escape = 0;
    } else if (c >= '@' && c <= '~') {
        end_sequence(t, c);
        t->escape = 0;
    } else if (t->n_sequence + 1 < sizeof t->sequence) {
        t->sequence[t->n_sequence++] = c;
    }
}

static void take(terminal *t, char c) {
    const unsigned char u = (unsigned char)c;
    if (t->escape) {
        in_escape(t, c);
    } else if (c == '\033') {
        t->escape = 1;
    } else if (c == '\r') {
        t->column = 0;
    } else if (c == '\n') {
        next_row(t);
    } else if (c == '\b') {
        t->column -= t->column > 0;
    } else if (u >= 0x20) {
        if ((u & 0xc0) != 0x80)
            t->have = 0, t->want = u < 0x80 ? 1 : u < 0xe0 ? 2 : u < 0xf0 ? 3 : 4;
        if (t->have < t->want) t->character[t->have++] = c;
        if (t->have == t->want) put_character(t);
    }
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct plan {
    struct winsize size, resized;
    double resize; /* seconds; 0: never */
    char *typed[64];
    int n_typed, at_typed;
    char **command;
} plan;

static bool read_size(const char *text, struct winsize *size) {
    unsigned columns, rows;
    if (!text || sscanf(text, "%ux%u", &columns, &rows) != 2 || columns >= WIDE) return false;
    *size = (struct winsize){.ws_col = (unsigned short)columns, .ws_row = (unsigned short)rows};
    return true;
}

static bool read_plan(plan *p, char **arg) {
    if (!*arg || !read_size(*arg++, &p->size)) return false;
    for (; *arg; arg++) {
        if (strcmp(*arg, "--resize") == 0 && arg[1]) {
            p->resize = atof(*++arg);
            if (!read_size(*++arg, &p->resized)) return false;
        } else if (strcmp(*arg, "--type") == 0 && arg[1] && p->n_typed < 64) {
            p->typed[p->n_typed++] = *++arg;
        } else {
            p->command = arg;
            return true;
        }
    }
    return false;
}

static void type(int fd, const char *text) {
    static const char named[] = "tnc", keys[] = "\t\r\003";
    for (; *text; text++) {
        const char *key = *text == '\\' && text[1] ? strchr(named, text[1]) : NULL;
        if (write(fd, key ? &keys[key - named] : text, 1) != 1) return;
        text += key != NULL;
    }
}

typedef struct seen {
    double first, silence;
} seen;

static seen watch(plan *p, int fd, terminal *t) {
    const double begin = now();
    double last = begin;
    seen s = {.first = -1};
    for (;;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        char bytes[4096];
        /* What was written before the change is read before it, however late this process is. */
        if (p->resize > 0 && now() - begin > p->resize && poll(&wait, 1, 0) == 0) {
            ioctl(fd, TIOCSWINSZ, &p->resized);
            t->columns = p->resized.ws_col;
            t->widest = 0; /* what was there before does not count */
            p->resize = 0;
        }
        const int ready = poll(&wait, 1, p->n_typed ? QUIET_MS : 50);
        if (ready == 0 && p->n_typed) {
            if (p->at_typed == p->n_typed) return s;
            type(fd, p->typed[p->at_typed++]);
        }
        if (ready <= 0) continue;
        const ssize_t n = read(fd, bytes, sizeof bytes);
        const double gap = now() - last;
        last = now();
        if (gap > s.silence) s.silence = gap;
        if (n <= 0) return s;
        if (s.first < 0) s.first = last - begin;
        for (ssize_t i = 0; i < n; i++) take(t, bytes[i]);
    }
}

static void print_row(const terminal *t, int row) {
    int end = WIDE;
    while (end > 0 && !t->cell[row][end - 1][0]) end--;
    for (int i = 0; i < end; i++) {
        const char *c = t->cell[row][i];
        /* the second half of a wide character is empty, too */
        const bool half =
            !*c && i && qkv_text_columns(t->cell[row][i - 1], strlen(t->cell[row][i - 1])) > 1;
        fputs(*c ? c : half ? "" : " ", stdout);
    }
    putchar('\n');
}

int main(int argc, char **argv) {
    (void)argc;
    plan p = {0};
    terminal t = {.rows = 1, .cell = calloc(TALL, sizeof *t.cell)};
    if (!t.cell || !read_plan(&p, argv + 1)) {
        fputs("watch_terminal COLUMNSxROWS [--resize SECONDS COLUMNSxROWS] [--type TEXT]… "
              "COMMAND …\n",
              stderr);
        return 2;
    }
    t.columns = p.size.ws_col;
    int fd, status = 0;
    const pid_t child = forkpty(&fd, NULL, NULL, &p.size);
    if (child < 0) return perror("forkpty"), 2;
    if (child == 0) {
        execvp(p.command[0], p.command);
        _exit(127);
    }
    const seen s = watch(&p, fd, &t);
    close(fd);
    if (p.n_typed) kill(child, SIGHUP);
    waitpid(child, &status, 0);
    for (int row = 0; row < t.rows; row++) print_row(&t, row);
    printf("watched: widest %d broken %d first %.2f silence %.2f exit %d\n", t.widest, t.broken,
           s.first, s.silence, WIFEXITED(status) ? WEXITSTATUS(status) : 128);
    free(t.cell);
    return 0;
}
