/* Heat maps: matrices of weights between a floor and their maximum, with named rows and columns;
 * attention above all. A small weight is lifted (strength = ((w − floor) / (max − floor))^0.6),
 * since most of an attention row is small. */
#ifndef QKV_DRAW_HEAT_H
#define QKV_DRAW_HEAT_H

#include "draw/ink.h"

typedef struct qkv_heat {
    const char *title;   /* NULL: none */
    const float *values; /* (rows, columns), row stride `stride`; negative and NaN count as 0 */
    size_t rows, columns, stride;
    const char *const *row_names, *const *column_names; /* NULL: none */
    double floor;                                       /* a weight up to this does not show */
    double top; /* full colour stands for at least this much */
} qkv_heat;

/* One map with all its names: an alignment, one head. */
qkv_status qkv_heat_svg(const qkv_heat *h, qkv_buf *out);
/* The same inside another picture: how large it is, and drawn with its top left at (x, y). */
void qkv_heat_svg_size(const qkv_heat *h, double *width, double *height);
void qkv_heat_svg_draw(const qkv_heat *h, double x, double y, qkv_buf *out);
qkv_status qkv_heat_terminal(const qkv_heat *h, qkv_ink ink, qkv_buf *out);

/* Many small maps of one shape, `across` in a row: all heads (across) of all layers (down). */
typedef struct qkv_heat_grid {
    const char *title;
    const qkv_heat *maps;
    size_t n, across;
    size_t framed; /* on paper one of them has a frame of its own: its number from 1; 0: none */
} qkv_heat_grid;
qkv_status qkv_heat_grid_svg(const qkv_heat_grid *g, qkv_buf *out);
void qkv_heat_grid_svg_size(const qkv_heat_grid *g, double *width, double *height);
void qkv_heat_grid_svg_draw(const qkv_heat_grid *g, double x, double y, qkv_buf *out);
qkv_status qkv_heat_grid_terminal(const qkv_heat_grid *g, qkv_ink ink, qkv_buf *out);

/* How strongly cell (row, column) shows, 0 … 1, when `max` is the largest value. */
double qkv_heat_strength(const qkv_heat *h, size_t row, size_t column, double max);
double qkv_heat_max(const qkv_heat *h);
/* The strongest of a square of `side`² cells. */
double qkv_heat_strongest(const qkv_heat *h, size_t row, size_t column, size_t side, double max);

#endif
