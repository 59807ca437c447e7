/* One model, many sessions on many threads: the answers are those of one thread. Built with the
 * thread sanitizer by tests/long_sessions.sh, which also runs it for longer (QKV_TEST_SECONDS). */
#include "folders.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 8, SESSIONS = 64, KINDS = 5 };

static const qkv_text texts[] = {
    {"one two and three", 17}, {"seven", 5}, {"six five and four", 17}, {"two", 3}};
enum { TEXTS = 4 };

static qkv_text_model *classifier, *translator, *writer;

/* The answer of one session as text: the same for the same number, on any thread. */
static qkv_status answer(int number, char *out, size_t size) {
    const qkv_text *text = &texts[number / KINDS % TEXTS];
    float v[64];
    switch (number % KINDS) {
    case 0:
        QKV_TRY(qkv_classify(classifier, text, 1, v));
        snprintf(out, size, "%.9g %.9g", (double)v[0], (double)v[1]);
        return QKV_OK;
    case 1:
        QKV_TRY(qkv_embed(classifier, text, 1, v));
        snprintf(out, size, "%.9g %.9g", (double)v[0], (double)v[15]);
        return QKV_OK;
    case 2: {
        qkv_translations t;
        QKV_TRY(qkv_translate(translator, text, 1, &(qkv_translate_options){.beam = 2}, &t));
        snprintf(out, size, "%.200s %.9g", t.at[0].text, t.at[0].log_prob);
        qkv_translations_free(&t);
        return QKV_OK;
    }
    case 3: {
        char *written;
        const qkv_generate_options how = {.tokens = 12, .temperature = 1, .seed = (uint64_t)number};
        QKV_TRY(qkv_generate(writer, text->data, text->len, &how, &written, NULL));
        snprintf(out, size, "%.200s", written);
        qkv_text_free(written);
        return QKV_OK;
    }
    default: {
        qkv_attention_parts a;
        QKV_TRY(qkv_attention_of(classifier, text, NULL, &a));
        snprintf(out, size, "%.9g", (double)a.at[0].weights[1]);
        qkv_attention_free(&a);
        return QKV_OK;
    }
    }
}

static char wanted[SESSIONS][256];
static atomic_int wrong;
static double seconds;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *work(void *mine) {
    const int first = *(const int *)mine;
    const double until = now() + seconds;
    char got[256];
    qkv_threads_set(1);
    do {
        for (int i = first; i < SESSIONS; i += THREADS)
            if (answer(i, got, sizeof got) != QKV_OK || strcmp(got, wanted[i]) != 0)
                atomic_fetch_add(&wrong, 1);
    } while (now() < until);
    return NULL;
}

static void sessions_on_many_threads_answer_as_one(void **state) {
    (void)state;
    char folder[64], path[128];
    const char *set = getenv("QKV_TEST_SECONDS");
    seconds = set ? atof(set) : 0;
    make_temporary(folder);
    qkv_threads_set(1);
    const struct {
        const char *task;
        qkv_text_model **model;
    } models[] = {{"classify", &classifier}, {"translate", &translator}, {"lm", &writer}};
    for (int i = 0; i < 3; i++) {
        make_model_folder(folder, models[i].task, NULL);
        snprintf(path, sizeof path, "%s/%s", folder, models[i].task);
        assert_ok(qkv_text_model_open(path, models[i].model));
    }
    for (int i = 0; i < SESSIONS; i++) assert_ok(answer(i, wanted[i], sizeof wanted[i]));
    pthread_t threads[THREADS];
    int number[THREADS];
    for (int i = 0; i < THREADS; i++) {
        number[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &number[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&wrong), 0);
    for (int i = 0; i < 3; i++) qkv_text_model_close(*models[i].model);
    remove_temporary(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sessions_on_many_threads_answer_as_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
