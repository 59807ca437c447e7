/* Every call on files fails once: at each of its uses, in each way that such a call can fail, while a
 * model is trained with three checkpoints, resumed, opened, quantized. Each time the work says so or
 * does without; nothing is leaked; and the same work without a fault then gives the bits of work that
 * never met one. QKV_LONG: every use; else some of them. */
#include "folders.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/sys.h"
#include "train/loop.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- faults ---- */

typedef enum call {
    OPEN,
    READ,
    WRITE,
    MAP,
    FSYNC,
    TRUNCATE,
    RESERVE,
    STAT,
    FSTAT,
    RENAME,
    UNLINK,
    MKDIR,
    RMDIR,
    LINK,
    SYMLINK,
    READLINK,
    OPENDIR,
    READDIR,
    CLOSE,
    CALLS
} call;

/* An error by its number; SHORT: less than was asked for is done. */
enum { SHORT = -1 };

static struct {
    qkv_sys_table real;
    call which;
    int64_t at, seen; /* the use that fails, from 1; uses so far */
    int error;
    int64_t uses[CALLS];
} fault;

/* Is this the use that is to fail? */
static bool fails(call c) {
    fault.uses[c]++;
    if (c != fault.which || ++fault.seen != fault.at || fault.error == SHORT) return false;
    errno = fault.error;
    return true;
}

static bool is_short(call c) {
    return c == fault.which && fault.seen == fault.at && fault.error == SHORT;
}

static int f_open(const char *path, int flags, mode_t mode) {
    return fails(OPEN) ? -1 : fault.real.open(path, flags, mode);
}
/* Whatever close says, the descriptor is gone. */
static int f_close(int fd) {
    const bool failed = fails(CLOSE);
    const int code = errno, done = fault.real.close(fd);
    if (failed) errno = code;
    return failed ? -1 : done;
}
static ssize_t f_read(int fd, void *to, size_t n) {
    if (fails(READ)) return -1;
    return fault.real.read(fd, to, is_short(READ) && n > 1 ? n / 2 : n);
}
static ssize_t f_write(int fd, const void *from, size_t n) {
    if (fails(WRITE)) return -1;
    return fault.real.write(fd, from, is_short(WRITE) && n > 1 ? n / 2 : n);
}
static void *f_map(int fd, size_t n) {
    return fails(MAP) ? NULL : fault.real.map(fd, n);
}
static int f_fsync(int fd) {
    return fails(FSYNC) ? -1 : fault.real.fsync(fd);
}
static int f_truncate(int fd, off_t n) {
    return fails(TRUNCATE) ? -1 : fault.real.truncate(fd, n);
}
static int f_reserve(int fd, off_t n) {
    return fails(RESERVE) ? errno : fault.real.reserve(fd, n);
}
static int f_stat(const char *path, struct stat *out) {
    return fails(STAT) ? -1 : fault.real.stat(path, out);
}
static int f_fstat(int fd, struct stat *out) {
    return fails(FSTAT) ? -1 : fault.real.fstat(fd, out);
}
static int f_rename(const char *from, const char *to) {
    return fails(RENAME) ? -1 : fault.real.rename(from, to);
}
static int f_unlink(const char *path) {
    return fails(UNLINK) ? -1 : fault.real.unlink(path);
}
static int f_mkdir(const char *path, mode_t mode) {
    return fails(MKDIR) ? -1 : fault.real.mkdir(path, mode);
}
static int f_rmdir(const char *path) {
    return fails(RMDIR) ? -1 : fault.real.rmdir(path);
}
static int f_link(const char *from, const char *to) {
    return fails(LINK) ? -1 : fault.real.link(from, to);
}
static int f_symlink(const char *to, const char *path) {
    return fails(SYMLINK) ? -1 : fault.real.symlink(to, path);
}
static ssize_t f_readlink(const char *path, char *out, size_t n) {
    return fails(READLINK) ? -1 : fault.real.readlink(path, out, n);
}
static DIR *f_opendir(const char *path) {
    return fails(OPENDIR) ? NULL : fault.real.opendir(path);
}
static struct dirent *f_readdir(DIR *dir) {
    return fails(READDIR) ? NULL : fault.real.readdir(dir);
}

static void put_faults_in(void) {
    fault.real = qkv_sys;
    qkv_sys =
        (qkv_sys_table){f_open,    f_close,   f_read,     f_write,   f_map,    f_fsync, f_truncate,
                        f_reserve, f_stat,    f_fstat,    f_rename,  f_unlink, f_mkdir, f_rmdir,
                        f_link,    f_symlink, f_readlink, f_opendir, f_readdir};
}

/* How each call can fail. */
static const struct way {
    call which;
    const char *name;
    int errors[5];
} ways[] = {
    {OPEN, "open", {EIO, EMFILE, ENOSPC, EINTR}},
    {READ, "read", {EIO, EINTR, SHORT}},
    {WRITE, "write", {EIO, ENOSPC, EDQUOT, EINTR, SHORT}},
    {MAP, "map", {ENOMEM}},
    {FSYNC, "fsync", {EIO, ENOSPC}},
    {TRUNCATE, "truncate", {EIO}},
    {RESERVE, "reserve", {ENOSPC, EOPNOTSUPP}},
    {STAT, "stat", {EIO}},
    {FSTAT, "fstat", {EIO}},
    {RENAME, "rename", {EIO, ENOSPC}},
    {UNLINK, "unlink", {EIO}},
    {MKDIR, "mkdir", {EIO, ENOSPC}},
    {RMDIR, "rmdir", {EIO}},
    {LINK, "link", {EIO, EMLINK}},
    {SYMLINK, "symlink", {EIO, ENOSPC}},
    {READLINK, "readlink", {EIO}},
    {OPENDIR, "opendir", {EIO, EMFILE}},
    {READDIR, "readdir", {EIO}},
    {CLOSE, "close", {EIO}},
};

/* ---- work ---- */

static char root[64], data[128], run[128], other[128];
static char wanted[33]; /* of the weights that a training ends with */

static int make(void **state) {
    (void)state;
    make_temporary(root);
    qkv_threads_set(1);
    snprintf(data, sizeof data, "%s/rows.tsv", root);
    snprintf(run, sizeof run, "%s/run", root);
    snprintf(other, sizeof other, "%s/other", root);
    FILE *f = fopen(data, "w");
    assert_non_null(f);
    for (int i = 0; i < 60; i++)
        fprintf(f, "%s\tthe %d words of row %d\n", i % 3 ? "odd" : "even", i % 7, i * i % 11);
    assert_int_equal(fclose(f), 0);
    put_faults_in();
    return 0;
}

static int clear(void **state) {
    (void)state;
    qkv_sys = fault.real;
    remove_temporary(root);
    return 0;
}

static void erase(const char *folder) {
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%.200s'", folder);
    assert_int_equal(system(command), 0);
}

static qkv_status train(const char *out, bool (*progress)(void *, const qkv_progress *)) {
    static const char *const set[] = {
        "arch=transformer", "d_model=8",      "layers=1",         "heads=1",       "d_ff=8",
        "max_len=16",       "vocab_size=100", "steps=6",          "seed=1",        "ngrams=1",
        "average=2",        "save_every=2",   "ngram_buckets=64", "ngram_chars=0", NULL};
    const char *const files[] = {data, NULL};
    return qkv_train(&(qkv_train_request){
        .task = "classify", .train = files, .out = out, .set = set, .progress = progress});
}

static qkv_status train_run(void) {
    return train(run, NULL);
}

/* A run that was killed after its second checkpoint. */
static void before_resume(void) {
    char command[400];
    erase(run);
    snprintf(command, sizeof command, "cp -a '%.100s.stopped' '%.100s'", run, run);
    assert_int_equal(system(command), 0);
}

static qkv_status open_and_ask(void) {
    qkv_text_model *m;
    float p[2];
    const qkv_text text = {"the 3 words", 11};
    QKV_TRY(qkv_text_model_open(other, &m));
    const qkv_status status = qkv_classify(m, &text, 1, p);
    qkv_text_model_close(m);
    return status;
}

static qkv_status quantize(void) {
    qkv_quantization q;
    const qkv_status status = qkv_quantize(
        &(qkv_quantize_request){.model = other, .out = run, .to = "int8", .overwrite = true}, &q);
    if (status == QKV_OK) qkv_quantization_free(&q);
    return status;
}

static void hash_weights(const char *folder, char hex[33]) {
    char path[200];
    qkv_file f;
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    assert_ok(qkv_file_open(path, SIZE_MAX, &f));
    qkv_hash_hex(f.data, f.size, hex);
    qkv_file_close(&f);
}

static int open_descriptors(void) {
    int n = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    while (readdir(dir)) n++;
    closedir(dir);
    return n;
}

/* ---- the sweep ---- */

typedef struct work {
    const char *name;
    void (*before)(void);
    qkv_status (*once)(void);
    const char *leaves; /* the folder whose weights count, or NULL */
} work;

static void run_clean(void) {
    erase(run);
}
static void nothing(void) {}

/* The use fails; what follows must be as if it had not. */
static void try_fault(const work *w, const struct way *way, int error, int64_t at,
                      const char *want) {
    char got[33] = "";
    fault.which = CALLS;
    w->before();
    const uint64_t live = qkv_mem_count().live;
    const int descriptors = open_descriptors();
    fault.which = way->which;
    fault.at = at;
    fault.seen = 0;
    fault.error = error;
    const qkv_status status = w->once();
    fault.which = CALLS;
    if (status != QKV_OK && !*qkv_error()) fail_msg("%s fails without a word", w->name);
    if (qkv_mem_count().live != live || open_descriptors() != descriptors)
        fail_msg("%s, %s %lld, error %d: memory or a descriptor is left behind (%s)", w->name,
                 way->name, (long long)at, error, status == QKV_OK ? "done" : qkv_error());
    if (status == QKV_OK && way->which != CLOSE && way->which != STAT && !w->leaves) return;
    char words[300];
    snprintf(words, sizeof words, "%.250s", status == QKV_OK ? "done" : qkv_error());
    if (w->once() != QKV_OK)
        fail_msg("%s, %s %lld, error %d (%s); once more: %s", w->name, way->name, (long long)at,
                 error, words, qkv_error());
    if (!w->leaves) return;
    hash_weights(w->leaves, got);
    if (strcmp(got, want) != 0)
        fail_msg("%s, %s %lld, error %d (%s): other weights", w->name, way->name, (long long)at,
                 error, words);
}

static void sweep(const work *w) {
    const bool all = getenv("QKV_LONG") != NULL;
    char want[33] = "";
    int64_t uses[CALLS], tried = 0;
    fault.which = CALLS;
    w->before();
    memset(fault.uses, 0, sizeof fault.uses);
    assert_ok(w->once());
    memcpy(uses, fault.uses, sizeof uses);
    if (w->leaves) hash_weights(w->leaves, want);
    if (w->leaves && wanted[0] && w->once == train_run) assert_string_equal(want, wanted);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        for (int e = 0; e < 5 && ways[i].errors[e]; e++) {
            const int64_t n = uses[ways[i].which], step = all ? 1 : n / 5 + 1;
            for (int64_t at = 1 + (int64_t)(i + (size_t)e) % step; at <= n; at += step, tried++)
                try_fault(w, &ways[i], ways[i].errors[e], at, want);
        }
    print_message("%s: %lld faults\n", w->name, (long long)tried);
    assert_true(tried > 10);
}

static void a_training_survives_every_fault(void **state) {
    (void)state;
    const work w = {"training", run_clean, train_run, run};
    erase(run);
    assert_ok(train(run, NULL));
    hash_weights(run, wanted);
    sweep(&w);
}

/* Stops the run as kill -9 would, when its second checkpoint is there: what it left is copied. */
static bool copy_at_second(void *user, const qkv_progress *p) {
    char command[400];
    (void)user;
    if (p->kind != QKV_PROGRESS_STEP || p->step != 5) return true;
    snprintf(command, sizeof command, "rm -rf '%.100s.stopped'; cp -a '%.100s' '%.100s.stopped'",
             run, run, run);
    assert_int_equal(system(command), 0);
    return true;
}

static void a_resume_survives_every_fault(void **state) {
    (void)state;
    const work w = {"resume", before_resume, train_run, run};
    fault.which = CALLS;
    erase(run);
    assert_ok(train(run, copy_at_second));
    sweep(&w);
}

static void use_survives_every_fault(void **state) {
    (void)state;
    fault.which = CALLS;
    erase(other);
    assert_ok(train(other, NULL));
    sweep(&(work){"opening", nothing, open_and_ask, NULL});
    sweep(&(work){"quantizing", run_clean, quantize, run});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_training_survives_every_fault),
        cmocka_unit_test(a_resume_survives_every_fault),
        cmocka_unit_test(use_survives_every_fault),
    };
    return cmocka_run_group_tests(tests, make, clear);
}
