/* SVG: shapes and text with a few classes, so that a picture is legible on light and
 * dark pages alike.
 *
 * Colours live in one style sheet at the top; readers that know prefers-color-scheme get the dark
 * half. Text uses the reader's own sans-serif font.
 * Numbers have at most two decimals and do not follow the locale. */
#ifndef QKV_DRAW_SVG_H
#define QKV_DRAW_SVG_H

#include "base/buf.h"

/* Classes: what a thing is, not how it looks. "s0" … "s7" are series,
 * "f0" … "f7" the same as fills. */
#define QKV_SVG_SERIES 8

/* Opens a picture; every x and y is in pixels from the top left. */
void qkv_svg_begin(qkv_buf *out, double width, double height, const char *title);
void qkv_svg_end(qkv_buf *out);

void qkv_svg_rect(qkv_buf *out, double x, double y, double w, double h, double radius,
                  const char *class);
/* A cell of a heat map: `strength` 0 … 1 is how much of the colour shows;
 * `hint` is shown on hovering, or NULL. */
void qkv_svg_cell(qkv_buf *out, double x, double y, double w, double h, double strength,
                  const char *hint);
/* Cells of one strength without hints, as one path: begin, add …, end. */
void qkv_svg_cells_begin(qkv_buf *out, double strength);
void qkv_svg_cells_add(qkv_buf *out, double x, double y, double w, double h);
void qkv_svg_cells_end(qkv_buf *out);
void qkv_svg_line(qkv_buf *out, double x1, double y1, double x2, double y2, const char *class);
/* anchor: 's', 'm' or 'e' for start, middle, end of the text at x; y is the baseline. */
void qkv_svg_text(qkv_buf *out, double x, double y, char anchor, const char *class,
                  const char *text);
/* The same, turned by −90° (reading upwards) or any other angle about (x, y). */
void qkv_svg_text_turned(qkv_buf *out, double x, double y, double degrees, char anchor,
                         const char *class, const char *text);
/* A path by its points: begin, to …, end. */
void qkv_svg_path_begin(qkv_buf *out, const char *class);
void qkv_svg_path_to(qkv_buf *out, bool move, double x, double y);
void qkv_svg_path_end(qkv_buf *out);

/* Roughly how wide a text of that size shows, for layout: 0.56 em per narrow character. */
double qkv_svg_text_width(const char *text, double size);

/* A number with at most two decimals. */
void qkv_svg_number(qkv_buf *out, double x);
/* Text with the characters escaped that mean something in XML; control characters are left out. */
void qkv_svg_escape(qkv_buf *out, const char *text, size_t len);

#endif
