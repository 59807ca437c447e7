/* Growing arrays of ids and offsets; doubling, so that adding is cheap without knowing the end. */
#include "data/encoded.h"
#include "base/mem.h"

#include <string.h>

void qkv_encoded_init(qkv_encoded *e, int sides) {
    *e = (qkv_encoded){.sides = sides};
}

void qkv_encoded_free(qkv_encoded *e) {
    if (e->map.data) {
        qkv_file_close(&e->map);
    } else {
        qkv_free(e->ids);
        qkv_free(e->start);
        qkv_free(e->label);
    }
    for (int c = 0; c < QKV_COLUMNS; c++) {
        qkv_free(e->column[c].cells.at);
        qkv_free(e->column[c].start.at);
    }
    *e = (qkv_encoded){0};
}

/* ---- blocks on the way to a file ---- */

static void write_block(qkv_spill *s, size_t n) {
    s->hash = qkv_hash64(s->held.data, n, s->hash);
    qkv_writer_add(&s->file, s->held.data, n);
    memmove(s->held.data, s->held.data + n, s->held.len - n);
    s->held.len -= n;
}

void qkv_spill_add(qkv_spill *s, const void *data, size_t n) {
    while (n > 0 && s->file.status == QKV_OK) {
        const size_t part = n < QKV_SPILL ? n : QKV_SPILL;
        qkv_buf_add(&s->held, data, part);
        if (s->held.status != QKV_OK) s->file.status = s->held.status;
        data = (const char *)data + part;
        n -= part;
        while (s->held.len >= QKV_SPILL && s->file.status == QKV_OK) write_block(s, QKV_SPILL);
    }
}

void qkv_spill_flush(qkv_spill *s) {
    if (s->held.len && s->file.status == QKV_OK) write_block(s, s->held.len);
}

/* ---- sequences ---- */

/* Room for one more sequence of n ids. */
static qkv_status grow(qkv_encoded *e, int64_t n) {
    const size_t want = (size_t)(qkv_encoded_tokens(e) + n);
    if (!e->spill && (want > e->ids_cap || !e->ids)) {
        const size_t cap = want < 1024 ? 1024 : want + want / 2;
        int32_t *ids = qkv_realloc(e->ids, cap * sizeof *ids);
        if (!ids) return QKV_FAILED;
        e->ids = ids;
        e->ids_cap = cap;
    }
    if ((size_t)e->n_seq + 2 > e->seq_cap) {
        const size_t cap = 64 + 2 * e->seq_cap;
        int64_t *start = qkv_realloc(e->start, cap * sizeof *start);
        if (!start) return QKV_FAILED;
        if (!e->start) start[0] = 0;
        e->start = start;
        e->seq_cap = cap;
    }
    return QKV_OK;
}

static qkv_status put(qkv_encoded *e, int64_t at, const int32_t *ids, int64_t n) {
    const size_t bytes = (size_t)n * sizeof *ids;
    if (e->spill) {
        qkv_spill_add(e->spill, ids, bytes);
        return e->spill->file.status;
    }
    if (n) memcpy(e->ids + at, ids, bytes);
    return QKV_OK;
}

qkv_status qkv_encoded_add(qkv_encoded *e, const int32_t *ids, int64_t n) {
    QKV_TRY(grow(e, n));
    const int64_t at = e->start[e->n_seq];
    QKV_TRY(put(e, at, ids, n));
    e->start[++e->n_seq] = at + n;
    e->n = e->n_seq / e->sides;
    return QKV_OK;
}

qkv_status qkv_encoded_extend(qkv_encoded *e, const int32_t *ids, int64_t n) {
    if (e->n_seq == 0) return qkv_encoded_add(e, ids, n);
    QKV_TRY(grow(e, n));
    int64_t *end = &e->start[e->n_seq];
    QKV_TRY(put(e, *end, ids, n));
    *end += n;
    return QKV_OK;
}

qkv_status qkv_encoded_label(qkv_encoded *e, int32_t label) {
    /* Capacity follows the examples: a power of two that is reached by doubling. */
    const size_t i = (size_t)e->n - 1;
    if ((i & (i - 1)) == 0 || !e->label) {
        int32_t *labels = qkv_realloc(e->label, (i ? 2 * i : 1) * sizeof *labels + sizeof *labels);
        if (!labels) return QKV_FAILED;
        e->label = labels;
    }
    e->label[i] = label;
    return QKV_OK;
}

qkv_status qkv_encoded_put(qkv_encoded *e, qkv_column column, const int32_t *cells, int64_t n) {
    struct qkv_encoded_column *c = &e->column[column];
    if (c->start.n == 0 && !QKV_PUSH(c->start, 0)) return QKV_FAILED;
    for (int64_t i = 0; i < n; i++)
        if (!QKV_PUSH(c->cells, cells[i])) return QKV_FAILED;
    return QKV_PUSH(c->start, (int64_t)c->cells.n) ? QKV_OK : QKV_FAILED;
}
