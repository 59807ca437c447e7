/* What a terminal can show; the caller looks at it, draw only obeys. */
#ifndef QKV_DRAW_INK_H
#define QKV_DRAW_INK_H

#include "base/buf.h"

typedef struct qkv_ink {
    bool colour; /* escape sequences with 24-bit colours */
    int columns; /* width to fill; 0: 80 */
} qkv_ink;

/* Columns that a text takes on a terminal: wide characters take two, marks none, bad bytes one. */
int qkv_text_width(const char *text, size_t len);
/* Appends `text` cut or filled with blanks to exactly `columns`; what is cut off shows as "…". */
void qkv_text_fit(qkv_buf *out, const char *text, size_t len, int columns, bool right);

#endif
