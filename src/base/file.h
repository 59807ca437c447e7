/* Files: whole reads with a cap, read-only maps, atomic writes.
 * Messages name the file and the reason. */
#ifndef QKV_BASE_FILE_H
#define QKV_BASE_FILE_H

#include "base/buf.h"

/* Read-only view of a whole file: mapped, or read into memory where mapping is not
 * possible (a pipe). */
typedef struct qkv_file {
    const char *data;
    size_t size;
    bool mapped;
    const char *packed; /* how it was packed ("gzip"), where it was unpacked (base/unpack.h) */
} qkv_file;

/* Files of a megabyte or more are mapped unless qkv_mapping_set (qkv.h) forbids it: such a map ends
 * with SIGBUS where somebody cuts the file short. Small ones are read, which costs no more. */
qkv_status qkv_file_open(const char *path, size_t max_bytes, qkv_file *out);
/* The same of a file that is open, such as standard input; `name` is for messages. What is no
 * regular file is read into memory, at most half of what is free. */
qkv_status qkv_file_read(int fd, const char *name, size_t max_bytes, qkv_file *out);
void qkv_file_close(qkv_file *f);

/* Replaces `path` in one step: temporary file beside it, write, fsync, rename,
 * fsync of the folder. */
qkv_status qkv_file_write(const char *path, const void *data, size_t n);

/* The same in pieces: open, add …, then commit or abandon. `bytes` is reserved on the disk at once,
 * so that a full disk shows before the old file is touched; 0 when it is not known.
 * Commit and abandon both release. */
typedef struct qkv_writer {
    int fd;
    bool direct; /* not a regular file (a pipe, /dev/null): written in place */
    size_t written;
    qkv_status status; /* sticky, like a buffer's */
    char *path, *temporary;
} qkv_writer;

qkv_status qkv_writer_open(qkv_writer *w, const char *path, size_t bytes);
void qkv_writer_add(qkv_writer *w, const void *data, size_t n);
qkv_status qkv_writer_commit(qkv_writer *w);
void qkv_writer_abandon(qkv_writer *w);

/* fsync of a folder: makes the names in it survive a power cut. */
qkv_status qkv_folder_sync(const char *path);

/* False only where the system says that there is nothing. */
bool qkv_file_exists(const char *path);
qkv_status qkv_folder_make(const char *path); /* with parents; fine if it is there */
/* Appends "folder/name"; after a failure there is nothing in `out` to free. */
qkv_status qkv_path_join(qkv_buf *out, const char *folder, const char *name);

/* 128-bit content hash (our own use: caches, manifests), as 32 hex digits and a NUL.
 * Finds damage, not malice. */
void qkv_hash_hex(const void *data, size_t n, char hex[33]);
uint64_t qkv_hash64(const void *data, size_t n, uint64_t seed);

#endif
