#include "terminal.h"
#include "qkv.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int cli_columns(int fd) {
    struct winsize size;
    if (!isatty(fd)) return 0;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    return 80;
}

int cli_width(const char *text) {
    return qkv_text_columns(text, strlen(text));
}

static void put_clean(FILE *out, const char *text, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text[i];
        putc(c == '\t' ? ' ' : c < 0x20 || c == 0x7f ? '?' : c, out);
    }
}

static void end_line(cli_page *p) {
    fprintf(p->out, "\n%*s", p->indent, "");
    p->at = p->indent;
}

/* A word, behind the blanks that came before it or on a new line. */
static void put_word(cli_page *p, const char *word, size_t n) {
    const int columns = p->columns - (p->tail ? cli_width(p->tail) : 0),
              width = qkv_text_columns(word, n);
    if (p->columns && p->at > p->indent && p->at + p->gap + width > columns) {
        fputs(p->tail ? p->tail : "", p->out);
        end_line(p);
        p->gap = 0;
    }
    p->at += fprintf(p->out, "%*s", p->gap, "") + width;
    p->gap = 0;
    put_clean(p->out, word, n);
}

void cli_page_put(cli_page *p, const char *text) {
    while (*text) {
        const size_t n = strcspn(text, " \n");
        if (n) put_word(p, text, n);
        text += n;
        if (*text == '\n' && !p->flows) {
            end_line(p);
            p->gap = 0;
        } else if (*text) {
            p->gap++;
        }
        text += *text != 0;
    }
}

void cli_say(FILE *out, int indent, const char *format, ...) {
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cli_page p = {.out = out, .columns = cli_columns(fileno(out)), .indent = indent};
    cli_page_put(&p, text);
    putc('\n', out);
}

/* Where the words begin behind a label: "data      5,452 rows" at 10; without a label at 2. */
static int behind_label(const char *text) {
    const char *gap = strstr(text, "  ");
    if (!gap || gap - text > 12) return 2;
    return (int)(gap - text) + (int)strspn(gap, " ");
}

/* A line, cut where the terminal ends. */
static void put_cut(FILE *out, const char *line, size_t n, int columns) {
    size_t end = 0;
    for (size_t next = 0; next < n;) {
        do next++;
        while (next < n && ((unsigned char)line[next] & 0xc0) == 0x80);
        if (qkv_text_columns(line, next) > columns) break;
        end = next;
    }
    put_clean(out, line, end);
    putc('\n', out);
}

/* A command to be copied stays on one line, below its label where there is no room beside it. */
static bool put_command(FILE *out, const char *text, int columns) {
    const int indent = behind_label(text);
    if (strncmp(text, "use it", 6) != 0 || cli_width(text) <= columns) return false;
    fputs("use it\n  ", out);
    put_clean(out, text + indent, strlen(text + indent));
    putc('\n', out);
    return true;
}

void cli_put_lines(FILE *out, const char *text) {
    const int columns = cli_columns(fileno(out));
    for (const char *end; *text; text = *end ? end + 1 : end) {
        end = text + strcspn(text, "\n");
        const size_t n = (size_t)(end - text);
        char line[2048];
        if (!columns || n >= sizeof line || memchr(text, '\033', n) ||
            qkv_text_columns(text, n) <= columns) {
            fwrite(text, 1, n + (*end == '\n'), out);
            continue;
        }
        memcpy(line, text, n);
        line[n] = 0;
        cli_page p = {.out = out, .columns = columns, .indent = behind_label(line)};
        if (p.indent > columns / 2) p.indent = 2;
        cli_page_put(&p, line);
        if (*end) putc('\n', out);
    }
}

void cli_put_note(FILE *out, const char *text, int columns) {
    const char *end = strchr(text, '\n');
    if (columns && put_command(out, text, columns)) return;
    if (!columns || !end) {
        cli_page p = {.out = out, .columns = columns, .indent = columns ? behind_label(text) : 0};
        if (p.indent > columns / 2) p.indent = 2;
        cli_page_put(&p, text);
        putc('\n', out);
        return;
    }
    for (; *text; text = *end ? end + 1 : end) {
        end = text + strcspn(text, "\n");
        put_cut(out, text, (size_t)(end - text), columns);
    }
}
