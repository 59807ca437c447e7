/* What the pictures of attention share; the terminal's. */
#include "draw/attention_page.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { TITLE = 96 };

static const float *map_of(const qkv_attention_part *p, int32_t layer, int32_t head) {
    return p->weights +
           ((size_t)layer * (size_t)p->heads + (size_t)head) * (size_t)p->queries * (size_t)p->keys;
}

qkv_head_statistics qkv_attention_head(const qkv_attention_part *p, int32_t layer, int32_t head) {
    const float *w = map_of(p, layer, head);
    qkv_head_statistics s = {0};
    for (int32_t q = 0; q < p->queries; q++) {
        double peak = 0;
        for (int32_t k = 0; k < p->keys; k++) {
            const double v = w[(size_t)q * (size_t)p->keys + (size_t)k];
            if (v > 0) s.entropy -= v * log2(v);
            s.distance += v * abs(q - k);
            if (v > peak) peak = v;
        }
        s.peak += peak;
    }
    s.entropy /= p->queries;
    s.distance = p->self ? s.distance / p->queries : NAN;
    s.peak /= p->queries;
    return s;
}

qkv_status qkv_attention_maps_make(const qkv_attention_part *p, bool short_titles,
                                   qkv_attention_maps *m) {
    const size_t n = (size_t)p->layers * (size_t)p->heads,
                 cells = (size_t)p->queries * (size_t)p->keys;
    *m = (qkv_attention_maps){0};
    m->heads = qkv_zalloc(n, sizeof *m->heads);
    m->titles = qkv_zalloc(n + 1, TITLE);
    m->values = qkv_zalloc(cells, sizeof *m->values);
    if (!m->heads || !m->titles || !m->values) {
        qkv_attention_maps_free(m);
        return QKV_FAILED;
    }
    const qkv_heat shape = {.rows = (size_t)p->queries,
                            .columns = (size_t)p->keys,
                            .stride = (size_t)p->keys,
                            .row_names = p->query_names,
                            .column_names = p->key_names,
                            /* Weights spread evenly must not look like strong ones. */
                            .top = p->keys > 3 ? 3.0 / p->keys : 1};
    for (size_t i = 0; i < n; i++) {
        char *title = m->titles + i * TITLE;
        snprintf(title, TITLE, short_titles ? "L%d H%d" : "layer %d, head %d",
                 (int)i / p->heads + 1, (int)i % p->heads + 1);
        m->heads[i] = shape;
        m->heads[i].title = title;
        m->heads[i].values = p->weights + i * cells;
    }
    for (int32_t h = 0; h < p->heads; h++)
        for (size_t i = 0; i < cells; i++)
            m->values[i] += map_of(p, p->layers - 1, h)[i] / (float)p->heads;
    m->mean = shape;
    m->mean.values = m->values;
    m->mean.title = m->titles + n * TITLE;
    snprintf(m->titles + n * TITLE, TITLE, "%s, layer %d: mean of the heads", p->title, p->layers);
    return QKV_OK;
}

void qkv_attention_maps_free(qkv_attention_maps *m) {
    qkv_free(m->heads);
    qkv_free(m->titles);
    qkv_free(m->values);
    *m = (qkv_attention_maps){0};
}

/* ---- the terminal ---- */

static qkv_status put_statistics(const qkv_attention_part *p, qkv_ink ink, qkv_buf *out) {
    qkv_buf_puts(out, ink.colour ? "\033[2m" : "");
    qkv_buf_puts(out, p->self ? "entropy in bits / mean distance in tokens, heads across\n"
                              : "entropy in bits, heads across\n");
    for (int32_t l = 0; l < p->layers; l++) {
        qkv_buf_printf(out, "layer %-3d", l + 1);
        for (int32_t h = 0; h < p->heads; h++) {
            const qkv_head_statistics s = qkv_attention_head(p, l, h);
            char cell[40];
            if (p->self)
                snprintf(cell, sizeof cell, "%.1f/%.1f", s.entropy, s.distance);
            else
                snprintf(cell, sizeof cell, "%.1f", s.entropy);
            qkv_buf_printf(out, "%10s", cell);
        }
        qkv_buf_putc(out, '\n');
    }
    qkv_buf_puts(out, ink.colour ? "\033[0m" : "");
    return out->status;
}

qkv_status qkv_attention_terminal(const qkv_attention_picture *p, qkv_ink ink, qkv_buf *out) {
    for (size_t i = 0; i < p->n; i++) {
        const qkv_attention_part *part = &p->parts[i];
        qkv_attention_maps maps;
        QKV_TRY(qkv_attention_maps_make(part, true, &maps));
        const qkv_heat_grid grid = {.title = part->title,
                                    .maps = maps.heads,
                                    .n = (size_t)part->layers * (size_t)part->heads,
                                    .across = (size_t)part->heads};
        if (i) qkv_buf_putc(out, '\n');
        qkv_status status = qkv_heat_grid_terminal(&grid, ink, out);
        qkv_buf_putc(out, '\n');
        if (status == QKV_OK) status = put_statistics(part, ink, out);
        qkv_buf_putc(out, '\n');
        if (status == QKV_OK) status = qkv_heat_terminal(&maps.mean, ink, out);
        qkv_attention_maps_free(&maps);
        QKV_TRY(status);
    }
    return out->status;
}
