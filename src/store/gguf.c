/* Reading GGUF files; see gguf.h. Nothing is believed before it is checked. */
#include "store/gguf.h"
#include "base/mem.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* on disk, at least */
static const uint8_t sizes[QKV_GGUF_TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};

#define ENTRIES_MAX     100000u
#define TENSORS_MAX     1000000u
#define KEY_MAX         65535u
#define TENSOR_NAME_MAX 63u
#define STRING_MAX      (64u << 20)
#define ARRAY_MAX       (16u << 20)
#define RANK_MAX        4u
#define ELEMENTS_MAX    ((uint64_t)1 << 48)
#define ALIGNMENT_MAX   (1u << 20)

/* ---- bytes ---- */

typedef struct cursor {
    const uint8_t *at, *end;
} cursor;

static uint64_t little(const uint8_t *p, size_t n) {
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static size_t left(const cursor *c) {
    return (size_t)(c->end - c->at);
}

static bool number(cursor *c, size_t n, uint64_t *out) {
    if (left(c) < n) return false;
    *out = little(c->at, n);
    c->at += n;
    return true;
}

static const char ends[] = "the file ends within it: a truncated download?";

/* Reads a string; the answer, here and below, is what is wrong with it, or NULL. */
static const char *string(cursor *c, size_t most, qkv_text *out) {
    uint64_t len;
    if (!number(c, 8, &len)) return ends;
    if (len > most) return "a string is longer than any that is read";
    if (len > left(c)) return ends;
    *out = (qkv_text){(const char *)c->at, (size_t)len};
    c->at += len;
    return NULL;
}

/* ---- entries ---- */

static const char *value(cursor *c, qkv_gguf_entry *e) {
    uint64_t type, n = 1;
    if (!number(c, 4, &type)) return ends;
    if (type == QKV_GGUF_ARRAY) {
        e->array = true;
        if (!number(c, 4, &type) || !number(c, 8, &n)) return ends;
        if (type == QKV_GGUF_ARRAY) return "an array of arrays";
        if (n > ARRAY_MAX) return "an array is longer than any that is read";
    }
    if (type >= QKV_GGUF_TYPES) return "its type is not known";
    if (n > left(c) / sizes[type]) return ends;
    e->type = (qkv_gguf_type)type;
    e->n = n;
    e->at = c->at;
    if (type != QKV_GGUF_STRING) {
        c->at += n * sizes[type];
        return NULL;
    }
    qkv_text text;
    const char *wrong = NULL;
    for (uint64_t i = 0; i < n && !wrong; i++) wrong = string(c, STRING_MAX, &text);
    return wrong;
}

static qkv_status blame(const char *what, uint64_t i, qkv_text name, const char *wrong) {
    return qkv_fail(QKV_BAD_FILE, "%s %llu (%.*s): %s", what, (unsigned long long)i,
                    (int)(name.len > 63 ? 63 : name.len), name.data, wrong);
}

static qkv_status read_entries(cursor *c, uint64_t n, qkv_gguf *g) {
    enum { LEAST = 8 + 4 + 1 }; /* key, type, value */
    if (n > ENTRIES_MAX)
        return qkv_fail(QKV_BAD_FILE, "%llu entries: at most %u are read", (unsigned long long)n,
                        ENTRIES_MAX);
    if (n > left(c) / LEAST)
        return qkv_fail(QKV_BAD_FILE, "%llu entries in %zu bytes: a truncated download?",
                        (unsigned long long)n, left(c));
    QKV_TRY_ALLOC(g->entries = qkv_zalloc((size_t)n + 1, sizeof *g->entries));
    for (uint64_t i = 0; i < n; i++) {
        qkv_gguf_entry *e = &g->entries[i];
        e->key = (qkv_text){"?", 1};
        const char *wrong = string(c, KEY_MAX, &e->key);
        if (!wrong) wrong = value(c, e);
        if (wrong) return blame("entry", i, e->key, wrong);
        g->n_entries++;
    }
    return QKV_OK;
}

/* ---- tensors ---- */

/* Shape, type and size; where its bytes are is not known yet. */
static const char *tensor(cursor *c, qkv_gguf_tensor *t) {
    uint64_t rank, type, dim[RANK_MAX], elements = 1;
    const char *wrong = string(c, TENSOR_NAME_MAX, &t->name);
    if (wrong) return wrong;
    if (!number(c, 4, &rank)) return ends;
    if (rank > RANK_MAX) return "more than four dimensions";
    for (uint64_t i = 0; i < rank; i++) {
        if (!number(c, 8, &dim[i])) return ends;
        if (dim[i] < 1 || __builtin_mul_overflow(elements, dim[i], &elements) ||
            elements > ELEMENTS_MAX)
            return "its shape is no size that a file can have";
    }
    if (!number(c, 4, &type) || !number(c, 8, &t->offset)) return ends;
    t->number = (uint32_t)type;
    t->rank = (int)rank;
    for (int i = 0; i < (int)RANK_MAX; i++)
        t->shape[i] = i < t->rank ? (int64_t)dim[t->rank - 1 - i] : 1;
    if (!qkv_weight_of_gguf(t->number, &t->format)) return "its type is not one that is read";
    const int64_t width = rank ? (int64_t)dim[0] : 1;
    if (width % qkv_weight_block(t->format)) return "its rows are no whole blocks of its type";
    t->bytes = elements / (uint64_t)width * (uint64_t)qkv_weight_row_bytes(t->format, width);
    return NULL;
}

static qkv_status refuse_type(const qkv_gguf_tensor *t) {
    return qkv_fail(QKV_BAD_FILE,
                    "tensor %.*s has type %u, which is not read: F32 F16 BF16, Q4_0 Q4_1 Q5_0 Q5_1 "
                    "Q8_0, Q2_K to Q6_K, IQ4_NL and IQ4_XS are",
                    (int)t->name.len, t->name.data, (unsigned)t->number);
}

static qkv_status alignment_of(const qkv_gguf *g, uint64_t *out) {
    int64_t alignment = 32;
    QKV_TRY(qkv_gguf_int(g, "general.alignment", false, &alignment));
    if (alignment < 8 || alignment > ALIGNMENT_MAX || (alignment & (alignment - 1)))
        return qkv_fail(QKV_BAD_FILE, "general.alignment is %lld: no power of two from 8 to %u",
                        (long long)alignment, ALIGNMENT_MAX);
    *out = (uint64_t)alignment;
    return QKV_OK;
}

/* Every tensor's bytes against the file. */
static qkv_status place_tensors(const cursor *c, qkv_gguf *g) {
    uint64_t alignment = 32;
    QKV_TRY(alignment_of(g, &alignment));
    const uint64_t header = (uint64_t)((const char *)c->at - g->data);
    const uint64_t data =
        (header + alignment - 1) / alignment * alignment; /* no overflow: in file */
    for (size_t i = 0; i < g->n_tensors; i++) {
        qkv_gguf_tensor *t = &g->tensors[i];
        if (t->offset % alignment)
            return blame("tensor", i, t->name, "its offset is not aligned as the file says");
        if (data > g->size || t->offset > g->size - data || t->bytes > g->size - data - t->offset)
            return blame("tensor", i, t->name, ends);
        t->data = g->data + data + t->offset;
    }
    return QKV_OK;
}

static qkv_status read_tensors(cursor *c, uint64_t n, qkv_gguf *g) {
    enum { LEAST = 8 + 4 + 4 + 8 }; /* name, rank, type, offset */
    if (n > TENSORS_MAX)
        return qkv_fail(QKV_BAD_FILE, "%llu tensors: at most %u are read", (unsigned long long)n,
                        TENSORS_MAX);
    if (n > left(c) / LEAST)
        return qkv_fail(QKV_BAD_FILE, "%llu tensors in %zu bytes: a truncated download?",
                        (unsigned long long)n, left(c));
    QKV_TRY_ALLOC(g->tensors = qkv_zalloc((size_t)n + 1, sizeof *g->tensors));
    for (uint64_t i = 0; i < n; i++) {
        qkv_gguf_tensor *t = &g->tensors[i];
        t->name = (qkv_text){"?", 1};
        const char *wrong = tensor(c, t);
        qkv_weight_format format;
        if (wrong && t->rank && !qkv_weight_of_gguf(t->number, &format)) return refuse_type(t);
        if (wrong) return blame("tensor", i, t->name, wrong);
        g->n_tensors++;
    }
    return place_tensors(c, g);
}

/* ---- names ---- */

static int by_text(const void *a, const void *b) {
    const qkv_text *const x = *(const qkv_text *const *)a, *const y = *(const qkv_text *const *)b;
    const int order = memcmp(x->data, y->data, x->len < y->len ? x->len : y->len);
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

/* Pointers to the names, in order: n structs of `size` bytes, which begin with theirs. */
static qkv_status sort_names(const void *items, size_t n, size_t size, const qkv_text ***out) {
    QKV_TRY_ALLOC(*out = qkv_zalloc(n + 1, sizeof **out));
    for (size_t i = 0; i < n; i++) (*out)[i] = (const qkv_text *)((const char *)items + i * size);
    qsort(*out, n, sizeof **out, by_text);
    for (size_t i = 1; i < n; i++)
        if (by_text(&(*out)[i - 1], &(*out)[i]) == 0)
            return qkv_fail(QKV_BAD_FILE, "%.*s is there twice",
                            (int)((*out)[i]->len > 63 ? 63 : (*out)[i]->len), (*out)[i]->data);
    return QKV_OK;
}

static const void *search(const qkv_text *const *names, size_t n, const char *name) {
    const qkv_text wanted = {name, strlen(name)}, *const key = &wanted;
    const qkv_text *const *found = names ? bsearch(&key, names, n, sizeof *names, by_text) : NULL;
    return found ? *found : NULL;
}

/* ---- the whole ---- */

bool qkv_is_gguf(const char *data, size_t n) {
    return n >= 4 && !memcmp(data, "GGUF", 4);
}

static qkv_status read_all(qkv_gguf *g, bool with_tensors) {
    cursor c = {(const uint8_t *)g->data + 4, (const uint8_t *)g->data + g->size};
    uint64_t version, tensors, entries;
    if (!qkv_is_gguf(g->data, g->size)) return qkv_fail(QKV_BAD_FILE, "not a GGUF file");
    if (!number(&c, 4, &version) || !number(&c, 8, &tensors) || !number(&c, 8, &entries))
        return qkv_fail(QKV_BAD_FILE, "the file ends within its header: a truncated download?");
    if (version == 0x02000000 || version == 0x03000000)
        return qkv_fail(QKV_BAD_FILE, "a big-endian GGUF file: not supported");
    if (version != 2 && version != 3)
        return qkv_fail(QKV_BAD_FILE, "GGUF version %u: 2 and 3 are read", (unsigned)version);
    g->version = (uint32_t)version;
    QKV_TRY(read_entries(&c, entries, g));
    QKV_TRY(sort_names(g->entries, g->n_entries, sizeof *g->entries, &g->keys));
    if (!with_tensors) return QKV_OK;
    QKV_TRY(read_tensors(&c, tensors, g));
    return sort_names(g->tensors, g->n_tensors, sizeof *g->tensors, &g->names);
}

qkv_status qkv_gguf_read(const char *data, size_t n, bool tensors, qkv_gguf *out) {
    *out = (qkv_gguf){.data = data, .size = n};
    const qkv_status status = read_all(out, tensors);
    if (status != QKV_OK) qkv_gguf_free(out);
    return status;
}

void qkv_gguf_free(qkv_gguf *g) {
    qkv_free(g->keys);
    qkv_free(g->names);
    qkv_free(g->entries);
    qkv_free(g->tensors);
    *g = (qkv_gguf){0};
}

/* ---- typed access ---- */

const qkv_gguf_entry *qkv_gguf_find(const qkv_gguf *g, const char *key) {
    return search(g->keys, g->n_entries, key);
}

const qkv_gguf_tensor *qkv_gguf_tensor_find(const qkv_gguf *g, const char *name) {
    return search(g->names, g->n_tensors, name);
}

static bool is_integer(qkv_gguf_type type) {
    return type <= QKV_GGUF_I32 || type == QKV_GGUF_U64 || type == QKV_GGUF_I64;
}

int64_t qkv_gguf_int_at(const qkv_gguf_entry *e, uint64_t i) {
    const size_t size = sizes[e->type];
    const uint64_t bits = little(e->at + i * size, size);
    switch (e->type) {
    case QKV_GGUF_I8:
        return (int8_t)bits;
    case QKV_GGUF_I16:
        return (int16_t)bits;
    case QKV_GGUF_I32:
        return (int32_t)bits;
    default:
        return bits <= INT64_MAX || e->type == QKV_GGUF_I64 ? (int64_t)bits : INT64_MAX;
    }
}

double qkv_gguf_real_at(const qkv_gguf_entry *e, uint64_t i) {
    if (e->type == QKV_GGUF_F64) {
        double x;
        memcpy(&x, e->at + 8 * i, sizeof x);
        return x;
    }
    if (e->type != QKV_GGUF_F32) return (double)qkv_gguf_int_at(e, i);
    float x;
    memcpy(&x, e->at + 4 * i, sizeof x);
    return (double)x;
}

/* The entry of one value, NULL where it may be and is missing. */
static qkv_status find(const qkv_gguf *g, const char *key, bool required,
                       const qkv_gguf_entry **out) {
    *out = qkv_gguf_find(g, key);
    if (!*out && required) return qkv_fail(QKV_BAD_FILE, "there is no entry %s", key);
    return QKV_OK;
}

static qkv_status mistyped(const char *key, const char *wanted) {
    return qkv_fail(QKV_BAD_FILE, "entry %s is not %s", key, wanted);
}

qkv_status qkv_gguf_int(const qkv_gguf *g, const char *key, bool required, int64_t *out) {
    const qkv_gguf_entry *e;
    QKV_TRY(find(g, key, required, &e));
    if (!e) return QKV_OK;
    if (e->array || !is_integer(e->type)) return mistyped(key, "an integer");
    *out = qkv_gguf_int_at(e, 0);
    return QKV_OK;
}

qkv_status qkv_gguf_real(const qkv_gguf *g, const char *key, bool required, double *out) {
    const qkv_gguf_entry *e;
    QKV_TRY(find(g, key, required, &e));
    if (!e) return QKV_OK;
    if (e->array || (!is_integer(e->type) && e->type != QKV_GGUF_F32 && e->type != QKV_GGUF_F64) ||
        !isfinite(qkv_gguf_real_at(e, 0)))
        return mistyped(key, "a number");
    *out = qkv_gguf_real_at(e, 0);
    return QKV_OK;
}

qkv_status qkv_gguf_bool(const qkv_gguf *g, const char *key, bool *out) {
    const qkv_gguf_entry *e = qkv_gguf_find(g, key);
    if (!e) return QKV_OK;
    if (e->array || e->type != QKV_GGUF_BOOL) return mistyped(key, "true or false");
    *out = *e->at != 0;
    return QKV_OK;
}

qkv_status qkv_gguf_string(const qkv_gguf *g, const char *key, bool required, qkv_text *out) {
    const qkv_gguf_entry *e;
    QKV_TRY(find(g, key, required, &e));
    if (!e) return QKV_OK;
    if (e->array || e->type != QKV_GGUF_STRING) return mistyped(key, "a text");
    *out = (qkv_text){(const char *)e->at + 8, (size_t)little(e->at, 8)};
    return QKV_OK;
}

qkv_text qkv_gguf_string_at(const qkv_gguf_entry *e, const uint8_t **at) {
    const uint8_t *const p = *at ? *at : e->at; /* every string was walked while reading */
    const qkv_text text = {(const char *)p + 8, (size_t)little(p, 8)};
    *at = p + 8 + text.len;
    return text;
}
