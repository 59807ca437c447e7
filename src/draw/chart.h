/* Line charts: loss over steps, figures over sizes.
 * In the terminal by braille dots, on paper as SVG. */
#ifndef QKV_DRAW_CHART_H
#define QKV_DRAW_CHART_H

#include "draw/axis.h"
#include "draw/ink.h"

typedef struct qkv_series {
    const char *name;
    const double *x, *y; /* points that are not finite are left out */
    size_t n;
} qkv_series;

typedef struct qkv_chart {
    const char *title, *subtitle; /* the subtitle is for paper */
    const char *x_label, *y_label;
    const qkv_series *series; /* at most 8 are drawn */
    size_t n;
    double x_from, x_to; /* the range of x at least; equal: that of the points alone */
    double mark;         /* a line stands at this x; without a name there is none */
    const char *mark_name;
} qkv_chart;

qkv_status qkv_chart_svg(const qkv_chart *c, double width, double height, qkv_buf *out);
/* Several, one below the other over the same x (the second and later ones half as high), as one
 * picture: title, subtitle and the mark's name are those of the first, the label of x of the last. */
qkv_status qkv_charts_svg(const qkv_chart *charts, size_t n, double width, double height,
                          qkv_buf *out);
/* `rows` lines of plot, plus axis and legend. */
qkv_status qkv_chart_terminal(const qkv_chart *c, qkv_ink ink, int rows, qkv_buf *out);

/* The range of all points, with room; both drawings use it. */
void qkv_chart_axes(const qkv_chart *c, int x_ticks, int y_ticks, qkv_axis *x, qkv_axis *y);

#endif
