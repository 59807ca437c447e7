/* A table of hashes by open addressing, at most half full; 0 marks a free slot. */
#include "data/duplicates.h"
#include "base/mem.h"

typedef struct table {
    uint64_t *slot;
    size_t mask;
} table;

uint64_t qkv_row_hash(const qkv_row *row) {
    uint64_t h = qkv_hash64(row->text.data, row->text.len, 0x6475706c);
    if (row->second.data) h = qkv_hash64(row->second.data, row->second.len, h);
    return h ? h : 1;
}

/* Where h is, or where it would go. */
static uint64_t *find(const table *t, uint64_t h) {
    size_t i = (size_t)h & t->mask;
    while (t->slot[i] && t->slot[i] != h) i = (i + 1) & t->mask;
    return &t->slot[i];
}

qkv_status qkv_corpus_duplicates(const qkv_corpus *a, const bool *take_a, const qkv_corpus *b,
                                 const bool *take_b, int64_t *n, int64_t *line) {
    table t = {.mask = 63};
    while (t.mask < 2 * a->n) t.mask = 2 * t.mask + 1;
    *n = *line = 0;
    QKV_TRY_ALLOC(t.slot = qkv_zalloc(t.mask + 1, sizeof *t.slot));
    for (size_t i = 0; i < a->n; i++) {
        if (take_a && !take_a[i]) continue;
        const uint64_t h = qkv_row_hash(&a->rows[i]);
        *find(&t, h) = h;
    }
    for (size_t i = 0; i < b->n; i++)
        if ((!take_b || take_b[i]) && *find(&t, qkv_row_hash(&b->rows[i])) && (*n)++ == 0)
            *line = b->rows[i].line;
    qkv_free(t.slot);
    return QKV_OK;
}
