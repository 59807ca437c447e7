/* The table of containers and what they share: tensors by name, shards, the files of JSON beside. */
#include "foreign/container.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static const qkv_container_kind *const kinds[] = {
#define CONTAINER(name) &qkv_container_##name,
#include "foreign/containers.def"
#undef CONTAINER
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

bool qkv_container_row(size_t i, const char **name, const char **summary) {
    if (i >= N_KINDS) return false;
    *name = kinds[i]->name;
    *summary = kinds[i]->summary;
    return true;
}

/* ---- tensors by name ---- */

static int by_name(const void *a, const void *b) {
    return strcmp(((const qkv_foreign_tensor *)a)->stored.name,
                  ((const qkv_foreign_tensor *)b)->stored.name);
}

static qkv_status sort(qkv_container *c) {
    if (c->tensors.n == 0) return qkv_fail(QKV_BAD_FILE, "there are no tensors in it");
    qsort(c->tensors.at, c->tensors.n, sizeof *c->tensors.at, by_name);
    for (size_t i = 1; i < c->tensors.n; i++)
        if (by_name(&c->tensors.at[i - 1], &c->tensors.at[i]) == 0)
            return qkv_fail(QKV_BAD_FILE, "the tensor %.200s is there twice",
                            c->tensors.at[i].stored.name);
    return QKV_OK;
}

qkv_foreign_tensor *qkv_container_find(const qkv_container *c, const char *name) {
    const qkv_foreign_tensor key = {.stored = {.name = name}};
    return c->tensors.n ? bsearch(&key, c->tensors.at, c->tensors.n, sizeof key, by_name) : NULL;
}

/* ---- opening ---- */

/* The first container of the folder, its file in *path; NULL: there is none. */
static const qkv_container_kind *kind_in(const char *folder, qkv_buf *path) {
    for (size_t i = 0; i < N_KINDS; i++) {
        qkv_buf_clear(path);
        if (qkv_path_join(path, folder, kinds[i]->file) != QKV_OK) return NULL;
        if (qkv_file_exists(path->data)) return kinds[i];
    }
    return NULL;
}

bool qkv_container_in(const char *folder) {
    qkv_buf path = {0};
    const bool found = kind_in(folder, &path) != NULL;
    qkv_buf_free(&path);
    return found;
}

qkv_status qkv_container_open(const char *folder, qkv_container *out) {
    qkv_buf path = {0};
    *out = (qkv_container){0};
    qkv_arena_init(&out->names);
    const qkv_container_kind *kind = kind_in(folder, &path);
    qkv_status status = path.status;
    if (status == QKV_OK && !kind)
        status = qkv_fail(QKV_BAD_FILE, "%s: there are no weights (%s, …)", folder, kinds[0]->file);
    if (status == QKV_OK) {
        status = kind->open(path.data, out);
        if (status == QKV_OK && (status = sort(out)) != QKV_OK)
            status = qkv_fail_in(status, "%s", path.data);
    }
    qkv_buf_free(&path);
    if (status != QKV_OK) qkv_container_close(out);
    return status;
}

void qkv_container_close(qkv_container *c) {
    for (size_t i = 0; i < c->parts.n; i++) qkv_safetensors_close(&c->parts.at[i]);
    for (size_t i = 0; i < c->files.n; i++) qkv_file_close(&c->files.at[i]);
    qkv_free(c->parts.at);
    qkv_free(c->files.at);
    qkv_free(c->tensors.at);
    qkv_arena_free(&c->names);
    *c = (qkv_container){0};
}

/* ---- JSON ---- */

qkv_status qkv_document_open(const char *folder, const char *name, qkv_document *out) {
    enum { BYTES = 64 << 20 };
    qkv_buf path = {0};
    *out = (qkv_document){0};
    QKV_TRY(qkv_path_join(&path, folder, name));
    qkv_status status = qkv_file_open(path.data, BYTES, &out->file);
    if (status == QKV_OK) {
        const qkv_json_limits limits = {.bytes = BYTES, .nodes = 1 << 22, .depth = 32};
        status = qkv_json_parse(&out->json, path.data, out->file.data, out->file.size, limits);
        if (status != QKV_OK) qkv_file_close(&out->file);
    }
    if (status == QKV_OK) {
        out->root = qkv_json_root(&out->json);
        if (qkv_json_kind_of(out->root) != QKV_JSON_OBJECT &&
            qkv_json_kind_of(out->root) != QKV_JSON_ARRAY) {
            qkv_document_close(out);
            status = qkv_fail(QKV_BAD_FILE, "%s: neither an object nor a list", path.data);
        }
    }
    qkv_buf_free(&path); /* messages about the document name it by `name` below */
    out->json.name = name;
    return status;
}

qkv_status qkv_document_look(const char *folder, const char *name, qkv_document *out, bool *there) {
    qkv_buf path = {0};
    *out = (qkv_document){0};
    *there = false;
    QKV_TRY(qkv_path_join(&path, folder, name));
    *there = qkv_file_exists(path.data);
    qkv_buf_free(&path);
    return *there ? qkv_document_open(folder, name, out) : QKV_OK;
}

void qkv_document_close(qkv_document *d) {
    if (!d->file.data) return;
    qkv_json_free(&d->json);
    qkv_file_close(&d->file);
    *d = (qkv_document){0};
}

/* ---- shards ---- */

typedef struct shards {
    const char *folder;
    qkv_container *c;
    qkv_status (*open)(const char *path, qkv_container *c);
    QKV_VEC(qkv_text) seen;
} shards;

/* A shard lies beside its index: a name that leads elsewhere is none. */
static qkv_status open_shard(shards *s, qkv_text name) {
    enum { MOST = 4096 };
    for (size_t i = 0; i < s->seen.n; i++)
        if (s->seen.at[i].len == name.len && !memcmp(s->seen.at[i].data, name.data, name.len))
            return QKV_OK;
    if (!name.len || name.len > 255 || memchr(name.data, '/', name.len) ||
        memchr(name.data, 0, name.len) || name.data[0] == '.')
        return qkv_fail(QKV_BAD_FILE, "\"%.*s\" is no name of a file beside the index",
                        (int)(name.len < 60 ? name.len : 60), name.data);
    if (s->seen.n >= MOST) return qkv_fail(QKV_BAD_FILE, "more than %d shards", MOST);
    if (!QKV_PUSH(s->seen, name)) return QKV_FAILED;
    char file[256];
    memcpy(file, name.data, name.len);
    file[name.len] = 0;
    qkv_buf path = {0};
    QKV_TRY(qkv_path_join(&path, s->folder, file));
    const qkv_status status = s->open(path.data, s->c);
    qkv_buf_free(&path);
    return status;
}

static qkv_status open_shards(shards *s, qkv_json_at root) {
    qkv_json_at map, at;
    if (!qkv_json_member(root, "weight_map", &map) || qkv_json_kind_of(map) != QKV_JSON_OBJECT)
        return qkv_fail(QKV_BAD_FILE, "\"weight_map\" must say in which file each tensor lies");
    for (bool more = qkv_json_first(map, &at); more; more = qkv_json_next(map, &at)) {
        qkv_text name;
        if (qkv_json_kind_of(at) != QKV_JSON_STRING)
            return qkv_fail(QKV_BAD_FILE, "line %zu: the name of a file must be a string",
                            qkv_json_line(at));
        qkv_json_string(at, &name.data, &name.len);
        QKV_TRY(open_shard(s, name));
    }
    return QKV_OK;
}

qkv_status qkv_container_shards(const char *index, qkv_container *c,
                                qkv_status (*open)(const char *path, qkv_container *c)) {
    const char *slash = strrchr(index, '/');
    char *folder = slash ? qkv_strndup(index, (size_t)(slash - index) + (slash == index))
                         : qkv_strndup(".", 1);
    if (!folder) return QKV_FAILED;
    shards s = {.folder = folder, .c = c, .open = open};
    qkv_document d;
    qkv_status status = qkv_document_open(folder, slash ? slash + 1 : index, &d);
    if (status == QKV_OK) {
        status = open_shards(&s, d.root);
        if (status != QKV_OK) status = qkv_fail_in(status, "%s", index);
        qkv_document_close(&d);
    }
    qkv_free(s.seen.at);
    qkv_free(folder);
    return status;
}
