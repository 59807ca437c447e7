/* Bytes as a file without a disk: a file in memory, opened through /proc. */
#include "fuzz.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

const char *fuzz_as_file(const void *data, size_t n) {
    static int fd = -1;
    static char path[64];
    if (fd < 0) {
        fd = memfd_create("fuzz", 0);
        assert(fd >= 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    int cut = ftruncate(fd, 0);
    ssize_t written = pwrite(fd, data, n, 0);
    assert(cut == 0 && written == (ssize_t)n);
    return path;
}
