/* Growing arrays of ids and offsets; doubling, so that adding is cheap without knowing the end. */
#include "data/encoded.h"
#include "base/mem.h"

#include <string.h>

void qkv_encoded_init(qkv_encoded *e, int sides) {
    *e = (qkv_encoded){.sides = sides};
}

void qkv_encoded_free(qkv_encoded *e) {
    qkv_free(e->ids);
    qkv_free(e->start);
    qkv_free(e->label);
    *e = (qkv_encoded){0};
}

/* Room for one more sequence of n ids. */
static qkv_status grow(qkv_encoded *e, int64_t n) {
    const size_t want = (size_t)(qkv_encoded_tokens(e) + n);
    if (want > e->ids_cap || !e->ids) {
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

qkv_status qkv_encoded_add(qkv_encoded *e, const int32_t *ids, int64_t n) {
    QKV_TRY(grow(e, n));
    const int64_t at = e->start[e->n_seq];
    if (n) memcpy(e->ids + at, ids, (size_t)n * sizeof *ids);
    e->start[++e->n_seq] = at + n;
    e->n = e->n_seq / e->sides;
    return QKV_OK;
}

qkv_status qkv_encoded_extend(qkv_encoded *e, const int32_t *ids, int64_t n) {
    if (e->n_seq == 0) return qkv_encoded_add(e, ids, n);
    QKV_TRY(grow(e, n));
    int64_t *end = &e->start[e->n_seq];
    if (n) memcpy(e->ids + *end, ids, (size_t)n * sizeof *ids);
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
