/* Block diagrams of models: stacks of boxes read from bottom to top. A row holds one box or two side
 * by side; repeated rows stand in a frame with their count; residual paths go around boxes; small
 * boxes at the right join in or go into their box; one path leads from the top of the first stack
 * into boxes of the second (cross-attention). */
#ifndef QKV_DRAW_DIAGRAM_H
#define QKV_DRAW_DIAGRAM_H

#include "draw/glyph.h"

typedef enum qkv_diagram_kind {
    QKV_BLOCK_INPUT,
    QKV_BLOCK_ATTENTION,
    QKV_BLOCK_DENSE,
    QKV_BLOCK_NORM,
    QKV_BLOCK_OUTPUT
} qkv_diagram_kind;

/* A small box at the right of a block. */
typedef struct qkv_diagram_tile {
    const char *title;  /* NULL: there is none */
    const char *detail; /* lines of text, or NULL */
    qkv_diagram_kind kind;
    qkv_glyph glyph;
    bool added; /* what it makes is added to what the block makes; else it goes into the block */
    bool from_input; /* it reads what the whole stack reads */
} qkv_diagram_tile;

enum { QKV_TILES = 2 }; /* of a block */

typedef struct qkv_diagram_block {
    const char *title, *detail; /* detail may be NULL */
    qkv_diagram_kind kind;
    int residual; /* boxes, this one the last of them, that a residual path goes around; 0: none */
    const char *from_first; /* what it takes of the first stack's output: "keys, values"; or NULL */
    const char *shape;      /* of what it makes, beside the arrow above it; or NULL */
    bool
        beside; /* in one row with the block before: both read the same, what they make is joined */
    bool loops; /* reads its own last output */
    qkv_diagram_tile tile[QKV_TILES];
} qkv_diagram_block;

/* Blocks [from, to) in a frame. */
typedef struct qkv_diagram_group {
    size_t from, to;
    const char *label; /* "× 12", or NULL */
} qkv_diagram_group;

typedef struct qkv_diagram_stack {
    const char *title;               /* "Encoder" */
    const char *input, *output;      /* what goes in below, what comes out above */
    const qkv_diagram_block *blocks; /* bottom to top */
    size_t n;
    const qkv_diagram_group *groups;
    size_t n_groups;
} qkv_diagram_stack;

typedef struct qkv_diagram {
    const char *title, *subtitle, *legend; /* the last two may be NULL */
    const qkv_diagram_stack *stacks;
    size_t n; /* 1 or 2 */
} qkv_diagram;

qkv_status qkv_diagram_svg(const qkv_diagram *d, qkv_buf *out);

#endif
