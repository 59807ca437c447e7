/* Attention on paper: for each part the grid of all heads, and beside or below it one map with
 * the tokens' names. */
#include "draw/attention_page.h"
#include "draw/svg.h"

#include <math.h>

enum {
    TOP = 64,
    GAP = 20,
    ROOM = 1000 /* width up to which a grid and a matrix stand side by side */
};

/* Where a part's two pictures go. */
typedef struct placed {
    double grid_w, grid_h, large_w, large_h;
    bool below;
} placed;

static qkv_heat_grid grid_of(const qkv_attention_part *part, const qkv_attention_maps *maps) {
    return (qkv_heat_grid){.title = part->title,
                           .maps = maps->heads,
                           .n = (size_t)part->layers * (size_t)part->heads,
                           .across = (size_t)part->heads,
                           .framed = maps->most + 1};
}

static placed place(const qkv_attention_part *part, const qkv_attention_maps *maps) {
    placed p;
    const qkv_heat_grid grid = grid_of(part, maps);
    qkv_heat_grid_svg_size(&grid, &p.grid_w, &p.grid_h);
    qkv_heat_svg_size(&maps->large, &p.large_w, &p.large_h);
    p.below = p.grid_w + p.large_w > ROOM;
    return p;
}

static double width_of(placed p) {
    return p.below ? fmax(p.grid_w, p.large_w) : p.grid_w + p.large_w + GAP;
}

static double height_of(placed p) {
    return p.below ? p.grid_h + p.large_h + GAP : fmax(p.grid_h, p.large_h);
}

/* Draws every part, or (out NULL) only measures. */
static qkv_status each_part(const qkv_attention_picture *p, qkv_buf *out, double *width,
                            double *height) {
    double y = TOP;
    *width = 360;
    for (size_t i = 0; i < p->n; i++) {
        qkv_attention_maps maps;
        QKV_TRY(qkv_attention_maps_make(&p->parts[i], false, &maps));
        const placed at = place(&p->parts[i], &maps);
        const qkv_heat_grid grid = grid_of(&p->parts[i], &maps);
        if (out) {
            qkv_heat_grid_svg_draw(&grid, 0, y, out);
            qkv_heat_svg_draw(&maps.large, at.below ? 0 : at.grid_w + GAP,
                              at.below ? y + at.grid_h + GAP : y, out);
        }
        *width = fmax(*width, width_of(at));
        y += height_of(at) + GAP;
        qkv_attention_maps_free(&maps);
    }
    *height = y;
    return QKV_OK;
}

qkv_status qkv_attention_svg(const qkv_attention_picture *p, qkv_buf *out) {
    double width, height;
    QKV_TRY(each_part(p, NULL, &width, &height));
    width = fmax(width,
                 48 + fmax(qkv_svg_text_width(p->title, 15), qkv_svg_text_width(p->subtitle, 12)));
    qkv_svg_begin(out, width, height, p->title);
    qkv_svg_text(out, 24, 34, 's', "ink title", p->title);
    qkv_svg_text(out, 24, 54, 's', "soft", p->subtitle);
    QKV_TRY(each_part(p, out, &width, &height));
    qkv_svg_end(out);
    return out->status;
}
