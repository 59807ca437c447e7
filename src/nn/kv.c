/* The cache of keys and values; see kv.h. */
#include "nn/kv.h"

#include <assert.h>
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
    QKV_TRY_ALLOC(kv->start = qkv_zalloc(5 * n, sizeof *kv->start));
    kv->len = kv->start + n;
    kv->first = kv->len + n;
    kv->cross_start = kv->first + n;
    kv->cross_len = kv->cross_start + n;
    int32_t **lists[] = {&kv->list, &kv->new_list, &kv->users, &kv->spare};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        QKV_TRY_ALLOC(*lists[i] = qkv_alloc((size_t)kv->room * sizeof **lists[i]));
    QKV_TRY_ALLOC(kv->rows = qkv_zalloc((size_t)layers, sizeof *kv->rows));
    QKV_TRY_ALLOC(kv->cross = qkv_zalloc((size_t)layers, sizeof *kv->cross));
    QKV_TRY_ALLOC(kv->cross_room = qkv_zalloc((size_t)layers, sizeof *kv->cross_room));
    size_t bytes = n * (size_t)capacity * 2 * (size_t)width * sizeof(real);
    for (int32_t i = 0; i < layers && bytes; i++)
        QKV_TRY_ALLOC(kv->rows[i] = qkv_alloc_aligned(bytes));
    return qkv_kv_reset(kv, max_n);
}

void qkv_kv_free(qkv_kv *kv) {
    for (int32_t i = 0; i < kv->layers; i++) {
        if (kv->rows) qkv_free(kv->rows[i]);
        if (kv->cross) qkv_free(kv->cross[i]);
    }
    qkv_free(kv->rows);
    qkv_free(kv->cross);
    qkv_free(kv->cross_room);
    qkv_free(kv->list);
    qkv_free(kv->new_list);
    qkv_free(kv->users);
    qkv_free(kv->spare);
    qkv_free(kv->start);
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
    kv->used = kv->n_spare = 0;
    for (int32_t s = 0; s < kv->max_n; s++) {
        kv->start[s] = s * kv->capacity;
        kv->len[s] = 0;
    }
    kv->cross_rows = 0;
    return QKV_OK;
}

/* The last tokens of sequence s, from the one numbered `from` on, are no longer its own. */
static void give_rows(qkv_kv *kv, int32_t s, int32_t from) {
    const int32_t *row = kv->list + kv->start[s];
    for (int32_t i = kv->len[s]; i-- > from;) {
        assert(kv->users[row[i]] > 0);
        if (--kv->users[row[i]] > 0) continue;
        assert(kv->n_spare < kv->used);
        kv->spare[kv->n_spare++] = row[i];
    }
}

/* There is one: sequences have at most max_n·capacity tokens, shared or not. */
static void take_row(qkv_kv *kv, int32_t *row) {
    *row = kv->n_spare ? kv->spare[--kv->n_spare] : kv->used++;
    assert(*row < kv->max_n * kv->capacity);
    kv->users[*row] = 1;
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
        for (int32_t i = kv->first[s]; i < kv->len[s]; i++)
            take_row(kv, kv->list + kv->start[s] + i);
    }
    return QKV_OK;
}

void qkv_kv_undo(qkv_kv *kv) {
    for (int32_t s = kv->n; s-- > 0;) qkv_kv_truncate(kv, s, kv->first[s]);
}

void qkv_kv_append(qkv_tape *t, const qkv_kv *kv, int32_t layer, const qkv_layout *layout,
                   qkv_tensor **k, qkv_tensor **v) {
    if (qkv_tape_stopped(t)) return;
    assert(layer >= 0 && layer < kv->layers && layout->n == kv->n);
    int64_t ld = 2 * kv->width;
    size_t bytes = (size_t)kv->width * sizeof(real);
    if ((*k)->cols != kv->width || (*v)->cols != kv->width) {
        qkv_tape_fail(t, &kv_op, QKV_USAGE, "made for keys of width %lld, given %lld",
                      (long long)kv->width, (long long)(*k)->cols);
        return;
    }
    for (int32_t s = 0; s < layout->n; s++) {
        assert(kv->first[s] + qkv_layout_len(layout, s) == kv->len[s]); /* as the pass began */
        for (int32_t i = 0; i < qkv_layout_len(layout, s); i++) {
            real *to = kv->rows[layer] + kv->list[kv->start[s] + kv->first[s] + i] * ld;
            int64_t from = layout->start[s] + i;
            memcpy(to, (*k)->data + from * (*k)->ld, bytes);
            memcpy(to + kv->width, (*v)->data + from * (*v)->ld, bytes);
        }
    }
    qkv_tensor *all = qkv_tensor_wrap(t, kv->rows[layer], (int64_t)kv->max_n * kv->capacity, ld);
    *k = qkv_tensor_columns(t, all, 0, kv->width);
    *v = qkv_tensor_columns(t, all, kv->width, kv->width);
}

qkv_status qkv_kv_keep_cross(qkv_kv *kv, int32_t layer, const qkv_tensor *projected) {
    assert(layer >= 0 && layer < kv->layers);
    assert(projected->cols == 2 * kv->width && qkv_is_packed(projected));
    size_t bytes = (size_t)projected->rows * 2 * (size_t)kv->width * sizeof(real);
    if (projected->rows > kv->cross_room[layer]) {
        qkv_free(kv->cross[layer]);
        kv->cross_room[layer] = 0;
        QKV_TRY_ALLOC(kv->cross[layer] = qkv_alloc_aligned(bytes));
        kv->cross_room[layer] = projected->rows;
    }
    memcpy(kv->cross[layer], projected->data, bytes);
    return QKV_OK;
}

void qkv_kv_select(qkv_kv *kv, const int32_t *from, int32_t n) {
    assert(n >= 1 && n <= kv->max_n);
    for (int32_t s = 0; s < n; s++) {
        assert(from[s] >= 0 && from[s] < kv->n);
        const int32_t *row = kv->list + kv->start[from[s]], len = kv->len[from[s]];
        memcpy(kv->new_list + kv->start[s], row, (size_t)len * sizeof *row);
        for (int32_t i = 0; i < len; i++) kv->users[row[i]]++;
    }
    for (int32_t s = 0; s < kv->n; s++) give_rows(kv, s, 0);
    int32_t *const list = kv->list, *by[] = {kv->len, kv->cross_start, kv->cross_len};
    kv->list = kv->new_list;
    kv->new_list = list;
    for (size_t k = 0; k < sizeof by / sizeof *by; k++) { /* through `first`, free between passes */
        for (int32_t s = 0; s < n; s++) kv->first[s] = by[k][from[s]];
        memcpy(by[k], kv->first, (size_t)n * sizeof *kv->first);
    }
    kv->n = n;
}

void qkv_kv_truncate(qkv_kv *kv, int32_t s, int32_t len) {
    assert(s >= 0 && s < kv->n && len >= 0);
    if (len >= kv->len[s]) return;
    give_rows(kv, s, len);
    kv->len[s] = len;
}
