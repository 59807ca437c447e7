#include "draw/glyph.h"
#include "draw/svg.h"

#include <math.h>

static const double size = QKV_GLYPH_SIZE, turn = 6.283185307179586;

static void waves(double x, double y, qkv_buf *out) {
    enum { STEPS = 22 };
    for (int wave = 0; wave < 3; wave++) {
        const double middle = y + size * (0.18 + 0.32 * wave);
        qkv_svg_path_begin(out, "mark");
        for (int i = 0; i <= STEPS; i++)
            qkv_svg_path_to(out, i == 0, x + size * i / STEPS,
                            middle - 2.6 * sin(turn * i / STEPS * 3 / (1 << wave)));
        qkv_svg_path_end(out);
    }
}

static void table(double x, double y, qkv_buf *out) {
    for (int i = 0; i <= 4; i++) {
        const double at = size * i / 4;
        qkv_svg_line(out, x, y + at, x + size, y + at, "mark");
        if (i % 2 == 0) qkv_svg_line(out, x + at, y, x + at, y + size, "mark");
    }
}

/* Three quarters of a circle, and an arrow head at its end. */
static void rotation(double x, double y, qkv_buf *out) {
    enum { STEPS = 18 };
    const double radius = size * 0.4, middle = size / 2;
    qkv_svg_path_begin(out, "mark");
    for (int i = 0; i <= STEPS; i++) {
        const double angle = turn * 0.75 * i / STEPS;
        qkv_svg_path_to(out, i == 0, x + middle + radius * cos(angle),
                        y + middle + radius * sin(angle));
    }
    qkv_svg_path_to(out, true, x + middle - 3, y + middle - radius - 4);
    qkv_svg_path_to(out, false, x + middle + 2, y + middle - radius);
    qkv_svg_path_to(out, false, x + middle - 3, y + middle - radius + 4);
    qkv_svg_path_to(out, true, x + middle, y + middle);
    qkv_svg_path_to(out, false, x + middle + radius, y + middle);
    qkv_svg_path_end(out);
}

/* A matrix of scores, the diagonal and what is parallel to it. */
static void distances(double x, double y, qkv_buf *out) {
    qkv_svg_rect(out, x, y, size, size, 2, "mark");
    for (int i = -1; i <= 1; i++) {
        const double off = size * 0.4 * i;
        qkv_svg_line(out, x + fmax(off, 0), y + fmax(-off, 0), x + size + fmin(off, 0),
                     y + size - fmax(off, 0), "mark");
    }
}

static void tree(double x, double y, qkv_buf *out) {
    static const double edges[][4] = {{.5, 0, .2, .5}, {.5, 0, .8, .5},  {.2, .5, 0, 1},
                                      {.2, .5, .4, 1}, {.8, .5, .65, 1}, {.8, .5, 1, 1}};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        qkv_svg_line(out, x + size * edges[i][0], y + size * edges[i][1], x + size * edges[i][2],
                     y + size * edges[i][3], "mark");
}

void qkv_glyph_svg(qkv_glyph glyph, double x, double y, qkv_buf *out) {
    static void (*const draw[])(double x, double y, qkv_buf *out) = {
        [QKV_GLYPH_WAVES] = waves,         [QKV_GLYPH_TABLE] = table, [QKV_GLYPH_TURN] = rotation,
        [QKV_GLYPH_DISTANCES] = distances, [QKV_GLYPH_TREE] = tree,
    };
    if (glyph != QKV_GLYPH_NONE) draw[glyph](x, y, out);
}
