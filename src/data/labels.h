/* A set of names with numbers: the classes of a classifier, in the order of their bytes. */
#ifndef QKV_DATA_LABELS_H
#define QKV_DATA_LABELS_H

#include "base/error.h"

typedef struct qkv_labels {
    char **names;
    int32_t n;
    size_t cap;
    int32_t *slots; /* open addressing: number + 1, or 0 */
    size_t n_slots;
} qkv_labels;

void qkv_labels_free(qkv_labels *l);
/* The number of a name, or −1. */
int32_t qkv_labels_find(const qkv_labels *l, const char *name, size_t len);
/* Finds or adds; −1 when there is no memory (message set). */
int32_t qkv_labels_add(qkv_labels *l, const char *name, size_t len);
/* Renumbers by byte order; map[old] = new has room for n numbers. */
qkv_status qkv_labels_sort(qkv_labels *l, int32_t *map);

#endif
