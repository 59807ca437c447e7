/* A folder with one folder per class (aclImdb's form): DIR/pos/1.txt, DIR/neg/1.txt. The folder's
 * name is the label, a whole file is a text. Folders and files in the order of their names' bytes;
 * hidden ones are not looked at. */
#include "base/mem.h"
#include "base/sys.h"
#include "base/utf8.h"
#include "data/corpus.h"
#include "data/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef QKV_VEC(qkv_text) names;

typedef struct folder {
    qkv_reader *r;
    qkv_buf path;
    int64_t files, nested; /* read; folders inside of classes */
    names left_out;
} folder;

/* Reviews without a verdict lie beside those with one; they are no class. */
static bool has_no_labels(const char *name) {
    static const char *const without[] = {"unsup", "unlabeled", "unlabelled"};
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (strcmp(name, without[i]) == 0) return true;
    return false;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const qkv_text *)a)->data, ((const qkv_text *)b)->data);
}

/* The entries of a folder, sorted; the list is to be freed. */
static qkv_status list(folder *f, const char *path, names *out) {
    DIR *dir = qkv_sys.opendir(path);
    if (!dir) return qkv_fail(QKV_FAILED, "%s: cannot read the folder: %s", path, strerror(errno));
    qkv_status status = QKV_OK;
    const struct dirent *entry;
    while (status == QKV_OK) {
        errno = 0;
        if (!(entry = qkv_sys.readdir(dir))) break;
        if (entry->d_name[0] == '.') continue;
        const size_t n = strlen(entry->d_name);
        const char *name = qkv_arena_strndup(&f->r->corpus->strings, entry->d_name, n);
        if (!name || !QKV_PUSH(*out, ((qkv_text){name, n}))) status = QKV_FAILED;
    }
    if (status == QKV_OK && errno)
        status = qkv_fail(QKV_FAILED, "%s: cannot read the folder: %s", path, strerror(errno));
    closedir(dir);
    if (out->n) qsort(out->at, out->n, sizeof *out->at, by_name);
    return status;
}

/* f->path becomes folder/name; is it a folder, a file, something else? */
static qkv_status enter(folder *f, size_t at, qkv_text name, mode_t *mode) {
    struct stat s;
    f->path.len = at;
    qkv_buf_putc(&f->path, '/');
    qkv_buf_add(&f->path, name.data, name.len);
    QKV_TRY(f->path.status);
    if (qkv_sys.stat(f->path.data, &s) != 0)
        return qkv_fail(QKV_FAILED, "%s: %s", f->path.data, strerror(errno));
    *mode = s.st_mode;
    return QKV_OK;
}

/* The text of a file without the blank lines around it, its lines ended by LF alone. */
static qkv_status copy_text(folder *f, qkv_text all, qkv_text *out) {
    while (all.len && strchr(" \t\r\n", all.data[all.len - 1])) all.len--;
    while (all.len && strchr("\r\n", all.data[0])) all.data++, all.len--;
    char *copy = qkv_arena_alloc(&f->r->corpus->strings, all.len + 1), *to = copy;
    if (!copy) return QKV_FAILED;
    for (size_t i = 0; i < all.len; i++)
        if (all.data[i] != '\r' || i + 1 == all.len || all.data[i + 1] != '\n') *to++ = all.data[i];
    *out = (qkv_text){copy, (size_t)(to - copy)};
    return QKV_OK;
}

static qkv_status read_text(folder *f, qkv_text label) {
    qkv_file file;
    qkv_text all, text;
    QKV_TRY(qkv_text_open(f->path.data, &file, &all));
    if (!f->r->reading->packed) f->r->reading->packed = file.packed;
    const qkv_status status = copy_text(f, all, &text);
    qkv_file_close(&file);
    QKV_TRY(status);
    f->files++;
    return qkv_reader_add(f->r, label, text, (qkv_text){0}, f->files);
}

static qkv_status read_class(folder *f, qkv_text label) {
    const size_t at = f->path.len;
    names files = {0};
    qkv_status status = list(f, f->path.data, &files);
    for (size_t i = 0; i < files.n && status == QKV_OK; i++) {
        mode_t mode = 0;
        status = enter(f, at, files.at[i], &mode);
        if (status == QKV_OK && S_ISREG(mode)) status = read_text(f, label);
        f->nested += S_ISDIR(mode);
    }
    qkv_free(files.at);
    return status;
}

static qkv_status read_classes(folder *f, const names *entries) {
    const size_t at = f->path.len;
    for (size_t i = 0; i < entries->n; i++) {
        const qkv_text name = entries->at[i];
        mode_t mode;
        QKV_TRY(enter(f, at, name, &mode));
        if (!S_ISDIR(mode)) continue;
        if (qkv_utf8_valid(name.data, name.len) < name.len)
            return qkv_fail(QKV_BAD_FILE, "%s: the folder's name is not UTF-8", f->path.data);
        if (!has_no_labels(name.data))
            QKV_TRY(read_class(f, name));
        else if (!QKV_PUSH(f->left_out, name))
            return QKV_FAILED;
    }
    return QKV_OK;
}

static qkv_status nothing_there(const folder *f, const names *entries) {
    if (f->nested)
        return qkv_fail(QKV_BAD_FILE,
                        "%s: its folders hold folders, not texts; give one of them, such as %s/%s",
                        f->r->path, f->r->path, entries->at[0].data);
    return qkv_fail(QKV_BAD_FILE,
                    "%s: no texts; a classifier's folder has one folder per class with files in it "
                    "(%s/good/1.txt, %s/bad/1.txt)",
                    f->r->path, f->r->path, f->r->path);
}

qkv_status qkv_read_folder(qkv_reader *r) {
    folder f = {.r = r};
    names entries = {0};
    size_t n = strlen(r->path);
    while (n > 1 && r->path[n - 1] == '/') n--;
    qkv_buf_add(&f.path, r->path, n);
    qkv_status status = f.path.status;
    if (status == QKV_OK) status = list(&f, f.path.data, &entries);
    if (status == QKV_OK) status = read_classes(&f, &entries);
    if (status == QKV_OK && f.files == 0) status = nothing_there(&f, &entries);
    if (status == QKV_OK)
        status = qkv_name_list(&r->corpus->strings, f.left_out.at, f.left_out.n, 6,
                               &r->reading->left_out);
    qkv_free(f.left_out.at);
    qkv_free(entries.at);
    qkv_buf_free(&f.path);
    return status;
}
