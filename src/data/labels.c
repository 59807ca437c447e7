/* A hash table of names; half full at most. */
#include "data/labels.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

void qkv_labels_free(qkv_labels *l) {
    for (int32_t i = 0; i < l->n; i++) qkv_free(l->names[i]);
    qkv_free(l->names);
    qkv_free(l->slots);
    *l = (qkv_labels){0};
}

/* The slot of a name: taken by it, or free. */
static size_t slot_of(const qkv_labels *l, const char *name, size_t len) {
    size_t s = (size_t)qkv_hash64(name, len, 0) & (l->n_slots - 1);
    while (l->slots[s]) {
        const char *there = l->names[l->slots[s] - 1];
        if (strlen(there) == len && memcmp(there, name, len) == 0) break;
        s = (s + 1) & (l->n_slots - 1);
    }
    return s;
}

int32_t qkv_labels_find(const qkv_labels *l, const char *name, size_t len) {
    return l->n_slots ? l->slots[slot_of(l, name, len)] - 1 : -1;
}

/* Puts every name into its slot of a table of `n_slots`. */
static bool rehash(qkv_labels *l, size_t n_slots) {
    int32_t *slots = qkv_zalloc(n_slots, sizeof *slots);
    if (!slots) return false;
    qkv_free(l->slots);
    l->slots = slots;
    l->n_slots = n_slots;
    for (int32_t i = 0; i < l->n; i++) slots[slot_of(l, l->names[i], strlen(l->names[i]))] = i + 1;
    return true;
}

int32_t qkv_labels_add(qkv_labels *l, const char *name, size_t len) {
    if (2 * ((size_t)l->n + 1) > l->n_slots && !rehash(l, l->n_slots ? 2 * l->n_slots : 16))
        return -1;
    const size_t s = slot_of(l, name, len);
    if (l->slots[s]) return l->slots[s] - 1;
    if (!qkv_vec_grow((void **)&l->names, (size_t)l->n, &l->cap, sizeof *l->names)) return -1;
    char *copy = qkv_strndup(name, len);
    if (!copy) return -1;
    l->names[l->n++] = copy;
    l->slots[s] = l->n;
    return l->n - 1;
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

qkv_status qkv_labels_sort(qkv_labels *l, int32_t *map) {
    if (l->n == 0) return QKV_OK;
    char **old = qkv_alloc((size_t)l->n * sizeof *old);
    if (!old) return QKV_FAILED;
    memcpy(old, l->names, (size_t)l->n * sizeof *old);
    qsort(l->names, (size_t)l->n, sizeof *l->names, by_bytes);
    const bool ok = rehash(l, l->n_slots);
    for (int32_t i = 0; ok && i < l->n; i++) map[i] = qkv_labels_find(l, old[i], strlen(old[i]));
    qkv_free(old);
    return ok ? QKV_OK : QKV_FAILED;
}
