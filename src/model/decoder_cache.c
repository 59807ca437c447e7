/* What a decoder keeps between steps; see cache.h. */
#include "model/decoder_cache.h"

#include <string.h>

#include "base/mem.h"
#include "model/parts.h"

static qkv_status make(qkv_cache *c, int32_t n, int32_t capacity) {
    const qkv_model *m = c->model;
    const qkv_side *side = &m->decoder;
    if (!side->name) return qkv_fail(QKV_USAGE, "cache: this model has no decoder");
    if (!side->recurrent) {
        const qkv_multihead_spec *a = &side->stack.spec.attention;
        if (!a->projections)
            return qkv_fail(QKV_USAGE,
                            "cache: basic attention (projections=false) has no keys to keep");
        return qkv_kv_init(&c->kv, side->stack.spec.layers, a->kv_heads * a->d_head, n, capacity);
    }
    /* Only the bookkeeping of the key cache: lengths, and where each sequence's source lies. */
    QKV_TRY(qkv_kv_init(&c->kv, side->rnn.spec.layers, 0, n, capacity));
    size_t layers = (size_t)side->rnn.spec.layers, size = (size_t)n * (size_t)side->rnn.spec.state;
    QKV_TRY_ALLOC(c->h = qkv_zalloc(layers, sizeof *c->h));
    QKV_TRY_ALLOC(c->c = qkv_zalloc(layers, sizeof *c->c));
    for (size_t i = 0; i < layers; i++) {
        QKV_TRY_ALLOC(c->h[i] = qkv_zalloc(size, sizeof(real)));
        QKV_TRY_ALLOC(c->c[i] = qkv_zalloc(size, sizeof(real)));
    }
    return QKV_OK;
}

qkv_status qkv_cache_new(const qkv_model *m, int32_t n, int32_t capacity, qkv_cache **out) {
    qkv_cache *c;
    *out = NULL;
    QKV_TRY_ALLOC(c = qkv_zalloc(1, sizeof *c));
    c->model = m;
    qkv_status status = make(c, n, capacity);
    if (status != QKV_OK) {
        qkv_cache_free(c);
        return status;
    }
    *out = c;
    return QKV_OK;
}

void qkv_cache_free(qkv_cache *c) {
    if (!c) return;
    for (int32_t i = 0; i < c->kv.layers; i++) {
        if (c->h) qkv_free(c->h[i]);
        if (c->c) qkv_free(c->c[i]);
    }
    qkv_free(c->h);
    qkv_free(c->c);
    qkv_free(c->encoder_out);
    qkv_kv_free(&c->kv);
    qkv_free(c);
}

bool qkv_cache_fit(qkv_cache *c, int32_t n, int32_t capacity) {
    return qkv_kv_fit(&c->kv, n, capacity);
}

qkv_status qkv_cache_reset(qkv_cache *c, int32_t n) {
    return qkv_kv_reset(&c->kv, n);
}

int32_t qkv_cache_len(const qkv_cache *c, int32_t s) {
    return c->kv.len[s];
}

/* Reorders the rows of one state array; `spare` has room for as many. */
static void select_rows(real *rows, real *spare, int64_t width, const int32_t *from, int32_t n) {
    size_t bytes = (size_t)width * sizeof(real);
    for (int32_t s = 0; s < n; s++) memcpy(spare + s * width, rows + from[s] * width, bytes);
    memcpy(rows, spare, (size_t)n * bytes);
}

qkv_status qkv_cache_select(qkv_cache *c, const int32_t *from, int32_t n) {
    if (n < 1 || n > c->kv.max_n)
        return qkv_fail(QKV_USAGE, "cache: made for %d sequences, asked for %d", (int)c->kv.max_n,
                        (int)n);
    for (int32_t s = 0; s < n; s++)
        if (from[s] < 0 || from[s] >= c->kv.n)
            return qkv_fail(QKV_USAGE, "cache: there is no sequence %d among %d", (int)from[s],
                            (int)c->kv.n);
    if (c->h) {
        int64_t width = c->model->config.d_state;
        real *spare;
        QKV_TRY_ALLOC(spare = qkv_alloc((size_t)n * (size_t)width * sizeof *spare));
        for (int32_t i = 0; i < c->kv.layers; i++) {
            select_rows(c->h[i], spare, width, from, n);
            select_rows(c->c[i], spare, width, from, n);
        }
        qkv_free(spare);
    }
    qkv_kv_select(&c->kv, from, n);
    return QKV_OK;
}

void qkv_cache_watch(qkv_cache *c, bool on) {
    /* The last layer but one aligns best (Garg et al. 2019).
     * Recurrent decoders have one attention. */
    const int32_t layers = c->h ? 1 : c->kv.layers;
    c->kv.watched_layer = !on ? -1 : layers > 1 ? layers - 2 : 0;
    c->kv.watched = NULL;
}

const real *qkv_cache_watched(const qkv_cache *c, int32_t s, int32_t *n) {
    *n = c->kv.watched ? c->kv.cross_len[s] : 0;
    return c->kv.watched ? c->kv.watched + (int64_t)s * c->kv.watched_width : NULL;
}
