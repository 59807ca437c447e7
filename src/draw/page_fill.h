/* Pages that carry their data: one file that asks for nothing else. The page is written as HTML,
 * with a hole in its script; CMakeLists.txt compiles its bytes in. */
#ifndef QKV_DRAW_PAGE_FILL_H
#define QKV_DRAW_PAGE_FILL_H

#include "base/buf.h"

/* Appends `page` with the JSON in the place of its hole; frees the JSON. */
qkv_status qkv_page_fill(const char *page, qkv_buf *json, qkv_buf *out);

#endif
