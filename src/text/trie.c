/* Building a double array: depth first over the sorted keys; the children of a node take the first
 * place where all of them find free units. Where the array is nearly full the search starts behind
 * it, so that building stays linear in practice. */
#include "text/trie.h"
#include "base/buf.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define FREE      UINT32_MAX
#define UNITS_MAX (1u << 28)

typedef struct range { /* keys first … end − 1 share their first `depth` bytes, which lead to `node`
                        */
    size_t first, end;
    uint32_t depth, node;
} range;

typedef struct builder {
    qkv_trie_unit *units;
    size_t n, search_from;
    const qkv_trie_key *keys;
    QKV_VEC(range) todo;
} builder;

static int by_text(const void *a, const void *b) {
    const qkv_trie_key *x = a, *y = b;
    const uint32_t len = x->len < y->len ? x->len : y->len;
    const int order = len ? memcmp(x->text, y->text, len) : 0;
    if (order) return order;
    if (x->len != y->len) return x->len < y->len ? -1 : 1;
    return x->value < y->value ? -1 : x->value > y->value;
}

static qkv_status grow(builder *b, size_t need) {
    if (need <= b->n) return QKV_OK;
    size_t n = b->n + b->n / 2 > need ? b->n + b->n / 2 : need;
    if (n > UNITS_MAX)
        return qkv_fail(QKV_BAD_FILE, "a vocabulary too large for its trie (%zu nodes)", n);
    qkv_trie_unit *grown;
    QKV_TRY_ALLOC(grown = qkv_realloc(b->units, n * sizeof *grown));
    for (size_t i = b->n; i < n; i++) grown[i] = (qkv_trie_unit){0, FREE, -1};
    b->units = grown;
    b->n = n;
    return QKV_OK;
}

/* A base that puts all labels on free units. labels are ascending. */
static qkv_status find_base(builder *b, const uint8_t *labels, int n, uint32_t *out) {
    size_t place = b->search_from > labels[0] ? b->search_from : (size_t)labels[0] + 1, used = 0;
    bool first = true;
    const size_t start = place;
    for (;; place++) {
        QKV_TRY(grow(b, place + 512));
        if (b->units[place].parent != FREE) {
            used++;
            continue;
        }
        if (first) b->search_from = place;
        first = false;
        const size_t base = place - labels[0];
        int i = 1;
        while (i < n && b->units[base + labels[i]].parent == FREE) i++;
        if (i < n) continue;
        if (used * 20 >= (place - start + 1) * 19) b->search_from = place;
        *out = (uint32_t)base;
        return QKV_OK;
    }
}

/* Places the children of one node and queues them. */
static qkv_status place_children(builder *b, range r) {
    uint8_t labels[256];
    size_t from[257];
    int n = 0;
    while (r.first < r.end &&
           b->keys[r.first].len == r.depth) /* keys that end here: the last, greatest value stays */
        b->units[r.node].value = b->keys[r.first++].value;
    for (size_t k = r.first; k < r.end; k++) {
        const uint8_t c = (uint8_t)b->keys[k].text[r.depth];
        if (n && labels[n - 1] == c) continue;
        labels[n] = c;
        from[n++] = k;
    }
    if (!n) return QKV_OK;
    from[n] = r.end;
    uint32_t base;
    QKV_TRY(find_base(b, labels, n, &base));
    b->units[r.node].base = base;
    for (int i = 0; i < n; i++) {
        b->units[base + labels[i]] = (qkv_trie_unit){0, r.node, -1};
        const range child = {from[i], from[i + 1], r.depth + 1, base + labels[i]};
        if (!QKV_PUSH(b->todo, child)) return QKV_FAILED;
    }
    return QKV_OK;
}

qkv_status qkv_trie_build(qkv_trie *t, qkv_trie_key *keys, size_t n) {
    *t = (qkv_trie){0};
    qsort(keys, n, sizeof *keys, by_text);
    while (n && keys[0].len == 0) keys++, n--;
    for (size_t i = 0; i < n; i++)
        if (keys[i].len > QKV_TRIE_DEPTH)
            return qkv_fail(QKV_BAD_FILE, "a piece of %u bytes, to be searched for: at most %u",
                            keys[i].len, QKV_TRIE_DEPTH);
    builder b = {.search_from = 1, .keys = keys};
    qkv_status status = grow(&b, 1024);
    const range root = {0, n, 0, 0};
    if (status == QKV_OK && !QKV_PUSH(b.todo, root)) status = QKV_FAILED;
    if (status == QKV_OK) b.units[0].parent = FREE - 1; /* taken, and no node's child */
    while (status == QKV_OK && b.todo.n) status = place_children(&b, b.todo.at[--b.todo.n]);
    qkv_free(b.todo.at);
    if (status != QKV_OK) {
        qkv_free(b.units);
        return status;
    }
    *t = (qkv_trie){b.units, b.n};
    return QKV_OK;
}

void qkv_trie_free(qkv_trie *t) {
    qkv_free(t->units);
    *t = (qkv_trie){0};
}

size_t qkv_trie_longest(const qkv_trie *t, const char *text, size_t len, int32_t *value) {
    size_t best = 0;
    uint32_t node = 0;
    for (size_t i = 0; i < len; i++) {
        node = qkv_trie_step(t, node, (uint8_t)text[i]);
        if (!node) break;
        if (t->units[node].value >= 0) {
            best = i + 1;
            *value = t->units[node].value;
        }
    }
    return best;
}
