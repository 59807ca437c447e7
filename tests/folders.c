#include "folders.h"

#include <stdlib.h>

void make_temporary(char out[64]) {
    const char *root = getenv("TMPDIR");
    snprintf(out, 64, "%.40s/qkv_test_XXXXXX", root ? root : "/tmp");
    assert_non_null(mkdtemp(out));
}

void remove_temporary(const char *folder) {
    char command[100];
    snprintf(command, sizeof command, "rm -rf '%.64s'", folder);
    assert_int_equal(system(command), 0);
}

void make_model_folder(const char *folder, const char *task, const char *const *extra) {
    static const char *const numbers[] = {"one", "two", "three", "four", "five", "six", "seven"};
    enum { ROWS = 60 };
    static char text[ROWS][80], digits[ROWS][16];
    static qkv_train_row rows[ROWS];
    for (int i = 0; i < ROWS; i++) {
        const int a = i % 7, b = i / 7 % 7, c = i * 3 % 7;
        snprintf(text[i], sizeof text[i], "%s %s and %s", numbers[a], numbers[b], numbers[c]);
        snprintf(digits[i], sizeof digits[i], "%d %d %d", a + 1, b + 1, c + 1);
        rows[i] = (qkv_train_row){.label = {a > b ? "falling" : "rising", a > b ? 7 : 6},
                                  .text = {text[i], strlen(text[i])}};
        if (strcmp(task, "translate") == 0)
            rows[i].second = (qkv_text){digits[i], strlen(digits[i])};
    }
    const char *set[32] = {"arch=transformer", "d_model=16", "layers=2",         "heads=2",
                           "d_ff=24",          "max_len=40", "seed=1",           "steps=2",
                           "vocab_size=300",   "dropout=0",  "batch_tokens=512", NULL};
    for (size_t n = 11; extra && *extra && n < 31; n++) set[n] = *extra++;
    char out[200];
    snprintf(out, sizeof out, "%s/%s", folder, task);
    assert_ok(qkv_train(&(qkv_train_request){
        .task = task, .rows = rows, .n_rows = ROWS, .out = out, .set = set, .overwrite = true}));
}
