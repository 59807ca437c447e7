/* Checkpoints that survive anything: the order of the steps is the whole idea.
 *
 *   1. files are written into checkpoints/.tmp-<step>-<pid>         a kill leaves rubbish that
 * nobody names
 *   2. each is forced to disk, then manifest.json (sizes, hashes), then the folder
 *   3. the folder is renamed to step-<step>, the parent forced      now it is complete under its
 * own name
 *   4. `last` (a link) is replaced by rename, the parent forced     now it is what a resume finds
 *   5. old ones are renamed to .tmp-…, then deleted                 never what `last` or `best`
 * name
 *
 * A step that was saved before keeps its folder; the new one gets a suffix, step-00001200-2, so
 * that no moment exists at which neither is there. */
#include "store/checkpoint.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define MANIFEST "manifest.json"
enum { NAME_BYTES = 256, FILES_MAX = 1000 };

struct qkv_checkpoint {
    uint64_t step;
    qkv_buf root;   /* RUN/checkpoints */
    qkv_buf folder; /* RUN/checkpoints/.tmp-… */
};

/* ---- names in a folder ---- */

typedef struct names {
    QKV_VEC(char *) list;
} names;

static void names_free(names *n) {
    for (size_t i = 0; i < n->list.n; i++) qkv_free(n->list.at[i]);
    qkv_free(n->list.at);
    *n = (names){0};
}

/* All entries of a folder that begin with `prefix`, except "." and "..". A folder that is not there
 * has none. */
static qkv_status list_folder(const char *folder, const char *prefix, names *out) {
    *out = (names){0};
    DIR *dir = qkv_sys.opendir(folder);
    if (!dir && errno == ENOENT) return QKV_OK;
    if (!dir) return qkv_fail(QKV_FAILED, "%s: cannot list it: %s", folder, strerror(errno));
    const struct dirent *entry;
    qkv_status status = QKV_OK;
    while (status == QKV_OK) {
        errno = 0;
        if (!(entry = qkv_sys.readdir(dir))) break;
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
        if (strncmp(name, prefix, strlen(prefix)) != 0) continue;
        char *copy = qkv_strndup(name, strlen(name));
        if (!copy || !QKV_PUSH(out->list, copy)) {
            qkv_free(copy);
            status = QKV_FAILED;
        }
    }
    if (status == QKV_OK && errno)
        status = qkv_fail(QKV_FAILED, "%s: cannot list it: %s", folder, strerror(errno));
    closedir(dir);
    if (status != QKV_OK) names_free(out);
    return status;
}

/* "step-00001200-2" → 1200, 2; false for any other name. */
static bool parse_step(const char *name, uint64_t *step, uint64_t *suffix) {
    char *end;
    if (strncmp(name, "step-", 5) != 0 || name[5] < '0' || name[5] > '9') return false;
    *step = strtoull(name + 5, &end, 10);
    *suffix = 1;
    if (*end == '-' && end[1] >= '0' && end[1] <= '9') *suffix = strtoull(end + 1, &end, 10);
    return *end == 0;
}

static int newest_first(const void *a, const void *b) {
    uint64_t x[2] = {0}, y[2] = {0};
    parse_step(*(char *const *)a, &x[0], &x[1]);
    parse_step(*(char *const *)b, &y[0], &y[1]);
    int i = x[0] == y[0];
    return x[i] < y[i] ? 1 : x[i] > y[i] ? -1 : 0;
}

/* The names of all checkpoints under root, newest first. */
static qkv_status list_steps(const char *root, names *out) {
    QKV_TRY(list_folder(root, "step-", out));
    size_t kept = 0;
    for (size_t i = 0; i < out->list.n; i++) {
        uint64_t step, suffix;
        if (parse_step(out->list.at[i], &step, &suffix))
            out->list.at[kept++] = out->list.at[i];
        else
            qkv_free(out->list.at[i]);
    }
    out->list.n = kept;
    if (kept) qsort(out->list.at, kept, sizeof *out->list.at, newest_first);
    return QKV_OK;
}

/* What the link root/name points at, without any folder; "" when it is not there. */
static qkv_status read_link(const char *root, const char *name, char out[NAME_BYTES]) {
    qkv_buf path = {0};
    out[0] = 0;
    QKV_TRY(qkv_path_join(&path, root, name));
    const ssize_t n = qkv_sys.readlink(path.data, out, NAME_BYTES - 1);
    qkv_status status = QKV_OK;
    if (n < 0 && errno != ENOENT && errno != ENOTDIR && errno != EINVAL)
        status = qkv_fail(QKV_FAILED, "%s: cannot read the link: %s", path.data, strerror(errno));
    out[n > 0 ? n : 0] = 0;
    if (strchr(out, '/')) out[0] = 0; /* ours never has one */
    qkv_buf_free(&path);
    return status;
}

/* ---- removing ---- */

/* Deletes a folder of plain files. What cannot be deleted stays: the next start tries again. */
static void delete_folder(const char *folder) {
    names files;
    if (list_folder(folder, "", &files) != QKV_OK) return;
    for (size_t i = 0; i < files.list.n; i++) {
        qkv_buf path = {0};
        if (qkv_path_join(&path, folder, files.list.at[i]) == QKV_OK) qkv_sys.unlink(path.data);
        qkv_buf_free(&path);
    }
    names_free(&files);
    qkv_sys.rmdir(folder);
}

/* Removes what runs that died left behind: the name ends in the number of a process that is no
 * more. `locked`: the run is ours alone, so whatever there is was left. */
static qkv_status remove_leftovers(const char *root, bool locked) {
    names found;
    QKV_TRY(list_folder(root, ".tmp-", &found));
    for (size_t i = 0; i < found.list.n; i++) {
        long pid = strtol(strrchr(found.list.at[i], '-') + 1, NULL, 10);
        const bool alive = !locked && pid > 0 && pid != (long)getpid() &&
                           (kill((pid_t)pid, 0) == 0 || errno != ESRCH);
        qkv_buf path = {0};
        if (!alive && qkv_path_join(&path, root, found.list.at[i]) == QKV_OK) {
            qkv_sys.unlink(path.data); /* an unfinished link; fails for a folder */
            delete_folder(path.data);
        }
        qkv_buf_free(&path);
    }
    names_free(&found);
    return QKV_OK;
}

static qkv_status remove_step(const char *root, const char *name) {
    qkv_buf from = {0}, to = {0};
    char hidden[NAME_BYTES + 64];
    snprintf(hidden, sizeof hidden, ".tmp-old-%s-%ld", name, (long)getpid());
    qkv_path_join(&from, root, name);
    qkv_status status = qkv_path_join(&to, root, hidden);
    /* Renamed first: a kill half-way through the deletion must not leave half a checkpoint under
     * its name. */
    if (status == QKV_OK && from.status == QKV_OK && qkv_sys.rename(from.data, to.data) == 0)
        delete_folder(to.data);
    qkv_buf_free(&from);
    qkv_buf_free(&to);
    return status;
}

/* Keeps the one that was saved and the newest of earlier steps. The others of its step and beyond are
 * of a course that was given up, as a checkpoint of it was damaged: they take no place of those that
 * are whole. */
static qkv_status rotate(const char *root, const char *saved, int keep) {
    char last[NAME_BYTES], best[NAME_BYTES];
    names steps;
    uint64_t now, step, suffix;
    QKV_TRY(read_link(root, "last", last));
    QKV_TRY(read_link(root, "best", best));
    parse_step(saved, &now, &suffix);
    QKV_TRY(list_steps(root, &steps));
    qkv_status status = QKV_OK;
    int kept = 1;
    for (size_t i = 0; i < steps.list.n && status == QKV_OK; i++) {
        const char *name = steps.list.at[i];
        if (strcmp(name, saved) == 0 || strcmp(name, last) == 0 || strcmp(name, best) == 0)
            continue;
        if (parse_step(name, &step, &suffix) && step < now && kept++ < keep) continue;
        status = remove_step(root, name);
    }
    names_free(&steps);
    return status;
}

/* ---- beginning ---- */

static qkv_status check_space(const char *root, size_t bytes) {
    struct statvfs s;
    if (statvfs(root, &s) != 0) return QKV_OK; /* a file system that does not say */
    double have = (double)s.f_bavail * (double)s.f_frsize;
    if ((double)bytes <= have) return QKV_OK;
    return qkv_fail(QKV_FAILED,
                    "%s: no space: need %.1f MB, have %.1f MB; the checkpoints there are untouched",
                    root, (double)bytes / 1e6, have / 1e6);
}

static void checkpoint_free(qkv_checkpoint *c) {
    qkv_buf_free(&c->root);
    qkv_buf_free(&c->folder);
    qkv_free(c);
}

static qkv_status prepare(qkv_checkpoint *c, const char *run, size_t bytes) {
    char name[64];
    snprintf(name, sizeof name, ".tmp-%08llu-%ld", (unsigned long long)c->step, (long)getpid());
    QKV_TRY(qkv_path_join(&c->root, run, "checkpoints"));
    QKV_TRY(qkv_path_join(&c->folder, c->root.data, name));
    QKV_TRY(qkv_folder_make(c->root.data));
    QKV_TRY(remove_leftovers(c->root.data, false));
    QKV_TRY(check_space(c->root.data, bytes));
    return qkv_folder_make(c->folder.data);
}

qkv_status qkv_checkpoint_begin(const char *run, uint64_t step, size_t bytes,
                                qkv_checkpoint **out) {
    QKV_TRY_ALLOC(*out = qkv_zalloc(1, sizeof **out));
    (*out)->step = step;
    qkv_status status = prepare(*out, run, bytes);
    if (status != QKV_OK) {
        checkpoint_free(*out);
        *out = NULL;
    }
    return status;
}

const char *qkv_checkpoint_folder(const qkv_checkpoint *c) {
    return c->folder.data;
}

void qkv_checkpoint_abandon(qkv_checkpoint *c) {
    if (!c) return;
    delete_folder(c->folder.data);
    checkpoint_free(c);
}

/* ---- sealing and publishing ---- */

/* Forces one file to disk and gives its size and hash. */
static qkv_status seal_file(const char *path, size_t *size, char hex[33]) {
    int fd = qkv_sys.open(path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0 || qkv_sys.fsync(fd) != 0) {
        int code = errno;
        if (fd >= 0) qkv_sys.close(fd);
        return qkv_fail(QKV_FAILED, "%s: cannot force it to disk: %s", path, strerror(code));
    }
    qkv_sys.close(fd);
    qkv_file f;
    QKV_TRY(qkv_file_open(path, SIZE_MAX, &f));
    *size = f.size;
    qkv_hash_hex(f.data, f.size, hex);
    qkv_file_close(&f);
    return QKV_OK;
}

static qkv_status put_files(const qkv_checkpoint *c, const names *files, qkv_json_out *j) {
    for (size_t i = 0; i < files->list.n; i++) {
        const char *name = files->list.at[i];
        if (strcmp(name, MANIFEST) == 0) continue;
        qkv_buf path = {0};
        size_t size = 0;
        char hex[33] = "";
        qkv_status status = qkv_path_join(&path, c->folder.data, name);
        if (status == QKV_OK) status = seal_file(path.data, &size, hex);
        qkv_buf_free(&path);
        if (status != QKV_OK) return status;
        qkv_json_open(j, '{');
        qkv_json_put_key(j, "name");
        qkv_json_put_text(j, name);
        qkv_json_put_key(j, "size");
        qkv_json_put_int(j, (int64_t)size);
        qkv_json_put_key(j, "hash");
        qkv_json_put_text(j, hex);
        qkv_json_close(j, '}');
    }
    return QKV_OK;
}

static qkv_status write_manifest(const qkv_checkpoint *c) {
    names files;
    QKV_TRY(list_folder(c->folder.data, "", &files));
    qkv_buf text = {0}, path = {0};
    qkv_json_out j = qkv_json_begin(&text, 1);
    qkv_json_open(&j, '{');
    qkv_json_put_key(&j, "version");
    qkv_json_put_text(&j, qkv_version());
    qkv_json_put_key(&j, "step");
    qkv_json_put_int(&j, (int64_t)c->step);
    qkv_json_put_key(&j, "files");
    qkv_json_open(&j, '[');
    qkv_status status = put_files(c, &files, &j);
    qkv_json_close(&j, ']');
    qkv_json_close(&j, '}');
    qkv_buf_putc(&text, '\n');
    if (status == QKV_OK) status = text.status;
    if (status == QKV_OK) status = qkv_path_join(&path, c->folder.data, MANIFEST);
    if (status == QKV_OK)
        status = qkv_file_write(path.data, text.data, text.len); /* forces file and folder */
    qkv_buf_free(&text);
    qkv_buf_free(&path);
    names_free(&files);
    return status;
}

/* Gives the folder its final name, the first of step-N, step-N-2, … that is free. */
static qkv_status name_folder(qkv_checkpoint *c, char name[NAME_BYTES]) {
    for (int suffix = 1;; suffix++) {
        int n = snprintf(name, NAME_BYTES, "step-%08llu", (unsigned long long)c->step);
        if (suffix > 1) snprintf(name + n, NAME_BYTES - (size_t)n, "-%d", suffix);
        qkv_buf target = {0};
        QKV_TRY(qkv_path_join(&target, c->root.data, name));
        if (qkv_file_exists(target.data)) {
            qkv_buf_free(&target);
            continue;
        }
        qkv_status status = QKV_OK;
        if (qkv_sys.rename(c->folder.data, target.data) != 0)
            status = qkv_fail(QKV_FAILED, "%s: cannot give the checkpoint its name: %s",
                              target.data, strerror(errno));
        qkv_buf_free(&target);
        return status == QKV_OK ? qkv_folder_sync(c->root.data) : status;
    }
}

/* Makes root/link point at `name` in one step. */
static qkv_status set_link(const char *root, const char *link, const char *name) {
    char temporary[NAME_BYTES];
    snprintf(temporary, sizeof temporary, ".tmp-%s-%ld", link, (long)getpid());
    qkv_buf from = {0}, to = {0};
    qkv_status status = qkv_path_join(&from, root, temporary);
    if (status == QKV_OK) status = qkv_path_join(&to, root, link);
    if (status == QKV_OK) {
        qkv_sys.unlink(from.data);
        if (qkv_sys.symlink(name, from.data) != 0 || qkv_sys.rename(from.data, to.data) != 0)
            status = qkv_fail(QKV_FAILED, "%s: cannot set the link: %s", to.data, strerror(errno));
    }
    qkv_buf_free(&from);
    qkv_buf_free(&to);
    return status == QKV_OK ? qkv_folder_sync(root) : status;
}

qkv_status qkv_checkpoint_commit(qkv_checkpoint *c, bool best, int keep) {
    char name[NAME_BYTES];
    qkv_status status = write_manifest(c);
    if (status == QKV_OK) status = name_folder(c, name);
    if (status != QKV_OK) {
        qkv_checkpoint_abandon(c);
        return status;
    }
    /* `best` first: a run that is killed between the two goes on from the last one before and makes
     * this one again, while `last` naming a state that believes itself the best would lose it. */
    status = best ? set_link(c->root.data, "best", name) : QKV_OK;
    if (status == QKV_OK) status = set_link(c->root.data, "last", name);
    if (status == QKV_OK) status = rotate(c->root.data, name, keep);
    checkpoint_free(c);
    return status;
}

/* ---- finding and verifying ---- */

/* A file that is not there is damage. One that the system does not give (no descriptor, no memory, a
 * disk that fails) may be whole: who asks is told so, and nothing is given up for it. */
static qkv_status missing_is_damage(qkv_status status, const char *path) {
    return status == QKV_FAILED && !qkv_file_exists(path) ? QKV_BAD_FILE : status;
}

/* Checks one entry of the manifest against the file it names. */
static qkv_status verify_file(const char *folder, qkv_json_at entry) {
    const char *name = "", *hash = "";
    size_t name_len = 0, hash_len = 0;
    int64_t size = 0;
    if (qkv_json_kind_of(entry) != QKV_JSON_OBJECT)
        return qkv_fail(QKV_BAD_FILE, "%s: an entry of the manifest is not an object", folder);
    QKV_TRY(qkv_json_get_string(entry, "name", true, &name, &name_len));
    QKV_TRY(qkv_json_get_string(entry, "hash", true, &hash, &hash_len));
    QKV_TRY(qkv_json_get_int(entry, "size", true, 0, INT64_MAX, &size));
    if (name_len == 0 || name_len >= NAME_BYTES || memchr(name, '/', name_len) ||
        memchr(name, 0, name_len))
        return qkv_fail(QKV_BAD_FILE, "%s: the manifest names a file that is not a plain name",
                        folder);
    char plain[NAME_BYTES] = "", hex[33];
    memcpy(plain, name, name_len);
    qkv_buf path = {0};
    qkv_file f = {0};
    qkv_status status = qkv_path_join(&path, folder, plain);
    if (status == QKV_OK) status = qkv_file_open(path.data, SIZE_MAX, &f);
    if (status == QKV_OK) {
        qkv_hash_hex(f.data, f.size, hex);
        if (f.size != (size_t)size)
            status = qkv_fail(QKV_BAD_FILE, "%s: %zu bytes, the manifest says %lld", path.data,
                              f.size, (long long)size);
        else if (hash_len != 32 || memcmp(hash, hex, 32) != 0)
            status = qkv_fail(QKV_BAD_FILE, "%s: its content is not what was written", path.data);
        qkv_file_close(&f);
    } else {
        status = missing_is_damage(status, path.data);
    }
    qkv_buf_free(&path);
    return status;
}

static qkv_status verify_manifest(const char *folder, const char *path, const qkv_file *f) {
    qkv_json doc;
    qkv_json_limits limits = {.bytes = 1 << 20, .nodes = 8 * FILES_MAX, .depth = 4};
    QKV_TRY(qkv_json_parse(&doc, path, f->data, f->size, limits));
    qkv_json_at files, at;
    qkv_status status = QKV_OK;
    if (!qkv_json_member(qkv_json_root(&doc), "files", &files) ||
        qkv_json_kind_of(files) != QKV_JSON_ARRAY)
        status = qkv_fail(QKV_BAD_FILE, "%s: \"files\" must be a list", path);
    else if (!qkv_json_first(files, &at))
        status = qkv_fail(QKV_BAD_FILE, "%s: the manifest names no file", path);
    else
        for (bool more = true; more && status == QKV_OK; more = qkv_json_next(files, &at))
            status = verify_file(folder, at);
    qkv_json_free(&doc);
    return status;
}

qkv_status qkv_checkpoint_verify(const char *folder) {
    qkv_buf path = {0};
    qkv_file f = {0};
    qkv_status status = qkv_path_join(&path, folder, MANIFEST);
    if (status == QKV_OK) {
        status = qkv_file_open(path.data, 1 << 20, &f);
        if (status == QKV_OK)
            status = verify_manifest(folder, path.data, &f);
        else
            status = missing_is_damage(status, path.data); /* it was never finished */
        qkv_file_close(&f);
    }
    qkv_buf_free(&path);
    return status;
}

/* Verifies root/name; on success *path is set, otherwise a sentence is added to *note. */
static qkv_status try_one(const char *root, const char *name, qkv_buf *path, qkv_buf *note,
                          bool *good) {
    qkv_buf folder = {0};
    QKV_TRY(qkv_path_join(&folder, root, name));
    qkv_status status = qkv_checkpoint_verify(folder.data);
    *good = status == QKV_OK;
    if (*good)
        qkv_buf_add(path, folder.data, folder.len);
    else
        qkv_buf_printf(note, "%sskipped %s: %s", note->len ? "; " : "", name, qkv_error());
    qkv_buf_free(&folder);
    return status == QKV_FAILED ? status : path->status != QKV_OK ? path->status : note->status;
}

/* The newest valid one except `tried`. */
static qkv_status fall_back(const char *root, const char *tried, qkv_buf *path, qkv_buf *note) {
    names steps;
    QKV_TRY(list_steps(root, &steps));
    bool good = false;
    qkv_status status = QKV_OK;
    for (size_t i = 0; i < steps.list.n && !good && status == QKV_OK; i++)
        if (strcmp(steps.list.at[i], tried) != 0)
            status = try_one(root, steps.list.at[i], path, note, &good);
    if (status == QKV_OK && good && note->len) {
        qkv_buf_printf(note, "; using %s", path->data + strlen(root) + 1);
        status = note->status;
    }
    if (status == QKV_OK && !good && note->len)
        status = qkv_fail(QKV_BAD_FILE, "%s: no checkpoint is whole: %s", root, note->data);
    names_free(&steps);
    return status;
}

static qkv_status find_in(const char *root, const char *which, qkv_buf *path, qkv_buf *note) {
    char name[NAME_BYTES];
    bool good = false;
    QKV_TRY(read_link(root, which, name));
    /* A first save that was cut off before its link stands under its own name; a best one was never
     * named. */
    if (!name[0] && strcmp(which, "last") != 0) return QKV_OK;
    if (name[0]) QKV_TRY(try_one(root, name, path, note, &good));
    return good ? QKV_OK : fall_back(root, name, path, note);
}

qkv_status qkv_checkpoint_find(const char *run, const char *which, qkv_buf *path, qkv_buf *note) {
    qkv_buf root = {0};
    qkv_buf_clear(path);
    qkv_buf_clear(note);
    qkv_buf_puts(path, "");
    qkv_buf_puts(note, "");
    qkv_status status = qkv_path_join(&root, run, "checkpoints");
    if (status == QKV_OK) status = find_in(root.data, which, path, note);
    qkv_buf_free(&root);
    return status;
}

/* ---- one owner at a time ---- */

qkv_status qkv_run_lock(const char *run, int *fd) {
    qkv_buf path = {0};
    *fd = -1;
    QKV_TRY(qkv_folder_make(run));
    QKV_TRY(qkv_path_join(&path, run, ".lock"));
    qkv_status status = QKV_OK;
    *fd = qkv_sys.open(path.data, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (*fd < 0) {
        status = qkv_fail(QKV_FAILED, "%s: cannot open the lock: %s", path.data, strerror(errno));
    } else if (flock(*fd, LOCK_EX | LOCK_NB) != 0) {
        char owner[32] = "";
        ssize_t n = qkv_sys.read(*fd, owner, sizeof owner - 1);
        owner[n > 0 ? n : 0] = 0;
        owner[strcspn(owner, "\n")] = 0;
        status = qkv_fail(QKV_FAILED,
                          "%s: another process%s%s works on this run; wait for it or stop it", run,
                          *owner ? ", number " : "", owner);
    } else {
        /* Only for the message above; the lock itself is the kernel's. */
        char text[32];
        int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());
        if (qkv_sys.truncate(*fd, 0) != 0 || qkv_sys.write(*fd, text, (size_t)n) != n) errno = 0;
        qkv_buf_clear(&path);
        status = qkv_path_join(&path, run, "checkpoints");
        if (status == QKV_OK) status = remove_leftovers(path.data, true);
    }
    if (status != QKV_OK && *fd >= 0) {
        qkv_sys.close(*fd);
        *fd = -1;
    }
    qkv_buf_free(&path);
    return status;
}

void qkv_run_unlock(int fd) {
    if (fd >= 0) qkv_sys.close(fd);
}
