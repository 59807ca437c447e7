/* Files: whole reads with a cap, read-only maps, atomic writes. Messages name the file and the reason. */
#ifndef QKV_BASE_FILE_H
#define QKV_BASE_FILE_H

#include "base/buf.h"

/* Read-only view of a whole file: mapped, or read into memory where mapping is not possible (a pipe). */
typedef struct qkv_file {
    const char *data;
    size_t size;
    bool mapped;
} qkv_file;

qkv_status qkv_file_open(const char *path, size_t max_bytes, qkv_file *out);
void qkv_file_close(qkv_file *f);

/* Replaces `path` in one step: temporary file beside it, write, fsync, rename, fsync of the folder. */
qkv_status qkv_file_write(const char *path, const void *data, size_t n);

bool qkv_file_exists(const char *path);
qkv_status qkv_folder_make(const char *path); /* with parents; fine if it is there */
qkv_status qkv_path_join(qkv_buf *out, const char *folder, const char *name);

/* 128-bit content hash (our own use: caches, manifests), as 32 hex digits and a NUL. */
void qkv_hash_hex(const void *data, size_t n, char hex[33]);
uint64_t qkv_hash64(const void *data, size_t n, uint64_t seed);

#endif
