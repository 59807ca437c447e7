/* Heat maps as SVG. Cells shrink with the number of tokens, names are written beside rows and above columns at an
 * angle, and hovering a cell tells its weight. */
#include "base/number.h"
#include "draw/heat.h"
#include "draw/svg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

double qkv_heat_max(const qkv_heat *h) {
    double max = 0;
    for (size_t r = 0; r < h->rows; r++)
        for (size_t c = 0; c < h->columns; c++) {
            double v = h->values[r * h->stride + c];
            if (v > max) max = v; /* NaN compares false */
        }
    return max;
}

double qkv_heat_strength(const qkv_heat *h, size_t row, size_t column, double max) {
    double v = h->values[row * h->stride + column];
    return v > 0 && max > 0 ? pow(fmin(v / max, 1), 0.6) : 0;
}

/* The widest of n names in pixels, 0 without names. */
static double widest(const char *const *names, size_t n, double size) {
    double most = 0;
    for (size_t i = 0; names && i < n; i++) most = fmax(most, qkv_svg_text_width(names[i], size));
    return fmin(most, 180);
}

/* The cells of one map; `hints` adds what is shown on hovering, which makes the file several times larger. */
static void draw_cells(const qkv_heat *h, double x, double y, double cell, double max, bool hints,
                       qkv_buf *out) {
    for (size_t r = 0; r < h->rows; r++)
        for (size_t c = 0; c < h->columns; c++) {
            char hint[200], number[QKV_NUMBER_TEXT];
            if (hints) {
                double v = h->values[r * h->stride + c];
                qkv_number_print(isfinite(v) ? v : 0, 3, number);
                snprintf(hint, sizeof hint, "%.70s → %.70s: %s",
                         h->row_names ? h->row_names[r] : "",
                         h->column_names ? h->column_names[c] : "", number);
            }
            double gap = cell > 6 ? 1 : 0; /* a hair between cells that are large enough for it */
            qkv_svg_cell(out, x + cell * (double)c, y + cell * (double)r, cell - gap, cell - gap,
                         qkv_heat_strength(h, r, c, max), hints ? hint : NULL);
        }
}

static void draw_scale(double x, double y, double max, qkv_buf *out) {
    enum { STEPS = 10, STEP = 12 };
    char label[QKV_NUMBER_TEXT];
    qkv_number_print(max, 2, label);
    qkv_svg_text(out, x - 6, y + 9, 'e', "soft small", "0");
    for (int i = 0; i < STEPS; i++)
        qkv_svg_cell(out, x + STEP * i, y, STEP, 10, pow((i + 1.0) / STEPS, 0.6), NULL);
    qkv_svg_text(out, x + STEPS * STEP + 6, y + 9, 's', "soft small", label);
}

qkv_status qkv_heat_svg(const qkv_heat *h, qkv_buf *out) {
    size_t most = h->rows > h->columns ? h->rows : h->columns;
    double cell = fmax(11, fmin(30, 640.0 / (double)(most ? most : 1))), size = cell < 14 ? 9 : 12;
    const char *class = size < 12 ? "ink tiny" : "ink";
    double left = 28 + widest(h->row_names, h->rows, size);
    /* Names above lean by 60°: sine and cosine of that give their height and overhang. */
    double lean = widest(h->column_names, h->columns, size),
           top = (h->title ? 56 : 24) + lean * 0.87;
    double wide = cell * (double)h->columns, high = cell * (double)h->rows;
    double width = fmax(left + wide + 24 + lean * 0.5, 260), height = top + high + 48,
           max = qkv_heat_max(h);
    qkv_svg_begin(out, width, height, h->title ? h->title : "weights");
    if (h->title) qkv_svg_text(out, 20, 30, 's', "ink title", h->title);
    qkv_svg_rect(out, left, top, wide, high, 0, "card");
    draw_cells(h, left, top, cell, max, true, out);
    for (size_t r = 0; h->row_names && r < h->rows; r++)
        qkv_svg_text(out, left - 8, top + cell * ((double)r + 0.5) + size * 0.35, 'e', class,
                     h->row_names[r]);
    for (size_t c = 0; h->column_names && c < h->columns; c++)
        qkv_svg_text_turned(out, left + cell * ((double)c + 0.5) + size * 0.25, top - 7, -60, 's',
                            class, h->column_names[c]);
    draw_scale(left + 16, top + high + 18, max, out);
    qkv_svg_end(out);
    return out->status;
}

qkv_status qkv_heat_grid_svg(const qkv_heat_grid *g, qkv_buf *out) {
    if (g->n == 0 || g->across == 0)
        return qkv_fail(QKV_USAGE, "a grid of no maps cannot be drawn");
    const qkv_heat *first = &g->maps[0];
    size_t most = first->rows > first->columns ? first->rows : first->columns;
    double cell = fmax(1.5, fmin(12, 130.0 / (double)(most ? most : 1)));
    double wide = cell * (double)first->columns, high = cell * (double)first->rows;
    size_t down = (g->n + g->across - 1) / g->across;
    const double left = 24, top = g->title ? 56 : 24, gap_x = 18, gap_y = 32;
    double width = left * 2 + (double)g->across * (fmax(wide, 70) + gap_x) - gap_x;
    double height = top + (double)down * (high + gap_y) + 12;
    qkv_svg_begin(out, width, height, g->title ? g->title : "weights");
    if (g->title) qkv_svg_text(out, left, 30, 's', "ink title", g->title);
    for (size_t i = 0; i < g->n; i++) {
        double x = left + (double)(i % g->across) * (fmax(wide, 70) + gap_x);
        double y = top + (double)(i / g->across) * (high + gap_y);
        if (g->maps[i].title) qkv_svg_text(out, x, y + 9, 's', "soft small", g->maps[i].title);
        qkv_svg_rect(out, x, y + 15, wide, high, 0, "card");
        draw_cells(&g->maps[i], x, y + 15, cell, qkv_heat_max(&g->maps[i]), false, out);
        qkv_svg_rect(out, x - 0.5, y + 14.5, wide + 1, high + 1, 1, "frame");
    }
    qkv_svg_end(out);
    return out->status;
}
