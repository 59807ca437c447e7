/* The set of trees, and what is measured on one. */
#include "data/trees.h"
#include "base/file.h"
#include "base/mem.h"
#include "data/lines.h"

#include <string.h>

void qkv_trees_free(qkv_trees *t) {
    qkv_free(t->list.at);
    qkv_free(t->slots);
    qkv_arena_free(&t->memory);
    *t = (qkv_trees){0};
}

/* ---- finding ---- */

static qkv_text trimmed(qkv_text t) {
    while (t.len && (unsigned char)t.data[t.len - 1] <= ' ') t.len--;
    while (t.len && (unsigned char)t.data[0] <= ' ') t.data++, t.len--;
    return t;
}

/* The slot of a text: its own, or the free one where it would go. */
static size_t slot_of(const qkv_trees *t, qkv_text text) {
    size_t i = qkv_hash64(text.data, text.len, 0) & (t->n_slots - 1);
    while (t->slots[i]) {
        const qkv_text other = trimmed(t->list.at[t->slots[i] - 1].text);
        if (other.len == text.len && memcmp(other.data, text.data, text.len) == 0) break;
        i = (i + 1) & (t->n_slots - 1);
    }
    return i;
}

const qkv_tree *qkv_trees_find(const qkv_trees *t, qkv_text text) {
    if (t->n_slots == 0) return NULL;
    const uint32_t found = t->slots[slot_of(t, trimmed(text))];
    return found ? &t->list.at[found - 1] : NULL;
}

qkv_status qkv_trees_index(qkv_trees *t) {
    size_t n = 16; /* at most half of the slots are taken */
    while (n < 2 * t->list.n) n *= 2;
    uint32_t *slots = qkv_zalloc(n, sizeof *slots);
    if (!slots) return QKV_FAILED;
    qkv_free(t->slots);
    t->slots = slots;
    t->n_slots = n;
    for (size_t i = 0; i < t->list.n; i++) {
        const size_t slot = slot_of(t, trimmed(t->list.at[i].text));
        if (!t->slots[slot]) t->slots[slot] = (uint32_t)i + 1;
    }
    return QKV_OK;
}

qkv_status qkv_trees_read(qkv_trees *t, const char *path) {
    qkv_file file;
    qkv_text content;
    QKV_TRY(qkv_text_open(path, &file, &content));
    qkv_status status = qkv_trees_parse(t, path, content);
    qkv_file_close(&file);
    if (status == QKV_OK && t->list.n == 0)
        status = qkv_fail(QKV_BAD_FILE, "%s: no sentence is in it", path);
    return status;
}

/* ---- measuring ---- */

int32_t qkv_tree_node(const qkv_tree *tree, uint32_t begin, uint32_t end) {
    size_t low = 0, high = tree->n_spans;
    while (low < high) { /* the first span that ends behind `begin` */
        const size_t mid = (low + high) / 2;
        if (tree->spans[mid].end <= begin)
            low = mid + 1;
        else
            high = mid;
    }
    return low < tree->n_spans && tree->spans[low].begin < end ? tree->spans[low].node : 0;
}
