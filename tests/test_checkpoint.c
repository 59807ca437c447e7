/* Checkpoints: complete or not there, after kills, a full disk, damage, and lack of memory. */
#include "harness.h"
#include "base/mem.h"
#include "base/rng.h"
#include "store/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char run[128];

static void remove_run(void) {
    char command[160];
    snprintf(command, sizeof command, "rm -rf '%s'", run);
    assert_int_equal(system(command), 0);
}

/* In memory where possible: a kill does not lose what the kernel already has. */
static int make_run(void **state) {
    (void)state;
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(run, sizeof run, "%s/qkv-test-run-%ld", base, (long)getpid());
    remove_run();
    return 0;
}

static int end_run(void **state) {
    (void)state;
    remove_run();
    return 0;
}

static const char *in(const char *folder, const char *name) {
    static char path[4][300];
    static int turn;
    char *p = path[turn++ % 4];
    snprintf(p, 300, "%s/%s", folder, name);
    return p;
}

/* Two files whose content follows from the step. */
static qkv_status write_files(const char *folder, uint64_t step, size_t words) {
    static uint64_t data[1 << 16];
    for (size_t i = 0; i < words; i++) data[i] = step * 1000003 + i;
    QKV_TRY(qkv_file_write(in(folder, "model.bin"), data, words * 8));
    return qkv_file_write(in(folder, "state.json"), &step, sizeof step);
}

static qkv_status save(uint64_t step, size_t words, bool best, int keep) {
    qkv_checkpoint *c;
    QKV_TRY(qkv_checkpoint_begin(run, step, words * 8 + 8, &c));
    qkv_status status = write_files(qkv_checkpoint_folder(c), step, words);
    if (status != QKV_OK) {
        qkv_checkpoint_abandon(c);
        return status;
    }
    return qkv_checkpoint_commit(c, best, keep);
}

/* The step found under `which`, 0 for none; its content must be that step's. */
static uint64_t found_step(const char *which, qkv_buf *note) {
    qkv_buf path = {0};
    uint64_t step = 0;
    assert_ok(qkv_checkpoint_find(run, which, &path, note));
    if (path.len) {
        qkv_file f;
        assert_ok(qkv_file_open(in(path.data, "state.json"), 8, &f));
        memcpy(&step, f.data, 8);
        qkv_file_close(&f);
        assert_ok(qkv_file_open(in(path.data, "model.bin"), 1 << 20, &f));
        for (size_t i = 0; i < f.size / 8; i++) {
            uint64_t word;
            memcpy(&word, f.data + 8 * i, 8);
            assert_true(word == step * 1000003 + i);
        }
        qkv_file_close(&f);
    }
    qkv_buf_free(&path);
    return step;
}

static int count_entries(const char *prefix) {
    int n = 0;
    DIR *d = opendir(in(run, "checkpoints"));
    const struct dirent *e;
    while (d && (e = readdir(d))) n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
    if (d) closedir(d);
    return n;
}

static void test_order(void **state) {
    (void)state;
    qkv_buf note = {0};
    assert_int_equal(found_step("last", &note), 0);
    for (uint64_t step = 10; step <= 60; step += 10) assert_ok(save(step, 100, step == 20, 2));
    assert_int_equal(found_step("last", &note), 60);
    assert_int_equal(note.len, 0);
    assert_int_equal(found_step("best", &note), 20);
    assert_int_equal(count_entries("step-"), 3); /* two newest and the best */
    assert_int_equal(count_entries(".tmp-"), 0);
    /* The same step again: both are whole, the new one is last. */
    assert_ok(save(60, 50, true, 1));
    char target[64] = "";
    assert_true(readlink(in(run, "checkpoints/last"), target, 63) > 0);
    assert_string_equal(target, "step-00000060-2");
    assert_int_equal(count_entries("step-"), 1);
    qkv_buf_free(&note);
    remove_run();
}

static void damage(const char *path, long at) {
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    fseek(f, at, SEEK_SET);
    int c = fgetc(f);
    fseek(f, at, SEEK_SET);
    fputc(c ^ 1, f);
    fclose(f);
}

static void test_damage(void **state) {
    (void)state;
    qkv_buf note = {0}, path = {0};
    for (uint64_t step = 1; step <= 4; step++) assert_ok(save(step, 1000, false, 10));
    damage(in(run, "checkpoints/step-00000004/model.bin"), 5000);
    assert_int_equal(found_step("last", &note), 3);
    assert_non_null(strstr(note.data, "skipped step-00000004"));
    assert_non_null(strstr(note.data, "not what was written"));
    assert_non_null(strstr(note.data, "using step-00000003"));
    assert_int_equal(truncate(in(run, "checkpoints/step-00000003/model.bin"), 7999), 0);
    assert_int_equal(found_step("last", &note), 2);
    assert_non_null(strstr(note.data, "7999 bytes, the manifest says 8000"));
    assert_int_equal(unlink(in(run, "checkpoints/step-00000002/manifest.json")), 0);
    assert_int_equal(found_step("last", &note), 1);
    assert_int_equal(unlink(in(run, "checkpoints/step-00000001/state.json")), 0);
    assert_fails(qkv_checkpoint_find(run, "last", &path, &note), QKV_BAD_FILE,
                 "no checkpoint is whole");
    /* A manifest that points outside is refused. */
    const char *outside = "{\"files\":[{\"name\":\"../../x\",\"size\":0,\"hash\":\"\"}]}";
    assert_ok(qkv_file_write(in(run, "checkpoints/step-00000001/manifest.json"), outside,
                             strlen(outside)));
    assert_fails(qkv_checkpoint_verify(in(run, "checkpoints/step-00000001")), QKV_BAD_FILE,
                 "not a plain name");
    /* Nor does one vouch for nothing. */
    const char *empty = "{\"files\":[]}";
    assert_ok(
        qkv_file_write(in(run, "checkpoints/step-00000001/manifest.json"), empty, strlen(empty)));
    assert_fails(qkv_checkpoint_verify(in(run, "checkpoints/step-00000001")), QKV_BAD_FILE,
                 "names no file");
    qkv_buf_free(&note);
    qkv_buf_free(&path);
    remove_run();
}

/* After a fall-back the damaged one gives way, not the one that was found whole. */
static void test_damage_gives_way(void **state) {
    (void)state;
    qkv_buf note = {0};
    for (uint64_t step = 1; step <= 4; step++) assert_ok(save(step, 1000, false, 2));
    damage(in(run, "checkpoints/step-00000004/model.bin"), 5000);
    assert_int_equal(found_step("last", &note), 3);
    assert_ok(save(4, 1000, false, 2)); /* the same course, from 3 on */
    assert_int_equal(count_entries("step-"), 2);
    assert_ok(qkv_checkpoint_verify(in(run, "checkpoints/step-00000003")));
    assert_ok(qkv_checkpoint_verify(in(run, "checkpoints/step-00000004-2")));
    qkv_buf_free(&note);
    remove_run();
}

/* Whoever owns a run clears away what dead ones left in it, whosever number they had. */
static void test_leftovers(void **state) {
    (void)state;
    int fd;
    char name[64];
    assert_ok(save(1, 10, false, 2));
    snprintf(name, sizeof name, "checkpoints/.tmp-old-step-00000009-%ld", (long)getppid());
    assert_ok(qkv_folder_make(in(run, name)));
    assert_ok(qkv_run_lock(run, &fd));
    assert_int_equal(count_entries(".tmp-"), 0);
    qkv_run_unlock(fd);
    remove_run();
}

/* A first save that was cut off between its name and the link is found all the same. */
static void test_missing_link(void **state) {
    (void)state;
    qkv_buf note = {0};
    assert_ok(save(5, 10, false, 2));
    assert_int_equal(unlink(in(run, "checkpoints/last")), 0);
    assert_int_equal(found_step("last", &note), 5);
    assert_int_equal(found_step("best", &note), 0);
    qkv_buf_free(&note);
    remove_run();
}

/* Kills a writer at random moments: what it said it saved is there, and whole. */
static void test_kill(void **state) {
    (void)state;
    enum { KILLS = 100 };
    _Atomic uint64_t *saved =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(saved != MAP_FAILED);
    qkv_buf note = {0};
    int early = 0;
    for (int i = 0; i < KILLS; i++) {
        uint64_t start = saved[0];
        fflush(NULL);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            for (uint64_t step = start + 1;; step++) {
                if (save(step, 20000, step % 3 == 0, 2) != QKV_OK) _exit(1);
                saved[0] = step;
                if (step % 3 == 0) saved[1] = step;
            }
        }
        usleep((useconds_t)qkv_rng_below((qkv_rng){1, 2}, (uint64_t)i, 12000));
        kill(child, SIGKILL);
        int how;
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFSIGNALED(how));
        uint64_t last = found_step("last", &note), best = found_step("best", &note);
        if (saved[0] == start) early++;
        assert_int_equal(note.len, 0); /* nothing damaged, ever */
        /* The one being written may have become visible; it is then the next step. */
        assert_true(last == saved[0] || last == saved[0] + 1);
        /* `best` is named before `last`, so it may be a step ahead. */
        assert_true(best == saved[1] || best == last || best == last + 1);
        saved[0] = last;
        saved[1] = best;
    }
    assert_true(saved[0] > KILLS / 4 && early < KILLS);
    assert_ok(save(saved[0] + 1, 10, false, 2)); /* which also clears what the dead left behind */
    assert_int_equal(count_entries(".tmp-"), 0);
    print_message("%d kills, %llu checkpoints written\n", KILLS, (unsigned long long)saved[0]);
    qkv_buf_free(&note);
    munmap((void *)saved, 4096);
    remove_run();
}

/* On a small file system: every amount of free space gives a whole checkpoint or a clear message.
 */
static int fill_disk(void) {
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return 77;
    if (mkdir(run, 0700) != 0) return 1;
    int refused = 0, saved = 0;
    for (int kilobytes = 64; kilobytes <= 1024; kilobytes += 64) {
        char size[32];
        snprintf(size, sizeof size, "size=%dk", kilobytes);
        if (mount("tmpfs", run, "tmpfs", 0, size) != 0) return 77;
        qkv_buf note = {0};
        if (save(1, 1000, true, 2) != QKV_OK) return 2;
        /* Half of the runs lie about the size, so that the disk fills in the middle of a file. */
        qkv_checkpoint *c = NULL;
        bool honest = kilobytes % 128 == 0;
        qkv_status status = qkv_checkpoint_begin(run, 2, honest ? 60000 * 8 : 0, &c);
        if (status == QKV_OK) status = write_files(qkv_checkpoint_folder(c), 2, 60000);
        if (status == QKV_OK) {
            status = qkv_checkpoint_commit(c, false, 2);
        } else {
            if (!strstr(qkv_error(), "no space: need")) return 3;
            qkv_checkpoint_abandon(c);
        }
        uint64_t last = found_step("last", &note);
        if (last != (status == QKV_OK ? 2 : 1) || note.len) return 4;
        status == QKV_OK ? saved++ : refused++;
        if (save(3, 10, false, 2) != QKV_OK || count_entries(".tmp-") != 0) return 5;
        qkv_buf_free(&note);
        if (umount(run) != 0) return 6;
    }
    return refused >= 4 && saved >= 4 ? 0 : 7;
}

static void test_full_disk(void **state) {
    (void)state;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) _exit(fill_disk());
    int how;
    waitpid(child, &how, 0);
    assert_true(WIFEXITED(how));
    if (WEXITSTATUS(how) == 77)
        print_message("left out: a small file system cannot be mounted here (needs root)\n");
    else
        assert_int_equal(WEXITSTATUS(how), 0);
    /* The check before anything is written needs no mount. */
    qkv_checkpoint *c;
    assert_fails(qkv_checkpoint_begin(run, 1, (size_t)1 << 60, &c), QKV_FAILED, "no space: need");
    assert_null(c);
    assert_int_equal(count_entries(".tmp-"), 0);
    remove_run();
}

static void test_lock(void **state) {
    (void)state;
    int fd, other;
    assert_ok(qkv_run_lock(run, &fd));
    assert_fails(qkv_run_lock(run, &other), QKV_FAILED, "another process, number");
    assert_int_equal(other, -1);
    qkv_run_unlock(fd);
    assert_ok(qkv_run_lock(run, &fd));
    qkv_run_unlock(fd);
    /* It dies with its process. */
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        int mine;
        _exit(qkv_run_lock(run, &mine) == QKV_OK ? 0 : 1);
    }
    int how;
    waitpid(child, &how, 0);
    assert_int_equal(WEXITSTATUS(how), 0);
    assert_ok(qkv_run_lock(run, &fd));
    qkv_run_unlock(fd);
    remove_run();
}

/* Any allocation may fail: an error, no leak, and the checkpoint before it still whole. */
static void test_out_of_memory(void **state) {
    (void)state;
    bool failed = true;
    uint64_t n = 1;
    for (; failed; n++) {
        remove_run();
        assert_ok(save(1, 10, true, 2));
        uint64_t live = qkv_mem_count().live;
        qkv_mem_fail(n, false);
        failed = save(2, 10, false, 2) != QKV_OK;
        qkv_mem_fail(0, false);
        assert_int_equal(qkv_mem_count().live, live);
        qkv_buf note = {0};
        uint64_t last = found_step("last", &note);
        assert_true(last == 2 || (failed && last == 1));
        assert_int_equal(note.len, 0);
        qkv_buf_free(&note);
        assert_true(n < 1000);
    }
    assert_true(n > 20);
    remove_run();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_damage_gives_way),
        cmocka_unit_test(test_leftovers),
        cmocka_unit_test(test_missing_link),
        cmocka_unit_test(test_kill),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_lock),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, make_run, end_run);
}
