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
    const char *title, *x_label, *y_label;
    const qkv_series *series; /* at most 8 are drawn */
    size_t n;
} qkv_chart;

qkv_status qkv_chart_svg(const qkv_chart *c, double width, double height, qkv_buf *out);
/* `rows` lines of plot, plus axis and legend. */
qkv_status qkv_chart_terminal(const qkv_chart *c, qkv_ink ink, int rows, qkv_buf *out);

/* The range of all points, with room; both drawings use it. */
void qkv_chart_axes(const qkv_chart *c, int x_ticks, int y_ticks, qkv_axis *x, qkv_axis *y);

#endif
