/* Power cuts: a training is recorded call by call on a model of a disk, which keeps for sure only
 * what was forced to it. After each call the power may fail; then every file has what was last forced,
 * what was last written, or a part of it, and of the names made since their folder was forced any may
 * be there or not. From each such state the next start must find what was saved, go on, and end with
 * the bits of a run that was never cut. QKV_LONG: every call, many states; else some of them. */
#include "folders.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/sys.h"
#include "store/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- the model of a disk ---- */

enum { NAME = 96, FDS = 1024 };

typedef enum node_kind { NODE_FILE, NODE_FOLDER, NODE_LINK } node_kind;
typedef struct node {
    node_kind kind;
    qkv_buf now, forced; /* content; of a link its target, in `now` */
    bool dirty;          /* written since it was forced */
} node;

/* `name` in folder `dir` is node `at`. */
typedef struct entry {
    int dir, at;
    char name[NAME];
} entry;
typedef QKV_VEC(entry) entries;

/* A change of names: `from` goes (if there is one), `to` comes (if there is one). */
typedef struct change {
    int dir, at;
    char from[NAME], to[NAME];
} change;

typedef struct disk {
    QKV_VEC(node) nodes;
    entries now, forced;
    QKV_VEC(change) pending; /* changes whose folder was not forced since */
} disk;

typedef enum op_kind { OP_NODE, OP_CHANGE, OP_DATA, OP_LENGTH, OP_FORCE } op_kind;
typedef struct op {
    op_kind kind;
    int at;           /* node */
    node_kind made;   /* NODE */
    change names;     /* CHANGE */
    char *bytes;      /* DATA; NODE: the target of a link */
    size_t n, offset; /* DATA; LENGTH: n */
} op;

static int find(const entries *e, int dir, const char *name) {
    for (size_t i = 0; i < e->n; i++)
        if (e->at[i].dir == dir && strcmp(e->at[i].name, name) == 0) return (int)i;
    return -1;
}

static void set_name(entries *e, int dir, const char *name, int at) {
    const int i = find(e, dir, name);
    if (at < 0) {
        if (i >= 0) e->at[i] = e->at[--e->n];
        return;
    }
    entry made = {.dir = dir, .at = at};
    snprintf(made.name, sizeof made.name, "%s", name);
    if (i >= 0)
        e->at[i] = made;
    else
        assert_true(QKV_PUSH(*e, made));
}

static void change_names(entries *e, const change *c) {
    if (c->from[0]) set_name(e, c->dir, c->from, -1);
    if (c->to[0]) set_name(e, c->dir, c->to, c->at);
}

static void force_folder(disk *d, int dir) {
    size_t kept = 0;
    for (size_t i = 0; i < d->pending.n; i++)
        if (d->pending.at[i].dir == dir)
            change_names(&d->forced, &d->pending.at[i]);
        else
            d->pending.at[kept++] = d->pending.at[i];
    d->pending.n = kept;
}

static void put(qkv_buf *to, size_t offset, const char *bytes, size_t n) {
    while (to->len < offset + n) qkv_buf_putc(to, 0);
    memcpy(to->data + offset, bytes, n);
}

static void apply(disk *d, const op *o) {
    node *x = o->at >= 0 && (size_t)o->at < d->nodes.n ? &d->nodes.at[o->at] : NULL;
    switch (o->kind) {
    case OP_NODE: {
        node made = {.kind = o->made};
        qkv_buf_add(&made.now, o->bytes ? o->bytes : "", o->n);
        assert_true(QKV_PUSH(d->nodes, made));
        break;
    }
    case OP_CHANGE:
        change_names(&d->now, &o->names);
        assert_true(QKV_PUSH(d->pending, o->names));
        break;
    case OP_DATA:
        if (o->n) put(&x->now, o->offset, o->bytes, o->n);
        x->dirty = true;
        break;
    case OP_LENGTH:
        while (x->now.len < o->n) qkv_buf_putc(&x->now, 0);
        x->now.len = o->n;
        x->dirty = true;
        break;
    case OP_FORCE:
        if (x->kind == NODE_FOLDER) {
            force_folder(d, o->at);
        } else {
            qkv_buf_clear(&x->forced);
            qkv_buf_add(&x->forced, x->now.data ? x->now.data : "", x->now.len);
            x->dirty = false;
        }
    }
}

static void disk_init(disk *d) {
    *d = (disk){0};
    apply(d, &(op){.kind = OP_NODE, .at = -1, .made = NODE_FOLDER}); /* node 0: the root */
}

static void disk_free(disk *d) {
    for (size_t i = 0; i < d->nodes.n; i++) {
        qkv_buf_free(&d->nodes.at[i].now);
        qkv_buf_free(&d->nodes.at[i].forced);
    }
    qkv_free(d->nodes.at);
    qkv_free(d->now.at);
    qkv_free(d->forced.at);
    qkv_free(d->pending.at);
}

/* ---- recording ---- */

static struct {
    qkv_sys_table real;
    char root[64];
    bool on;
    disk live;
    QKV_VEC(op) log;
    int node_of[FDS]; /* −1: none of ours */
    size_t offset[FDS];
} rec;

static void record(op o) {
    apply(&rec.live, &o);
    assert_true(QKV_PUSH(rec.log, o));
}

/* The folder's node and the last part of a path; −1: the path is elsewhere. */
static int folder_and_name(const char *path, char name[NAME]) {
    const size_t n = strlen(rec.root);
    int dir = 0;
    if (strncmp(path, rec.root, n) != 0 || path[n] != '/') return -1;
    for (const char *at = path + n + 1;;) {
        const size_t len = strcspn(at, "/");
        assert_true(len < NAME);
        memcpy(name, at, len);
        name[len] = 0;
        if (!at[len]) return dir;
        const int i = find(&rec.live.now, dir, name);
        if (i < 0) return -1;
        dir = rec.live.now.at[i].at;
        at += len + 1;
    }
}

static int node_of_path(const char *path) {
    char name[NAME];
    if (strcmp(path, rec.root) == 0) return 0;
    const int dir = folder_and_name(path, name), i = dir < 0 ? -1 : find(&rec.live.now, dir, name);
    return i < 0 ? -1 : rec.live.now.at[i].at;
}

static void add_name(const char *path, int at) {
    change c = {.at = at};
    c.dir = folder_and_name(path, c.to);
    assert_true(c.dir >= 0);
    record((op){.kind = OP_CHANGE, .at = -1, .names = c});
}

static int new_node(node_kind kind, const char *target) {
    const size_t n = target ? strlen(target) : 0;
    char *copy = target ? qkv_strndup(target, n) : NULL;
    record((op){.kind = OP_NODE, .at = -1, .made = kind, .bytes = copy, .n = n});
    return (int)rec.live.nodes.n - 1;
}

static bool ours(const char *path) {
    char name[NAME];
    return rec.on && folder_and_name(path, name) >= 0;
}

static int r_open(const char *path, int flags, mode_t mode) {
    const bool mine = rec.on && (ours(path) || strcmp(path, rec.root) == 0);
    const int fd = rec.real.open(path, flags, mode);
    if (fd < 0 || fd >= FDS) return fd;
    rec.node_of[fd] = -1;
    if (!mine) return fd;
    int at = node_of_path(path);
    if (at < 0) add_name(path, at = new_node(NODE_FILE, NULL));
    rec.node_of[fd] = at;
    rec.offset[fd] = flags & O_APPEND ? rec.live.nodes.at[at].now.len : 0;
    return fd;
}

static bool tracked(int fd) {
    return rec.on && fd >= 0 && fd < FDS && rec.node_of[fd] >= 0;
}

static ssize_t r_write(int fd, const void *from, size_t n) {
    const ssize_t done = rec.real.write(fd, from, n);
    if (done <= 0 || !tracked(fd)) return done;
    record((op){.kind = OP_DATA,
                .at = rec.node_of[fd],
                .bytes = qkv_strndup(from, (size_t)done),
                .n = (size_t)done,
                .offset = rec.offset[fd]});
    rec.offset[fd] += (size_t)done;
    return done;
}

static int r_truncate(int fd, off_t n) {
    const int done = rec.real.truncate(fd, n);
    if (done == 0 && tracked(fd))
        record((op){.kind = OP_LENGTH, .at = rec.node_of[fd], .n = (size_t)n});
    return done;
}

static int r_fsync(int fd) {
    if (tracked(fd)) record((op){.kind = OP_FORCE, .at = rec.node_of[fd]});
    return 0; /* what it costs is of no use here */
}

static int r_close(int fd) {
    if (fd >= 0 && fd < FDS) rec.node_of[fd] = -1;
    return rec.real.close(fd);
}

static int r_rename(const char *from, const char *to) {
    const int done = rec.real.rename(from, to);
    if (done != 0 || !ours(from)) return done;
    change c = {.at = node_of_path(from)}, source = {0};
    c.dir = folder_and_name(to, c.to);
    assert_int_equal(folder_and_name(from, source.from), c.dir); /* within one folder, always */
    memcpy(c.from, source.from, NAME);
    record((op){.kind = OP_CHANGE, .at = -1, .names = c});
    return done;
}

static int forget(const char *path, int done) {
    change c = {.at = -1};
    if (done != 0 || !ours(path)) return done;
    c.dir = folder_and_name(path, c.from);
    record((op){.kind = OP_CHANGE, .at = -1, .names = c});
    return done;
}
static int r_unlink(const char *path) {
    return forget(path, rec.real.unlink(path));
}
static int r_rmdir(const char *path) {
    return forget(path, rec.real.rmdir(path));
}
static int r_mkdir(const char *path, mode_t mode) {
    const int done = rec.real.mkdir(path, mode);
    if (done == 0 && ours(path)) add_name(path, new_node(NODE_FOLDER, NULL));
    return done;
}
static int r_link(const char *from, const char *to) {
    const int done = rec.real.link(from, to);
    char whole[PATH_MAX];
    /* The way leads over the link `last`, which the model does not follow. */
    if (done == 0 && ours(to)) {
        assert_non_null(realpath(from, whole));
        const int at = node_of_path(whole);
        assert_true(at >= 0);
        add_name(to, at);
    }
    return done;
}
static int r_symlink(const char *to, const char *path) {
    const int done = rec.real.symlink(to, path);
    if (done == 0 && ours(path)) add_name(path, new_node(NODE_LINK, to));
    return done;
}

/* ---- what may be there after the cut ---- */

static void write_file(const char *path, const char *data, size_t n) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data ? data : "", 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* A node's content: as it was forced; where it was written since, that or a part of it. */
static void put_node(const node *x, uint32_t draw, const char *path) {
    if (!x->dirty || draw % 4 == 0)
        write_file(path, x->forced.data, x->forced.len);
    else
        write_file(path, x->now.data,
                   draw % 4 == 1 ? x->now.len : x->now.len * (draw >> 8 & 255) / 255);
}

static void put_folder(const disk *d, const entries *names, int dir, qkv_rng rng,
                       const char *path) {
    for (size_t i = 0; i < names->n; i++) {
        const entry *e = &names->at[i];
        const node *x = &d->nodes.at[e->at];
        char name[512], target[NAME];
        if (e->dir != dir) continue;
        snprintf(name, sizeof name, "%.400s/%s", path, e->name);
        if (x->kind == NODE_FOLDER) {
            assert_int_equal(mkdir(name, 0777), 0);
            put_folder(d, names, e->at, rng, name);
        } else if (x->kind == NODE_LINK) {
            snprintf(target, sizeof target, "%.*s", (int)x->now.len, x->now.data);
            assert_int_equal(symlink(target, name), 0);
        } else {
            put_node(x, qkv_rng_u32(rng, (uint64_t)e->at), name);
        }
    }
}

/* State 0: nothing that was not forced; 1: all of it; else any. */
static void put_disk(const disk *d, uint64_t state, uint64_t cut, const char *path) {
    const qkv_rng rng = {.seed = 17 + state, .stream = cut}, none = {.seed = 1};
    entries names = {0};
    for (size_t i = 0; i < d->forced.n; i++) assert_true(QKV_PUSH(names, d->forced.at[i]));
    for (size_t i = 0; i < d->pending.n; i++)
        if (state == 1 || (state > 1 && qkv_rng_u32(rng, 1000000 + i) % 2))
            change_names(&names, &d->pending.at[i]);
    disk all = *d;
    if (state < 2) { /* contents likewise all old or all new */
        all.nodes.at = qkv_alloc((d->nodes.n + 1) * sizeof *all.nodes.at);
        assert_non_null(all.nodes.at);
        memcpy(all.nodes.at, d->nodes.at, d->nodes.n * sizeof *all.nodes.at);
        for (size_t i = 0; i < d->nodes.n; i++) {
            all.nodes.at[i].dirty = false;
            if (state == 1 && d->nodes.at[i].dirty) all.nodes.at[i].forced = d->nodes.at[i].now;
        }
    }
    put_folder(&all, &names, 0, state < 2 ? none : rng, path);
    if (state < 2) qkv_free(all.nodes.at);
    qkv_free(names.at);
}

/* ---- the training ---- */

static char home[64], data[128], run[128], after[128], wanted[33];

static void erase(const char *folder) {
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%.200s'", folder);
    assert_int_equal(system(command), 0);
}

static qkv_status train(const char *out) {
    static const char *const set[] = {
        "arch=transformer", "d_model=8",      "layers=1",         "heads=1",       "d_ff=8",
        "max_len=16",       "vocab_size=100", "steps=6",          "seed=1",        "ngrams=1",
        "average=2",        "save_every=2",   "ngram_buckets=64", "ngram_chars=0", NULL};
    const char *const files[] = {data, NULL};
    return qkv_train(
        &(qkv_train_request){.task = "classify", .train = files, .out = out, .set = set});
}

static void hash_weights(const char *folder, char hex[33]) {
    char path[300];
    qkv_file f;
    snprintf(path, sizeof path, "%.250s/model.safetensors", folder);
    assert_ok(qkv_file_open(path, SIZE_MAX, &f));
    qkv_hash_hex(f.data, f.size, hex);
    qkv_file_close(&f);
}

static int make(void **state) {
    (void)state;
    make_temporary(home);
    qkv_threads_set(1);
    snprintf(data, sizeof data, "%s/rows.tsv", home);
    snprintf(rec.root, sizeof rec.root, "%.50s/disk", home);
    snprintf(run, sizeof run, "%s/run", rec.root);
    snprintf(after, sizeof after, "%s/after", home);
    assert_int_equal(mkdir(rec.root, 0777), 0);
    FILE *f = fopen(data, "w");
    assert_non_null(f);
    for (int i = 0; i < 60; i++)
        fprintf(f, "%s\tthe %d words of row %d\n", i % 3 ? "odd" : "even", i % 7, i * i % 11);
    assert_int_equal(fclose(f), 0);
    for (int i = 0; i < FDS; i++) rec.node_of[i] = -1;
    rec.real = qkv_sys;
    qkv_sys.open = r_open;
    qkv_sys.close = r_close;
    qkv_sys.write = r_write;
    qkv_sys.fsync = r_fsync;
    qkv_sys.truncate = r_truncate;
    qkv_sys.rename = r_rename;
    qkv_sys.unlink = r_unlink;
    qkv_sys.rmdir = r_rmdir;
    qkv_sys.mkdir = r_mkdir;
    qkv_sys.link = r_link;
    qkv_sys.symlink = r_symlink;
    disk_init(&rec.live);
    return 0;
}

static int clear(void **state) {
    (void)state;
    qkv_sys = rec.real;
    for (size_t i = 0; i < rec.log.n; i++) qkv_free(rec.log.at[i].bytes);
    qkv_free(rec.log.at);
    disk_free(&rec.live);
    remove_temporary(home);
    return 0;
}

/* The step of the newest checkpoint that the call before had promised: its link was forced. */
static long promised(size_t cut) {
    long named = -1, kept = -1;
    int dir = -1;
    for (size_t i = 0; i < cut; i++) {
        const op *o = &rec.log.at[i];
        if (o->kind == OP_CHANGE && strcmp(o->names.to, "last") == 0) {
            const qkv_buf *target = &rec.live.nodes.at[o->names.at].now;
            char text[NAME];
            snprintf(text, sizeof text, "%.*s", (int)target->len, target->data);
            named = strtol(text + strlen("step-"), NULL, 10);
            dir = o->names.dir;
        } else if (o->kind == OP_FORCE && o->at == dir) {
            kept = named;
        }
    }
    return kept;
}

static long found_step(const char *folder) {
    qkv_buf path = {0}, note = {0};
    assert_ok(qkv_checkpoint_find(folder, "last", &path, &note));
    const char *name = path.len ? strrchr(path.data, '/') : NULL;
    const long step = name ? strtol(name + 1 + strlen("step-"), NULL, 10) : -1;
    qkv_buf_free(&path);
    qkv_buf_free(&note);
    return step;
}

static void check_state(const disk *d, size_t cut, uint64_t state) {
    char folder[200], result[256], hex[33];
    erase(after);
    assert_int_equal(mkdir(after, 0777), 0);
    put_disk(d, state, cut, after);
    snprintf(folder, sizeof folder, "%s/run", after);
    snprintf(result, sizeof result, "%s/result.json", folder);
    if (access(result, F_OK) == 0) { /* it says that the run is finished, so it must be */
        hash_weights(folder, hex);
        if (strcmp(hex, wanted) != 0)
            fail_msg("cut %zu, state %d: finished, with other weights", cut, (int)state);
    } else if (cut == rec.log.n) {
        fail_msg("state %d: the run said that it was finished, and is not", (int)state);
    } else if (access(folder, F_OK) == 0) {
        const long want = promised(cut), got = found_step(folder);
        if (got < want)
            fail_msg("cut %zu, state %d: step %ld was saved, step %ld is found", cut, (int)state,
                     want, got);
    }
    if (train(folder) != QKV_OK) fail_msg("cut %zu, state %d: %s", cut, (int)state, qkv_error());
    hash_weights(folder, hex);
    if (strcmp(hex, wanted) != 0) fail_msg("cut %zu, state %d: other weights", cut, (int)state);
}

static void every_cut_can_be_mended(void **state) {
    (void)state;
    const bool all = getenv("QKV_LONG") != NULL;
    const size_t states = all ? 12 : 3;
    size_t tried = 0;
    rec.on = true;
    assert_ok(train(run));
    rec.on = false;
    hash_weights(run, wanted);
    const size_t n = rec.log.n, step = all ? 1 : n / 24 + 1;
    disk d;
    disk_init(&d);
    for (size_t cut = 0; cut <= n; cut++) {
        if (cut % step == 0 || cut == n)
            for (uint64_t s = 0; s < states; s++, tried++) check_state(&d, cut, s);
        if (cut < n) apply(&d, &rec.log.at[cut]);
    }
    disk_free(&d);
    print_message("%zu calls, %zu states after a cut\n", n, tried);
    assert_true(n > 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_cut_can_be_mended)};
    return cmocka_run_group_tests(tests, make, clear);
}
