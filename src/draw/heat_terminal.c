/* Heat maps in the terminal. With colour a cell is two blanks on a background from pale to blue;
 * without, two shade characters. Column names stand upright above their columns,
 * one character per line. */
#include "base/utf8.h"
#include "draw/heat.h"

#include <math.h>
#include <string.h>

enum { NAME_ROWS = 8, ROW_NAME = 16 };

/* Pale to deep: the same ends as the pictures on paper,
 * readable beside light and dark backgrounds. */
static void background(qkv_buf *out, double strength, int layer) {
    static const double pale[3] = {226, 232, 240}, deep[3] = {29, 78, 216};
    qkv_buf_printf(out, "\033[%d;2", layer);
    for (int i = 0; i < 3; i++)
        qkv_buf_printf(out, ";%d", (int)lround(pale[i] + (deep[i] - pale[i]) * strength));
    qkv_buf_putc(out, 'm');
}

static const char *shade(double strength) {
    static const char *const shades[] = {" ", "·", "░", "▒", "▓", "█"};
    int level = (int)(strength * 5.999);
    return shades[level < 0 ? 0 : level > 5 ? 5 : level];
}

/* Columns that stand beside each other in the terminal, each `cell` characters wide. */
typedef struct band {
    size_t from, to;
    int cell;
} band;

/* Line `line` of the upright names, bottom-aligned:
 * the character that stands `line` from the top. */
static void put_name_line(const qkv_heat *h, const band *b, int line, int tallest, qkv_buf *out) {
    for (size_t c = b->from; c < b->to; c++) {
        const char *name = h->column_names[c];
        size_t len = strlen(name), at = 0;
        int count = (int)qkv_utf8_count(name, len), shown = count < tallest ? count : tallest;
        int index = line - (tallest - shown);
        for (int i = 0; i < index && at < len; i++) {
            int32_t cp;
            at += (size_t)qkv_utf8_decode(name + at, len - at, &cp);
        }
        int32_t cp = 0;
        int n = index >= 0 && at < len ? qkv_utf8_decode(name + at, len - at, &cp) : 0;
        qkv_text_fit(out, name + at, (size_t)n, b->cell, false);
    }
}

static void put_column_names(const qkv_heat *h, const band *b, int left, qkv_buf *out) {
    int tallest = 0;
    for (size_t c = b->from; c < b->to; c++) {
        int count = (int)qkv_utf8_count(h->column_names[c], strlen(h->column_names[c]));
        if (count > tallest) tallest = count;
    }
    if (tallest > NAME_ROWS) tallest = NAME_ROWS;
    for (int line = 0; line < tallest; line++) {
        qkv_text_fit(out, "", 0, left, false);
        put_name_line(h, b, line, tallest, out);
        qkv_buf_putc(out, '\n');
    }
}

static void put_cells(const qkv_heat *h, qkv_ink ink, size_t row, const band *b, double max,
                      qkv_buf *out) {
    for (size_t c = b->from; c < b->to; c++) {
        double strength = qkv_heat_strength(h, row, c, max);
        if (ink.colour) background(out, strength, 48);
        for (int i = 0; i < b->cell; i++) qkv_buf_puts(out, ink.colour ? " " : shade(strength));
    }
    if (ink.colour) qkv_buf_puts(out, "\033[0m");
    qkv_buf_putc(out, '\n');
}

qkv_status qkv_heat_terminal(const qkv_heat *h, qkv_ink ink, qkv_buf *out) {
    int left = 0, columns = ink.columns > 0 ? ink.columns : 80;
    for (size_t r = 0; h->row_names && r < h->rows; r++) {
        int w = qkv_text_width(h->row_names[r], strlen(h->row_names[r]));
        if (w > left) left = w;
    }
    left = left > ROW_NAME ? ROW_NAME : left;
    int space = columns - left - 1, cell = (int)h->columns * 2 <= space ? 2 : 1;
    const size_t fit = (size_t)(space / cell > 1 ? space / cell : 1);
    double max = qkv_heat_max(h);
    if (h->title) qkv_buf_printf(out, ink.colour ? "\033[1m%s\033[0m\n" : "%s\n", h->title);
    /* A map wider than the terminal comes in bands, one below the other. */
    for (size_t from = 0; from < h->columns; from += fit) {
        const band b = {from, from + fit < h->columns ? from + fit : h->columns, cell};
        if (h->column_names) put_column_names(h, &b, left + 1, out);
        for (size_t r = 0; r < h->rows; r++) {
            const char *name = h->row_names ? h->row_names[r] : "";
            qkv_text_fit(out, name, strlen(name), left, true);
            qkv_buf_putc(out, ' ');
            put_cells(h, ink, r, &b, max, out);
        }
    }
    return out->status;
}

/* One line of a small map, `side`² cells as one: two rows per line with colour ("▀" has a colour for
 * each half), one row without. */
static void put_small_line(const qkv_heat *h, qkv_ink ink, size_t row, size_t side, qkv_buf *out) {
    const double max = qkv_heat_max(h);
    const bool both = row + side < h->rows;
    for (size_t c = 0; c < h->columns; c += side) {
        const double upper = qkv_heat_strongest(h, row, c, side, max);
        if (!ink.colour) {
            qkv_buf_puts(out, shade(upper));
            continue;
        }
        background(out, upper, 38);
        if (both) background(out, qkv_heat_strongest(h, row + side, c, side, max), 48);
        qkv_buf_puts(out, "▀");
        if (!both) qkv_buf_puts(out, "\033[0m");
    }
    if (ink.colour) qkv_buf_puts(out, "\033[0m");
}

/* How the maps of a grid stand: as large as they are where a row of them fits, else smaller. */
typedef struct shape {
    size_t side;      /* of a square of cells that shows as one */
    size_t wide, fit; /* columns of a map; maps beside each other */
} shape;

static shape shape_of(const qkv_heat_grid *g, int columns) {
    enum { LEAST = 8, SMALL = 18 };
    const size_t cells = g->maps[0].columns, room = (size_t)columns + 2;
    shape s = {.side = 1, .wide = cells};
    if ((cells + 2) * g->across > room) s.side = (cells + SMALL - 1) / SMALL;
    s.wide = (cells + s.side - 1) / s.side;
    const size_t step = (s.wide < LEAST ? LEAST : s.wide) + 2;
    s.fit = room / step < 1 ? 1 : room / step < g->across ? room / step : g->across;
    return s;
}

qkv_status qkv_heat_grid_terminal(const qkv_heat_grid *g, qkv_ink ink, qkv_buf *out) {
    if (g->n == 0 || g->across == 0)
        return qkv_fail(QKV_USAGE, "a grid of no maps cannot be drawn");
    const shape s = shape_of(g, ink.columns > 0 ? ink.columns : 80);
    const size_t wide = s.wide < 8 ? 8 : s.wide;
    if (g->title) qkv_buf_printf(out, ink.colour ? "\033[1m%s\033[0m\n" : "%s\n", g->title);
    for (size_t layer = 0; layer < g->n; layer += g->across) {
        const size_t end = layer + g->across < g->n ? layer + g->across : g->n;
        for (size_t from = layer; from < end; from += s.fit) {
            const size_t to = from + s.fit < end ? from + s.fit : end;
            for (size_t i = from; i < to; i++) {
                const char *title = g->maps[i].title ? g->maps[i].title : "";
                qkv_text_fit(out, title, strlen(title), (int)wide + (i + 1 < to ? 2 : 0), false);
            }
            qkv_buf_putc(out, '\n');
            for (size_t r = 0; r < g->maps[from].rows; r += s.side * (ink.colour ? 2 : 1)) {
                for (size_t i = from; i < to; i++) {
                    put_small_line(&g->maps[i], ink, r, s.side, out);
                    if (i + 1 < to) qkv_text_fit(out, "", 0, (int)(wide - s.wide) + 2, false);
                }
                qkv_buf_putc(out, '\n');
            }
        }
    }
    return out->status;
}
