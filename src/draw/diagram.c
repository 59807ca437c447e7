#include "draw/diagram.h"
#include "draw/svg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Sizes in pixels. */
enum {
    BOX_W = 276,
    HALF_W = 134, /* two boxes in a row */
    BOX_H = 42,
    GAP = 42,  /* between rows */
    SIDE = 80, /* left of the boxes: residual paths, the label of a group */
    TOP = 96,
    BOTTOM = 96,
    GROUP_PAD = 22, /* right of a group */
    GROUP_TOP = 19, /* above it and below, between what is written beside wires and circled plus */
    LINK = 84,      /* between stacks */
    /* Small boxes: right of a block, with a line to collect what they make between. */
    COLLECT = 16,
    TILE = 40,
    TILE_W = 188,
    TILE_LINE = 13,
    FEED = 18, /* right of them: the line from the stack's input */
    /* Between two rows, going up: where a path comes back and where the next one leaves. Above the
     * top row: where its output goes over to the other stack, and where it ends. */
    JOIN = 11,
    LEAVE = 28,
    OVER = 34,
    OUT = 46,
    MARGIN = 24
};

/* Where a stack stands. */
typedef struct frame {
    const qkv_diagram_stack *stack;
    double x;      /* left edge of the boxes */
    double bottom; /* lower edge of the lowest row */
    bool tiles;    /* there are small boxes at the right */
} frame;

static double centre(const frame *f) {
    return f->x + BOX_W / 2.0;
}

/* Rows below block i. */
static size_t row_of(const qkv_diagram_stack *s, size_t i) {
    size_t row = 0;
    for (size_t k = 1; k <= i; k++) row += !s->blocks[k].beside;
    return row;
}

static double box_top(const frame *f, size_t i) {
    return f->bottom - (double)row_of(f->stack, i) * (BOX_H + GAP) - BOX_H;
}

static double stack_top(const frame *f) {
    return box_top(f, f->stack->n - 1);
}

static bool has_beside(const qkv_diagram_stack *s, size_t i) {
    return i + 1 < s->n && s->blocks[i + 1].beside;
}

/* ---- lines ---- */

typedef enum towards { UP, RIGHT, LEFT } towards;

/* A small triangle with its point at (x, y). */
static void arrow_head(double x, double y, towards to, qkv_buf *out) {
    const double back = to == RIGHT ? -7 : 7;
    qkv_svg_path_begin(out, "arrow");
    qkv_svg_path_to(out, true, x, y);
    qkv_svg_path_to(out, false, to == UP ? x - 4 : x + back, to == UP ? y + 7 : y - 4);
    qkv_svg_path_to(out, false, to == UP ? x + 4 : x + back, to == UP ? y + 7 : y + 4);
    qkv_svg_path_end(out);
}

static void polyline(const char *class, const double (*at)[2], size_t n, qkv_buf *out) {
    qkv_svg_path_begin(out, class);
    for (size_t i = 0; i < n; i++) qkv_svg_path_to(out, i == 0, at[i][0], at[i][1]);
    qkv_svg_path_end(out);
}

/* Where paths meet: a plus for a sum, two bars for rows joined to longer ones. */
static void join(double x, double y, bool sum, qkv_buf *out) {
    const double radius = 7;
    qkv_svg_rect(out, x - radius, y - radius, 2 * radius, 2 * radius, radius, "bg");
    qkv_svg_rect(out, x - radius, y - radius, 2 * radius, 2 * radius, radius, "edge");
    if (sum) qkv_svg_line(out, x - 4, y, x + 4, y, "edge");
    if (sum) qkv_svg_line(out, x, y - 4, x, y + 4, "edge");
    for (int i = -2; i <= 2 && !sum; i += 4) qkv_svg_line(out, x + i, y - 4, x + i, y + 4, "edge");
}

/* The path around boxes i − span + 1 … i: leaves below them, comes back above in a circled plus. */
static void draw_residual(const frame *f, size_t i, qkv_buf *out) {
    const size_t first = i + 1 - (size_t)f->stack->blocks[i].residual;
    const double x = centre(f), far = f->x - 26, to = box_top(f, i) - JOIN,
                 from = box_top(f, first) + BOX_H + GAP - LEAVE;
    polyline("edge", (const double[][2]){{x, from}, {far, from}, {far, to}, {x - 13, to}}, 4, out);
    arrow_head(x - 8, to, RIGHT, out);
    join(x, to, true, out);
}

/* ---- groups ---- */

static void draw_group(const frame *f, const qkv_diagram_group *g, qkv_buf *out) {
    const qkv_diagram_stack *s = f->stack;
    const double top = box_top(f, g->to - 1) - GROUP_TOP,
                 bottom = box_top(f, g->from) + BOX_H + GROUP_TOP - 1, left = f->x - SIDE + 28;
    double right = f->x + BOX_W + GROUP_PAD;
    for (size_t i = g->from; i < g->to; i++)
        if (s->blocks[i].tile[0].title && !s->blocks[i].tile[0].from_input)
            right = f->x + BOX_W + TILE + TILE_W + 10;
    qkv_svg_rect(out, left, top, right - left, bottom - top, 12, "card");
    qkv_svg_rect(out, left, top, right - left, bottom - top, 12, "frame");
    if (g->label)
        qkv_svg_text_turned(out, left - 8, (top + bottom) / 2, -90, 'm', "ink strong", g->label);
}

/* ---- boxes ---- */

/* How high a small box is. */
static double tile_height(const qkv_diagram_tile *t) {
    double lines = t->detail && *t->detail ? 1 : 0;
    for (const char *p = t->detail; p && *p; p++) lines += *p == '\n';
    return 22 + lines * TILE_LINE;
}

/* From the stack's input, up the right edge of all. */
static void draw_feed(const frame *f, double right, double y, qkv_buf *out) {
    const double from = f->bottom + GAP - 12, far = right + FEED;
    polyline("edge", (const double[][2]){{centre(f), from}, {far, from}, {far, y}, {right + 6, y}},
             4, out);
    arrow_head(right + 1, y, LEFT, out);
}

static void draw_tile(const frame *f, const qkv_diagram_tile *t, double y, qkv_buf *out) {
    const double x = f->x + BOX_W + TILE, height = tile_height(t),
                 text = t->glyph ? x + 40 : x + 12;
    char class[8], line[80];
    snprintf(class, sizeof class, "b%d", (int)t->kind);
    qkv_svg_rect(out, x, y, TILE_W, height, 8, class);
    if (t->glyph) qkv_glyph_svg(t->glyph, x + 10, y + (height - QKV_GLYPH_SIZE) / 2, out);
    qkv_svg_text(out, text, y + 16, 's', "ink small strong", t->title);
    double at = y + 16;
    for (const char *p = t->detail; p && *p; p += strcspn(p, "\n"), p += *p == '\n') {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(p, "\n"), p);
        qkv_svg_text(out, text, at += TILE_LINE, 's', "soft small", line);
    }
    if (t->from_input) draw_feed(f, x + TILE_W, y + height / 2, out);
}

/* The small boxes of a block: those that are added meet on one line up to a circled plus. */
static void draw_tiles(const frame *f, size_t i, qkv_buf *out) {
    const qkv_diagram_block *b = &f->stack->blocks[i];
    const double right = f->x + BOX_W, collect = right + COLLECT, over = box_top(f, i) - JOIN;
    double height = -6;
    bool added = false;
    for (size_t k = 0; k < QKV_TILES && b->tile[k].title; k++)
        height += tile_height(&b->tile[k]) + 6;
    double y = box_top(f, i) + (BOX_H - height) / 2;
    for (size_t k = 0; k < QKV_TILES && b->tile[k].title; k++) {
        const qkv_diagram_tile *t = &b->tile[k];
        const double middle = y + tile_height(t) / 2;
        if (t->added) {
            polyline(
                "edge",
                (const double[][2]){{right + TILE, middle}, {collect, middle}, {collect, over}}, 3,
                out);
        } else {
            qkv_svg_line(out, right + TILE, middle, right + 6, middle, "edge");
            arrow_head(right + 1, middle, LEFT, out);
        }
        added |= t->added;
        draw_tile(f, t, y, out);
        y += tile_height(t) + 6;
    }
    if (!added) return;
    qkv_svg_line(out, collect, over, centre(f) + 13, over, "edge");
    arrow_head(centre(f) + 8, over, LEFT, out);
    join(centre(f), over, true, out);
}

/* The path from a box's output back to its side. */
static void draw_loop(double x, double y, bool left, qkv_buf *out) {
    const double far = left ? x - 16 : x + 16, near = left ? x - 6 : x + 6;
    polyline("edge", (const double[][2]){{x, y - 9}, {far, y - 9}, {far, y + 9}, {near, y + 9}}, 4,
             out);
    arrow_head(left ? x - 1 : x + 1, y + 9, left ? RIGHT : LEFT, out);
}

static void draw_box(const frame *f, size_t i, qkv_buf *out) {
    const qkv_diagram_block *b = &f->stack->blocks[i];
    const bool half = b->beside || has_beside(f->stack, i);
    const double w = half ? HALF_W : BOX_W, x = b->beside ? f->x + BOX_W - w : f->x,
                 y = box_top(f, i);
    char class[8];
    snprintf(class, sizeof class, "b%d", (int)b->kind);
    qkv_svg_rect(out, x, y, w, BOX_H, 8, class);
    qkv_svg_text(out, x + w / 2, y + (b->detail ? 18 : 26), 'm',
                 half ? "ink small strong" : "ink strong", b->title);
    if (b->detail) qkv_svg_text(out, x + w / 2, y + 34, 'm', "soft small", b->detail);
    const bool left = b->tile[0].title || (half && !b->beside);
    if (b->loops) draw_loop(left ? x : x + w, y + BOX_H / 2.0, left, out);
}

/* From the wire below to both boxes of a row, and from both to where they are joined. */
static void draw_fork(const frame *f, size_t i, qkv_buf *out) {
    const double x = centre(f), y = box_top(f, i), split = y + BOX_H + 13, over = y - JOIN;
    for (int side = -1; side <= 1; side += 2) {
        const double at = x + side * (BOX_W - HALF_W) / 2.0;
        polyline("edge", (const double[][2]){{x, split}, {at, split}, {at, y + BOX_H + 6}}, 3, out);
        arrow_head(at, y + BOX_H + 1, UP, out);
        polyline("edge", (const double[][2]){{at, y}, {at, over}, {x + side * 13, over}}, 3, out);
        arrow_head(x + side * 8, over, side < 0 ? RIGHT : LEFT, out);
    }
    join(x, over, false, out);
}

/* What leads out of a row, up to the next one. */
static void draw_wire(const frame *f, size_t i, qkv_buf *out) {
    const qkv_diagram_stack *s = f->stack;
    const qkv_diagram_block *b = &s->blocks[i];
    const size_t next = i + 1;
    const double x = centre(f), y = box_top(f, i), above = y - (next < s->n ? GAP : OUT);
    const bool forks = next < s->n && has_beside(s, next);
    qkv_svg_line(out, x, b->beside ? y - JOIN - 7 : y, x, above + (forks ? 13 : 6), "edge");
    if (!forks) arrow_head(x, above + 1, UP, out);
    if (b->shape)
        qkv_svg_text(out, x + 12, y - (forks ? 20 : 25), 's', "soft small halo", b->shape);
}

static void draw_ends(const frame *f, qkv_buf *out) {
    const qkv_diagram_stack *s = f->stack;
    const double x = centre(f), top = stack_top(f);
    const bool forks = has_beside(s, 0);
    qkv_svg_line(out, x, f->bottom + GAP - 4, x, f->bottom + (forks ? 13 : 6), "edge");
    if (!forks) arrow_head(x, f->bottom + 1, UP, out);
    qkv_svg_text(out, x, top - OUT - 24, 'm', "ink strong", s->title);
    qkv_svg_text(out, x, top - OUT - 8, 'm', "soft", s->output);
    qkv_svg_text(out, x, f->bottom + GAP + 12, 'm', "soft", s->input);
}

static void draw_stack(const frame *f, qkv_buf *out) {
    const qkv_diagram_stack *s = f->stack;
    for (size_t i = 0; i < s->n; i++) {
        draw_box(f, i, out);
        if (s->blocks[i].beside) draw_fork(f, i, out);
        if (!has_beside(s, i)) draw_wire(f, i, out);
        if (s->blocks[i].tile[0].title) draw_tiles(f, i, out);
        if (s->blocks[i].residual > 0 && (size_t)s->blocks[i].residual <= i + 1)
            draw_residual(f, i, out);
    }
    draw_ends(f, out);
}

/* From the top of the first stack to each box of the second that takes its output. */
static void draw_cross(const frame *a, const frame *b, qkv_buf *out) {
    const double top = stack_top(a) - OVER, middle = b->x - SIDE - 18;
    for (size_t i = 0; i < b->stack->n; i++) {
        const char *what = b->stack->blocks[i].from_first;
        if (!what) continue;
        const double y = box_top(b, i) + BOX_H / 2.0;
        polyline("edge dash",
                 (const double[][2]){{centre(a), top}, {middle, top}, {middle, y}, {b->x - 6, y}},
                 4, out);
        arrow_head(b->x - 1, y, RIGHT, out);
        qkv_svg_text(out, middle + 5, y - 5, 's', "soft tiny", what);
    }
}

static double width_of(const frame *f) {
    return BOX_W + (f->tiles ? TILE + TILE_W + FEED : GROUP_PAD);
}

/* ---- the picture ---- */

qkv_status qkv_diagram_svg(const qkv_diagram *d, qkv_buf *out) {
    frame frames[2] = {0};
    size_t most = 0;
    if (d->n < 1 || d->n > 2)
        return qkv_fail(QKV_USAGE, "a diagram has one or two stacks, not %zu", d->n);
    double width = 0;
    for (size_t i = 0; i < d->n; i++) {
        const qkv_diagram_stack *s = &d->stacks[i];
        if (s->n == 0) return qkv_fail(QKV_USAGE, "a stack of no blocks cannot be drawn");
        frames[i] = (frame){.stack = s, .x = (i ? width + LINK : MARGIN) + SIDE};
        for (size_t k = 0; k < s->n; k++) frames[i].tiles |= s->blocks[k].tile[0].title != NULL;
        width = frames[i].x + width_of(&frames[i]);
        const size_t rows = row_of(s, s->n - 1) + 1;
        if (rows > most) most = rows;
    }
    width = fmax(width + MARGIN, qkv_svg_text_width(d->title, 15) + 2 * MARGIN);
    if (d->subtitle) width = fmax(width, qkv_svg_text_width(d->subtitle, 12) + 2 * MARGIN);
    const double height = TOP + OUT + (double)most * (BOX_H + GAP) + BOTTOM;
    qkv_svg_begin(out, width, height, d->title);
    qkv_svg_text(out, MARGIN, 32, 's', "ink title", d->title);
    if (d->subtitle) qkv_svg_text(out, MARGIN, 52, 's', "soft", d->subtitle);
    for (size_t i = 0; i < d->n; i++) {
        frames[i].bottom = height - BOTTOM;
        for (size_t g = 0; g < frames[i].stack->n_groups; g++)
            draw_group(&frames[i], &frames[i].stack->groups[g], out);
    }
    if (d->n == 2) draw_cross(&frames[0], &frames[1], out);
    for (size_t i = 0; i < d->n; i++) draw_stack(&frames[i], out);
    if (d->legend) qkv_svg_text(out, MARGIN, height - 16, 's', "soft small", d->legend);
    qkv_svg_end(out);
    return out->status;
}
