/* Small line drawings that say at a glance how something works. */
#ifndef QKV_DRAW_GLYPH_H
#define QKV_DRAW_GLYPH_H

#include "base/buf.h"

typedef enum qkv_glyph {
    QKV_GLYPH_NONE,
    QKV_GLYPH_WAVES,     /* sines of several frequencies */
    QKV_GLYPH_TABLE,     /* learned rows */
    QKV_GLYPH_TURN,      /* a rotation */
    QKV_GLYPH_DISTANCES, /* what depends on the distance from the diagonal */
    QKV_GLYPH_TREE
} qkv_glyph;

enum { QKV_GLYPH_SIZE = 22 };

/* With its top left at (x, y). */
void qkv_glyph_svg(qkv_glyph glyph, double x, double y, qkv_buf *out);

#endif
