/* Line chart as SVG: light grid, y labels at the left, names at the ends of the lines where there
 * is room for them, so that no legend has to be matched by colour. */
#include "draw/chart.h"
#include "draw/svg.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void qkv_chart_axes(const qkv_chart *c, int x_ticks, int y_ticks, qkv_axis *x, qkv_axis *y) {
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (size_t s = 0; s < c->n; s++)
        for (size_t i = 0; i < c->series[s].n; i++) {
            double at[2] = {c->series[s].x[i], c->series[s].y[i]};
            if (!isfinite(at[0]) || !isfinite(at[1])) continue;
            for (int k = 0; k < 2; k++) {
                low[k] = fmin(low[k], at[k]);
                high[k] = fmax(high[k], at[k]);
            }
        }
    if (c->x_from < c->x_to) low[0] = fmin(low[0], c->x_from), high[0] = fmax(high[0], c->x_to);
    *x = qkv_axis_make(low[0], high[0], x_ticks, false);
    *y = qkv_axis_make(low[1], high[1], y_ticks, true);
}

typedef struct plot {
    double left, top, right, bottom;
    qkv_axis x, y;
} plot;

static double place_x(const plot *p, double x) {
    return p->left + (x - p->x.low) / (p->x.high - p->x.low) * (p->right - p->left);
}

static double place_y(const plot *p, double y) {
    return p->bottom - (y - p->y.low) / (p->y.high - p->y.low) * (p->bottom - p->top);
}

static void draw_axes(const qkv_chart *c, const plot *p, bool last, qkv_buf *out) {
    char label[32];
    for (int i = 0; i < p->y.n; i++) {
        double y = place_y(p, p->y.tick[i]);
        qkv_svg_line(out, p->left, y, p->right, y, "grid");
        qkv_axis_label(&p->y, p->y.tick[i], label);
        qkv_svg_text(out, p->left - 8, y + 4, 'e', "soft small", label);
    }
    for (int i = 0; i < p->x.n; i++) {
        double x = place_x(p, p->x.tick[i]);
        qkv_axis_label(&p->x, p->x.tick[i], label);
        if (last) qkv_svg_text(out, x, p->bottom + 18, 'm', "soft small", label);
        qkv_svg_line(out, x, p->bottom, x, p->bottom + 4, "edge");
    }
    qkv_svg_line(out, p->left, p->bottom, p->right, p->bottom, "edge");
    if (c->x_label && last)
        qkv_svg_text(out, (p->left + p->right) / 2, p->bottom + 36, 'm', "soft small", c->x_label);
    if (c->y_label) qkv_svg_text(out, 24, p->top - 14, 's', "soft small", c->y_label);
}

/* One line; a gap where a point is not finite. Points closer than a pixel are thinned: the first,
 * lowest, highest and last of a pixel column keep the shape. */
static void draw_series(const plot *p, const qkv_series *s, const char *class, qkv_buf *out) {
    qkv_svg_path_begin(out, class);
    bool move = true;
    for (size_t i = 0; i < s->n;) {
        if (!isfinite(s->x[i]) || !isfinite(s->y[i])) {
            move = true;
            i++;
            continue;
        }
        double column = floor(place_x(p, s->x[i]));
        size_t low = i, high = i, last = i, next = i;
        for (; next < s->n && isfinite(s->x[next]) && isfinite(s->y[next]); next++) {
            if (floor(place_x(p, s->x[next])) != column) break;
            if (s->y[next] < s->y[low]) low = next;
            if (s->y[next] > s->y[high]) high = next;
            last = next;
        }
        size_t keep[4] = {i, low < high ? low : high, low < high ? high : low, last};
        for (int k = 0; k < 4; k++) {
            if (k && keep[k] == keep[k - 1]) continue;
            qkv_svg_path_to(out, move, place_x(p, s->x[keep[k]]), place_y(p, s->y[keep[k]]));
            move = false;
        }
        i = next;
    }
    qkv_svg_path_end(out);
}

typedef struct tag {
    double y;
    size_t series;
} tag;

static int by_y(const void *a, const void *b) {
    double x = ((const tag *)a)->y, y = ((const tag *)b)->y;
    return x < y ? -1 : x > y;
}

/* Names beside the last points, pushed apart so that they do not overlap. */
static void draw_names(const qkv_chart *c, const plot *p, qkv_buf *out) {
    enum { LINE = 15 };
    tag tags[QKV_SVG_SERIES];
    size_t n = 0;
    for (size_t s = 0; s < c->n && s < QKV_SVG_SERIES; s++)
        for (size_t i = c->series[s].n; i-- > 0;)
            if (isfinite(c->series[s].x[i]) && isfinite(c->series[s].y[i])) {
                tags[n++] = (tag){place_y(p, c->series[s].y[i]), s};
                break;
            }
    if (n) qsort(tags, n, sizeof *tags, by_y);
    for (size_t i = 1; i < n; i++)
        if (tags[i].y < tags[i - 1].y + LINE) tags[i].y = tags[i - 1].y + LINE;
    /* those that went below the plot push back up what is in their way */
    double lowest = p->bottom;
    for (size_t i = n; i-- > 0; lowest = tags[i].y - LINE)
        if (tags[i].y > lowest) tags[i].y = lowest;
    for (size_t i = 0; i < n; i++) {
        char class[32];
        snprintf(class, sizeof class, "f%zu small strong", tags[i].series);
        qkv_svg_text(out, p->right + 8, tags[i].y + 4, 's', class, c->series[tags[i].series].name);
    }
}

/* The mark: a line, and its name beside it where it has one and there is more room. */
static void draw_mark(const qkv_chart *c, const plot *p, bool named, qkv_buf *out) {
    if (!c->mark_name || !(c->mark >= p->x.low && c->mark <= p->x.high)) return;
    const double x = place_x(p, c->mark);
    const bool left = x > (p->left + p->right) / 2;
    qkv_svg_line(out, x, p->top - (named ? 6 : 0), x, p->bottom, "edge dash");
    if (named)
        qkv_svg_text(out, left ? x - 6 : x + 6, p->top + 2, left ? 'e' : 's', "ink small halo",
                     c->mark_name);
}

static void draw_panel(const qkv_chart *c, const plot *p, bool first, bool last, qkv_buf *out) {
    draw_axes(c, p, last, out);
    for (size_t s = 0; s < c->n && s < QKV_SVG_SERIES; s++) {
        char class[8];
        snprintf(class, sizeof class, "s%zu", s);
        draw_series(p, &c->series[s], class, out);
    }
    draw_mark(c, p, first, out);
    draw_names(c, p, out);
}

qkv_status qkv_charts_svg(const qkv_chart *charts, size_t n, double width, double height,
                          qkv_buf *out) {
    enum { BETWEEN = 44, BELOW = 52, EDGE = 24 };
    if (n == 0) return qkv_fail(QKV_USAGE, "a picture of no charts cannot be drawn");
    const qkv_chart *first = &charts[0];
    const double top = first->subtitle ? 92 : first->title ? 72 : 36;
    /* The first is twice as high as the others. */
    const double share = (height - top - BELOW - BETWEEN * (double)(n - 1)) / (double)(n + 1);
    double names = 0, low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        qkv_axis x, y;
        for (size_t s = 0; s < charts[i].n; s++)
            names = fmax(names, qkv_svg_text_width(charts[i].series[s].name, 11));
        qkv_chart_axes(&charts[i], 5, 5, &x, &y);
        low = fmin(low, x.low), high = fmax(high, x.high);
    }
    qkv_svg_begin(out, width, height, first->title ? first->title : "chart");
    if (first->title) qkv_svg_text(out, EDGE, 32, 's', "ink title", first->title);
    if (first->subtitle) qkv_svg_text(out, EDGE, 52, 's', "soft", first->subtitle);
    double at = top;
    for (size_t i = 0; i < n; i++) {
        qkv_chart c = charts[i];
        c.x_from = low, c.x_to = high;
        plot p = {.left = 64, .top = at, .right = width - EDGE - names};
        p.bottom = at + (i ? 1 : 2) * share;
        qkv_chart_axes(&c, (int)(width / 110), (int)((p.bottom - p.top) / 50), &p.x, &p.y);
        draw_panel(&c, &p, i == 0, i + 1 == n, out);
        at = p.bottom + BETWEEN;
    }
    qkv_svg_end(out);
    return out->status;
}

qkv_status qkv_chart_svg(const qkv_chart *c, double width, double height, qkv_buf *out) {
    return qkv_charts_svg(c, 1, width, height, out);
}
