/* The cache of keys and values; see kv.h. */
#include "nn/kv.h"

#include <string.h>

#include "base/mem.h"

static const qkv_op kv_op = {.name = "cache"};

qkv_status qkv_kv_init(qkv_kv *kv, int32_t layers, int64_t width, int32_t max_n, int32_t capacity) {
    *kv = (qkv_kv){.layers = layers,
                   .max_n = max_n,
                   .capacity = capacity,
                   .most_n = max_n,
                   .room = (int64_t)max_n * capacity,
                   .width = width,
                   .watched_layer = -1};
    if (max_n < 1 || capacity < 1 || max_n > INT32_MAX / capacity)
        return qkv_fail(QKV_USAGE, "cache: %d sequences of %d tokens are more than it can hold",
                        (int)max_n, (int)capacity);
    size_t n = (size_t)max_n;
    QKV_TRY_ALLOC(kv->slot = qkv_zalloc(7 * n, sizeof *kv->slot));
    kv->start = kv->slot + n;
    kv->len = kv->start + n;
    kv->first = kv->len + n;
    kv->memory_start = kv->first + n;
    kv->memory_len = kv->memory_start + n;
    kv->taken = kv->memory_len + n;
    QKV_TRY_ALLOC(kv->rows = qkv_zalloc((size_t)layers, sizeof *kv->rows));
    QKV_TRY_ALLOC(kv->memory = qkv_zalloc((size_t)layers, sizeof *kv->memory));
    QKV_TRY_ALLOC(kv->memory_room = qkv_zalloc((size_t)layers, sizeof *kv->memory_room));
    size_t bytes = n * (size_t)capacity * 2 * (size_t)width * sizeof(real);
    for (int32_t i = 0; i < layers && bytes; i++)
        QKV_TRY_ALLOC(kv->rows[i] = qkv_alloc_aligned(bytes));
    return qkv_kv_reset(kv, max_n);
}

void qkv_kv_free(qkv_kv *kv) {
    for (int32_t i = 0; i < kv->layers; i++) {
        if (kv->rows) qkv_free(kv->rows[i]);
        if (kv->memory) qkv_free(kv->memory[i]);
    }
    qkv_free(kv->rows);
    qkv_free(kv->memory);
    qkv_free(kv->memory_room);
    qkv_free(kv->slot);
    *kv = (qkv_kv){0};
}

bool qkv_kv_fit(qkv_kv *kv, int32_t max_n, int32_t capacity) {
    if (max_n > kv->most_n || (int64_t)max_n * capacity > kv->room) return false;
    kv->max_n = max_n;
    kv->capacity = capacity;
    return true;
}

qkv_status qkv_kv_reset(qkv_kv *kv, int32_t n) {
    if (n < 1 || n > kv->max_n)
        return qkv_fail(QKV_USAGE, "cache: made for %d sequences, asked for %d", (int)kv->max_n,
                        (int)n);
    kv->n = n;
    for (int32_t s = 0; s < kv->max_n; s++) {
        kv->slot[s] = s;
        kv->start[s] = s * kv->capacity;
        kv->len[s] = 0;
    }
    kv->memory_rows = 0;
    return QKV_OK;
}

qkv_status qkv_kv_begin(qkv_kv *kv, const qkv_layout *layout) {
    if (layout->n != kv->n)
        return qkv_fail(QKV_USAGE, "cache: holds %d sequences, the step has %d", (int)kv->n,
                        (int)layout->n);
    for (int32_t s = 0; s < kv->n; s++)
        if (qkv_layout_len(layout, s) > kv->capacity - kv->len[s])
            return qkv_fail(QKV_USAGE,
                            "cache: sequence %d is longer than the %d tokens it was made for",
                            (int)s, (int)kv->capacity);
    for (int32_t s = 0; s < kv->n; s++) {
        kv->first[s] = kv->len[s];
        kv->len[s] += qkv_layout_len(layout, s);
    }
    return QKV_OK;
}

void qkv_kv_undo(qkv_kv *kv) {
    memcpy(kv->len, kv->first, (size_t)kv->n * sizeof *kv->len);
}

void qkv_kv_append(qkv_tape *t, const qkv_kv *kv, int32_t layer, const qkv_layout *layout,
                   qkv_tensor **k, qkv_tensor **v) {
    if (qkv_tape_stopped(t)) return;
    int64_t ld = 2 * kv->width;
    size_t bytes = (size_t)kv->width * sizeof(real);
    if ((*k)->cols != kv->width || (*v)->cols != kv->width) {
        qkv_tape_fail(t, &kv_op, QKV_USAGE, "made for keys of width %lld, given %lld",
                      (long long)kv->width, (long long)(*k)->cols);
        return;
    }
    for (int32_t s = 0; s < layout->n; s++)
        for (int32_t i = 0; i < qkv_layout_len(layout, s); i++) {
            real *to = kv->rows[layer] + ((int64_t)kv->start[s] + kv->first[s] + i) * ld;
            int64_t from = layout->start[s] + i;
            memcpy(to, (*k)->data + from * (*k)->ld, bytes);
            memcpy(to + kv->width, (*v)->data + from * (*v)->ld, bytes);
        }
    qkv_tensor *all = qkv_tensor_wrap(t, kv->rows[layer], (int64_t)kv->max_n * kv->capacity, ld);
    *k = qkv_tensor_columns(t, all, 0, kv->width);
    *v = qkv_tensor_columns(t, all, kv->width, kv->width);
}

qkv_status qkv_kv_remember(qkv_kv *kv, int32_t layer, const qkv_tensor *memory) {
    size_t bytes = (size_t)memory->rows * 2 * (size_t)kv->width * sizeof(real);
    if (memory->rows > kv->memory_room[layer]) {
        qkv_free(kv->memory[layer]);
        kv->memory_room[layer] = 0;
        QKV_TRY_ALLOC(kv->memory[layer] = qkv_alloc_aligned(bytes));
        kv->memory_room[layer] = memory->rows;
    }
    memcpy(kv->memory[layer], memory->data, bytes);
    return QKV_OK;
}

/* Copies the rows of one slot to another, in all layers. */
static void copy_slot(qkv_kv *kv, int32_t from, int32_t to, int32_t rows) {
    int64_t slot = (int64_t)kv->capacity * 2 * kv->width;
    size_t bytes = (size_t)rows * 2 * (size_t)kv->width * sizeof(real);
    for (int32_t i = 0; i < kv->layers && bytes; i++)
        memcpy(kv->rows[i] + to * slot, kv->rows[i] + from * slot, bytes);
}

void qkv_kv_select(qkv_kv *kv, const int32_t *from, int32_t n) {
    /* The first child of a sequence keeps its slot; the others get copies in slots that nobody
     * keeps. `first` is free between passes, so the new order is laid out there. */
    int32_t *slot = kv->first;
    memset(kv->taken, 0, (size_t)kv->max_n * sizeof *kv->taken);
    for (int32_t s = 0; s < n; s++) {
        const int32_t mine = kv->slot[from[s]];
        slot[s] = kv->taken[mine] ? -1 : mine;
        kv->taken[mine] = 1;
    }
    for (int32_t s = 0, spare = 0; s < n; s++) {
        if (slot[s] >= 0) continue;
        while (kv->taken[spare]) spare++;
        copy_slot(kv, kv->slot[from[s]], spare, kv->len[from[s]]);
        slot[s] = spare++;
    }
    /* Permute the rest through `start`, which is recomputed from the slots afterwards. */
    int32_t *by[] = {kv->len, kv->memory_start, kv->memory_len};
    for (size_t k = 0; k < sizeof by / sizeof *by; k++) {
        for (int32_t s = 0; s < n; s++) kv->start[s] = by[k][from[s]];
        memcpy(by[k], kv->start, (size_t)n * sizeof *kv->start);
    }
    memcpy(kv->slot, slot, (size_t)n * sizeof *slot);
    for (int32_t s = 0; s < n; s++) kv->start[s] = kv->slot[s] * kv->capacity;
    kv->n = n;
}

void qkv_kv_truncate(qkv_kv *kv, int32_t s, int32_t len) {
    if (len < kv->len[s]) kv->len[s] = len;
}
