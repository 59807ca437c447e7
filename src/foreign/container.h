/* Containers: files in which other programs keep weights. Each gives named tensors with shapes, all
 * of them checked against the file before anything is touched; what they mean is a family's matter
 * (family.h). A container is one file and one row of containers.def. */
#ifndef QKV_FOREIGN_CONTAINER_H
#define QKV_FOREIGN_CONTAINER_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "store/safetensors.h"

/* A tensor of a container, and whether anybody has asked for it. */
typedef struct qkv_foreign_tensor {
    qkv_stored stored;
    bool used;
} qkv_foreign_tensor;

typedef struct qkv_container {
    QKV_VEC(qkv_foreign_tensor) tensors; /* by name once opened */
    QKV_VEC(qkv_safetensors) parts;      /* open files that the tensors point into */
    QKV_VEC(qkv_file) files;
    qkv_arena names;
} qkv_container;

typedef struct qkv_container_kind {
    const char *name, *summary;
    const char *file; /* its name in a folder */
    /* Adds the tensors of a file. */
    qkv_status (*open)(const char *path, qkv_container *c);
} qkv_container_kind;

/* The weights of a folder, in the first of the containers that lies in it. */
qkv_status qkv_container_open(const char *folder, qkv_container *out);
void qkv_container_close(qkv_container *c);
qkv_foreign_tensor *qkv_container_find(const qkv_container *c, const char *name); /* or NULL */
bool qkv_container_row(size_t i, const char **name, const char **summary);
/* Has a folder weights of another program's in it, by their names? */
bool qkv_container_in(const char *folder);

/* ---- a JSON file beside the weights ---- */

typedef struct qkv_document {
    qkv_file file;
    qkv_json json;
    qkv_json_at root;
} qkv_document;
qkv_status qkv_document_open(const char *folder, const char *name, qkv_document *out);
void qkv_document_close(qkv_document *d);
/* The same of a file that need not be there; *there says whether it was. */
qkv_status qkv_document_look(const char *folder, const char *name, qkv_document *out, bool *there);

/* ---- for containers ---- */

/* Opens the files that an index names, each by `open`. */
qkv_status qkv_container_shards(const char *index, qkv_container *c,
                                qkv_status (*open)(const char *path, qkv_container *c));

#define CONTAINER(name) extern const qkv_container_kind qkv_container_##name;
#include "foreign/containers.def"
#undef CONTAINER

#endif
