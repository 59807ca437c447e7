#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static int open_file(const char *path, int flags, mode_t mode) {
    return open(path, flags, mode);
}

static void *map_file(int fd, size_t n) {
    void *data = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
    return data == MAP_FAILED ? NULL : data;
}

static int reserve(int fd, off_t n) {
    return posix_fallocate(fd, 0, n);
}

qkv_sys_table qkv_sys = {.open = open_file,
                         .close = close,
                         .read = read,
                         .write = write,
                         .map = map_file,
                         .fsync = fsync,
                         .truncate = ftruncate,
                         .reserve = reserve,
                         .stat = stat,
                         .fstat = fstat,
                         .rename = rename,
                         .unlink = unlink,
                         .mkdir = mkdir,
                         .rmdir = rmdir,
                         .link = link,
                         .symlink = symlink,
                         .readlink = readlink,
                         .opendir = opendir,
                         .readdir = readdir};

/* ---- streams ---- */

/* The descriptor is the stream's cookie. */
static ssize_t stream_write(void *cookie, const char *from, size_t n) {
    size_t done = 0;
    while (done < n) {
        const ssize_t put = qkv_sys.write((int)(intptr_t)cookie, from + done, n - done);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return 0;
        done += (size_t)put;
    }
    return (ssize_t)done;
}

static int stream_close(void *cookie) {
    return qkv_sys.close((int)(intptr_t)cookie);
}

FILE *qkv_sys_append(const char *path) {
    const int fd = qkv_sys.open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) return NULL;
    FILE *out = fopencookie((void *)(intptr_t)fd, "a",
                            (cookie_io_functions_t){.write = stream_write, .close = stream_close});
    if (!out) qkv_sys.close(fd);
    return out;
}
