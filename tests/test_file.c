/* Files and UTF-8: what is read, what wrong names are told, and that a file is replaced whole or
 * not at all. */
#include "harness.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64];

static const char *in_folder(const char *name) {
    static char path[4][256];
    static int turn;
    char *p = path[turn++ % 4];
    snprintf(p, 256, "%s/%s", folder, name);
    return p;
}

static int make_folder(void **state) {
    (void)state;
    strcpy(folder, "/tmp/qkv-test-file-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static int entries(void) {
    int n = 0;
    DIR *d = opendir(folder);
    while (readdir(d)) n++;
    closedir(d);
    return n - 2;
}

static void test_round_trip(void **state) {
    (void)state;
    const char *path = in_folder("a.bin");
    char data[5000];
    for (size_t i = 0; i < sizeof data; i++) data[i] = (char)(i * 31);
    static const size_t sizes[] = {0, 1, 4095, 4096, 5000};
    for (size_t i = 0; i < 5; i++) {
        qkv_file f;
        assert_ok(qkv_file_write(path, data, sizes[i]));
        assert_ok(qkv_file_open(path, 5000, &f));
        assert_int_equal(f.size, sizes[i]);
        assert_non_null(f.data);
        assert_memory_equal(f.data, data, sizes[i]);
        qkv_file_close(&f);
    }
    assert_int_equal(entries(), 1); /* no temporary left */
    qkv_file f;
    assert_fails(qkv_file_open(path, 4999, &f), QKV_BAD_FILE, "larger than 4999 bytes");
}

static void test_wrong_names(void **state) {
    (void)state;
    qkv_file f;
    assert_ok(qkv_file_write(in_folder("config.json"), "{}", 2));
    assert_fails(qkv_file_open(in_folder("confg.json"), 10, &f), QKV_FAILED,
                 "did you mean config.json?");
    assert_fails(qkv_file_open(in_folder("completely-else"), 10, &f), QKV_FAILED,
                 "there is no such file");
    assert_null(strstr(qkv_error(), "did you mean"));
    assert_fails(qkv_file_open(in_folder("no/where"), 10, &f), QKV_FAILED, "there is no folder");
    assert_fails(qkv_file_open(folder, 10, &f), QKV_FAILED, "a folder, not a file");
    assert_fails(qkv_file_open(in_folder("config.json/x"), 10, &f), QKV_FAILED, "Not a directory");
    assert_fails(qkv_file_write(folder, "x", 1), QKV_FAILED, "a folder, not a file");
    assert_fails(qkv_file_write(in_folder("no/where"), "x", 1), QKV_FAILED, "there is no folder");
    assert_fails(qkv_folder_make(in_folder("config.json/sub")), QKV_FAILED,
                 "cannot make the folder");
    assert_ok(qkv_folder_make(in_folder("one/two/three")));
    assert_ok(qkv_folder_make(in_folder("one/two/three/")));
    assert_true(qkv_file_exists(in_folder("one/two/three")));
    assert_fails(qkv_folder_make(in_folder("config.json")), QKV_FAILED, "is there and is a file");
}

static void test_pipe_and_link(void **state) {
    (void)state;
    qkv_file f;
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    pid_t child = fork();
    if (child == 0) {
        FILE *out = fopen(in_folder("pipe"), "w");
        for (int i = 0; i < 100000; i++) fputc('x', out);
        fclose(out);
        _exit(0);
    }
    assert_ok(qkv_file_open(in_folder("pipe"), 100000, &f));
    assert_int_equal(f.size, 100000);
    assert_false(f.mapped);
    qkv_file_close(&f);
    waitpid(child, NULL, 0);
    assert_fails(qkv_file_open("/dev/zero", 100000, &f), QKV_FAILED, "may never end");
    assert_ok(qkv_file_write("/dev/null", "abc", 3));

    /* A link to a file stays a link; the file behind it is replaced. */
    assert_ok(qkv_file_write(in_folder("real"), "1", 1));
    assert_int_equal(symlink("real", in_folder("link")), 0);
    assert_ok(qkv_file_write(in_folder("link"), "22", 2));
    struct stat s;
    assert_int_equal(lstat(in_folder("link"), &s), 0);
    assert_true(S_ISLNK(s.st_mode));
    assert_int_equal(stat(in_folder("real"), &s), 0);
    assert_int_equal(s.st_size, 2);
}

/* A write that fails leaves the old content and no temporary file. */
static void test_failed_write(void **state) {
    (void)state;
    const char *path = in_folder("kept");
    assert_ok(qkv_file_write(path, "old", 3));
    int before = entries();
    static char large[1 << 20];
    struct rlimit old, small = {1 << 16, RLIM_INFINITY};
    getrlimit(RLIMIT_FSIZE, &old);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    qkv_status status = qkv_file_write(path, large, sizeof large);
    qkv_writer w;
    qkv_status opened = qkv_writer_open(&w, path, 0); /* not reserved: fails in the middle */
    qkv_writer_add(&w, large, sizeof large);
    qkv_writer_add(&w, large, 1);
    qkv_status committed = qkv_writer_commit(&w);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(status, QKV_FAILED);
    assert_int_equal(opened, QKV_OK);
    assert_int_equal(committed, QKV_FAILED);
    assert_non_null(strstr(qkv_error(), "cannot write"));
    assert_int_equal(entries(), before);
    qkv_file f;
    assert_ok(qkv_file_open(path, 10, &f));
    assert_memory_equal(f.data, "old", 3);
    qkv_file_close(&f);
}

static void test_out_of_memory(void **state) {
    (void)state;
    const char *path = in_folder("memory");
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        uint64_t live = qkv_mem_count().live;
        qkv_mem_fail(n, true);
        failed = qkv_file_write(path, "abc", 3) != QKV_OK;
        qkv_mem_fail(0, false);
        assert_int_equal(qkv_mem_count().live, live);
        assert_true(n < 100);
    }
}

/* A link under the name that a temporary file used to have is not written through. */
static void test_planted_link(void **state) {
    (void)state;
    char name[64];
    qkv_file f;
    snprintf(name, sizeof name, "written.tmp-%ld", (long)getpid());
    assert_ok(qkv_file_write(in_folder("victim"), "mine", 4));
    assert_int_equal(symlink("victim", in_folder(name)), 0);
    assert_ok(qkv_file_write(in_folder("written"), "new", 3));
    assert_ok(qkv_file_open(in_folder("victim"), 100, &f));
    assert_int_equal(f.size, 4);
    qkv_file_close(&f);
    assert_int_equal(unlink(in_folder(name)), 0);
}

/* ---- UTF-8 ---- */

static void test_utf8_every_scalar(void **state) {
    (void)state;
    for (int32_t cp = 0; cp <= 0x10FFFF; cp++) {
        if (cp >= 0xD800 && cp < 0xE000) continue;
        char bytes[4];
        int32_t back;
        int n = qkv_utf8_encode(cp, bytes);
        if (qkv_utf8_decode(bytes, (size_t)n, &back) != n || back != cp)
            fail_msg("U+%04X", (unsigned)cp);
        /* Any of its bytes belongs to it. */
        char text[5] = "a";
        memcpy(text + 1, bytes, (size_t)n);
        for (int at = 1; at <= n; at++)
            if (qkv_utf8_start(text, (size_t)at) != 1) fail_msg("U+%04X begins", (unsigned)cp);
        /* Cut short, it is malformed and known to be unfinished. */
        for (int cut = 1; cut < n; cut++) {
            if (qkv_utf8_decode(bytes, (size_t)cut, &back) != 1 || back != -1)
                fail_msg("U+%04X cut", (unsigned)cp);
            if (qkv_utf8_complete(bytes, (size_t)cut) != 0)
                fail_msg("U+%04X unfinished", (unsigned)cp);
        }
        if (qkv_utf8_complete(bytes, (size_t)n) != (size_t)n)
            fail_msg("U+%04X complete", (unsigned)cp);
    }
}

static void test_utf8_malformed(void **state) {
    (void)state;
    static const char *const bad[] = {"\x80",
                                      "\xBF",
                                      "\xC0\x80",
                                      "\xC1\xBF",
                                      "\xE0\x80\x80",
                                      "\xE0\x9F\xBF",
                                      "\xED\xA0\x80",
                                      "\xED\xBF\xBF",
                                      "\xF0\x80\x80\x80",
                                      "\xF0\x8F\xBF\xBF",
                                      "\xF4\x90\x80\x80",
                                      "\xF5\x80\x80\x80",
                                      "\xFF",
                                      "\xFE",
                                      "\xC3(",
                                      "\xE2\x82(",
                                      "\xF0\x9F\x98("};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int32_t cp = 0;
        assert_int_equal(qkv_utf8_decode(bad[i], strlen(bad[i]), &cp), 1);
        assert_int_equal(cp, -1);
        char text[32];
        snprintf(text, sizeof text, "0123456789abc\xC3\xA9%s", bad[i]);
        assert_int_equal(qkv_utf8_valid(text, strlen(text)), 15);
    }
    const char *text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xFFz";
    assert_int_equal(qkv_utf8_count(text, strlen(text)), 6);
    assert_int_equal(qkv_utf8_complete("ab\xF0\x9F\x98", 5), 2);
    assert_int_equal(qkv_utf8_complete("", 0), 0);
    assert_int_equal(qkv_utf8_complete("\x80\x80\x80\x80", 4),
                     4); /* never a character: nothing to wait for */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),     cmocka_unit_test(test_wrong_names),
        cmocka_unit_test(test_pipe_and_link),  cmocka_unit_test(test_failed_write),
        cmocka_unit_test(test_out_of_memory),  cmocka_unit_test(test_utf8_every_scalar),
        cmocka_unit_test(test_utf8_malformed), cmocka_unit_test(test_planted_link),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
