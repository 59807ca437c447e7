/* Writing safetensors: sorted, without gaps, header padded with spaces so that the data is 8-byte
 * aligned. */
#include "store/safetensors.h"
#include "base/json.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define DTYPE_NAME(id, name, bits) name,
    QKV_DTYPE_TABLE(DTYPE_NAME)
#undef DTYPE_NAME
};
static const size_t sizes[] = {
#define DTYPE_SIZE(id, name, bits) bits / 8,
    QKV_DTYPE_TABLE(DTYPE_SIZE)
#undef DTYPE_SIZE
};

static int by_name(const void *a, const void *b) {
    const qkv_to_store *x = *(const qkv_to_store *const *)a, *y = *(const qkv_to_store *const *)b;
    return strcmp(x->name, y->name);
}

/* Wide elements first, so that every tensor is aligned to its elements; then by name. */
static int by_size_and_name(const void *a, const void *b) {
    const qkv_to_store *x = *(const qkv_to_store *const *)a, *y = *(const qkv_to_store *const *)b;
    if (sizes[x->dtype] != sizes[y->dtype]) return sizes[x->dtype] > sizes[y->dtype] ? -1 : 1;
    return by_name(a, b);
}

static qkv_status tensor_bytes(const char *path, const qkv_to_store *t, size_t *bytes) {
    if (t->dtype >= QKV_DTYPE_OTHER || t->rank < 0 || t->rank > 8)
        return qkv_fail(QKV_USAGE,
                        "%s: tensor \"%.200s\" has a dtype or rank that cannot be written", path,
                        t->name);
    *bytes = sizes[t->dtype];
    for (int i = 0; i < t->rank; i++)
        if (t->shape[i] < 0 || qkv_mul_over(*bytes, (size_t)t->shape[i], bytes))
            return qkv_fail(QKV_USAGE,
                            "%s: tensor \"%.200s\": dimension %d is %lld, or the whole too large",
                            path, t->name, i, (long long)t->shape[i]);
    return QKV_OK;
}

static void put_metadata(qkv_json_out *j, const char *const *meta) {
    bool format = false;
    qkv_json_put_key(j, "__metadata__");
    qkv_json_open(j, '{');
    for (; meta && meta[0]; meta += 2) {
        format |= strcmp(meta[0], "format") == 0;
        qkv_json_put_key(j, meta[0]);
        qkv_json_put_text(j, meta[1]);
    }
    if (!format) {
        qkv_json_put_key(j, "format");
        qkv_json_put_text(j, "pt");
    }
    qkv_json_close(j, '}');
}

static void put_tensor(qkv_json_out *j, const qkv_to_store *t, size_t begin, size_t end) {
    qkv_json_put_key(j, t->name);
    qkv_json_open(j, '{');
    qkv_json_put_key(j, "dtype");
    qkv_json_put_text(j, names[t->dtype]);
    qkv_json_put_key(j, "shape");
    qkv_json_open(j, '[');
    for (int i = 0; i < t->rank; i++) qkv_json_put_int(j, t->shape[i]);
    qkv_json_close(j, ']');
    qkv_json_put_key(j, "data_offsets");
    qkv_json_open(j, '[');
    qkv_json_put_int(j, (int64_t)begin);
    qkv_json_put_int(j, (int64_t)end);
    qkv_json_close(j, ']');
    qkv_json_close(j, '}');
}

/* The length word and the padded header; *total becomes the size of the whole file. */
static qkv_status make_header(const char *path, const qkv_to_store **order, size_t n,
                              const char *const *meta, qkv_buf *head, size_t *total) {
    uint64_t length = 0;
    qkv_buf_add(head, &length, sizeof length);
    qkv_json_out j = qkv_json_begin(head, 0);
    qkv_json_open(&j, '{');
    put_metadata(&j, meta);
    size_t place = 0;
    for (size_t i = 0; i < n; i++) {
        size_t bytes, end;
        QKV_TRY(tensor_bytes(path, order[i], &bytes));
        if (i && strcmp(order[i]->name, order[i - 1]->name) == 0)
            return qkv_fail(QKV_USAGE, "%s: the tensor \"%.200s\" is there twice", path,
                            order[i]->name);
        if (qkv_add_over(place, bytes, &end))
            return qkv_fail(QKV_USAGE, "%s: the tensors together are too large", path);
        put_tensor(&j, order[i], place, end);
        place = end;
    }
    qkv_json_close(&j, '}');
    while (head->len % 8 != 0 && head->status == QKV_OK) qkv_buf_putc(head, ' ');
    if (head->status != QKV_OK) return head->status;
    length = head->len - sizeof length;
    memcpy(head->data, &length, sizeof length);
    *total = head->len + place;
    return QKV_OK;
}

static qkv_status write_all(const char *path, const qkv_to_store **order, size_t n,
                            const char *const *meta, qkv_buf *head) {
    size_t total = 0;
    QKV_TRY(make_header(path, order, n, meta, head, &total));
    qkv_writer w;
    QKV_TRY(qkv_writer_open(&w, path, total));
    qkv_writer_add(&w, head->data, head->len);
    for (size_t i = 0; i < n; i++) {
        size_t bytes = 0;
        tensor_bytes(path, order[i], &bytes); /* succeeded above */
        qkv_writer_add(&w, order[i]->data, bytes);
    }
    return qkv_writer_commit(&w);
}

/* Fills `order`; refuses what cannot be written before anything is touched. */
static qkv_status sort_tensors(const char *path, const qkv_to_store *tensors, size_t n,
                               const qkv_to_store **order) {
    size_t bytes;
    for (size_t i = 0; i < n; i++) {
        order[i] = &tensors[i];
        QKV_TRY(tensor_bytes(path, &tensors[i], &bytes));
    }
    if (n == 0) return QKV_OK;
    qsort(order, n, sizeof *order, by_name);
    for (size_t i = 1; i < n; i++)
        if (strcmp(order[i]->name, order[i - 1]->name) == 0)
            return qkv_fail(QKV_USAGE, "%s: the tensor \"%.200s\" is there twice", path,
                            order[i]->name);
    qsort(order, n, sizeof *order, by_size_and_name);
    return QKV_OK;
}

qkv_status qkv_safetensors_write(const char *path, const qkv_to_store *tensors, size_t n,
                                 const char *const *meta) {
    const qkv_to_store **order;
    QKV_TRY_ALLOC(order = qkv_zalloc(n, sizeof *order));
    qkv_buf head = {0};
    qkv_status status = sort_tensors(path, tensors, n, order);
    if (status == QKV_OK) status = write_all(path, order, n, meta, &head);
    qkv_buf_free(&head);
    qkv_free(order);
    return status;
}
