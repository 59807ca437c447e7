/* Replays tests/corpus/<target>/ through the fuzz targets:
 * seeds, and everything that a fuzzer ever found. */
#include "harness.h"
#include "base/file.h"
#include "fuzz.h"

#include <dirent.h>
#include <stdlib.h>

static const struct target {
    const char *name;
    void (*run)(const uint8_t *data, size_t n);
} targets[] = {
#define FUZZ(name) {#name, fuzz_##name},
#include "fuzz.def"
#undef FUZZ
};

/* Runs one input, and each of its prefixes when it is small. */
static void replay(const struct target *t, const char *data, size_t n) {
    uint8_t *exact = malloc(n + !n); /* no byte behind it, so that a read too far is seen */
    memcpy(exact, data, n);
    t->run(exact, n);
    free(exact);
    for (size_t cut = 0; cut < n && n < 1000; cut++) {
        exact = malloc(cut + !cut);
        memcpy(exact, data, cut);
        t->run(exact, cut);
        free(exact);
    }
}

static void test_corpus(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        char folder[256];
        snprintf(folder, sizeof folder, SOURCE_DIR "/tests/corpus/%s", targets[i].name);
        DIR *dir = opendir(folder);
        if (!dir) fail_msg("%s: a target needs at least one seed there", folder);
        const struct dirent *entry;
        int n = 0;
        while ((entry = readdir(dir))) {
            if (entry->d_name[0] == '.') continue;
            qkv_buf path = {0};
            qkv_file f;
            assert_ok(qkv_path_join(&path, folder, entry->d_name));
            assert_ok(qkv_file_open(path.data, 1 << 24, &f));
            replay(&targets[i], f.data, f.size);
            qkv_file_close(&f);
            qkv_buf_free(&path);
            n++;
        }
        closedir(dir);
        assert_true(n > 0);
        print_message("%s: %d inputs\n", targets[i].name, n);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_corpus)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
