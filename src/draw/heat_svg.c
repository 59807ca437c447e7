/* Heat maps as SVG. Cells shrink with the number of tokens, names are written beside rows and above
 * columns at an angle, and hovering a cell tells its weight. */
#include "base/number.h"
#include "draw/heat.h"
#include "draw/svg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

double qkv_heat_max(const qkv_heat *h) {
    double max = h->top;
    for (size_t r = 0; r < h->rows; r++)
        for (size_t c = 0; c < h->columns; c++) {
            double v = h->values[r * h->stride + c];
            if (v > max) max = v; /* NaN compares false */
        }
    return max;
}

double qkv_heat_strength(const qkv_heat *h, size_t row, size_t column, double max) {
    double v = h->values[row * h->stride + column];
    return v > h->floor && max > h->floor ? pow(fmin((v - h->floor) / (max - h->floor), 1), 0.6)
                                          : 0;
}

enum { HINTED = 3600 /* cells of a map that tells each on hovering */, IN_SMALL = 80 };

/* The widest of n names in pixels, 0 without names. */
static double widest(const char *const *names, size_t n, double size) {
    double most = 0;
    for (size_t i = 0; names && i < n; i++) most = fmax(most, qkv_svg_text_width(names[i], size));
    return fmin(most, 180);
}

double qkv_heat_strongest(const qkv_heat *h, size_t row, size_t column, size_t side, double max) {
    double most = 0;
    for (size_t r = row; r < row + side && r < h->rows; r++)
        for (size_t c = column; c < column + side && c < h->columns; c++)
            most = fmax(most, qkv_heat_strength(h, r, c, max));
    return most;
}

/* Cells with what is shown on hovering, a rectangle each: for maps of some hundred tokens that would
 * be a file of many megabytes. */
static void draw_cells(const qkv_heat *h, double x, double y, double cell, double max,
                       qkv_buf *out) {
    const double gap = cell > 6 ? 1 : 0; /* a hair between cells that are large enough for it */
    for (size_t r = 0; r < h->rows; r++)
        for (size_t c = 0; c < h->columns; c++) {
            char hint[200], number[QKV_NUMBER_TEXT];
            double v = h->values[r * h->stride + c];
            qkv_number_print(isfinite(v) ? v : 0, 3, number);
            snprintf(hint, sizeof hint, "%.70s → %.70s: %s", h->row_names ? h->row_names[r] : "",
                     h->column_names ? h->column_names[c] : "", number);
            qkv_svg_cell(out, x + cell * (double)c, y + cell * (double)r, cell - gap, cell - gap,
                         qkv_heat_strength(h, r, c, max), hint);
        }
}

enum { LEVELS = 16 };

/* Cells without hints: those of one strength are one path, neighbours in a row one piece of it.
 * Squares of `side` cells are drawn as one. */
static void draw_fast(const qkv_heat *h, double x, double y, double cell, size_t side, double max,
                      qkv_buf *out) {
    const size_t down = (h->rows + side - 1) / side, across = (h->columns + side - 1) / side;
    qkv_buf levels = {0};
    char *level = qkv_buf_extend(&levels, down * across);
    for (size_t i = 0; level && i < down * across; i++)
        level[i] = (char)lround(
            LEVELS * qkv_heat_strongest(h, i / across * side, i % across * side, side, max));
    for (int wanted = 1; level && wanted <= LEVELS; wanted++) {
        qkv_svg_cells_begin(out, (double)wanted / LEVELS);
        for (size_t r = 0; r < down; r++)
            for (size_t c = 0, from; c < across; c += c == from) {
                for (from = c; c < across && level[r * across + c] == wanted;) c++;
                const size_t end = c * side < h->columns ? c * side : h->columns,
                             bottom = (r + 1) * side < h->rows ? (r + 1) * side : h->rows;
                if (c > from)
                    qkv_svg_cells_add(
                        out, x + cell * (double)(from * side), y + cell * (double)(r * side),
                        cell * (double)(end - from * side), cell * (double)(bottom - r * side));
            }
        qkv_svg_cells_end(out);
    }
    if (!level) out->status = levels.status;
    qkv_buf_free(&levels);
}

static void draw_scale(double x, double y, double floor, double max, qkv_buf *out) {
    enum { STEPS = 10, STEP = 12 };
    char label[QKV_NUMBER_TEXT], low[QKV_NUMBER_TEXT], even[QKV_NUMBER_TEXT + 16];
    qkv_number_print(max, 2, label);
    qkv_number_print(floor, 2, low);
    snprintf(even, sizeof even, "even: %s", low);
    qkv_svg_text(out, x - 6, y + 9, 'e', "soft small", floor > 0 ? even : "0");
    for (int i = 0; i < STEPS; i++)
        qkv_svg_cell(out, x + STEP * i, y, STEP, 10, pow((i + 1.0) / STEPS, 0.6), NULL);
    qkv_svg_text(out, x + STEPS * STEP + 6, y + 9, 's', "soft small", label);
}

/* Where the parts of one map lie. */
typedef struct map_layout {
    double cell, size, left, top, wide, high, width, height;
} map_layout;

static map_layout lay_out(const qkv_heat *h) {
    const size_t most = h->rows > h->columns ? h->rows : h->columns;
    map_layout l = {.cell = fmax(11, fmin(30, 640.0 / (double)(most ? most : 1)))};
    l.size = l.cell < 14 ? 9 : 12;
    l.left = 28 + widest(h->row_names, h->rows, l.size);
    /* Names above lean by 60°: sine and cosine of that give their height and overhang. */
    const double lean = widest(h->column_names, h->columns, l.size);
    l.top = (h->title ? 56 : 24) + lean * 0.87;
    l.wide = l.cell * (double)h->columns;
    l.high = l.cell * (double)h->rows;
    l.width = fmax(l.left + l.wide + 24 + lean * 0.5, 260);
    if (h->title) l.width = fmax(l.width, 44 + qkv_svg_text_width(h->title, 15));
    l.height = l.top + l.high + 48;
    return l;
}

void qkv_heat_svg_size(const qkv_heat *h, double *width, double *height) {
    const map_layout l = lay_out(h);
    *width = l.width;
    *height = l.height;
}

void qkv_heat_svg_draw(const qkv_heat *h, double x, double y, qkv_buf *out) {
    const map_layout l = lay_out(h);
    const char *class = l.size < 12 ? "ink tiny" : "ink";
    const double left = x + l.left, top = y + l.top, max = qkv_heat_max(h);
    if (h->title) qkv_svg_text(out, x + 20, y + 30, 's', "ink title", h->title);
    qkv_svg_rect(out, left, top, l.wide, l.high, 0, "card");
    if (h->rows * h->columns <= HINTED)
        draw_cells(h, left, top, l.cell, max, out);
    else
        draw_fast(h, left, top, l.cell, 1, max, out);
    for (size_t r = 0; h->row_names && r < h->rows; r++)
        qkv_svg_text(out, left - 8, top + l.cell * ((double)r + 0.5) + l.size * 0.35, 'e', class,
                     h->row_names[r]);
    for (size_t c = 0; h->column_names && c < h->columns; c++)
        qkv_svg_text_turned(out, left + l.cell * ((double)c + 0.5) + l.size * 0.25, top - 7, -60,
                            's', class, h->column_names[c]);
    draw_scale(left + (h->floor > 0 ? 80 : 16), top + l.high + 18, h->floor, max, out);
}

qkv_status qkv_heat_svg(const qkv_heat *h, qkv_buf *out) {
    const map_layout l = lay_out(h);
    qkv_svg_begin(out, l.width, l.height, h->title ? h->title : "weights");
    qkv_heat_svg_draw(h, 0, 0, out);
    qkv_svg_end(out);
    return out->status;
}

/* ---- grids ---- */

typedef struct grid_layout {
    double cell, left, top, step_x, step_y, wide, high, width, height;
    size_t side; /* cells that are drawn as one: more than some in a row cannot be seen */
} grid_layout;

static grid_layout lay_out_grid(const qkv_heat_grid *g) {
    const qkv_heat *first = &g->maps[0];
    const size_t most = first->rows > first->columns ? first->rows : first->columns,
                 down = (g->n + g->across - 1) / g->across;
    grid_layout l = {.left = 24, .top = g->title ? 56 : 24};
    l.side = most / IN_SMALL + 1;
    l.cell = fmin(18, 130.0 / (double)(most ? most : 1));
    l.wide = l.cell * (double)first->columns;
    l.high = l.cell * (double)first->rows;
    l.step_x = fmax(l.wide, 84) + 18;
    l.step_y = l.high + 34;
    l.width = l.left * 2 + (double)g->across * l.step_x - 18;
    if (g->title) l.width = fmax(l.width, 2 * l.left + qkv_svg_text_width(g->title, 15));
    l.height = l.top + (double)down * l.step_y + 12;
    return l;
}

void qkv_heat_grid_svg_size(const qkv_heat_grid *g, double *width, double *height) {
    const grid_layout l = lay_out_grid(g);
    *width = l.width;
    *height = l.height;
}

void qkv_heat_grid_svg_draw(const qkv_heat_grid *g, double x0, double y0, qkv_buf *out) {
    const grid_layout l = lay_out_grid(g);
    if (g->title) qkv_svg_text(out, x0 + l.left, y0 + 30, 's', "ink title", g->title);
    for (size_t i = 0; i < g->n; i++) {
        const double x = x0 + l.left + (double)(i % g->across) * l.step_x;
        const double y = y0 + l.top + (double)(i / g->across) * l.step_y;
        if (g->maps[i].title) qkv_svg_text(out, x, y + 9, 's', "soft small", g->maps[i].title);
        qkv_svg_rect(out, x, y + 15, l.wide, l.high, 0, "card");
        draw_fast(&g->maps[i], x, y + 15, l.cell, l.side, qkv_heat_max(&g->maps[i]), out);
        qkv_svg_rect(out, x - 0.5, y + 14.5, l.wide + 1, l.high + 1, 1,
                     i + 1 == g->framed ? "s1" : "frame");
    }
}

qkv_status qkv_heat_grid_svg(const qkv_heat_grid *g, qkv_buf *out) {
    if (g->n == 0 || g->across == 0)
        return qkv_fail(QKV_USAGE, "a grid of no maps cannot be drawn");
    const grid_layout l = lay_out_grid(g);
    qkv_svg_begin(out, l.width, l.height, g->title ? g->title : "weights");
    qkv_heat_grid_svg_draw(g, 0, 0, out);
    qkv_svg_end(out);
    return out->status;
}
