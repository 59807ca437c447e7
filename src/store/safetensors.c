/* safetensors: u64 length of the header, header as JSON, data.
 *
 * Nothing of the data is touched, and nothing is allocated by a number from the file, before these
 * hold, in this order: the header lies inside the file; it is strict JSON with no key twice; each
 * tensor's shape times the bits of its dtype is its extent, without overflow; sorted by place, the
 * extents cover the data from its first byte to the file's last, with no hole and no overlap. */
#include "store/safetensors.h"
#include "base/arena.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/thread.h"
#include "base/half.h"

#include <stdlib.h>
#include <string.h>

/* The caps: a file beyond one of them is refused by name. */
enum {
    HEADER_MAX = 100000000,
    TENSORS_MAX = 1000000,
    NODES_MAX = 24 * TENSORS_MAX,
    RANK_MAX = 8,
    NAME_MAX_BYTES = 4096,
    META_MAX = 10000,
    META_MAX_BYTES = 1 << 20
};
#define INTEGER_MAX (((int64_t)1 << 48) - 1) /* the format's own bound: exact in a double */

static const struct dtype_row {
    const char *name;
    qkv_dtype dtype;
    unsigned bits;
} dtypes[] = {
#define DTYPE_ROW(id, name, bits) {name, QKV_DTYPE_##id, bits},
    QKV_DTYPE_TABLE(DTYPE_ROW)
#undef DTYPE_ROW
        {"I16", QKV_DTYPE_OTHER, 16},
    {"U16", QKV_DTYPE_OTHER, 16},
    {"U32", QKV_DTYPE_OTHER, 32},
    {"U64", QKV_DTYPE_OTHER, 64},
    {"C64", QKV_DTYPE_OTHER, 64},
    {"F8_E5M2", QKV_DTYPE_OTHER, 8},
    {"F8_E4M3", QKV_DTYPE_OTHER, 8},
    {"F8_E8M0", QKV_DTYPE_OTHER, 8},
    {"F8_E4M3FNUZ", QKV_DTYPE_OTHER, 8},
    {"F8_E5M2FNUZ", QKV_DTYPE_OTHER, 8},
    {"F4", QKV_DTYPE_OTHER, 4},
    {"F6_E2M3", QKV_DTYPE_OTHER, 6},
    {"F6_E3M2", QKV_DTYPE_OTHER, 6},
};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

struct qkv_safetensors_index {
    qkv_arena names; /* and metadata */
    uint32_t *slots; /* open addressing by the hash of the name: tensor number + 1, 0: empty */
    size_t mask;
};

/* What is known of the file while it is read. */
typedef struct opening {
    const char *path;
    qkv_safetensors *s;
    size_t data_start; /* 8 + length of the header */
    qkv_json header;
} opening;

/* ---- one tensor ---- */

/* The row of a tensor's dtype; NULL after a failure. */
static const struct dtype_row *read_dtype(const opening *o, qkv_json_at info, const char *name) {
    const char *text = "";
    size_t len = 0;
    if (qkv_json_get_string(info, "dtype", true, &text, &len) != QKV_OK) return NULL;
    for (size_t i = 0; i < N_DTYPES; i++)
        if (strlen(dtypes[i].name) == len && memcmp(dtypes[i].name, text, len) == 0)
            return &dtypes[i];
    qkv_fail(QKV_BAD_FILE, "%s: tensor \"%.200s\": unknown dtype \"%.*s\"", o->path, name,
             len < 40 ? (int)len : 40, text);
    return NULL;
}

/* Reads the shape, and from it how many bytes the tensor must have. */
static qkv_status read_shape(const opening *o, qkv_json_at info, unsigned bits, qkv_stored *t) {
    qkv_json_at shape, at;
    if (!qkv_json_member(info, "shape", &shape) || qkv_json_kind_of(shape) != QKV_JSON_ARRAY)
        return qkv_fail(QKV_BAD_FILE, "%s: tensor \"%.200s\": \"shape\" must be a list", o->path,
                        t->name);
    if (qkv_json_count(shape) > RANK_MAX)
        return qkv_fail(QKV_BAD_FILE, "%s: tensor \"%.200s\": %zu dimensions, more than %d",
                        o->path, t->name, qkv_json_count(shape), RANK_MAX);
    size_t elements = 1, total;
    bool over = false;
    for (bool more = qkv_json_first(shape, &at); more; more = qkv_json_next(shape, &at)) {
        int64_t d;
        if (!qkv_json_integer(at, 0, INTEGER_MAX, &d))
            return qkv_fail(
                QKV_BAD_FILE,
                "%s: tensor \"%.200s\": a dimension must be a whole number from 0 to 2^48 - 1",
                o->path, t->name);
        t->shape[t->rank++] = d;
        over |= qkv_mul_over(elements, (size_t)d, &elements);
    }
    over |= qkv_mul_over(elements, bits, &total);
    if (over || elements > INT64_MAX)
        return qkv_fail(QKV_BAD_FILE,
                        "%s: tensor \"%.200s\": its shape has more elements than can be counted",
                        o->path, t->name);
    if (total % 8 != 0)
        return qkv_fail(QKV_BAD_FILE,
                        "%s: tensor \"%.200s\": %zu elements of %u bits do not fill whole bytes",
                        o->path, t->name, elements, bits);
    t->elements = (int64_t)elements;
    t->bytes = total / 8;
    return QKV_OK;
}

/* Reads [begin, end], relative to the data, which must give the bytes that the shape asks for. */
static qkv_status read_extent(const opening *o, qkv_json_at info, qkv_stored *t) {
    qkv_json_at pair, at;
    int64_t bound[2];
    if (!qkv_json_member(info, "data_offsets", &pair) || qkv_json_kind_of(pair) != QKV_JSON_ARRAY ||
        qkv_json_count(pair) != 2)
        return qkv_fail(QKV_BAD_FILE,
                        "%s: tensor \"%.200s\": \"data_offsets\" must be [begin, end]", o->path,
                        t->name);
    qkv_json_first(pair, &at);
    for (int i = 0; i < 2; i++, qkv_json_next(pair, &at))
        if (!qkv_json_integer(at, 0, INTEGER_MAX, &bound[i]))
            return qkv_fail(
                QKV_BAD_FILE,
                "%s: tensor \"%.200s\": an offset must be a whole number from 0 to 2^48 - 1",
                o->path, t->name);
    size_t begin = (size_t)bound[0], end = (size_t)bound[1],
           available = o->s->file.size - o->data_start;
    if (end < begin || end > available)
        return qkv_fail(
            QKV_BAD_FILE,
            "%s: tensor \"%.200s\": bytes %zu to %zu of the %zu bytes of data there are%s", o->path,
            t->name, begin, end, available, end < begin ? "" : "; is the file cut short?");
    if (end - begin != t->bytes)
        return qkv_fail(QKV_BAD_FILE,
                        "%s: tensor \"%.200s\": its shape asks for %zu bytes, its offsets give %zu",
                        o->path, t->name, t->bytes, end - begin);
    t->data = o->s->file.data + o->data_start + begin;
    return QKV_OK;
}

/* A copy of a string of the header that ends in NUL; one with a NUL inside cannot be had that way.
 */
static qkv_status copy_text(const opening *o, const char *what, const char *text, size_t len,
                            size_t max, const char **out) {
    if (len > max)
        return qkv_fail(QKV_BAD_FILE, "%s: %s of %zu bytes, more than %zu", o->path, what, len,
                        max);
    if (memchr(text, 0, len))
        return qkv_fail(QKV_BAD_FILE, "%s: %s with a NUL in it", o->path, what);
    QKV_TRY_ALLOC(*out = qkv_arena_strndup(&o->s->index->names, text, len));
    return QKV_OK;
}

static qkv_status read_tensor(const opening *o, qkv_json_at info, qkv_stored *t) {
    const char *key;
    size_t len;
    qkv_json_key(info, &key, &len);
    QKV_TRY(copy_text(o, "a tensor's name", key, len, NAME_MAX_BYTES, &t->name));
    if (qkv_json_kind_of(info) != QKV_JSON_OBJECT)
        return qkv_fail(QKV_BAD_FILE, "%s: tensor \"%.200s\" must be an object", o->path, t->name);
    const struct dtype_row *row = read_dtype(o, info, t->name);
    if (!row) return QKV_BAD_FILE;
    t->dtype = row->dtype;
    QKV_TRY(read_shape(o, info, row->bits, t));
    return read_extent(o, info, t);
}

static qkv_status read_metadata(const opening *o, qkv_json_at meta) {
    qkv_safetensors *s = o->s;
    if (qkv_json_kind_of(meta) != QKV_JSON_OBJECT)
        return qkv_fail(QKV_BAD_FILE, "%s: \"__metadata__\" must be an object", o->path);
    size_t n = qkv_json_count(meta);
    if (n > META_MAX)
        return qkv_fail(QKV_BAD_FILE, "%s: %zu entries of metadata, more than %d", o->path, n,
                        META_MAX);
    QKV_TRY_ALLOC(s->meta_key = qkv_arena_alloc(&s->index->names, n * sizeof *s->meta_key));
    QKV_TRY_ALLOC(s->meta_value = qkv_arena_alloc(&s->index->names, n * sizeof *s->meta_value));
    qkv_json_at at;
    for (bool more = qkv_json_first(meta, &at); more; more = qkv_json_next(meta, &at)) {
        const char *text;
        size_t len;
        qkv_json_key(at, &text, &len);
        QKV_TRY(copy_text(o, "a metadata key", text, len, META_MAX_BYTES, &s->meta_key[s->n_meta]));
        if (qkv_json_kind_of(at) != QKV_JSON_STRING)
            return qkv_fail(QKV_BAD_FILE, "%s: metadata \"%.100s\" must be a string", o->path,
                            s->meta_key[s->n_meta]);
        qkv_json_string(at, &text, &len);
        QKV_TRY(
            copy_text(o, "a metadata value", text, len, META_MAX_BYTES, &s->meta_value[s->n_meta]));
        s->n_meta++;
    }
    return QKV_OK;
}

/* ---- all tensors ---- */

static int by_place(const void *a, const void *b) {
    const qkv_stored *x = a, *y = b;
    if (x->data != y->data) return (const char *)x->data < (const char *)y->data ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

static qkv_status check_cover(const opening *o) {
    const qkv_safetensors *s = o->s;
    const char *expected = s->file.data + o->data_start, *end = s->file.data + s->file.size;
    for (size_t i = 0; i < s->n; i++) {
        const qkv_stored *t = &s->tensors[i];
        if ((const char *)t->data != expected)
            return qkv_fail(QKV_BAD_FILE, "%s: tensor \"%.200s\" %s", o->path, t->name,
                            (const char *)t->data > expected ? "leaves a hole in the data before it"
                                                             : "overlaps the tensor before it");
        expected += t->bytes;
    }
    if (expected != end)
        return qkv_fail(QKV_BAD_FILE, "%s: %zu bytes behind the last tensor that belong to none",
                        o->path, (size_t)(end - expected));
    return QKV_OK;
}

static qkv_status build_index(qkv_safetensors *s) {
    size_t size = 16;
    while (size < 2 * s->n) size *= 2;
    QKV_TRY_ALLOC(s->index->slots = qkv_zalloc(size, sizeof *s->index->slots));
    s->index->mask = size - 1;
    for (size_t i = 0; i < s->n; i++) {
        size_t at = qkv_hash64(s->tensors[i].name, strlen(s->tensors[i].name), 0) & s->index->mask;
        while (s->index->slots[at]) at = (at + 1) & s->index->mask;
        s->index->slots[at] = (uint32_t)i + 1;
    }
    return QKV_OK;
}

static qkv_status read_members(const opening *o) {
    qkv_safetensors *s = o->s;
    qkv_json_at root = qkv_json_root(&o->header), at, meta;
    if (qkv_json_kind_of(root) != QKV_JSON_OBJECT)
        return qkv_fail(QKV_BAD_FILE, "%s: the header must be a JSON object", o->path);
    size_t n = qkv_json_count(root);
    if (n > TENSORS_MAX)
        return qkv_fail(QKV_BAD_FILE, "%s: %zu tensors, more than %d", o->path, n, TENSORS_MAX);
    bool has_meta = qkv_json_member(root, "__metadata__", &meta);
    if (has_meta) QKV_TRY(read_metadata(o, meta));
    QKV_TRY_ALLOC(s->tensors = qkv_zalloc(n, sizeof *s->tensors));
    for (bool more = qkv_json_first(root, &at); more; more = qkv_json_next(root, &at)) {
        if (has_meta && at.index == meta.index) continue;
        QKV_TRY(read_tensor(o, at, &s->tensors[s->n]));
        s->n++;
    }
    if (s->n) qsort(s->tensors, s->n, sizeof *s->tensors, by_place);
    QKV_TRY(check_cover(o));
    return build_index(s);
}

static qkv_status read_file(opening *o) {
    const qkv_file *f = &o->s->file;
    uint64_t length;
    if (f->size < sizeof length)
        return qkv_fail(QKV_BAD_FILE, "%s: %zu bytes are too few for a safetensors file", o->path,
                        f->size);
    memcpy(&length, f->data, sizeof length); /* little-endian, as this machine is */
    if (length > HEADER_MAX)
        return qkv_fail(QKV_BAD_FILE,
                        "%s: a header of %llu bytes, more than %d: not a safetensors file?",
                        o->path, (unsigned long long)length, HEADER_MAX);
    if (length > f->size - sizeof length)
        return qkv_fail(QKV_BAD_FILE,
                        "%s: the header's %llu bytes reach beyond the file's %zu: cut short?",
                        o->path, (unsigned long long)length, f->size);
    o->data_start = sizeof length + (size_t)length;
    QKV_TRY_ALLOC(o->s->index = qkv_zalloc(1, sizeof *o->s->index));
    qkv_arena_init(&o->s->index->names);
    qkv_json_limits limits = {.bytes = HEADER_MAX, .nodes = NODES_MAX, .depth = 3};
    QKV_TRY(qkv_json_parse(&o->header, o->path, f->data + sizeof length, (size_t)length, limits));
    qkv_status status = read_members(o);
    qkv_json_free(&o->header);
    return status;
}

qkv_status qkv_safetensors_open(const char *path, qkv_safetensors *out) {
    *out = (qkv_safetensors){0};
    QKV_TRY(qkv_file_open(path, SIZE_MAX, &out->file));
    opening o = {.path = path, .s = out};
    qkv_status status = read_file(&o);
    if (status != QKV_OK) qkv_safetensors_close(out);
    return status;
}

void qkv_safetensors_close(qkv_safetensors *s) {
    if (s->index) {
        qkv_arena_free(&s->index->names);
        qkv_free(s->index->slots);
    }
    qkv_free(s->index);
    qkv_free(s->tensors);
    qkv_file_close(&s->file);
    *s = (qkv_safetensors){0};
}

const qkv_stored *qkv_safetensors_find(const qkv_safetensors *s, const char *name) {
    if (!s->index) return NULL;
    size_t at = qkv_hash64(name, strlen(name), 0) & s->index->mask;
    for (; s->index->slots[at]; at = (at + 1) & s->index->mask) {
        const qkv_stored *t = &s->tensors[s->index->slots[at] - 1];
        if (strcmp(t->name, name) == 0) return t;
    }
    return NULL;
}

/* ---- conversion ---- */

/* Loads go through memcpy because nothing is aligned. */
void qkv_stored_range(const qkv_stored *t, int64_t from, int64_t n, float *out) {
    const char *data = t->data;
    switch (t->dtype) {
    case QKV_DTYPE_F32:
        memcpy(out, data + 4 * from, 4 * (size_t)n);
        break;
    case QKV_DTYPE_F64:
        for (int64_t i = 0; i < n; i++) {
            double x;
            memcpy(&x, data + 8 * (from + i), sizeof x);
            out[i] = (float)x;
        }
        break;
    default:
        for (int64_t i = 0; i < n; i++) {
            uint16_t x;
            memcpy(&x, data + 2 * (from + i), sizeof x);
            out[i] = t->dtype == QKV_DTYPE_F16 ? qkv_f16_value(x) : qkv_bf16_value(x);
        }
    }
}

qkv_status qkv_stored_to_float(const qkv_stored *t, float *out) {
    enum { ITEM = 1 << 16 };
    if (t->dtype > QKV_DTYPE_F64)
        return qkv_fail(QKV_BAD_FILE,
                        "tensor \"%.200s\": its elements are not floating-point numbers that can "
                        "be read (F32, F16, BF16, F64)",
                        t->name);
    int64_t items = (t->elements + ITEM - 1) / ITEM;
    QKV_PARALLEL_FOR
    for (int64_t i = 0; i < items; i++)
        qkv_stored_range(t, i * ITEM, i + 1 < items ? ITEM : t->elements - i * ITEM,
                         out + i * ITEM);
    return QKV_OK;
}
