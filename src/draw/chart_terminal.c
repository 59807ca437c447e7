/* Line chart in the terminal. A braille character is a grid of 2×4 dots, so a chart of 60×12
 * characters has 120×48 points; a character takes the colour of the series that drew in it last. */
#include "draw/chart.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LABEL = 8, SERIES = 6 };

/* Bright enough on black, dark enough on white. */
static const char *const colours[SERIES] = {"\033[38;2;59;130;246m", "\033[38;2;234;88;12m",
                                            "\033[38;2;5;150;105m",  "\033[38;2;168;85;247m",
                                            "\033[38;2;220;38;38m",  "\033[38;2;8;145;178m"};

typedef struct canvas {
    int columns, rows;
    int mark;        /* its column; −1: none */
    uint8_t *dots;   /* braille pattern of each character */
    uint8_t *series; /* who drew there last */
    qkv_axis x, y;
} canvas;

static void dot(canvas *v, int x, int y, uint8_t series) {
    static const uint8_t bit[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    if (x < 0 || y < 0 || x >= 2 * v->columns || y >= 4 * v->rows) return;
    size_t cell = (size_t)(y / 4) * (size_t)v->columns + (size_t)(x / 2);
    v->dots[cell] |= bit[y % 4][x % 2];
    v->series[cell] = series;
}

static void segment(canvas *v, double x0, double y0, double x1, double y1, uint8_t series) {
    int steps = (int)fmax(fabs(x1 - x0), fabs(y1 - y0)) + 1;
    for (int i = 0; i <= steps; i++) {
        double t = (double)i / steps;
        dot(v, (int)lround(x0 + t * (x1 - x0)), (int)lround(y0 + t * (y1 - y0)), series);
    }
}

static void draw(canvas *v, const qkv_series *s, uint8_t number) {
    double before_x = NAN, before_y = NAN;
    for (size_t i = 0; i < s->n; i++) {
        if (!isfinite(s->x[i]) || !isfinite(s->y[i])) {
            before_x = NAN;
            continue;
        }
        double x = (s->x[i] - v->x.low) / (v->x.high - v->x.low) * (2 * v->columns - 1);
        double y = (v->y.high - s->y[i]) / (v->y.high - v->y.low) * (4 * v->rows - 1);
        if (isnan(before_x))
            dot(v, (int)lround(x), (int)lround(y), number);
        else
            segment(v, before_x, before_y, x, y, number);
        before_x = x, before_y = y;
    }
}

/* The label of the tick that falls into this line, or blanks. */
static void put_label(const canvas *v, int row, qkv_buf *out) {
    char label[32] = "";
    for (int i = 0; i < v->y.n; i++) {
        double y = (v->y.high - v->y.tick[i]) / (v->y.high - v->y.low) * (4 * v->rows - 1);
        if ((int)(lround(y) / 4) == row) qkv_axis_label(&v->y, v->y.tick[i], label);
    }
    qkv_text_fit(out, label, strlen(label), LABEL, true);
    qkv_buf_puts(out, *label ? " ┤" : " │");
}

static void put_rows(const canvas *v, qkv_ink ink, qkv_buf *out) {
    for (int r = 0; r < v->rows; r++) {
        int colour = -1;
        put_label(v, r, out);
        int end = v->columns; /* no blanks at the end of a line */
        while (end > 0 && !v->dots[r * v->columns + end - 1] && end - 1 != v->mark) end--;
        for (int c = 0; c < end; c++) {
            uint8_t dots = v->dots[r * v->columns + c];
            int series = v->series[r * v->columns + c] % SERIES;
            if (dots && ink.colour && series != colour) qkv_buf_puts(out, colours[colour = series]);
            if (!dots && c == v->mark && colour >= 0)
                qkv_buf_puts(out, "\033[0m┆"), colour = -1;
            else if (!dots)
                qkv_buf_puts(out, c == v->mark ? "┆" : " ");
            else /* U+2800 + dots */
                qkv_buf_add(
                    out,
                    (char[]){(char)0xE2, (char)(0xA0 + (dots >> 6)), (char)(0x80 + (dots & 63))},
                    3);
        }
        if (colour >= 0) qkv_buf_puts(out, "\033[0m");
        qkv_buf_putc(out, '\n');
    }
}

static void put_bottom(const canvas *v, const qkv_chart *c, qkv_buf *out) {
    char line[512];
    int width = v->columns < 500 ? v->columns : 500;
    memset(line, ' ', sizeof line);
    qkv_text_fit(out, "", 0, LABEL, true);
    qkv_buf_puts(out, " └");
    for (int i = 0; i < width; i++) qkv_buf_puts(out, "─");
    qkv_buf_putc(out, '\n');
    int free_from = 0;
    for (int i = 0; i < v->x.n; i++) {
        char label[32];
        qkv_axis_label(&v->x, v->x.tick[i], label);
        int n = (int)strlen(label);
        int at =
            (int)lround((v->x.tick[i] - v->x.low) / (v->x.high - v->x.low) * (width - 1)) - n / 2;
        if (at < 0) at = 0;
        if (at < free_from || at + n > width) continue;
        memcpy(line + at, label, (size_t)n);
        free_from = at + n + 2;
    }
    int n = c->x_label ? (int)strlen(c->x_label) : 0;
    if (n && free_from + n < width) {
        memcpy(line + width - n, c->x_label, (size_t)n);
        free_from = width;
    }
    while (width > 0 && line[width - 1] == ' ') width--;
    qkv_text_fit(out, "", 0, LABEL + 2, true);
    qkv_buf_add(out, line, (size_t)width);
    qkv_buf_putc(out, '\n');
}

/* An entry of the legend, on a new line where the line has no room for it. */
static void put_entry(int columns, int *at, const char *sign, const char *name, qkv_buf *out) {
    const int gap = *at > LABEL + 2 ? 3 : 0, width = gap + 3 + qkv_text_width(name, strlen(name));
    if (gap && *at + width > columns) {
        qkv_buf_putc(out, '\n');
        qkv_text_fit(out, "", 0, LABEL + 2, true);
        *at = LABEL + 2 + width - gap;
    } else {
        qkv_text_fit(out, "", 0, gap, true);
        *at += width;
    }
    qkv_buf_printf(out, "%s %s", sign, name);
}

static void put_legend(const qkv_chart *c, const canvas *v, qkv_ink ink, int columns,
                       qkv_buf *out) {
    int at = LABEL + 2;
    char sign[64];
    qkv_text_fit(out, "", 0, at, true);
    for (size_t s = 0; s < c->n; s++) {
        if (c->series[s].n == 0) continue;
        snprintf(sign, sizeof sign, "%s━━%s", ink.colour ? colours[s % SERIES] : "",
                 ink.colour ? "\033[0m" : "");
        put_entry(columns, &at, sign, c->series[s].name, out);
    }
    if (v->mark >= 0) put_entry(columns, &at, " ┆", c->mark_name, out);
    qkv_buf_putc(out, '\n');
}

qkv_status qkv_chart_terminal(const qkv_chart *c, qkv_ink ink, int rows, qkv_buf *out) {
    const int width = ink.columns > 0 ? ink.columns : 80, columns = width - LABEL - 3;
    canvas v = {.columns = columns < 20 ? 20 : columns, .rows = rows < 3 ? 3 : rows, .mark = -1};
    size_t cells = (size_t)v.columns * (size_t)v.rows;
    QKV_TRY_ALLOC(v.dots = qkv_zalloc(cells, 2));
    v.series = v.dots + cells;
    qkv_chart_axes(c, v.columns / 14, v.rows / 3, &v.x, &v.y);
    if (c->mark_name && c->mark >= v.x.low && c->mark <= v.x.high)
        v.mark = (int)lround((c->mark - v.x.low) / (v.x.high - v.x.low) * (2 * v.columns - 1)) / 2;
    for (size_t s = 0; s < c->n; s++) draw(&v, &c->series[s], (uint8_t)s);
    if (c->title) qkv_buf_printf(out, ink.colour ? "\033[1m%s\033[0m\n" : "%s\n", c->title);
    put_rows(&v, ink, out);
    put_bottom(&v, c, out);
    put_legend(c, &v, ink, width, out);
    qkv_free(v.dots);
    return out->status;
}
