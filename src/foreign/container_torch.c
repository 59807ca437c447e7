/* pytorch_model.bin in its two forms.
 *
 * Since 1.6 a ZIP archive whose members are stored as they are: <any>/data.pkl, the pickle, and
 * <any>/data/<key>, a storage each. Before, five pickles one after another (a magic number, the version
 * 1001, the system, the dictionary, the list of keys), then for each key its number of elements and
 * the elements. */
#include "foreign/container.h"
#include "foreign/pickle.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* Bytes of a storage, by its key. */
typedef struct storage {
    const char *key;
    const char *data;
    size_t bytes;
} storage;

typedef struct reading {
    const qkv_file *file;
    qkv_container *c;
    qkv_pickle pickle;
    QKV_VEC(storage) storages; /* by key, once all are found */
} reading;

static size_t size_of(qkv_dtype dtype) {
    static const unsigned bits[] = {
#define SIZE_ROW(id, name, bits) bits,
        QKV_DTYPE_TABLE(SIZE_ROW)
#undef SIZE_ROW
    };
    return bits[dtype] / 8;
}

static int by_key(const void *a, const void *b) {
    return strcmp(((const storage *)a)->key, ((const storage *)b)->key);
}

static const storage *find_storage(const reading *r, const char *key) {
    const storage wanted = {.key = key};
    return r->storages.n ? bsearch(&wanted, r->storages.at, r->storages.n, sizeof wanted, by_key)
                         : NULL;
}

/* ---- tensors ---- */

static qkv_status add_tensor(reading *r, const qkv_pickled *p) {
    const storage *s = find_storage(r, p->storage);
    qkv_stored t = {.name = p->name, .dtype = p->dtype, .rank = p->rank, .elements = 1};
    const size_t size = size_of(p->dtype);
    memcpy(t.shape, p->shape, sizeof t.shape);
    if (!s) return qkv_fail(QKV_BAD_FILE, "the tensor %.200s has no data", p->name);
    for (int i = 0; i < p->rank; i++)
        if (__builtin_mul_overflow(t.elements, p->shape[i], &t.elements))
            return qkv_fail(QKV_BAD_FILE, "the tensor %.200s has more elements than can be counted",
                            p->name);
    const size_t held = s->bytes / size;
    if ((uint64_t)p->offset > held || (uint64_t)t.elements > held - (size_t)p->offset)
        return qkv_fail(QKV_BAD_FILE, "the tensor %.200s needs more data than there is", p->name);
    t.data = s->data + (size_t)p->offset * size;
    t.bytes = (size_t)t.elements * size;
    return QKV_PUSH(r->c->tensors, ((qkv_foreign_tensor){.stored = t})) ? QKV_OK : QKV_FAILED;
}

static qkv_status add_tensors(reading *r) {
    if (r->storages.n) qsort(r->storages.at, r->storages.n, sizeof *r->storages.at, by_key);
    for (size_t i = 0; i < r->pickle.tensors.n; i++)
        QKV_TRY(add_tensor(r, &r->pickle.tensors.at[i]));
    return QKV_OK;
}

/* ---- ZIP ---- */

static uint64_t number_at(const char *at, size_t bytes) {
    uint64_t n = 0;
    memcpy(&n, at, bytes);
    return n;
}

/* The end record stands last, behind it at most a comment of 65,535 bytes. */
static const char *find_end(const qkv_file *f) {
    if (f->size < 22) return NULL;
    const size_t far = f->size < 22 + 65535 ? f->size : 22 + 65535;
    for (size_t back = 22; back <= far; back++)
        if (!memcmp(f->data + f->size - back, "PK\5\6", 4)) return f->data + f->size - back;
    return NULL;
}

/* One member of the directory. */
typedef struct member {
    qkv_text name;
    uint64_t size, place;
    bool stored;
} member;

/* Sizes and places beyond 4 GB stand in an extra field, in the order in which they are missing. */
static void read_extra(const char *extra, size_t n, member *m) {
    for (size_t at = 0; at + 4 <= n;) {
        const size_t len = (size_t)number_at(extra + at + 2, 2);
        if (at + 4 + len > n) return;
        if (number_at(extra + at, 2) == 1) {
            size_t k = 0;
            if (m->size == 0xffffffff && k + 8 <= len)
                m->size = number_at(extra + at + 4 + k, 8), k += 16; /* the packed size too */
            if (m->place == 0xffffffff && k + 8 <= len) m->place = number_at(extra + at + 4 + k, 8);
        }
        at += 4 + len;
    }
}

/* Where a member's bytes lie: behind a header of its own, whose name and extra field may be of other
 * lengths than the directory's. */
static qkv_status member_data(const qkv_file *f, const member *m, const char **data) {
    if (m->place > f->size || f->size - m->place < 30 || memcmp(f->data + m->place, "PK\3\4", 4))
        return qkv_fail(QKV_BAD_FILE, "a member of the archive lies outside of it");
    const char *head = f->data + m->place;
    const uint64_t before = 30 + number_at(head + 26, 2) + number_at(head + 28, 2);
    const uint64_t rest = f->size - m->place;
    if (before > rest || m->size > rest - before)
        return qkv_fail(QKV_BAD_FILE, "a member of the archive reaches beyond it: cut short?");
    if (!m->stored) return qkv_fail(QKV_BAD_FILE, "a member of the archive is compressed");
    *data = head + before;
    return QKV_OK;
}

static bool ends_with(qkv_text t, const char *end) {
    const size_t n = strlen(end);
    return t.len >= n && !memcmp(t.data + t.len - n, end, n);
}

/* Behind the last "/data/" of a name; NULL: it is no storage's. */
static const char *key_of(qkv_text name, size_t *len) {
    for (size_t i = name.len; i-- > 0;)
        if (name.data[i] == '/') {
            if (i < 5 || memcmp(name.data + i - 5, "/data", 5) != 0) return NULL;
            *len = name.len - i - 1;
            return name.data + i + 1;
        }
    return NULL;
}

static qkv_status use_member(reading *r, const member *m, bool *pickled) {
    const char *data = NULL, *key = NULL;
    size_t len = 0;
    const bool pickle = ends_with(m->name, "/data.pkl");
    if (!pickle && !(key = key_of(m->name, &len))) return QKV_OK;
    if (ends_with(m->name, "/byteorder")) return QKV_OK;
    QKV_TRY(member_data(r->file, m, &data));
    if (pickle && *pickled) return qkv_fail(QKV_BAD_FILE, "two pickles in one archive");
    if (pickle) {
        *pickled = true;
        return qkv_pickle_read(data, (size_t)m->size, &r->c->names, &r->pickle);
    }
    storage s = {.data = data, .bytes = (size_t)m->size};
    QKV_TRY_ALLOC(s.key = qkv_arena_strndup(&r->c->names, key, len));
    return QKV_PUSH(r->storages, s) ? QKV_OK : QKV_FAILED;
}

static qkv_status read_zip(reading *r) {
    const qkv_file *f = r->file;
    const char *end = find_end(f);
    bool pickled = false;
    if (!end) return qkv_fail(QKV_BAD_FILE, "an archive without its end: a truncated download?");
    uint64_t n = number_at(end + 10, 2), at = number_at(end + 16, 4);
    if ((n == 0xffff || at == 0xffffffff) && end - f->data >= 20 &&
        !memcmp(end - 20, "PK\6\7", 4)) {
        const uint64_t wide = number_at(end - 20 + 8, 8);
        if (wide > f->size || f->size - wide < 56 || memcmp(f->data + wide, "PK\6\6", 4))
            return qkv_fail(QKV_BAD_FILE, "an archive with a damaged directory");
        n = number_at(f->data + wide + 32, 8);
        at = number_at(f->data + wide + 48, 8);
    }
    for (uint64_t i = 0; i < n; i++) {
        if (at > f->size || f->size - at < 46 || memcmp(f->data + at, "PK\1\2", 4))
            return qkv_fail(QKV_BAD_FILE, "an archive with a damaged directory");
        const char *entry = f->data + at;
        const uint64_t name = number_at(entry + 28, 2), extra = number_at(entry + 30, 2),
                       whole = 46 + name + extra + number_at(entry + 32, 2);
        if (whole > f->size - at)
            return qkv_fail(QKV_BAD_FILE, "an archive with a damaged directory");
        member m = {.name = {entry + 46, (size_t)name},
                    .size = number_at(entry + 24, 4),
                    .place = number_at(entry + 42, 4),
                    .stored = number_at(entry + 10, 2) == 0};
        read_extra(entry + 46 + name, (size_t)extra, &m);
        QKV_TRY(use_member(r, &m, &pickled));
        at += whole;
    }
    return pickled ? add_tensors(r) : qkv_fail(QKV_BAD_FILE, "an archive without data.pkl");
}

/* ---- the form before ---- */

static const unsigned char magic[] = {0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19};

/* The elements of every storage, by the type that the tensors of it have. */
static qkv_status read_storages(reading *r, const qkv_pickle *keys, size_t at) {
    const qkv_file *f = r->file;
    for (size_t i = 0; i < keys->keys.n; i++) {
        const qkv_pickled *of = NULL;
        uint64_t n;
        for (size_t k = 0; k < r->pickle.tensors.n && !of; k++)
            if (!strcmp(r->pickle.tensors.at[k].storage, keys->keys.at[i]))
                of = &r->pickle.tensors.at[k];
        if (!of) return qkv_fail(QKV_BAD_FILE, "a storage that no tensor has");
        if (f->size - at < 8) return qkv_fail(QKV_BAD_FILE, "the file stops in the middle");
        memcpy(&n, f->data + at, 8);
        at += 8;
        const size_t size = size_of(of->dtype);
        if (n > (f->size - at) / size)
            return qkv_fail(QKV_BAD_FILE, "the file stops in the middle of %.200s", of->name);
        const storage s = {keys->keys.at[i], f->data + at, (size_t)n * size};
        if (!QKV_PUSH(r->storages, s)) return QKV_FAILED;
        at += s.bytes;
    }
    if (at != f->size) return qkv_fail(QKV_BAD_FILE, "bytes behind the last storage");
    return add_tensors(r);
}

static qkv_status read_legacy(reading *r) {
    const qkv_file *f = r->file;
    qkv_pickle part;
    size_t at = 0;
    for (int i = 0; i < 5; i++) {
        qkv_pickle *to = i == 3 ? &r->pickle : &part;
        QKV_TRY(qkv_pickle_read(f->data + at, f->size - at, &r->c->names, to));
        at += to->used;
        const bool right =
            i == 0 ? part.magic.len == sizeof magic && !memcmp(part.magic.data, magic, sizeof magic)
            : i == 1 ? part.number == 1001
                     : true;
        if (i < 3) qkv_pickle_free(&part);
        if (!right) return qkv_fail(QKV_BAD_FILE, "a pickle, but none that torch.save wrote");
    }
    const qkv_status status = read_storages(r, &part, at);
    qkv_pickle_free(&part);
    return status;
}

/* ---- either ---- */

static qkv_status open_file(const char *path, qkv_container *c) {
    qkv_file file;
    QKV_TRY(qkv_file_open(path, SIZE_MAX, &file));
    if (!QKV_PUSH(c->files, file)) {
        qkv_file_close(&file);
        return QKV_FAILED;
    }
    reading r = {.file = &file, .c = c};
    qkv_status status = QKV_OK;
    if (file.size >= 4 && !memcmp(file.data, "PK\3\4", 4))
        status = read_zip(&r);
    else if (file.size >= 2 && !memcmp(file.data, "\x80\2", 2))
        status = read_legacy(&r);
    else
        status = qkv_fail(QKV_BAD_FILE, "neither form of what torch.save writes");
    qkv_pickle_free(&r.pickle);
    qkv_free(r.storages.at);
    return status == QKV_OK ? status : qkv_fail_in(status, "%s", path);
}

static qkv_status open_index(const char *path, qkv_container *c) {
    return qkv_container_shards(path, c, open_file);
}

const qkv_container_kind qkv_container_torch = {
    .name = "PyTorch",
    .summary = "a Hugging Face folder with pytorch_model.bin, of either form",
    .file = "pytorch_model.bin",
    .open = open_file,
};

const qkv_container_kind qkv_container_torch_shards = {
    .name = "PyTorch, in shards",
    .summary = "the same with pytorch_model.bin.index.json and the files that it names",
    .file = "pytorch_model.bin.index.json",
    .open = open_index,
};
