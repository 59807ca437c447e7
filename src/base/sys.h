/* The system's calls on files, as one table. Everything that loads, caches, checkpoints, resumes,
 * imports or writes goes through it, so that a test can put its own calls in: each of them fails
 * once at its n-th use, or a power cut forgets what was not forced to disk (tests/test_io.c). The
 * calls are those of POSIX, with their errno. */
#ifndef QKV_BASE_SYS_H
#define QKV_BASE_SYS_H

#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>

typedef struct qkv_sys_table {
    int (*open)(const char *path, int flags, mode_t mode);
    int (*close)(int fd);
    ssize_t (*read)(int fd, void *to, size_t n);
    ssize_t (*write)(int fd, const void *from, size_t n);
    void *(*map)(int fd, size_t n); /* for reading, of one's own; NULL: failed */
    int (*fsync)(int fd);
    int (*truncate)(int fd, off_t n);
    int (*reserve)(int fd, off_t n); /* posix_fallocate: returns what others leave in errno */
    int (*stat)(const char *path, struct stat *out);
    int (*fstat)(int fd, struct stat *out);
    int (*rename)(const char *from, const char *to);
    int (*unlink)(const char *path);
    int (*mkdir)(const char *path, mode_t mode);
    int (*rmdir)(const char *path);
    int (*link)(const char *from, const char *to);
    int (*symlink)(const char *to, const char *path);
    ssize_t (*readlink)(const char *path, char *out, size_t n);
    DIR *(*opendir)(const char *path);
    struct dirent *(*readdir)(DIR *dir);
} qkv_sys_table;

extern qkv_sys_table qkv_sys;

/* A stream that appends to a file by way of the table; NULL: errno says why. */
FILE *qkv_sys_append(const char *path);

#endif
