#include "draw/diagram.h"
#include "draw/svg.h"

#include <math.h>
#include <stdio.h>

/* Sizes in pixels. */
enum {
    BOX_W = 250,
    BOX_H = 42,
    GAP = 34,  /* between boxes */
    SIDE = 74, /* left of the boxes: residual paths, the count of a group */
    TOP = 118,
    BOTTOM = 74,
    GROUP_PAD = 22, /* around a repeated group */
    LINK = 60,      /* between stacks */
    /* Between two boxes, going up: where a residual path comes back and where the next one leaves.
     * Above the top box: where its output goes over to the other stack, and where it ends. */
    JOIN = 10,
    LEAVE = 25,
    OVER = 32,
    OUT = 44
};

typedef struct frame {
    double x;      /* left edge of the boxes */
    double bottom; /* lower edge of the lowest box */
} frame;

static double box_top(const frame *f, size_t i) {
    return f->bottom - (double)i * (BOX_H + GAP) - BOX_H;
}

/* A small triangle that points up at (x, y), or to the right. */
static void arrow_head(double x, double y, bool right, qkv_buf *out) {
    qkv_svg_path_begin(out, "arrow");
    qkv_svg_path_to(out, true, x, y);
    qkv_svg_path_to(out, false, right ? x - 7 : x - 4, right ? y - 4 : y + 7);
    qkv_svg_path_to(out, false, right ? x - 7 : x + 4, right ? y + 4 : y + 7);
    qkv_svg_path_end(out);
}

static void draw_group(const qkv_diagram_stack *s, const frame *f, qkv_buf *out) {
    if (!s->repeat || s->group_to <= s->group_from) return;
    double top = box_top(f, s->group_to - 1) - GROUP_PAD,
           bottom = box_top(f, s->group_from) + BOX_H + GROUP_PAD;
    qkv_svg_rect(out, f->x - SIDE + 22, top, BOX_W + SIDE - 22 + GROUP_PAD, bottom - top, 12,
                 "card");
    qkv_svg_rect(out, f->x - SIDE + 22, top, BOX_W + SIDE - 22 + GROUP_PAD, bottom - top, 12,
                 "frame");
    qkv_svg_text_turned(out, f->x - SIDE + 12, (top + bottom) / 2, -90, 'm', "ink strong",
                        s->repeat);
}

/* The path around boxes i − span + 1 … i: leaves below them, comes back above in a circled plus. */
static void draw_residual(const frame *f, size_t i, int span, qkv_buf *out) {
    const double x = f->x + BOX_W / 2.0, far = f->x - 26, radius = 7;
    double from = box_top(f, i + 1 - (size_t)span) + BOX_H + GAP - LEAVE, to = box_top(f, i) - JOIN;
    qkv_svg_path_begin(out, "edge");
    qkv_svg_path_to(out, true, x, from);
    qkv_svg_path_to(out, false, far, from);
    qkv_svg_path_to(out, false, far, to);
    qkv_svg_path_to(out, false, x - radius - 6, to);
    qkv_svg_path_end(out);
    arrow_head(x - radius - 1, to, true, out);
    qkv_svg_rect(out, x - radius, to - radius, 2 * radius, 2 * radius, radius, "bg");
    qkv_svg_rect(out, x - radius, to - radius, 2 * radius, 2 * radius, radius, "edge");
    qkv_svg_line(out, x - 4, to, x + 4, to, "edge");
    qkv_svg_line(out, x, to - 4, x, to + 4, "edge");
}

static void draw_boxes(const qkv_diagram_stack *s, const frame *f, qkv_buf *out) {
    double x = f->x + BOX_W / 2.0;
    for (size_t i = 0; i < s->n; i++) {
        const qkv_diagram_block *b = &s->blocks[i];
        char class[8];
        double y = box_top(f, i), above = i + 1 < s->n ? GAP : OUT;
        snprintf(class, sizeof class, "b%d", (int)b->kind);
        qkv_svg_rect(out, f->x, y, BOX_W, BOX_H, 8, class);
        qkv_svg_text(out, x, y + (b->detail ? 18 : 26), 'm', "ink strong", b->title);
        if (b->detail) qkv_svg_text(out, x, y + 34, 'm', "soft small", b->detail);
        qkv_svg_line(out, x, y, x, y - above + 6, "edge");
        arrow_head(x, y - above + 1, false, out);
        if (b->residual > 0 && (size_t)b->residual <= i + 1) draw_residual(f, i, b->residual, out);
    }
    qkv_svg_line(out, x, f->bottom + GAP - 4, x, f->bottom + 6, "edge");
    arrow_head(x, f->bottom + 1, false, out);
    qkv_svg_text(out, x, box_top(f, s->n - 1) - OUT - 8, 'm', "ink strong", s->title);
    qkv_svg_text(out, x, f->bottom + GAP + 12, 'm', "soft", s->input);
}

/* From the top of the first stack to each box of the second that takes its output. */
static void draw_cross(const qkv_diagram_stack *first, const frame *a,
                       const qkv_diagram_stack *second, const frame *b, qkv_buf *out) {
    double top = box_top(a, first->n - 1) - OVER, middle = a->x + BOX_W + 34;
    for (size_t i = 0; i < second->n; i++) {
        if (!second->blocks[i].from_first) continue;
        double y = box_top(b, i) + BOX_H / 2.0;
        qkv_svg_path_begin(out, "edge dash");
        qkv_svg_path_to(out, true, a->x + BOX_W / 2.0, top);
        qkv_svg_path_to(out, false, middle, top);
        qkv_svg_path_to(out, false, middle, y);
        qkv_svg_path_to(out, false, b->x - 6, y);
        qkv_svg_path_end(out);
        arrow_head(b->x - 1, y, true, out);
    }
}

qkv_status qkv_diagram_svg(const qkv_diagram *d, qkv_buf *out) {
    if (d->n < 1 || d->n > 2)
        return qkv_fail(QKV_USAGE, "a diagram has one or two stacks, not %zu", d->n);
    size_t most = 0;
    for (size_t i = 0; i < d->n; i++) {
        if (d->stacks[i].n == 0) return qkv_fail(QKV_USAGE, "a stack of no blocks cannot be drawn");
        if (d->stacks[i].n > most) most = d->stacks[i].n;
    }
    double column = BOX_W + SIDE + GROUP_PAD + LINK;
    double width =
        fmax(24 + column * (double)d->n - LINK + 40, qkv_svg_text_width(d->title, 15) + 60);
    width = fmax(width, d->subtitle ? qkv_svg_text_width(d->subtitle, 12) + 60 : 0);
    double height = TOP + (double)most * (BOX_H + GAP) + BOTTOM;
    qkv_svg_begin(out, width, height, d->title);
    qkv_svg_text(out, 24, 32, 's', "ink title", d->title);
    if (d->subtitle) qkv_svg_text(out, 24, 52, 's', "soft", d->subtitle);
    frame frames[2];
    for (size_t i = 0; i < d->n; i++) {
        frames[i] = (frame){.x = 24 + SIDE + column * (double)i, .bottom = height - BOTTOM};
        draw_group(&d->stacks[i], &frames[i], out);
    }
    if (d->n == 2) draw_cross(&d->stacks[0], &frames[0], &d->stacks[1], &frames[1], out);
    for (size_t i = 0; i < d->n; i++) draw_boxes(&d->stacks[i], &frames[i], out);
    qkv_svg_end(out);
    return out->status;
}
