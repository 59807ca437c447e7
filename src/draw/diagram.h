/* Block diagrams of models: stacks of boxes read from bottom to top, a repeated group with its
 * count, residual paths around boxes, and one path from the top of the first stack into boxes of
 * the second (cross-attention). */
#ifndef QKV_DRAW_DIAGRAM_H
#define QKV_DRAW_DIAGRAM_H

#include "base/buf.h"

typedef enum qkv_diagram_kind {
    QKV_BLOCK_INPUT,
    QKV_BLOCK_ATTENTION,
    QKV_BLOCK_DENSE,
    QKV_BLOCK_NORM,
    QKV_BLOCK_OUTPUT
} qkv_diagram_kind;

typedef struct qkv_diagram_block {
    const char *title, *detail; /* detail may be NULL */
    qkv_diagram_kind kind;
    int residual; /* boxes, this one the last of them, that a residual path goes around; 0: none */
    bool from_first; /* takes the output of the first stack too */
} qkv_diagram_block;

typedef struct qkv_diagram_stack {
    const char *title;               /* "Encoder" */
    const char *input;               /* what comes in below: "source tokens" */
    const qkv_diagram_block *blocks; /* bottom to top */
    size_t n;
    size_t group_from, group_to; /* blocks [from, to) are repeated */
    const char *repeat;          /* "× 12"; NULL: no group */
} qkv_diagram_stack;

typedef struct qkv_diagram {
    const char *title, *subtitle;
    const qkv_diagram_stack *stacks;
    size_t n; /* 1 or 2 */
} qkv_diagram;

qkv_status qkv_diagram_svg(const qkv_diagram *d, qkv_buf *out);

#endif
