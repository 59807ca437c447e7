/* Files: reading whole ones, replacing them in one step.
 *
 * A file is replaced by writing a temporary one beside it, forcing it to the disk, renaming it over
 * the old one and forcing the folder. Without the first fsync a power cut may leave a name with no
 * content; without the second the old name may come back. */
#include "base/file.h"
#include "base/clock.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* ---- names ---- */

qkv_status qkv_path_join(qkv_buf *out, const char *folder, const char *name) {
    size_t n = strlen(folder);
    qkv_buf_puts(out, folder);
    if (n && folder[n - 1] != '/') qkv_buf_putc(out, '/');
    qkv_buf_puts(out, name);
    if (out->status == QKV_OK) return QKV_OK;
    qkv_buf_free(out);
    return out->status = QKV_FAILED;
}

bool qkv_file_exists(const char *path) {
    struct stat s;
    return qkv_sys.stat(path, &s) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

/* Length of the folder part of a path, without its last '/'; 0 when there is none. */
static size_t folder_len(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) : 0;
}

/* The folder of `path` as a path of its own: "." when the path has none, "/" for the root. */
static char *folder_of(const char *path) {
    size_t n = folder_len(path);
    if (n == 0) return qkv_strndup(path[0] == '/' ? "/" : ".", 1);
    return qkv_strndup(path, n);
}

/* A name near the missing one among its neighbours, for "did you mean"; hint is "" when there is
 * none. */
static void nearest_sibling(const char *path, char *hint, size_t size) {
    enum { MAX_LOOK = 2000 };
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    char *folder = folder_of(path);
    hint[0] = 0;
    DIR *dir = folder ? qkv_sys.opendir(folder) : NULL;
    if (dir) {
        const struct dirent *entry;
        for (int i = 0; i < MAX_LOOK && (entry = qkv_sys.readdir(dir)); i++) {
            if (entry->d_name[0] == '.' && base[0] != '.') continue;
            /* The best so far competes with each newcomer. */
            const char *pair[2] = {hint, entry->d_name};
            const char *near = qkv_nearest(base, hint[0] ? pair : pair + 1, hint[0] ? 2 : 1);
            if (near && near != hint) snprintf(hint, size, "%s", near);
        }
        closedir(dir);
    }
    qkv_free(folder);
}

static qkv_status cannot(const char *what, const char *path) {
    int code = errno;
    if (code != ENOENT)
        return qkv_fail(QKV_FAILED, "%s: cannot %s: %s", path, what, strerror(code));
    char *folder = folder_of(path), hint[256];
    if (!folder) return QKV_FAILED;
    bool there = qkv_file_exists(folder);
    qkv_status status;
    nearest_sibling(path, hint, sizeof hint);
    if (!there)
        status = qkv_fail(QKV_FAILED, "%s: cannot %s: there is no folder %s", path, what, folder);
    else if (hint[0])
        status = qkv_fail(QKV_FAILED, "%s: there is no such file; did you mean %s?", path, hint);
    else
        status = qkv_fail(QKV_FAILED, "%s: there is no such file", path);
    qkv_free(folder);
    return status;
}

/* ---- reading ---- */

static qkv_status too_large(const char *path, size_t max_bytes) {
    return qkv_fail(QKV_BAD_FILE, "%s: larger than %zu bytes, the limit for such a file", path,
                    max_bytes);
}

/* Half of the memory that is free. */
static size_t memory_bound(void) {
    double total;
    const double have = qkv_machine_memory(&total);
    return have > 0 && have < (double)(SIZE_MAX / 2) ? (size_t)(have / 2) : SIZE_MAX / 2;
}

/* A pipe, a device, a file of /proc: no size to trust, so it is read to its end. */
static qkv_status read_to_end(int fd, const char *path, size_t max_bytes, qkv_file *out) {
    enum { PIECE = 1 << 16 };
    const size_t bound = memory_bound();
    struct stat s;
    qkv_buf all = {0};
    /* What is a file has its memory at once; more may have been added to it since. */
    if (qkv_sys.fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && (uintmax_t)s.st_size < bound &&
        qkv_buf_extend(&all, (size_t)s.st_size + PIECE))
        all.len = 0;
    while (all.status == QKV_OK) {
        char *place = qkv_buf_extend(&all, PIECE);
        if (!place) break;
        ssize_t n = qkv_sys.read(fd, place, PIECE);
        all.len -= PIECE - (n > 0 ? (size_t)n : 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) all.status = cannot("read it", path);
        if (n <= 0) break;
        if (all.len > max_bytes)
            all.status = too_large(path, max_bytes);
        else if (all.len > bound)
            all.status = qkv_fail(QKV_FAILED,
                                  "%s: more than %.0f MB came, half of the memory that is free; "
                                  "put it into a file, which need not fit",
                                  path, (double)bound / 1e6);
        if (all.status != QKV_OK) break;
    }
    if (all.status != QKV_OK) {
        qkv_status status = all.status;
        qkv_buf_free(&all);
        return status;
    }
    *out = (qkv_file){.data = all.data, .size = all.len};
    return QKV_OK;
}

enum { MAP_FROM = 1 << 20 }; /* bytes; reading fewer takes no longer than mapping them */

static _Atomic bool mapping = true;

void qkv_mapping_set(bool on) {
    mapping = on;
}

qkv_status qkv_file_read(int fd, const char *path, size_t max_bytes, qkv_file *out) {
    struct stat s;
    *out = (qkv_file){0};
    if (qkv_sys.fstat(fd, &s) != 0) return cannot("look at it", path);
    if (S_ISDIR(s.st_mode)) return qkv_fail(QKV_FAILED, "%s: this is a folder, not a file", path);
    if (!S_ISREG(s.st_mode) || s.st_size == 0) return read_to_end(fd, path, max_bytes, out);
    if ((uintmax_t)s.st_size > max_bytes) return too_large(path, max_bytes);
    if (s.st_size < MAP_FROM || !mapping) return read_to_end(fd, path, max_bytes, out);
    void *data = qkv_sys.map(fd, (size_t)s.st_size);
    if (!data) return read_to_end(fd, path, max_bytes, out);
    *out = (qkv_file){.data = data, .size = (size_t)s.st_size, .mapped = true};
    return QKV_OK;
}

/* What is no file: a pipe has to have a writer soon, a device an end. */
static qkv_status check_source(int fd, const char *path) {
    enum { PATIENCE = 5000 }; /* milliseconds */
    struct stat s;
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    if (qkv_sys.fstat(fd, &s) != 0) return cannot("look at it", path);
    if (S_ISCHR(s.st_mode) && !isatty(fd) && s.st_rdev != makedev(1, 3)) /* /dev/null */
        return qkv_fail(QKV_FAILED, "%s: this is a device, which may never end, not a file", path);
    if (S_ISFIFO(s.st_mode) && poll(&ready, 1, PATIENCE) == 0)
        return qkv_fail(QKV_FAILED, "%s: a pipe that no program writes to (waited %d s)", path,
                        PATIENCE / 1000);
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0) return cannot("read it", path);
    return QKV_OK;
}

qkv_status qkv_file_open(const char *path, size_t max_bytes, qkv_file *out) {
    *out = (qkv_file){0};
    int fd = qkv_sys.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    if (fd < 0) return cannot("open it", path);
    qkv_status status = check_source(fd, path);
    if (status == QKV_OK) status = qkv_file_read(fd, path, max_bytes, out);
    qkv_sys.close(fd);
    return status;
}

void qkv_file_close(qkv_file *f) {
    if (f->mapped)
        munmap((void *)f->data, f->size);
    else
        qkv_free((void *)f->data);
    *f = (qkv_file){0};
}

/* ---- folders ---- */

/* Forces the name of a file or folder to disk: it lies in the folder around it. */
static qkv_status sync_parent(const char *path) {
    char *folder;
    QKV_TRY_ALLOC(folder = folder_of(path));
    const qkv_status status = qkv_folder_sync(folder);
    qkv_free(folder);
    return status;
}

qkv_status qkv_folder_make(const char *path) {
    char *part;
    QKV_TRY_ALLOC(part = qkv_strndup(path, strlen(path)));
    qkv_status status = QKV_OK;
    for (char *p = part + (part[0] == '/'); status == QKV_OK; p++) {
        p += strcspn(p, "/");
        char end = *p;
        *p = 0;
        struct stat s;
        const bool made = *part && qkv_sys.mkdir(part, 0777) == 0, failed = *part && !made;
        if (made) {
            status = sync_parent(part);
        } else if (failed && errno != EEXIST && errno != EISDIR) {
            status = qkv_fail(QKV_FAILED, "%s: cannot make the folder %s: %s", path, part,
                              strerror(errno));
        } else if (failed && (qkv_sys.stat(part, &s) != 0 || !S_ISDIR(s.st_mode))) {
            status = qkv_fail(QKV_FAILED, "%s: cannot make the folder: %s is there and is a file",
                              path, part);
        }
        *p = end;
        if (!end) break;
    }
    qkv_free(part);
    return status;
}

qkv_status qkv_folder_sync(const char *path) {
    int fd = qkv_sys.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) return cannot("open the folder", path);
    /* Some file systems have no fsync for folders and say EINVAL; there is nothing more to do
     * there. */
    int failed = qkv_sys.fsync(fd) != 0 && errno != EINVAL;
    int code = errno;
    qkv_sys.close(fd);
    if (failed)
        return qkv_fail(QKV_FAILED, "%s: cannot force the folder to disk: %s", path,
                        strerror(code));
    return QKV_OK;
}

/* ---- writing ---- */

static qkv_status write_failed(const qkv_writer *w, size_t need) {
    int code = errno;
    struct statvfs s;
    if ((code == ENOSPC || code == EDQUOT) && fstatvfs(w->fd, &s) == 0)
        return qkv_fail(QKV_FAILED,
                        "%s: no space: need %.1f MB more, have %.1f MB; the old file is untouched",
                        w->path, (double)need / 1e6, (double)s.f_bavail * (double)s.f_frsize / 1e6);
    return qkv_fail(QKV_FAILED, "%s: cannot write: %s", w->path, strerror(code));
}

static void release(qkv_writer *w) {
    if (w->fd >= 0) qkv_sys.close(w->fd);
    if (w->temporary) qkv_sys.unlink(w->temporary);
    qkv_free(w->path);
    qkv_free(w->temporary);
    *w = (qkv_writer){.fd = -1};
}

/* Opens a file beside the target under a name that nobody can foresee, so that nobody can have put a
 * link there. On failure errno says why. */
static bool make_temporary(qkv_writer *w, const char *target, mode_t mode) {
    enum { TRIES = 100 };
    const size_t room = strlen(target) + 48;
    if (!(w->temporary = qkv_alloc(room))) return errno = ENOMEM, false;
    for (int i = 0; i < TRIES; i++) {
        uint64_t draw;
        if (getrandom(&draw, sizeof draw, GRND_NONBLOCK) != sizeof draw)
            draw = (uint64_t)(1e9 * qkv_now()) + (uint64_t)i; /* no more than unlikely */
        snprintf(w->temporary, room, "%s.tmp-%016llx", target, (unsigned long long)draw);
        w->fd =
            qkv_sys.open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (w->fd >= 0) return true;
        if (errno != EEXIST) break;
    }
    const int code = errno;
    qkv_free(w->temporary);
    w->temporary = NULL;
    errno = code;
    return false;
}

static qkv_status open_temporary(qkv_writer *w, const char *path, size_t bytes) {
    /* A link is followed to the file it names, which is then replaced; the link stays. */
    char real[PATH_MAX];
    struct stat s;
    bool there = qkv_sys.stat(path, &s) == 0;
    const char *target = there && realpath(path, real) ? real : path;
    if (there && S_ISDIR(s.st_mode))
        return qkv_fail(QKV_FAILED, "%s: this is a folder, not a file", path);
    QKV_TRY_ALLOC(w->path = qkv_strndup(target, strlen(target)));
    w->direct = there && !S_ISREG(s.st_mode);
    if (w->direct) {
        w->fd = qkv_sys.open(target, O_WRONLY | O_CLOEXEC, 0);
        return w->fd < 0 ? cannot("write it", path) : QKV_OK;
    }
    if (!make_temporary(w, target, there ? s.st_mode & 0777 : 0666))
        return cannot("write it", path);
    /* Only a full disk matters here: a file system that cannot reserve says EOPNOTSUPP or EINVAL.
     */
    int code = bytes ? qkv_sys.reserve(w->fd, (off_t)bytes) : 0;
    errno = code;
    return code == ENOSPC || code == EDQUOT || code == EFBIG ? write_failed(w, bytes) : QKV_OK;
}

qkv_status qkv_writer_open(qkv_writer *w, const char *path, size_t bytes) {
    *w = (qkv_writer){.fd = -1};
    w->status = open_temporary(w, path, bytes);
    if (w->status == QKV_OK) return QKV_OK;
    release(w);
    return QKV_FAILED;
}

void qkv_writer_add(qkv_writer *w, const void *data, size_t n) {
    const char *p = data;
    while (n > 0 && w->status == QKV_OK) {
        ssize_t done = qkv_sys.write(w->fd, p, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) {
            w->status = write_failed(w, n);
            return;
        }
        p += done;
        n -= (size_t)done;
        w->written += (size_t)done;
    }
}

static qkv_status publish(qkv_writer *w) {
    if (w->direct || w->status != QKV_OK) return w->status;
    /* The reservation may have been larger than what was written. */
    if (qkv_sys.truncate(w->fd, (off_t)w->written) != 0 || qkv_sys.fsync(w->fd) != 0)
        return write_failed(w, 0);
    int fd = w->fd;
    w->fd = -1;
    if (qkv_sys.close(fd) != 0)
        return qkv_fail(QKV_FAILED, "%s: cannot write: %s", w->path, strerror(errno));
    if (qkv_sys.rename(w->temporary, w->path) != 0)
        return qkv_fail(QKV_FAILED, "%s: cannot put the new file in place: %s", w->path,
                        strerror(errno));
    qkv_free(w->temporary);
    w->temporary = NULL;
    return sync_parent(w->path);
}

qkv_status qkv_writer_commit(qkv_writer *w) {
    qkv_status status = publish(w);
    release(w);
    return status;
}

void qkv_writer_abandon(qkv_writer *w) {
    release(w);
}

qkv_status qkv_file_write(const char *path, const void *data, size_t n) {
    qkv_writer w;
    QKV_TRY(qkv_writer_open(&w, path, n));
    qkv_writer_add(&w, data, n);
    return qkv_writer_commit(&w);
}
