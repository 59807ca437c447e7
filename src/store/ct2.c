/* CTranslate2's binary version 2, little-endian:
 *
 *     u32 version, string specification, u32 revision, u32 arrays, then for each array
 *     string name, u8 rank, u32 shape[rank], u8 bytes of an element, u32 elements, the elements
 *
 * with string = u16 length (the final NUL counted), bytes. */
#include "store/ct2.h"
#include "base/mem.h"

#include <string.h>

typedef struct cursor {
    const char *at, *end;
    bool short_of; /* asked for more than there is */
} cursor;

static const char *take(cursor *c, size_t n) {
    if ((size_t)(c->end - c->at) < n) {
        c->short_of = true;
        return NULL;
    }
    const char *at = c->at;
    c->at += n;
    return at;
}

static uint32_t number(cursor *c, size_t n) {
    const char *at = take(c, n);
    uint32_t v = 0;
    for (size_t i = 0; at && i < n; i++) v |= (uint32_t)(uint8_t)at[i] << (8 * i);
    return v;
}

static qkv_text string(cursor *c) {
    const size_t len = number(c, 2);
    const char *at = take(c, len);
    if (!at) return (qkv_text){"", 0};
    return (qkv_text){at, len && !at[len - 1] ? len - 1 : len};
}

bool qkv_is_ct2(const qkv_file *file) {
    cursor c = {file->data, file->data + file->size, false};
    const uint32_t version = number(&c, 4);
    const qkv_text spec = string(&c);
    if (c.short_of || version < 1 || version > 20 || spec.len < 3 || spec.len > 100) return false;
    for (size_t i = 0; i < spec.len; i++)
        if ((spec.data[i] | 32) < 'a' || (spec.data[i] | 32) > 'z') return false;
    return true;
}

static qkv_status read_array(cursor *c, size_t index, qkv_ct2_array *out) {
    *out = (qkv_ct2_array){.name = string(c), .rank = (int)number(c, 1)};
    if (c->short_of || out->rank > QKV_CT2_RANK)
        return qkv_fail(QKV_BAD_FILE, "array %zu: the file is cut off, or the rank is not 0 … %d",
                        index, QKV_CT2_RANK);
    size_t elements = 1, bytes;
    bool over = false;
    for (int d = 0; d < out->rank; d++) {
        out->shape[d] = number(c, 4);
        over = over || qkv_mul_over(elements, (size_t)out->shape[d], &elements);
    }
    out->item = (int)number(c, 1);
    if (over || number(c, 4) != elements || !elements)
        return qkv_fail(QKV_BAD_FILE, "array %.*s: its shape and its number of elements disagree",
                        (int)out->name.len, out->name.data);
    out->elements = (int64_t)elements;
    if (qkv_mul_over(elements, (size_t)out->item, &bytes) || !(out->data = take(c, bytes)))
        return qkv_fail(QKV_BAD_FILE, "array %.*s ends beyond the end of the file",
                        (int)out->name.len, out->name.data);
    return QKV_OK;
}

qkv_status qkv_ct2_read(const qkv_file *file, qkv_ct2 *out) {
    cursor c = {file->data, file->data + file->size, false};
    QKV_VEC(qkv_ct2_array) list = {0};
    *out = (qkv_ct2){0};
    const uint32_t version = number(&c, 4);
    if (version != 2)
        return qkv_fail(QKV_BAD_FILE,
                        "a CTranslate2 model of binary version %u; only version 2 is read",
                        (unsigned)version);
    out->spec = string(&c);
    out->revision = number(&c, 4);
    const uint32_t n = number(&c, 4);
    qkv_status status = c.short_of ? qkv_fail(QKV_BAD_FILE, "the file is cut off") : QKV_OK;
    for (uint32_t i = 0; i < n && status == QKV_OK; i++) {
        qkv_ct2_array a;
        status = read_array(&c, i, &a);
        if (status == QKV_OK && !QKV_PUSH(list, a)) status = QKV_FAILED;
    }
    if (status == QKV_OK && c.at != c.end)
        status = qkv_fail(QKV_BAD_FILE, "%zu bytes follow the last array", (size_t)(c.end - c.at));
    if (status != QKV_OK) {
        qkv_free(list.at);
        return status;
    }
    out->arrays = list.at;
    out->n = list.n;
    return QKV_OK;
}

void qkv_ct2_free(qkv_ct2 *c) {
    qkv_free(c->arrays);
    *c = (qkv_ct2){0};
}

qkv_ct2_array *qkv_ct2_find(const qkv_ct2 *c, const char *name) {
    const size_t len = strlen(name);
    for (size_t i = 0; i < c->n; i++)
        if (c->arrays[i].name.len == len && !memcmp(c->arrays[i].name.data, name, len))
            return &c->arrays[i];
    return NULL;
}

void qkv_ct2_row(const qkv_ct2_array *a, const qkv_ct2_array *scale, int64_t r, float *out) {
    const int64_t width = a->shape[a->rank - 1];
    const char *from = (const char *)a->data + r * width * a->item;
    if (a->item == 4) {
        memcpy(out, from, (size_t)width * 4);
        return;
    }
    float factor;
    memcpy(&factor, (const char *)scale->data + (scale->elements > 1 ? r * 4 : 0), 4);
    for (int64_t i = 0; i < width; i++) {
        int16_t wide;
        if (a->item == 2) memcpy(&wide, from + 2 * i, 2);
        out[i] = (a->item == 2 ? (float)wide : (float)(int8_t)from[i]) / factor;
    }
}
