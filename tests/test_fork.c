/* A process that has used threads may fork: the child works on, with one thread, to the same bits. */
#include "folders.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXTS = 64 };

static char folder[64], model[128];

static int make(void **state) {
    (void)state;
    make_temporary(folder);
    qkv_threads_set(2);
    make_model_folder(folder, "classify", NULL);
    snprintf(model, sizeof model, "%s/classify", folder);
    return 0;
}

static int clear(void **state) {
    (void)state;
    remove_temporary(folder);
    return 0;
}

static qkv_status classify(const qkv_text_model *m, float p[2 * TEXTS]) {
    qkv_text texts[TEXTS];
    for (int i = 0; i < TEXTS; i++)
        texts[i] = (qkv_text){"three four and five", 5 + (size_t)i % 14};
    return qkv_classify(m, texts, TEXTS, p);
}

static void a_child_answers(void **state) {
    (void)state;
    qkv_text_model *m;
    float want[2 * TEXTS], got[2 * TEXTS];
    assert_ok(qkv_text_model_open(model, &m));
    assert_ok(classify(m, want));
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(20); /* a child that waits for threads which it has not got */
        qkv_text_model *own;
        bool same = classify(m, got) == QKV_OK && memcmp(got, want, sizeof want) == 0;
        same = same && qkv_text_model_open(model, &own) == QKV_OK && classify(own, got) == QKV_OK &&
               memcmp(got, want, sizeof want) == 0;
        _exit(same ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_ok(classify(m, got)); /* the parent goes on as before */
    assert_memory_equal(got, want, sizeof want);
    qkv_text_model_close(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_child_answers)};
    return cmocka_run_group_tests(tests, make, clear);
}
