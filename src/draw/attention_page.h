/* Attention as pictures: of a pass's parts (see qkv_attention_part in qkv.h),
 * all layers and heads. */
#ifndef QKV_DRAW_ATTENTION_H
#define QKV_DRAW_ATTENTION_H

#include "draw/heat.h"

typedef struct qkv_attention_picture {
    const char *title, *subtitle;
    const qkv_attention_part *parts;
    size_t n;
} qkv_attention_picture;

/* Heads as small maps, and one map with names (of self-attention the head that says most, else the
 * mean of the last layer's heads): in the terminal, on paper. */
qkv_status qkv_attention_terminal(const qkv_attention_picture *p, qkv_ink ink, qkv_buf *out);
qkv_status qkv_attention_svg(const qkv_attention_picture *p, qkv_buf *out);
/* One page with everything in it: pick a layer and a head, point at tokens. */
qkv_status qkv_attention_html(const qkv_attention_picture *p, qkv_buf *out);

/* ---- for these three ---- */

/* The head that says most (qkv_head_statistics), which is shown first. */
void qkv_attention_most(const qkv_attention_part *p, int32_t *layer, int32_t *head);

/* A part's maps with titles, and the memory that they are in. */
typedef struct qkv_attention_maps {
    qkv_heat *heads; /* layers·heads */
    size_t most;     /* the one that says most */
    qkv_heat large;
    char *titles;
    float *values;
} qkv_attention_maps;
qkv_status qkv_attention_maps_make(const qkv_attention_part *part, bool short_titles,
                                   qkv_attention_maps *out);
void qkv_attention_maps_free(qkv_attention_maps *m);

#endif
