/* What the pictures of attention share; the terminal's. */
#include "draw/attention_page.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TITLE = 96 };

static const float *map_of(const qkv_attention_part *p, int32_t layer, int32_t head) {
    return p->weights +
           ((size_t)layer * (size_t)p->heads + (size_t)head) * (size_t)p->queries * (size_t)p->keys;
}

/* What a head says: the mean over queries of the relative entropy of its weights w and what all
 * queries look at, m, among the keys that this one may see (S: those no further before or behind it
 * than any query looks at, which is what causal and local patterns leave),
 *
 *     Σ_k w_k log₂(w_k / m_k) + log₂ Σ_{k ∈ S} m_k,
 *
 * in log₂ of the number of keys. Nothing where all look alike: at everything, at one mark. A head of
 * self-attention that looks at one distance (the token itself, the one before) is of many bits, but
 * one knows them all beforehand: what share of the weight that is, is taken off. */
static double bits_said(const float *w, const double *mean, int32_t queries, int32_t keys) {
    int32_t before = 0, behind = 0;
    for (int32_t q = 0; q < queries; q++)
        for (int32_t k = 0; k < keys; k++) {
            if (!(w[(size_t)q * (size_t)keys + (size_t)k] > 0)) continue;
            if (q - k > before) before = q - k;
            if (k - q > behind) behind = k - q;
        }
    double bits = 0;
    for (int32_t q = 0; q < queries; q++, w += keys) {
        double seen = 0;
        for (int32_t k = 0; k < keys; k++) {
            const double v = (double)w[k];
            if (q - k <= before && k - q <= behind) seen += mean[k];
            if (v > 0) bits += v * log2(v / mean[k]);
        }
        if (seen > 0) bits += log2(seen);
    }
    return bits / queries;
}

static double share_of_one_distance(const float *w, int32_t queries, int32_t keys) {
    enum { NEAR = 4 };
    double most = 0;
    for (int32_t d = -NEAR; d <= NEAR; d++) {
        double share = 0;
        int32_t n = 0;
        for (int32_t q = 0; q < queries; q++)
            if (q + d >= 0 && q + d < keys)
                share += (double)w[(size_t)q * (size_t)keys + (size_t)(q + d)], n++;
        if (n && share / n > most) most = share / n;
    }
    return fmin(most, 1);
}

static double says(const qkv_attention_part *p, const float *w) {
    enum { KEYS = 4096 };
    double mean[KEYS] = {0}; /* of a longer text no head is said to say more than others */
    const int32_t keys = p->keys;
    if (keys < 2 || keys > KEYS || p->queries < 2) return 0;
    for (int32_t q = 0; q < p->queries; q++)
        for (int32_t k = 0; k < keys; k++)
            mean[k] += (double)w[(size_t)q * (size_t)keys + (size_t)k] / p->queries;
    const double bits = bits_said(w, mean, p->queries, keys) / log2(keys);
    return fmin(fmax(bits, 0), 1) * (p->self ? 1 - share_of_one_distance(w, p->queries, keys) : 1);
}

qkv_head_statistics qkv_attention_head(const qkv_attention_part *p, int32_t layer, int32_t head) {
    const float *w = map_of(p, layer, head);
    qkv_head_statistics s = {.says = says(p, w)};
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

void qkv_attention_most(const qkv_attention_part *p, int32_t *layer, int32_t *head) {
    double most = -1;
    for (int32_t l = 0; l < p->layers; l++)
        for (int32_t h = 0; h < p->heads; h++) {
            const double x = qkv_attention_head(p, l, h).says;
            if (x > most) most = x, *layer = l, *head = h;
        }
}

/* What is shown large: of self-attention the head that says most, of a translator's the mean of the
 * last layer's heads, which is where the words of a translation come from. */
static void show_large(const qkv_attention_part *p, qkv_attention_maps *m) {
    const size_t n = (size_t)p->layers * (size_t)p->heads,
                 cells = (size_t)p->queries * (size_t)p->keys;
    char *title = m->titles + n * TITLE;
    int32_t layer = 0, head = 0;
    qkv_attention_most(p, &layer, &head);
    m->most = (size_t)layer * (size_t)p->heads + (size_t)head;
    if (p->self) {
        m->large.values = map_of(p, layer, head);
        snprintf(title, TITLE, "%s, layer %d, head %d, which says most", p->title, layer + 1,
                 head + 1);
        return;
    }
    for (int32_t h = 0; h < p->heads; h++)
        for (size_t i = 0; i < cells; i++)
            m->values[i] += map_of(p, p->layers - 1, h)[i] / (float)p->heads;
    m->large.values = m->values;
    snprintf(title, TITLE, "%s, layer %d: mean of the heads", p->title, p->layers);
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
                            /* Weights spread evenly are nothing to see. */
                            .floor = p->keys > 3 ? 1.0 / p->keys : 0,
                            .top = p->keys > 3 ? 3.0 / p->keys : 1};
    for (size_t i = 0; i < n; i++) {
        char *title = m->titles + i * TITLE;
        snprintf(title, TITLE, short_titles ? "L%d H%d" : "layer %d, head %d",
                 (int)i / p->heads + 1, (int)i % p->heads + 1);
        m->heads[i] = shape;
        m->heads[i].title = title;
        m->heads[i].values = p->weights + i * cells;
    }
    m->large = shape;
    m->large.title = m->titles + n * TITLE;
    show_large(p, m);
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
    enum { LABEL = 9, CELL = 10 };
    const int columns = ink.columns > 0 ? ink.columns : 80,
              fit = columns >= LABEL + 2 * CELL ? (columns - LABEL) / CELL : 1;
    qkv_buf_puts(out, ink.colour ? "\033[2m" : "");
    qkv_buf_puts(out, p->self ? "entropy in bits / mean distance in tokens, heads across\n"
                              : "entropy in bits, heads across\n");
    for (int32_t l = 0; l < p->layers; l++) {
        for (int32_t h = 0; h < p->heads; h++) {
            const qkv_head_statistics s = qkv_attention_head(p, l, h);
            char cell[40];
            if (p->self)
                snprintf(cell, sizeof cell, "%.1f/%.1f", s.entropy, s.distance);
            else
                snprintf(cell, sizeof cell, "%.1f", s.entropy);
            if (h == 0)
                qkv_buf_printf(out, "layer %-3d", l + 1);
            else if (h % fit == 0)
                qkv_buf_printf(out, "\n%*s", LABEL, "");
            qkv_buf_printf(out, "%*s", CELL, cell);
        }
        qkv_buf_putc(out, '\n');
    }
    qkv_buf_puts(out, ink.colour ? "\033[0m" : "");
    return out->status;
}

/* Instead of a map that would be many screens: its strongest weights. */
static qkv_status put_strongest(const qkv_heat *h, qkv_ink ink, qkv_buf *out) {
    enum { SHOWN = 20, NAME = 24 };
    size_t best[SHOWN], n = 0;
    for (size_t i = 0; i < h->rows * h->columns; i++) {
        size_t at = n;
        if (n == SHOWN && !(h->values[i] > h->values[best[n - 1]])) continue;
        if (n < SHOWN) n++;
        for (at = n - 1; at > 0 && h->values[i] > h->values[best[at - 1]]; at--)
            best[at] = best[at - 1];
        best[at] = i;
    }
    qkv_buf_printf(out, ink.colour ? "\033[1m%s\033[0m\n" : "%s\n", h->title);
    qkv_buf_puts(out, "its strongest weights (-o FILE.html has them all):\n");
    for (size_t i = 0; i < n; i++) {
        const char *from = h->row_names[best[i] / h->columns],
                   *to = h->column_names[best[i] % h->columns];
        qkv_buf_printf(out, "%7.1f %%  ", 100 * (double)h->values[best[i]]);
        const int wide = qkv_text_width(from, strlen(from));
        qkv_text_fit(out, from, strlen(from), wide < NAME ? wide : NAME, false);
        qkv_buf_puts(out, " → ");
        const int other = qkv_text_width(to, strlen(to));
        qkv_text_fit(out, to, strlen(to), other < NAME ? other : NAME, false);
        qkv_buf_putc(out, '\n');
    }
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
        const int columns = ink.columns > 0 ? ink.columns : 80;
        if (status == QKV_OK)
            status = part->keys > columns ? put_strongest(&maps.large, ink, out)
                                          : qkv_heat_terminal(&maps.large, ink, out);
        qkv_attention_maps_free(&maps);
        QKV_TRY(status);
    }
    return out->status;
}
